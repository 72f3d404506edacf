"""The server's log, without secrets: JSON lines; on a terminal only errors, as text."""

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
_JUMP = 2.0  # seconds; time services correct smaller differences gradually


def _is_terminal(stream: TextIO) -> bool:
    try:
        return stream.isatty()
    except ValueError:  # it is closed
        return False


class ServerLog:
    """Writes the log. No line holds a token, name, message, score, body or query string."""

    def __init__(self, stream: TextIO | None, clock: Callable[[], int]) -> None:
        self._stream, self.clock = stream, clock
        self._for_terminal = _is_terminal(sys.stderr if stream is None else stream)

    def write(self, event: str, **fields: Any) -> None:
        """Write one line."""
        now = self.clock()
        stream = sys.stderr if self._stream is None else self._stream
        try:
            if self._for_terminal:
                stream.write(_format_for_terminal(datetime.fromtimestamp(now, UTC), event, fields))
                return
            line = json.dumps({"time": format_time(now), "event": event, **fields})
            stream.write(line + "\n")  # standard error is flushed after every line
        except (OSError, ValueError):  # a full disk or a closed pipe must not stop the server
            return

    def write_error(self, error: BaseException, request: str | None = None) -> None:
        """Write the type and traceback of an exception, and the id of its request.

        Our own exceptions are written with their message. The text of any other exception may hold
        anything, so it is left out.
        """
        message = (
            {"said": " ".join(str(error).split())} if isinstance(error, LadderboardError) else {}
        )
        request_field = {} if request is None else {"request": request}
        self.write(
            "error",
            **request_field,
            error=type(error).__name__,
            **message,
            at=traceback_lines(error),
        )


def _format_for_terminal(now: datetime, event: str, fields: dict[str, Any]) -> str:
    r"""Return a line for a terminal, empty for normal events: a new token stays in sight.

    >>> now = datetime(2026, 11, 16, 14, 5, tzinfo=UTC)
    >>> _format_for_terminal(now, "worker", {"state": "ended"})
    '14:05:00 UTC worker: state ended\n'
    """
    if event in {"start", "stop"} or (event == "request" and fields.get("status", 500) < 500):
        return ""
    text = ", ".join(f"{name} {value}" for name, value in fields.items())
    return f"{now:%H:%M:%S} UTC {event}: {text}\n"


def traceback_lines(error: BaseException) -> list[str]:
    """Return the lines of our code in the traceback of an exception and of its causes."""
    lines: list[str] = []
    current: BaseException | None = error
    while current is not None and len(lines) < 40:
        for frame in traceback.extract_tb(current.__traceback__):
            path = Path(frame.filename)
            if path.is_relative_to(_HERE):
                lines.append(f"{path.relative_to(_HERE).as_posix()}:{frame.lineno} {frame.name}")
        current = current.__cause__ or current.__context__
        if current is not None:
            lines.append(f"from {type(current).__name__}")
    return lines


def machine_time() -> int:
    """Return the time of this machine's clock."""
    return int(time.time())


@contextmanager
def log_everything(log: ServerLog) -> Iterator[None]:
    """Write warnings, other libraries' messages and uncaught exceptions to the log, too.

    Python would print them as plain text. Of other libraries' messages only the type and location
    are written, because the text may hold anything. Existing logging handlers are kept.
    """
    root, handler = logging.getLogger(), _LogHandler(log)
    before = sys.excepthook, threading.excepthook, sys.unraisablehook, warnings.showwarning

    def uncaught(kind: type[BaseException], error: BaseException, _: TracebackType | None) -> None:
        if not issubclass(kind, KeyboardInterrupt):
            log.write_error(error)

    def failed(args: Any) -> None:  # in a thread or a destructor
        if args.exc_value is not None and not isinstance(args.exc_value, SystemExit):
            log.write_error(args.exc_value)

    def warned(_: Any, category: type[Warning], filename: str, lineno: int, *_more: Any) -> None:
        log.write("warning", kind=category.__name__, at=[f"{Path(filename).name}:{lineno}"])

    if not root.handlers:
        root.addHandler(handler)
    sys.excepthook, threading.excepthook, sys.unraisablehook = uncaught, failed, failed
    warnings.showwarning = warned  # type: ignore[assignment]  # its last two parameters are optional
    try:
        yield
    finally:
        root.removeHandler(handler)
        sys.excepthook, threading.excepthook, sys.unraisablehook, warnings.showwarning = before


@contextmanager
def worker_log(stream: TextIO | None = None) -> Iterator[None]:
    """Write all errors of a worker process to the log, also the one that ends it."""
    log = ServerLog(stream, machine_time)
    with log_everything(log):
        try:
            yield
        except Exception as error:  # which would be printed as plain text
            log.write_error(error)
            raise SystemExit(1) from error


class _LogHandler(logging.Handler):
    """Writes records of ``logging`` to the server's log."""

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
    """Detects when the machine's clock is set forward or back.

    Parameters
    ----------
    log
        Gets a line for each jump, with the number of seconds.
    on_jump
        Called at each jump.
    """

    def __init__(self, log: ServerLog, on_jump: Callable[[], object]) -> None:
        self._log, self._on_jump = log, on_jump
        self._ahead = self._clock_offset()

    def check(self) -> None:
        """Compare the clock with the last call; call this about once a second."""
        ahead = self._clock_offset()
        moved, self._ahead = ahead - self._ahead, ahead
        if abs(moved) > _JUMP:
            self._log.write("clock", moved=round(moved, 1))
            self._on_jump()

    @staticmethod
    def _clock_offset() -> float:
        """Return by how much the clock is ahead of the monotonic clock."""
        if hasattr(time, "CLOCK_BOOTTIME"):  # it goes on while the machine sleeps
            return time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
        return time.time() - time.monotonic()
