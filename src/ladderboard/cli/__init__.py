"""Verbs on the command line, no logic.

``main`` is the program ``ladderboard``, and ``python -m ladderboard`` is the same. What cannot be
done is one line on stderr and exit code 2.
"""

from __future__ import annotations

import gc
import sys

from ladderboard.errors import LadderboardError

__all__ = ["main"]

_EXTRAS = {
    "guard": "guard",
    **dict.fromkeys(("serve", "board", "team", "backup"), "server"),
    **dict.fromkeys(("settings", "doctor"), "client"),  # the least: they look at what there is
    **dict.fromkeys(
        ("login", "submit", "submissions", "leaderboard", "ledger", "verify"), "client"
    ),
    "mcp": "mcp",
}
"""Verbs with exit codes of their own, and the extras that they come with."""
_ARENA_COMMANDS = {"plan", "calibrate", "attack", "experiment"}


def main() -> None:
    """Run the program ``ladderboard``."""
    words = sys.argv[1:]
    first = words[0] if words else ""
    if first == "guard":
        # A guard asked from a shell lives for a third of a second. Much of that would go to looking
        # for garbage among modules that are being loaded.
        gc.set_threshold(100_000)
    try:
        from ladderboard.cli._app import app  # noqa: PLC0415 - typer is optional
        from ladderboard.cli._output import exit_with_error  # noqa: PLC0415 - not before it is known
    except ImportError as error:
        # The least that there is shows what there is.
        extra = _EXTRAS.get(first, "arena" if first in _ARENA_COMMANDS else "client")
        needed = f"The command line needs {error.name}: pip install 'ladderboard[{extra}]'"
        needed += f", in a clone '.[{extra}]'."
        print(f"ladderboard: {needed}", file=sys.stderr)  # noqa: T201
        sys.exit(2)
    if first in _EXTRAS:
        from ladderboard.cli._run import run_command  # noqa: PLC0415 - only for its verbs

        run_command(app, words)
    try:
        app(prog_name="ladderboard")
    except LadderboardError as error:
        exit_with_error(error)
    except BrokenPipeError:
        # Whoever read us has gone, as `| head` does. Nothing is left to be said.
        sys.stderr.close()
        sys.exit(1)
