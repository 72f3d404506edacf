"""The way in, and what is said when something cannot be done."""

from __future__ import annotations

import sys
from typing import NoReturn

from ladderboard.errors import LadderboardError

__all__ = ["main"]


def main() -> None:
    """Run the program ``ladderboard``."""
    try:
        from ladderboard.cli._app import app  # noqa: PLC0415 - typer is optional
    except ImportError as error:
        _refuse(f"The command line needs {error.name}: pip install 'ladderboard[arena]'.")
    try:
        app(prog_name="ladderboard")
    except LadderboardError as error:
        _refuse(str(error))
    except BrokenPipeError:
        # Whoever read us has gone, as `| head` does. Nothing is left to be said.
        sys.stderr.close()
        sys.exit(1)


def _refuse(sentence: str) -> NoReturn:
    print(f"ladderboard: {' '.join(sentence.split())}", file=sys.stderr)  # noqa: T201
    sys.exit(2)
