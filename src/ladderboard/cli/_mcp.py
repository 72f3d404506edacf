"""``ladderboard mcp``: a guard or a board as tools for an agent."""

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
            help="Where a guard is served, as http://127.0.0.1:8765 or unix:/path; or a board's "
            "page, as https://HOST/boards/NAME.",
        ),
    ],
    *,
    folder: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH",
            help="Let the agent name files of predictions in this folder; none if left out.",
        ),
    ] = None,
    ladder: Annotated[
        str,
        typer.Option(metavar="NAME", help="On a guard: ask on a ladder of this name."),
    ] = "",
) -> None:
    """Give an agent tools to ask a guard or a board, over the Model Context Protocol.

    An agent's host runs this and speaks with it on stdin and stdout; it ends when they do. The
    token is read from LADDERBOARD_TOKEN, and is never told.

    Exit codes: 0 the host has hung up; 2 what was given cannot be used.
    """
    from ladderboard.adapters.mcp import open_desk, serve  # noqa: PLC0415 - keeps --help fast

    desk = open_desk(target, folder=folder, ladder=ladder)
    if sys.stdin is None:
        raise InvalidSetting("An agent's host speaks with this on stdin, which is closed.")
    if sys.stdin.isatty():
        echo_err("This speaks with an agent's host, not with people; Ctrl-C ends it.")
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # stdin is read in a thread, which would not end
    serve(desk)
    # A thread may still wait for an answer that nobody is left to hear.
    sys.stderr.flush()
    os._exit(0)
