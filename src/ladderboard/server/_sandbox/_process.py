"""A parser process as the server sees it, and its replies, which are not trusted.

The process may be killed at any moment, and a malicious body may have taken it over. So nothing it
sends is executed or unpickled, its size is limited, and predictions must have the shape and type
that the loss needs.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import signal
import socket
import struct
import subprocess
from contextlib import suppress
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

import numpy as np

from ladderboard.errors import InvalidPredictions, Problem, WorkerError
from ladderboard.holdout import AlignedPredictions
from ladderboard.ledger import read_array
from ladderboard.server._process import subprocess_command, subprocess_env
from ladderboard.server._sandbox import _worker as wire

if TYPE_CHECKING:
    from collections.abc import Callable

    from ladderboard.files import Limits, Roster
    from ladderboard.losses import Loss


MAX_REFUSAL_BYTES = 2**22  # a hundred problems of ten ids, each character escaped
_FRAME_BYTES = 1000  # besides the values
_MAX_PROBLEMS, _MAX_IDS, _MAX_NAME, _MAX_MESSAGE = 100, 10, 100, 10_000
_INTEGERS = ("i1", "i2", "i4", "i8")
_TYPES = {"i": _INTEGERS, "f": (*_INTEGERS, "f8"), "T": ("text",)}


class InvalidWorkerReply(Exception):
    """A parser sent an invalid reply."""


class Spec:
    """What a parser needs to read predictions: ids, a loss and limits, but no label.

    ``seconds`` is the time limit, if it is below that of the pool. ``max_reply_bytes`` is how many
    bytes a reply with predictions can have at most.
    """

    def __init__(
        self, roster: Roster, loss: Loss, limits: Limits, seconds: float | None = None
    ) -> None:
        self.roster, self.loss, self.limits, self.seconds = roster, loss, limits, seconds
        self._expected = expected = loss.columns(kind=roster.kind, width=roster.width)
        self._dtypes = ("i", "f") if expected.number else ("T",)
        values = 8 * roster.n * (expected.width or limits.columns)
        if expected.width is None:
            values = min(values, 8 * (roster.n + limits.bytes))
        text = 0 if expected.number else 2 * limits.bytes
        self.max_reply_bytes = _FRAME_BYTES + values + text

    def pack(self) -> bytes:
        """Return the specification as sent to a parser."""
        return wire.pack_spec(self.roster, self.loss, self.limits)

    def submission(self, content: bytes) -> AlignedPredictions:
        """Return the predictions in a reply."""
        try:
            kind, written = self._read_array(content)
            aligned = AlignedPredictions.from_written(kind, written)
        except (struct.error, ValueError, IndexError, OverflowError):
            raise InvalidWorkerReply from None
        if kind == "f" and not np.isfinite(aligned.values).all():
            raise InvalidWorkerReply
        return aligned

    def _read_array(self, content: bytes) -> tuple[str, dict[str, Any]]:
        """Return the kind of an array and its fields as the ledger writes them."""
        head, kind, counted, *shape, size = wire.ARRAY_HEAD.unpack_from(content)
        dtype = head.decode("latin-1")
        start = wire.ARRAY_HEAD.size + size
        array: dict[str, Any] = {
            "type": wire.TYPES[kind],
            "shape": self._check_shape(*shape),
            "values": content[start:],
            "lengths": {
                "type": wire.TYPES[counted],
                "values": content[wire.ARRAY_HEAD.size : start],
            },
        }
        if dtype not in self._dtypes or start > len(content):
            raise InvalidWorkerReply
        if array["type"] not in _TYPES[dtype]:
            raise InvalidWorkerReply
        if dtype == "T":
            _check_texts(array)
        elif size or len(array["values"]) != math.prod(array["shape"]) * int(array["type"][1]):
            raise InvalidWorkerReply
        return dtype, array

    def _check_shape(self, dimensions: int, rows: int, columns: int) -> tuple[int, ...]:
        """Return the shape; refuse one that does not fit the loss."""
        expected = self._expected
        if rows != self.roster.n:
            raise InvalidWorkerReply
        if dimensions == 1 and (
            expected.form == "one" or expected.single or expected.width is None
        ):
            return (rows,)
        if dimensions != 2 or expected.form == "one":
            raise InvalidWorkerReply
        if not 1 <= columns <= self.limits.columns or expected.width not in {None, columns}:
            raise InvalidWorkerReply
        return (rows, columns)


def _check_texts(array: dict[str, Any]) -> None:
    count, lengths = math.prod(array["shape"]), array["lengths"]
    if lengths["type"] not in _INTEGERS or len(lengths["values"]) != count * int(
        lengths["type"][1]
    ):
        raise InvalidWorkerReply
    lengths["shape"] = (count,)
    sizes = read_array(lengths).astype(np.int64)
    total = len(array["values"].decode("utf-8"))
    # The sum could overflow, so each length is checked, too.
    if sizes.min() < 0 or sizes.max() > total or int(sizes.sum()) != total:
        raise InvalidWorkerReply


def read_notes(content: bytes) -> list[str]:
    """Return the sentences in a reply to a check."""
    try:
        notes = json.loads(content)
    except (ValueError, RecursionError):
        raise InvalidWorkerReply from None
    if type(notes) is not list or len(notes) > _MAX_PROBLEMS:
        raise InvalidWorkerReply
    return [_read_message(note) for note in notes]


def read_refusal(content: bytes) -> InvalidPredictions:
    """Return the refusal in a reply."""
    try:
        document = json.loads(content)
        message, problems = document["message"], document["problems"]
        if len(problems) > _MAX_PROBLEMS:
            raise InvalidWorkerReply
        items = tuple(_read_problem(*item) for item in problems)
        return InvalidPredictions(_read_message(message), problems=items)
    except (ValueError, TypeError, KeyError, RecursionError):
        raise InvalidWorkerReply from None


def _read_problem(code: Any, column: Any, count: Any, ids: Any, message: Any) -> Problem:
    plain = isinstance(code, str) and code.isascii() and code.replace("_", "a").isalnum()
    if not plain or len(code) > 40 or type(count) is not int or type(ids) is not list:
        raise InvalidWorkerReply
    if not 0 <= count < 2**63 or len(ids) > _MAX_IDS:
        raise InvalidWorkerReply
    name = None if column is None else _read_name(column)
    return Problem(code, name, count, tuple(map(_read_name, ids)), _read_message(message))


def _read_name(value: Any) -> str:
    """Return a name from the file; it is untrusted text."""
    if not isinstance(value, str) or len(value) > _MAX_NAME:
        raise InvalidWorkerReply
    return value.encode("utf-8", "replace").decode()


def _read_message(value: Any) -> str:
    """Return a message with control characters replaced by ``?``."""
    if not isinstance(value, str) or len(value) > _MAX_PROBLEMS * _MAX_MESSAGE:
        raise InvalidWorkerReply
    return "".join(
        character if character.isprintable() or character == "\n" else "?" for character in value
    )


NO_REPLY = b""
"""The kind of reply of a parser that is dead, late or sends garbage."""

_START_SECONDS = 60.0
_SPEC_SECONDS = 30.0  # extra time for a new specification
_EXIT_SECONDS = 5.0  # from the end of the socket to the exit of the process
# Signals that a body can cause: a crash, the limit on processor time. Other signals come from
# outside; the kernel sends SIGKILL when memory is short.
_CRASHES = {"SIGABRT", "SIGBUS", "SIGFPE", "SIGILL", "SIGSEGV", "SIGSYS", "SIGTRAP", "SIGXCPU"}


class ParserLimits(NamedTuple):
    """The limits of one body: seconds, and bytes of memory above what an idle parser uses."""

    seconds: float
    memory: int


class ParserReply(NamedTuple):
    """A reply: its kind, and content that is not to be trusted."""

    kind: bytes
    content: bytes


class ParserProcess(asyncio.Protocol):
    """A parser process and the connection to it; parses one body at a time.

    ``on_exit`` is called when an idle process dies or sends something unexpected.
    """

    def __init__(self, limits: ParserLimits, on_exit: Callable[[ParserProcess], None]) -> None:
        self.used = 0
        self.being_replaced = False
        """A replacement is being started."""
        self.replaced = False
        """A replacement is ready."""
        self.spec: Spec | None = None
        """The specification that it got last."""
        self._hung_up = False  # the connection was closed by the process, not by us
        self._limits = limits
        self._on_exit = on_exit
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport
        self._closed = False
        self._reply: asyncio.Future[ParserReply] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._max_bytes = 0
        self._received = bytearray()
        self._socket, theirs = socket.socketpair()
        self._socket.setblocking(False)
        with theirs:
            try:
                self._process = subprocess.Popen(  # noqa: S603 - our own program
                    subprocess_command(wire.__file__, _worker_arguments(limits)),
                    stdin=theirs.fileno(),
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    cwd="/",
                    env=subprocess_env(),
                    start_new_session=True,
                )
            except OSError as error:
                self._socket.close()
                raise WorkerError(f"No parser could be started: {error.strerror}.") from None

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    async def connect(self) -> ParserReply:
        """Wait until the process has loaded its modules; it then sends a reply."""
        reply = self._expect_reply(_START_SECONDS, 0)
        self._transport, _ = await self._loop.create_connection(lambda: self, sock=self._socket)
        return await reply

    def send_body(
        self,
        spec: Spec,
        packed_spec: bytes,
        content: bytes | BinaryIO,
        file_format: str | None,
        *,
        only_check: bool,
    ) -> asyncio.Future[ParserReply]:
        """Send a body and return its future reply; ``packed_spec`` is empty if it was sent before.

        A large body comes as an open file, since the parser cannot open files. If it is only
        checked, the reply has no predictions but sentences on how they were read.
        """
        timeout = self._limits.seconds
        timeout = timeout if spec.seconds is None else min(timeout, spec.seconds)
        timeout += _SPEC_SECONDS * bool(packed_spec)
        file, body = (None, content) if isinstance(content, bytes) else (content.fileno(), b"")
        head = wire.REQUEST_HEADER.pack(
            wire.FORMATS.index(file_format),
            only_check,
            file is not None,
            len(packed_spec),
            len(body),
        )
        reply = self._expect_reply(timeout, spec.max_reply_bytes)
        self.used += 1
        self.spec = spec
        if file is not None:
            # The transport's buffer is empty: the parser has answered everything before.
            with suppress(OSError):  # it has died, which the transport reports
                socket.send_fds(self._socket, [head], [file])
            head = b""
        request, sent = b"".join((head, packed_spec, body)), 0
        # To wake a process takes as long as all else here. Unlike the transport, this lets other
        # threads run meanwhile.
        with suppress(OSError):  # its buffer is full, or it has died: the transport sees to both
            sent = self._socket.send(request)
        if sent < len(request):
            self._transport.write(request[sent:])
        return reply

    def kill(self) -> None:
        """Kill the process and its children now."""
        if self._process.returncode is None:
            with suppress(OSError):
                os.killpg(self.pid, signal.SIGKILL)
            self._process.kill()

    async def end(self) -> None:
        """Kill the process, and wait for it to exit."""
        self.kill()
        self._close()
        await asyncio.shield(self._loop.run_in_executor(None, self._process.wait))

    async def killing_signal(self) -> str | None:
        """Return the outside signal that killed it; None if its body, or we, ended it."""
        if not self._hung_up:
            return None
        try:
            code = await self._loop.run_in_executor(None, self._process.wait, _EXIT_SECONDS)
        except subprocess.TimeoutExpired:  # it closed the connection but still runs
            return None
        name = signal.Signals(-code).name if code < 0 else None
        return None if name in _CRASHES else name

    def data_received(self, data: bytes) -> None:
        """Deliver a complete reply; end the connection if it is invalid."""
        self._received += data
        size_so_far = len(self._received) - wire.REPLY_HEADER.size
        if size_so_far < 0:
            return
        kind, size = wire.REPLY_HEADER.unpack_from(self._received)
        limit = self._max_bytes if kind == wire.ARRAY else MAX_REFUSAL_BYTES
        if self._reply is None or size_so_far > size or size > limit:
            self._close()
        elif size_so_far == size:
            content = bytes(memoryview(self._received)[wire.REPLY_HEADER.size :])
            self._deliver(ParserReply(kind, content))

    def connection_lost(self, error: Exception | None) -> None:
        """Note that the process has gone, unless we closed the connection."""
        if not self._closed:
            self._hung_up = True
            self._close()

    def _close(self) -> None:
        """Close the connection; there will be no reply."""
        self._closed = True
        if hasattr(self, "_transport"):
            self._transport.abort()
        self._deliver(ParserReply(NO_REPLY, b""))

    def _expect_reply(self, seconds: float, max_bytes: int) -> asyncio.Future[ParserReply]:
        self._max_bytes = max_bytes
        self._timer = self._loop.call_later(seconds, self._close)
        self._reply = self._loop.create_future()
        return self._reply

    def _deliver(self, reply: ParserReply) -> None:
        """Pass a reply to the body that waits for it."""
        if self._timer is not None:
            self._timer.cancel()
        self._received = bytearray()
        waiting, self._reply = self._reply, None
        if waiting is None:
            self._on_exit(self)
        elif not waiting.done():
            waiting.set_result(reply)


def _worker_arguments(limits: ParserLimits) -> str:
    return json.dumps({**limits._asdict(), "parent": os.getpid()})
