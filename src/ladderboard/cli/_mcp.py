"""``ladderboard mcp``: a guard, a gate or a board as tools for an agent."""

import os
import signal
import sys
from pathlib import Path
from typing import Annotated

import typer

from ladderboard.cli._output import echo_err
from ladderboard.errors import InvalidSetting


def mcp(
    target: Annotated[
        str,
        typer.Argument(
            metavar="TARGET",
            help="A served guard or gate, as http://127.0.0.1:8765 or unix:/path; or a board's "
            "page, as https://HOST/boards/NAME.",
        ),
    ],
    *,
    folder: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH",
            help="Let the agent submit files of predictions from this folder; none if left out.",
        ),
    ] = None,
    ladder: Annotated[
        str,
        typer.Option(metavar="NAME", help="For a guard: ask on the ladder with this name."),
    ] = "",
    gate: Annotated[
        bool, typer.Option("--gate", help="The address is that of a gate, not of a guard.")
    ] = False,
) -> None:
    """Serve a guard, a gate or a board to an agent, as tools of the Model Context Protocol.

    The agent's host starts this and talks to it on stdin and stdout; it ends when they are closed.
    The token is read from LADDERBOARD_TOKEN, and is never shown to the agent.

    Exit codes: 0 the host closed the connection; 2 invalid arguments.
    """
    from ladderboard.adapters.mcp import open_toolset, serve  # noqa: PLC0415 - keeps --help fast

    toolset = open_toolset(target, folder=folder, ladder=ladder, gate=gate)
    if sys.stdin is None:
        raise InvalidSetting("stdin is closed; an agent's host talks to this command on stdin.")
    if sys.stdin.isatty():
        echo_err("This command is for an agent's host, not for people; Ctrl-C ends it.")
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # a thread reads stdin, and would not end
    serve(toolset)
    # A thread may still wait for an answer that has no reader left.
    sys.stderr.flush()
    os._exit(0)
