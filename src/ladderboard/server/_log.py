"""The server's log and its metrics, without secrets.

The log is JSON lines; on a terminal only changes and errors, as text. No label of a metric names a
board, a team, or an outcome other than the status of a reply.
"""

from __future__ import annotations

import json
import logging
import mmap
import os
import secrets
import struct
import sys
import threading
import time
import traceback
import warnings
from bisect import bisect_left
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ladderboard._formatting import format_time
from ladderboard.errors import LadderboardError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from types import TracebackType
    from typing import TextIO


NO_ROUTE = "(none)"
"""The route of a request for a path that the server does not have."""

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
        self.for_terminal = _is_terminal(sys.stderr if stream is None else stream)

    def write(self, event: str, **fields: Any) -> None:
        """Write one line."""
        now = self.clock()
        stream = sys.stderr if self._stream is None else self._stream
        try:
            if self.for_terminal:
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
    r"""Return a line for a person; empty for the start, the end and pages that were only read.

    >>> now = datetime(2026, 11, 16, 14, 5, tzinfo=UTC)
    >>> _format_for_terminal(now, "worker", {"state": "ended", "wait": 1})
    '14:05:00 UTC  worker: state ended, wait 1\n'
    >>> post = {"method": "POST", "route": "/boards/digits/submit", "status": 200, "ms": 41.2}
    >>> _format_for_terminal(now, "request", post)
    '14:05:00 UTC  POST /boards/digits/submit: 200 in 41 ms\n'
    >>> _format_for_terminal(now, "request", {**post, "route": NO_ROUTE, "status": 404})
    '14:05:00 UTC  POST unknown path: 404 in 41 ms\n'
    >>> failed = {"request": "4a5c", "error": "DiskFull", "said": "No space.", "at": ["a.py:1 f"]}
    >>> _format_for_terminal(now, "error", failed)
    '14:05:00 UTC  error: No space. (request 4a5c)\n'
    """
    if event == "request":
        text = _format_request(fields)
    elif event in {"start", "stop"}:
        text = ""
    elif "said" in fields:  # a sentence says it all
        request = f" (request {fields['request']})" if "request" in fields else ""
        text = f"{event}: {fields['said']}{request}"
    else:
        lists = {name: ", ".join(value) for name, value in fields.items() if name == "at"}
        parts = [f"{name} {value}" for name, value in {**fields, **lists}.items()]
        text = f"{event}: {', '.join(parts)}"
    return f"{now:%H:%M:%S} UTC  {text}\n" if text else ""


def _format_request(fields: dict[str, Any]) -> str:
    """Return a request that changed something or failed; others would push a token out of sight."""
    status, method = fields.get("status", 500), fields.get("method")
    if status < 500 and method in {"GET", "HEAD"}:
        return ""
    failed = f", request {fields.get('request')}" if status >= 500 else ""
    route = "unknown path" if fields.get("route") == NO_ROUTE else fields.get("route")
    return f"{method} {route}: {status} in {fields.get('ms', 0):.0f} ms{failed}"


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
        """Write one record, unless it repeats what ``ladderboard.database`` reports."""
        if record.name.startswith("psycopg.pool"):
            return
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


try:
    import fcntl
except ImportError:  # Windows, where only one process serves
    fcntl = None  # type: ignore[assignment]


PARSERS_RESTARTED = "ladderboard_parsers_restarted_total"
WORKERS_RESTARTED = "ladderboard_workers_restarted_total"
CLOCK_JUMPS = "ladderboard_clock_jumps_total"
_REQUESTS, _SECONDS = "ladderboard_requests_total", "ladderboard_request_seconds"
_COUNTERS = {
    PARSERS_RESTARTED: "Parsers that died or were ended, and were replaced.",
    WORKERS_RESTARTED: "Worker processes that ended by themselves and were replaced.",
    CLOCK_JUMPS: "Times that the machine's clock was set forward or back.",
}
_BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_LABELS = (*(f"{bound:g}" for bound in _BOUNDS), "+Inf")


class Gauge(NamedTuple):
    """A number of one process that goes up and down; summed over processes."""

    help: str
    value: Callable[[], float]


class Metrics:
    """Counts events of this process, and writes the sums over all processes.

    Parameters
    ----------
    folder
        Shared by all processes of one server; None for a single process.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._counts = _MappedSeries() if folder is None else _shared_counts(folder)
        self.gauges: dict[str, Gauge] = {}
        self.under_way = 0
        for name in _COUNTERS:
            self.add(name, 0)

    def close(self) -> None:
        """Close the file, so that another process can continue it."""
        self._counts.close()

    def add(self, name: str, amount: float = 1) -> None:
        """Add to a counter without labels."""
        self._counts.add(name, 0, amount)

    def count_request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one request."""
        labels = f'method="{method}",route="{route}"'
        self._counts.add(f'{_REQUESTS}{{{labels},status="{status}"}}', 0, 1)
        name = f"{_SECONDS}{{{labels}}}"
        self._counts.add(name, bisect_left(_BOUNDS, seconds), 1, size=_SIZE)
        self._counts.add(name, _SIZE - 1, seconds, size=_SIZE)

    def publish(self) -> None:
        """Write the current values of this process's gauges for the other processes."""
        for name, gauge in self.gauges.items():
            self._counts.put(_GAUGE + name, gauge.value())

    def write(self, local: Mapping[str, tuple[str, Mapping[str, float]]]) -> str:
        """Return the metrics in Prometheus' text format.

        ``local`` are gauges that any process can measure: help text, and values by label.
        """
        self.publish()
        series = self._sum_series()
        lines = _header_lines(_REQUESTS, "counter", "Requests answered.")
        lines += _counter_lines(series, _REQUESTS)
        lines += _header_lines(_SECONDS, "histogram", "How long requests took.")
        for name, values in sorted(series.items()):
            if name.startswith(f"{_SECONDS}{{"):
                lines += _histogram_lines(name[len(_SECONDS) + 1 : -1], values)
        for name, help_ in _COUNTERS.items():
            lines += _header_lines(name, "counter", help_) + _counter_lines(series, name)
        for name, gauge in self.gauges.items():
            (value,) = series[_GAUGE + name]
            lines += [*_header_lines(name, "gauge", gauge.help), f"{name} {value:g}"]
        for name, (help_, by_label) in local.items():
            lines += _header_lines(name, "gauge", help_)
            lines += [f"{name}{{{label}}} {value:.0f}" for label, value in by_label.items()]
        return "\n".join([*lines, ""])

    def _sum_series(self) -> dict[str, list[float]]:
        """Return all series, summed over processes; gauges only of those that still run."""
        sums: dict[str, list[float]] = {}
        for name, values in self._all_series():
            before = sums.get(name, [0.0] * len(values))
            sums[name] = [a + b for a, b in zip(before, values, strict=True)]
        return sums

    def _all_series(self) -> Iterator[tuple[str, list[float]]]:
        if self._folder is None or not self._counts.shared:
            yield from self._counts.read()
        for path in [] if self._folder is None else sorted(self._folder.glob(f"{_PREFIX}*")):
            with path.open("rb") as file:
                runs = not try_lock(file.fileno(), shared=True)
                for name, values in _read_series(file.read()):
                    if runs or not name.startswith(_GAUGE):
                        yield name, values


def _header_lines(name: str, kind: str, help_: str) -> list[str]:
    return [f"# HELP {name} {help_}", f"# TYPE {name} {kind}"]


def _counter_lines(series: Mapping[str, list[float]], family: str) -> list[str]:
    names = sorted(name for name in series if name.partition("{")[0] == family)
    return [f"{name} {series[name][0]:.0f}" for name in names]


def _histogram_lines(labels: str, values: list[float]) -> list[str]:
    *counts, total = values
    cumulative, lines = 0.0, []
    for label, count in zip(_LABELS, counts, strict=True):
        cumulative += count
        lines.append(f'{_SECONDS}_bucket{{{labels},le="{label}"}} {cumulative:.0f}')
    lines.append(f"{_SECONDS}_sum{{{labels}}} {total:.6f}")
    lines.append(f"{_SECONDS}_count{{{labels}}} {cumulative:.0f}")
    return lines


# The file: the number of used bytes, then records. A record is the length of a series' name, its
# number of values, the name padded to 8 bytes, and the values as 64-bit floats.
_PREFIX = "metrics-1-"  # with the version of this format: workers of two versions share the folder
_LENGTH = 2**20  # bytes; all routes with all statuses take a quarter
_USED, _RECORD = struct.Struct("<Q"), struct.Struct("<II")
_GAUGE = "gauge "  # prefix of series that end with their process
_SIZE = len(_LABELS) + 1


class _MappedSeries:
    """The series of one process, in a mapped file or in memory."""

    def __init__(self, file: int = -1) -> None:
        self._file = file  # stays open: it holds the lock
        self._map = mmap.mmap(file, _LENGTH)
        self._values = memoryview(self._map).cast("d")  # writing one value is atomic
        self._index: dict[str, int] = {}
        self._end = _USED.size
        for name, count, offset in _iter_records(self._map):
            self._index[name] = offset // 8
            self._end = offset + 8 * count
            if name.startswith(_GAUGE):  # of the previous process
                self.put(name, 0)

    @property
    def shared(self) -> bool:
        """Whether other processes can read them."""
        return self._file >= 0

    def close(self) -> None:
        """Close the file, so that another process can continue it."""
        self._values.release()
        self._map.close()
        if self.shared:
            os.close(self._file)

    def add(self, name: str, index: int, amount: float, *, size: int = 1) -> None:
        """Add to one value of a series."""
        start = self._index.get(name) or self._add_series(name, size)
        if start:
            self._values[start + index] += amount

    def put(self, name: str, value: float) -> None:
        """Set the one value of a series."""
        start = self._index.get(name) or self._add_series(name, 1)
        if start:
            self._values[start] = value

    def read(self) -> Iterator[tuple[str, list[float]]]:
        """Yield all series."""
        return _read_series(self._map[: self._end])

    def _add_series(self, name: str, size: int) -> int:
        """Add a series; return the index of its values, 0 if the file is full."""
        encoded = name.encode()
        begin = self._end + _RECORD.size
        offset = begin + -(-len(encoded) // 8) * 8
        end = offset + 8 * size
        if end > _LENGTH:
            return 0
        _RECORD.pack_into(self._map, self._end, len(encoded), size)
        self._map[begin : begin + len(encoded)] = encoded
        self._index[name] = offset // 8
        self._end = end
        _USED.pack_into(self._map, 0, end)  # last: others read up to here
        return offset // 8


def _iter_records(data: bytes | mmap.mmap) -> Iterator[tuple[str, int, int]]:
    """Yield the name, number of values and offset of each record."""
    offset = _USED.size
    end = _USED.unpack_from(data)[0] if len(data) else 0  # empty while it is being created
    while offset < end:
        length, count = _RECORD.unpack_from(data, offset)
        begin = offset + _RECORD.size
        name = data[begin : begin + length].decode()
        offset = begin + -(-length // 8) * 8
        yield name, count, offset
        offset += 8 * count


def _read_series(data: bytes) -> Iterator[tuple[str, list[float]]]:
    for name, count, offset in _iter_records(data):
        yield name, list(struct.unpack_from(f"={count}d", data, offset))


def _shared_counts(folder: Path) -> _MappedSeries:
    """Return the counts of a process that has ended, or new ones."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for path in sorted(folder.glob(f"{_PREFIX}*")):
        file = os.open(path, os.O_RDWR)
        if try_lock(file):
            return _map_counts(file)
        os.close(file)
    while True:
        path = folder / f"{_PREFIX}{secrets.token_hex(8)}"
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        if try_lock(file):
            return _map_counts(file)
        os.close(file)  # another process has locked it first


def _map_counts(file: int) -> _MappedSeries:
    """Return the counts in a file. Allocated now: a full disk would kill the process later."""
    try:
        os.posix_fallocate(file, 0, _LENGTH)
    except OSError:
        os.close(file)
        return _MappedSeries()
    return _MappedSeries(file)


def try_lock(file: int, *, shared: bool = False) -> bool:
    """Lock an open file until it is closed; return False if another process holds it."""
    with suppress(OSError):
        fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        return True
    return False
