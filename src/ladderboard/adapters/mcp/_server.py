"""The server: the official SDK's, with a toolset behind it."""

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
_AT_ONCE = 8
_LONGEST = 8_000  # of a refusal, in characters
_AGAIN = "The same predictions may be sent again: they never cost twice."


def make_server(toolset: Toolset) -> Any:
    """Return an ``mcp.server.Server`` whose tools are those of a toolset."""
    sdk = import_library("mcp.server", extra="mcp")
    anyio = import_library("anyio", extra="mcp")
    kinds = import_library("mcp_types", extra="mcp")
    threads = anyio.CapacityLimiter(_AT_ONCE)
    names = [tool.name for tool in toolset.tools]

    async def list_tools(_context: Any, _params: Any) -> Any:
        return kinds.ListToolsResult(tools=[_sdk_tool(tool, kinds) for tool in toolset.tools])

    async def call_tool(_context: Any, params: Any) -> Any:
        if params.name not in names:
            there_is = ", ".join(names)
            return _sdk_result(kinds, f"There is no tool of that name; there is {there_is}.")
        try:
            # Whoever hangs up is not waited for; a question that was sent is asked all the same.
            said = await anyio.to_thread.run_sync(
                toolset.call,
                params.name,
                params.arguments or {},
                abandon_on_cancel=True,
                limiter=threads,
            )
            return _sdk_result(kinds, said.text, _sendable(said.content))
        except LadderboardError as error:
            return _sdk_result(kinds, refusal_message(error))
        except Exception:  # the SDK would hand its words to the agent
            _logger.exception("%s failed", params.name)
            return _sdk_result(
                kinds, f"Something that should not happen did; the log has it. {_AGAIN}"
            )

    return sdk.Server(
        "ladderboard",
        version=__version__,
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def serve(toolset: Toolset) -> None:
    """Speak the protocol on stdin and stdout until stdin ends.

    Nothing else goes to stdout: whatever is printed meanwhile goes to stderr.
    """
    stdio = import_library("mcp.server.stdio", extra="mcp")
    anyio = import_library("anyio", extra="mcp")
    server = make_server(toolset)

    async def speak() -> None:
        async with stdio.stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())

    try:
        anyio.run(speak)
    except* (OSError, anyio.BrokenResourceError):
        _logger.warning("Whoever asked has gone.")
    finally:
        toolset.close()


def refusal_message(error: LadderboardError) -> str:
    """Return what was refused and what to do about it; problems are listed one a line."""
    said = str(error)
    if isinstance(error, InvalidInput):
        said += "\nNothing was spent."
    elif isinstance(error, BudgetSpent | SessionClosed):
        said += "\nAsk no more, and report the last model that improved; standing tells which."
    elif isinstance(error, NotAllowed):
        said += (
            "\nThis is not about your predictions, and trying again does not help: tell whoever "
        )
        said += "started you. Nothing was spent."
    elif isinstance(error, GuardUnreachable | ServerUnreachable | StorageFailed):
        said += f"\nThis is not about your predictions; wait a little and try again. {_AGAIN}"
    return said if len(said) <= _LONGEST else f"{said[:_LONGEST]}..."


def _sdk_result(kinds: Any, text: str, content: dict[str, Any] | None = None) -> Any:
    """Return a tool's result; without fields it is a refusal."""
    # Halves of characters, for one, cannot be sent.
    block = kinds.TextContent(type="text", text=printable(text, keep="\n"))
    if content is None:
        return kinds.CallToolResult(content=[block], is_error=True)
    return kinds.CallToolResult(content=[block], structured_content=content)


def _sendable(content: dict[str, Any]) -> dict[str, Any]:
    """Return fields as JSON can carry them: one half of a character would end the connection."""
    written = json.dumps(content, ensure_ascii=False, allow_nan=False)
    read: dict[str, Any] = json.loads(written.encode("utf-8", "replace"))
    return read


def _sdk_tool(tool: Any, kinds: Any) -> Any:
    return kinds.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=tool.input_schema,
        output_schema=tool.output_schema,
        annotations=kinds.ToolAnnotations(
            read_only_hint=not tool.spends_question,
            destructive_hint=False,
            idempotent_hint=True,
            open_world_hint=False,
        ),
    )
