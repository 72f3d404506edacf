"""The MCP server: that of the official SDK, which calls the tools of a toolset."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Any

from ladderboard._formatting import printable
from ladderboard._version import __version__
from ladderboard.adapters import import_library
from ladderboard.adapters.mcp._tools import INSTRUCTIONS
from ladderboard.errors import (
    BudgetSpent,
    GuardUnreachable,
    InvalidInput,
    LadderboardError,
    NotAllowed,
    ServerUnreachable,
    SessionClosed,
    StorageFailed,
)

if TYPE_CHECKING:
    from ladderboard.adapters.mcp._tools import Toolset

_logger = logging.getLogger("ladderboard.mcp")
_MAX_THREADS = 8
_MAX_REFUSAL_LENGTH = 8_000
_RETRY_IS_FREE = "The same predictions may be sent again: they never cost twice."


def make_server(toolset: Toolset) -> Any:
    """Return an ``mcp.server.Server`` whose tools are those of a toolset."""
    sdk = import_library("mcp.server", extra="mcp")
    anyio = import_library("anyio", extra="mcp")
    types = import_library("mcp_types", extra="mcp")
    threads = anyio.CapacityLimiter(_MAX_THREADS)
    names = [tool.name for tool in toolset.tools]

    async def list_tools(_context: Any, _params: Any) -> Any:
        return types.ListToolsResult(tools=[_sdk_tool(tool, types) for tool in toolset.tools])

    async def call_tool(_context: Any, params: Any) -> Any:
        if params.name not in names:
            return _sdk_result(types, f"Unknown tool. The tools are {', '.join(names)}.")
        try:
            # A cancelled call is not waited for, but a question that was sent still counts.
            result = await anyio.to_thread.run_sync(
                toolset.call,
                params.name,
                params.arguments or {},
                abandon_on_cancel=True,
                limiter=threads,
            )
            return _sdk_result(types, result.text, _sendable(result.content))
        except LadderboardError as error:
            return _sdk_result(types, refusal_message(error))
        except Exception:  # the SDK would send its message to the agent
            _logger.exception("%s failed", params.name)
            return _sdk_result(types, f"Internal error; the log has details. {_RETRY_IS_FREE}")

    return sdk.Server(
        "ladderboard",
        version=__version__,
        instructions=getattr(toolset, "instructions", INSTRUCTIONS),
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def serve(toolset: Toolset) -> None:
    """Speak the protocol on stdin and stdout until stdin ends.

    Only the protocol goes to stdout; anything printed meanwhile goes to stderr.
    """
    stdio = import_library("mcp.server.stdio", extra="mcp")
    anyio = import_library("anyio", extra="mcp")
    server = make_server(toolset)

    async def run() -> None:
        async with stdio.stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())

    try:
        anyio.run(run)
    except* (OSError, anyio.BrokenResourceError):
        _logger.warning("The client has disconnected.")
    finally:
        toolset.close()


def refusal_message(error: LadderboardError) -> str:
    """Return the problems, one a line, and what to do."""
    message = str(error)
    if isinstance(error, InvalidInput):
        message += "\nNothing was spent."
    elif isinstance(error, BudgetSpent | SessionClosed):
        message += "\nStop asking, and report the model that standing names."
    elif isinstance(error, NotAllowed):
        message += "\nYour predictions are not the cause, and trying again does not help: tell "
        message += "the user who started you. Nothing was spent."
    elif isinstance(error, GuardUnreachable | ServerUnreachable | StorageFailed):
        message += "\nYour predictions are not the cause; wait a little and try again. "
        message += _RETRY_IS_FREE
    if len(message) <= _MAX_REFUSAL_LENGTH:
        return message
    return f"{message[:_MAX_REFUSAL_LENGTH]}..."


def _sdk_result(types: Any, text: str, content: dict[str, Any] | None = None) -> Any:
    """Return a tool's result; a refusal if there is no content."""
    # The protocol cannot carry surrogates, for example.
    block = types.TextContent(type="text", text=printable(text, keep="\n"))
    if content is None:
        return types.CallToolResult(content=[block], is_error=True)
    return types.CallToolResult(content=[block], structured_content=content)


def _sendable(content: dict[str, Any]) -> dict[str, Any]:
    """Return content that UTF-8 can carry: an unpaired surrogate would end the connection."""
    text = json.dumps(content, ensure_ascii=False, allow_nan=False)
    sendable: dict[str, Any] = json.loads(text.encode("utf-8", "replace"))
    return sendable


def _sdk_tool(tool: Any, types: Any) -> Any:
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=tool.input_schema,
        output_schema=tool.output_schema,
        annotations=types.ToolAnnotations(
            read_only_hint=not tool.spends_question,
            destructive_hint=False,
            idempotent_hint=True,
            open_world_hint=False,
        ),
    )
