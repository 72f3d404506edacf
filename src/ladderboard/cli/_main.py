"""The way in, and what is said when something cannot be done."""

from __future__ import annotations

import gc
import sys

from ladderboard.errors import LadderboardError

__all__ = ["main"]


def main() -> None:
    """Run the program ``ladderboard``."""
    words = sys.argv[1:]
    if words[:1] == ["guard"]:
        # A guard asked from a shell lives for a third of a second. Much of that would go to looking
        # for garbage among modules that are being loaded.
        gc.set_threshold(100_000)
    try:
        from ladderboard.cli._app import app  # noqa: PLC0415 - typer is optional
        from ladderboard.cli._said import refuse  # noqa: PLC0415 - not before it is known
    except ImportError as error:
        extra = "guard" if words[:1] == ["guard"] else "arena"
        needed = f"The command line needs {error.name}: pip install 'ladderboard[{extra}]'."
        print(f"ladderboard: {needed}", file=sys.stderr)  # noqa: T201
        sys.exit(2)
    if words[:1] == ["guard"]:
        from ladderboard.cli._guard_run import run_guard  # noqa: PLC0415 - only for its verbs

        run_guard(app, words)
    try:
        app(prog_name="ladderboard")
    except LadderboardError as error:
        refuse(error)
    except BrokenPipeError:
        # Whoever read us has gone, as `| head` does. Nothing is left to be said.
        sys.stderr.close()
        sys.exit(1)
