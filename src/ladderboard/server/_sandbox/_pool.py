"""The parser pool: disposable processes that parse untrusted bodies."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, NoReturn, Protocol, Self, TypeVar

from ladderboard import _settings
from ladderboard.errors import InvalidPredictions, Problem, WorkerError
from ladderboard.server._problems import RequestRefused
from ladderboard.server._sandbox import _worker as wire
from ladderboard.server._sandbox._process import (
    NO_REPLY,
    InvalidWorkerReply,
    ParserLimits,
    ParserProcess,
    ParserReply,
    Spec,
    read_notes,
    read_refusal,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator
    from types import TracebackType

    from ladderboard.board import ParseSubmission
    from ladderboard.files import Limits, Roster
    from ladderboard.holdout import AlignedPredictions
    from ladderboard.losses import Loss

_LOG = logging.getLogger("ladderboard.parse")
_LARGE_REPLY = 2**18  # bytes; larger replies are read in a thread
_MIB = 2**20
_TRIES = 2  # attempts if a parser is killed from outside
_CLOSED = "The parsers were closed."

Result = TypeVar("Result")


class ParsersBusy(RequestRefused):
    """Too many bodies wait for a parser."""

    def __init__(self) -> None:
        super().__init__(
            503,
            "busy",
            "Too many predictions are waiting; send them again.",
            {"Retry-After": "1"},
        )


class _KilledFromOutside(Exception):
    """A parser was killed from outside, by the signal of this name, while it read a body."""


class Body(Protocol):
    """A body to parse: bytes or an open file, and its format if known."""

    @property
    def content(self) -> bytes | BinaryIO:
        """The body."""

    @property
    def format(self) -> str | None:
        """Its format."""


class ParserPool:
    """Reads bodies in processes of their own, each with limits on memory and time.

    Such a process gets ids, a loss and limits. It is started, not forked from the server, so that
    it has no label, key or connection, and its environment holds no secret. It runs as the server's
    user; on Linux (Landlock, since 5.13) it can open only programs and libraries. On other systems
    a body that takes it over can open whatever that user can.

    Parameters
    ----------
    count
        How many bodies are parsed at once.
    seconds, memory
        The limits of one body: seconds, and bytes above what an idle parser uses, ids included.
    uses
        After how many bodies a parser is replaced.
    waiting
        How many bodies may wait for a parser.
    """

    def __init__(
        self,
        count: int = 2,
        *,
        seconds: float = 20.0,
        memory: int = 2**30,
        uses: int = 5000,
        waiting: int = 64,
    ) -> None:
        self._count = _settings.integer("count", count, at_least=1)
        self._uses = _settings.integer("uses", uses, at_least=1)
        self._max_waiting = _settings.integer("waiting", waiting, at_least=0)
        self._limits = ParserLimits(
            _settings.number("seconds", seconds, above=0),
            _settings.integer("memory", memory, at_least=1),
        )
        self._parsers: set[ParserProcess] = set()
        self._starting: set[ParserProcess] = set()
        self._idle: list[ParserProcess] = []
        self._waiting: deque[asyncio.Future[ParserProcess]] = deque()
        self._start_count = 0
        self._tasks: set[asyncio.Task[Any]] = set()
        self.closed = False
        """Whether the pool is closed."""
        self.on_restart: Callable[[], object] = lambda: None
        """Called when a parser died, or was killed because of its body, and is replaced."""

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    @property
    def busy(self) -> int:
        """How many parsers are busy."""
        return len(self._parsers) - len(self._idle)

    @property
    def waiting(self) -> int:
        """How many bodies wait for a parser."""
        return len(self._waiting)

    async def start(self) -> None:
        """Start all parsers, and wait for the first one; otherwise the first body waits."""
        self.release(await self._acquire())

    async def read(self, spec: Spec, body: Body) -> AlignedPredictions:
        """Return the predictions in a body, in the holdout's order.

        A parser that has read with the same ``spec`` before need not get it again. The caller may
        be cancelled: the parser is reused once it has answered.

        Raises
        ------
        InvalidPredictions
            The body is invalid, or takes too much time or memory.
        ParsersBusy
            Too many bodies wait already.
        WorkerError
            Parsers cannot be started, fail for another reason than the body, or are killed from
            outside twice, as the kernel does when memory is short.
        """
        result = await self._read(spec, body, only_check=False)
        if isinstance(result, list):
            raise WorkerError("A parser was asked for predictions and checked them only.")
        return result

    async def check(self, spec: Spec, body: Body) -> list[str]:
        """Return how a body is read, in sentences; raise as :meth:`read` does."""
        result = await self._read(spec, body, only_check=True)
        return result if isinstance(result, list) else []

    async def _read(
        self, spec: Spec, body: Body, *, only_check: bool
    ) -> AlignedPredictions | list[str]:
        name = ""
        for _ in range(_TRIES):
            try:
                return await self._read_once(spec, body, only_check)
            except _KilledFromOutside as killed:
                name = str(killed)
                _LOG.warning("a parser was killed from outside: %s", name)
        raise WorkerError(
            f"{_TRIES} parsers were killed from outside ({name}) while they read one file. "
            "The kernel does this when memory is short."
        )

    async def _read_once(
        self, spec: Spec, body: Body, only_check: bool
    ) -> AlignedPredictions | list[str]:
        parser = await self._acquire(spec)
        try:
            packed = b"" if parser.spec is spec else await asyncio.to_thread(spec.pack)
            reply = parser.send_body(spec, packed, body.content, body.format, only_check=only_check)
        except BaseException:
            self.release(parser)
            raise
        try:
            kind, content = await asyncio.shield(reply)
        except asyncio.CancelledError:
            self.spawn(self._finish(parser, spec, reply, only_check))
            raise
        if kind == NO_REPLY or len(content) > _LARGE_REPLY:
            return await asyncio.shield(self.spawn(self._finish(parser, spec, reply, only_check)))
        return await self._finish(
            parser, spec, reply, only_check
        )  # at once: a task would cost more

    async def _finish(
        self,
        parser: ParserProcess,
        spec: Spec,
        reply: asyncio.Future[ParserReply],
        only_check: bool,
    ) -> AlignedPredictions | list[str]:
        """Read a parser's reply; the parser is released or discarded then."""
        kind, content = await reply
        try:
            if kind == NO_REPLY:
                await self._raise_failure_cause(parser)
            if len(content) > _LARGE_REPLY:
                result = await asyncio.to_thread(_read_reply, spec, kind, content, only_check)
            else:
                result = _read_reply(spec, kind, content, only_check)
        except InvalidWorkerReply:
            self.discard(parser)
            raise self.resource_limit_error(spec.seconds) from None
        except BaseException:
            self.discard(parser)
            raise
        self.release(parser)
        if isinstance(result, InvalidPredictions):
            raise result
        return result

    async def _raise_failure_cause(self, parser: ParserProcess) -> NoReturn:
        """Blame the body for a parser without a reply, unless it was killed or closed."""
        signal_name = await parser.killing_signal()
        if self.closed:
            raise WorkerError(_CLOSED)
        if signal_name is not None:
            raise _KilledFromOutside(signal_name)
        raise InvalidWorkerReply

    async def close(self) -> None:
        """Stop all parsers, and wait for their processes to exit."""
        self.closed = True
        for waiter in self._waiting:
            if not waiter.done():
                waiter.set_exception(WorkerError(_CLOSED))
        self._waiting.clear()
        for parser in tuple(self._parsers):
            self.discard(parser)
        for parser in tuple(self._starting):
            parser.kill()
        while self._tasks:
            await asyncio.wait(tuple(self._tasks))

    def release(self, parser: ParserProcess) -> None:
        """Give a parser to the longest waiting body, or make it idle."""
        if parser not in self._parsers:  # it has died
            return
        if self.closed or parser.replaced:
            self.discard(parser)
            return
        if parser.used >= self._uses and not parser.being_replaced:
            parser.being_replaced = True
            self._start_count += 1
            self.spawn(self._start(parser))
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(parser)
                return
        self._idle.append(parser)

    def discard(self, parser: ParserProcess) -> None:
        """Stop a parser, and start another one instead."""
        if parser not in self._parsers:
            return
        self._parsers.discard(parser)
        if parser in self._idle:
            self._idle.remove(parser)
        self.spawn(parser.end())
        if not self.closed:
            if not parser.replaced:
                self.on_restart()
            self._start_missing()

    def resource_limit_error(self, limit: float | None = None) -> InvalidPredictions:
        """Return the refusal of a body that exceeded a parser's limits."""
        seconds, memory = self._limits
        seconds = seconds if limit is None else min(seconds, limit)
        message = f"The predictions could not be read within {seconds:g} seconds and "
        message += f"{max(1, memory // _MIB)} MiB of memory."
        return InvalidPredictions(message, problems=(Problem("too_costly", None, 1, (), message),))

    def spawn(self, work: Coroutine[Any, Any, Result]) -> asyncio.Task[Result]:
        """Run a task that :meth:`close` waits for."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        # The waiting task may have been cancelled; read the exception, or asyncio logs it.
        task.add_done_callback(lambda done: done.cancelled() or done.exception())
        return task

    async def _acquire(self, spec: Spec | None = None) -> ParserProcess:
        """Wait for an idle parser, if possible one that has the specification already."""
        if self.closed:
            raise WorkerError(_CLOSED)
        if self._idle:
            # The one used last has the warmest caches.
            parser = next((x for x in reversed(self._idle) if x.spec is spec), self._idle[-1])
            self._idle.remove(parser)
            return parser
        self._start_missing()
        if len(self._waiting) >= max(self._max_waiting, self._start_count):
            raise ParsersBusy
        waiter: asyncio.Future[ParserProcess] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        try:
            parser = await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled() and not waiter.exception():
                self.release(waiter.result())
            raise
        finally:
            if waiter in self._waiting:
                self._waiting.remove(waiter)
        # If it has just died, wait for another one.
        return parser if parser in self._parsers else await self._acquire(spec)

    def _start_missing(self) -> None:
        while len(self._parsers) + self._start_count < self._count:
            self._start_count += 1
            self.spawn(self._start())

    async def _start(self, old: ParserProcess | None = None) -> None:
        """Start a parser; ``old``, which it replaces, works until it is ready."""
        try:
            parser = await self._start_process()
        except WorkerError as error:
            self._start_count -= 1
            if old is not None:
                old.being_replaced = False  # retried after its next body
            self._on_start_failure(error)
            return
        self._start_count -= 1
        self._parsers.add(parser)
        if old is not None:
            old.replaced = True
            if old in self._idle:
                self.discard(old)
        self.release(parser)

    async def _start_process(self) -> ParserProcess:
        parser = ParserProcess(self._limits, self.discard)
        self._starting.add(parser)
        kind = NO_REPLY
        try:
            kind, _ = await parser.connect()
        finally:
            self._starting.discard(parser)
            if kind != wire.READY:
                await parser.end()
        if kind != wire.READY:
            raise WorkerError("A parser was started but did not get ready.")
        return parser

    def _on_start_failure(self, error: WorkerError) -> None:
        """Fail the waiting bodies if no parser is left."""
        if not self.closed:
            _LOG.error("%s", error)
        if not self._parsers and not self._start_count:
            while self._waiting:
                waiter = self._waiting.popleft()
                if not waiter.done():
                    waiter.set_exception(error)


def _read_reply(
    spec: Spec, kind: bytes, content: bytes, only_check: bool
) -> AlignedPredictions | list[str] | InvalidPredictions:
    """Return the predictions, the notes or the refusal in a reply, which is not trusted."""
    if kind == wire.ARRAY and not only_check:
        return spec.submission(content)
    if kind == wire.NOTES and only_check:
        return read_notes(content)
    if kind == wire.REFUSED:
        return read_refusal(content)
    if kind == wire.BROKEN:
        _LOG.error(
            "a parser broke down: %s", _settings.safe_repr(content.decode("ascii", "replace"))
        )
        raise WorkerError("A parser broke down; the log says where.")
    raise InvalidWorkerReply


class _LocalBody(NamedTuple):
    content: bytes
    format: str | None


@contextmanager
def sandbox() -> Iterator[ParseSubmission]:
    """Yield a function that parses a file in its own process, with limits on time and memory.

    The process is started with the first file, and stopped with the block. It gets no label and no
    key. Not for a thread with a running event loop.
    """
    with asyncio.Runner() as runner:
        parsers = ParserPool(1)
        known: dict[tuple[int, Limits], Spec] = {}  # its roster is kept, so an id stays unique

        def parse(
            roster: Roster,
            loss: Loss,
            limits: Limits,
            body: bytes,
            file_format: str | None,
        ) -> AlignedPredictions:
            spec = known.setdefault((id(roster), limits), Spec(roster, loss, limits))
            return runner.run(parsers.read(spec, _LocalBody(body, file_format)))

        try:
            yield parse
        finally:
            runner.run(parsers.close())
