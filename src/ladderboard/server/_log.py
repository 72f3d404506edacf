"""The log, without secrets: one JSON object a line; on a terminal words, of what goes wrong."""

from __future__ import annotations

import json
import logging
import sys
import threading
import time
import traceback
import warnings
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ladderboard._formatting import format_time
from ladderboard.errors import LadderboardError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import TracebackType
    from typing import TextIO

_HERE = Path(__file__).parents[1]
_JUMP = 2.0  # seconds between two looks that a time service does not make up for bit by bit


class ServerLog:
    """Writes lines. None holds a token, a name, a message, a score, a body or a query string."""

    def __init__(self, to: TextIO | None, clock: Callable[[], int]) -> None:
        self._to, self._clock = to, clock

    def write(self, event: str, **fields: Any) -> None:
        """Write one line."""
        now = self._clock()
        to = sys.stderr if self._to is None else self._to
        try:
            if to.isatty():
                to.write(_format_for_terminal(datetime.fromtimestamp(now, UTC), event, fields))
                return
            line = json.dumps({"time": format_time(now), "event": event, **fields})
            to.write(line + "\n")  # standard error is flushed with every line anyway
        except (OSError, ValueError):  # a full disk or a closed pipe ends no server
            return

    def write_error(self, error: BaseException, request: str | None = None) -> None:
        """Write what went wrong, and in which request if it was in one: its type and where.

        A sentence of our own about a database or a file is for whoever keeps the server. The text
        of any other exception may hold anything.
        """
        said = {"said": " ".join(str(error).split())} if isinstance(error, LadderboardError) else {}
        where = {} if request is None else {"request": request}
        self.write("error", **where, error=type(error).__name__, **said, at=traceback_lines(error))


def _format_for_terminal(now: datetime, event: str, fields: dict[str, Any]) -> str:
    r"""Return a line for a terminal, empty for what goes well: a new token stays in sight.

    >>> now = datetime(2026, 11, 16, 14, 5, tzinfo=UTC)
    >>> _format_for_terminal(now, "worker", {"state": "ended"})
    '14:05:00 UTC worker: state ended\n'
    """
    if event in {"start", "stop"} or (event == "request" and fields.get("status", 500) < 500):
        return ""
    said = ", ".join(f"{name} {value}" for name, value in fields.items())
    return f"{now:%H:%M:%S} UTC {event}: {said}\n"


def traceback_lines(error: BaseException) -> list[str]:
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


def machine_time() -> int:
    """Return the time by this machine's clock."""
    return int(time.time())


@contextmanager
def log_everything(log: ServerLog) -> Iterator[None]:
    """Write warnings, other libraries' messages and uncaught exceptions to the log, too.

    Python would print them as plain text. Of what is not our own only the kind and the place are
    written, because the text may hold anything. A program that has set up logging keeps its way.
    """
    root, handler = logging.getLogger(), _LogHandler(log)
    before = sys.excepthook, threading.excepthook, sys.unraisablehook, warnings.showwarning

    def uncaught(kind: type[BaseException], error: BaseException, _: TracebackType | None) -> None:
        if not issubclass(kind, KeyboardInterrupt):
            log.write_error(error)

    def failed(args: Any) -> None:  # of a thread, or of a destructor
        if args.exc_value is not None and not isinstance(args.exc_value, SystemExit):
            log.write_error(args.exc_value)

    def warned(_: Any, category: type[Warning], filename: str, lineno: int, *_more: Any) -> None:
        log.write("warning", kind=category.__name__, at=[f"{Path(filename).name}:{lineno}"])

    if not root.handlers:
        root.addHandler(handler)
    sys.excepthook, threading.excepthook, sys.unraisablehook = uncaught, failed, failed
    warnings.showwarning = warned  # type: ignore[assignment]  # whose last two are optional
    try:
        yield
    finally:
        root.removeHandler(handler)
        sys.excepthook, threading.excepthook, sys.unraisablehook, warnings.showwarning = before


@contextmanager
def worker_log(to: TextIO | None = None) -> Iterator[None]:
    """Write everything that goes wrong in a worker to the log, also what ends it."""
    log = ServerLog(to, machine_time)
    with log_everything(log):
        try:
            yield
        except Exception as error:  # which would be printed as plain text
            log.write_error(error)
            raise SystemExit(1) from error


class _LogHandler(logging.Handler):
    """Writes what goes through ``logging`` as lines of the log."""

    def __init__(self, log: ServerLog) -> None:
        super().__init__(logging.WARNING)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record."""
        fields: dict[str, Any] = {"logger": record.name, "level": record.levelname.lower()}
        if record.name.partition(".")[0] == "ladderboard":
            fields["said"] = " ".join(record.getMessage().split())
        error = record.exc_info[1] if record.exc_info else None
        if error is not None:
            fields |= {"error": type(error).__name__, "at": traceback_lines(error)}
        else:
            fields["at"] = [f"{record.filename}:{record.lineno} {record.funcName}"]
        self._log.write("log", **fields)


class ClockWatch:
    """Notices when the machine's clock is set forward or back.

    Parameters
    ----------
    log
        Gets a line for each time, with by how many seconds.
    on_jump
        Is called each time.
    """

    def __init__(self, log: ServerLog, on_jump: Callable[[], object]) -> None:
        self._log, self._on_jump = log, on_jump
        self._ahead = self._now()

    def check(self) -> None:
        """Compare the clock with the last look; to be called every second or so."""
        ahead = self._now()
        moved, self._ahead = ahead - self._ahead, ahead
        if abs(moved) > _JUMP:
            self._log.write("clock", moved=round(moved, 1))
            self._on_jump()

    @staticmethod
    def _now() -> float:
        """Return by how much the clock is ahead of one that nobody sets."""
        if hasattr(time, "CLOCK_BOOTTIME"):  # which goes on while the machine sleeps
            return time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
        return time.time() - time.monotonic()
