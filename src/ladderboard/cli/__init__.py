"""The command line: commands and their output, no logic of their own.

``main`` is the program ``ladderboard``, and ``python -m ladderboard`` is the same. A refusal is one
line on stderr and exit code 2.
"""

from __future__ import annotations

import gc
import sys

from ladderboard.errors import LadderboardError

__all__ = ["main"]

_EXTRAS = {
    **dict.fromkeys(("guard", "gate", "grade"), "guard"),
    **dict.fromkeys(("serve", "settings", "doctor", "board", "team", "backup"), "server"),
    **dict.fromkeys(
        ("login", "submit", "submissions", "leaderboard", "ledger", "verify"), "client"
    ),
    "mcp": "mcp",
}
"""Commands with exit codes of their own, and the extra that installs each."""
_ARENA_COMMANDS = {"plan", "calibrate", "attack", "experiment"}


def main() -> None:
    """Run the program ``ladderboard``."""
    words = sys.argv[1:]
    first = words[0] if words else ""
    if first in {"guard", "gate", "grade", "submit", "plan"}:
        # `guard ask` runs for a fifth of a second; garbage collection while modules are imported
        # would take much of it.
        gc.set_threshold(100_000)
    try:
        from ladderboard.cli._app import app  # noqa: PLC0415 - typer is optional
        from ladderboard.cli._output import exit_with_error  # noqa: PLC0415 - same
    except ImportError as error:
        extra = _EXTRAS.get(first, "arena" if first in _ARENA_COMMANDS else "client")
        message = f"The command line needs {error.name}: pip install 'ladderboard[{extra}]'"
        message += f", in a clone '.[{extra}]'."
        sys.stderr.write(f"ladderboard: {message}\n")
        sys.exit(2)
    if first in _EXTRAS:
        from ladderboard.cli._run import run_command  # noqa: PLC0415 - only for these commands

        run_command(app, words)
    try:
        if first == "plan":
            from ladderboard.cli._run import run_simple  # noqa: PLC0415 - only for this command

            code = run_simple(words)
            if code is not None:
                sys.exit(code)
        app(prog_name="ladderboard")
    except LadderboardError as error:
        exit_with_error(error)
    except BrokenPipeError:
        # The reader of stdout has gone, as with `| head`.
        sys.stderr.close()
        sys.exit(1)
