"""The log: one JSON object a line, without secrets."""

from __future__ import annotations

import json
import sys
import traceback
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ladderboard.errors import LadderboardError

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TextIO

__all__ = ["Log", "frames"]

_HERE = Path(__file__).parents[1]


class Log:
    """Writes lines. None holds a token, a name, a message, a score, a body or a query string."""

    def __init__(self, to: TextIO | None, clock: Callable[[], int]) -> None:
        self._to, self._clock = to, clock

    def write(self, event: str, **fields: Any) -> None:
        """Write one line."""
        time = datetime.fromtimestamp(self._clock(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        line = json.dumps({"time": time, "event": event, **fields})
        to = sys.stderr if self._to is None else self._to
        try:
            to.write(line + "\n")  # standard error is flushed with every line anyway
        except (OSError, ValueError):  # a full disk or a closed pipe ends no server
            return

    def error(self, error: BaseException, request: str) -> None:
        """Write what went wrong: its type and where.

        A sentence of our own about a database or a file is for whoever keeps the server. The text
        of any other exception may hold anything.
        """
        said = {"said": " ".join(str(error).split())} if isinstance(error, LadderboardError) else {}
        self.write("error", request=request, error=type(error).__name__, **said, at=frames(error))


def frames(error: BaseException) -> list[str]:
    """Return where in our own code an exception came by, and those that it came from."""
    found: list[str] = []
    seen: BaseException | None = error
    while seen is not None and len(found) < 40:
        for each in traceback.extract_tb(seen.__traceback__):
            path = Path(each.filename)
            if path.is_relative_to(_HERE):
                found.append(f"{path.relative_to(_HERE).as_posix()}:{each.lineno} {each.name}")
        seen = seen.__cause__ or seen.__context__
        if seen is not None:
            found.append(f"from {type(seen).__name__}")
    return found
