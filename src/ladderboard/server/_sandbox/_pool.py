"""Parsers: a few disposable processes that read what strangers send."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self

from ladderboard import _settings
from ladderboard.errors import InvalidPredictions, Problem, WorkerError
from ladderboard.server._problems import RequestRefused
from ladderboard.server._sandbox import _worker as wire
from ladderboard.server._sandbox._process import NO_REPLY, ParserLimits, ParserProcess
from ladderboard.server._sandbox._reply import InvalidWorkerReply, Spec, read_refusal

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Hashable, Iterator
    from pathlib import Path
    from types import TracebackType

    from ladderboard.board import ParseSubmission
    from ladderboard.files import Limits, Roster
    from ladderboard.holdout import AlignedPredictions
    from ladderboard.losses import Loss

_LOG = logging.getLogger("ladderboard.parse")
_LARGE_REPLY = 2**18  # bytes that are worth a thread
_MIB = 2**20
_TRIES = 2  # parsers for a body whose parser is killed from outside
_CLOSED = "The parsers were closed."


class ParsersBusy(RequestRefused):
    """So many bodies wait to be read that no other one may."""

    def __init__(self) -> None:
        super().__init__(
            503,
            "busy",
            "Too many predictions wait to be read; send them again.",
            {"Retry-After": "1"},
        )


class _Killed(Exception):
    """A parser was ended from outside, by a signal of this name, while it read a body."""


class Body(Protocol):
    """What is read: bytes or a file, and its format if that is known."""

    @property
    def content(self) -> bytes | Path:
        """The body."""

    @property
    def format(self) -> str | None:
        """Its format."""


class _Job:
    """One body that a parser reads, and who waits for it."""

    def __init__(
        self, parsers: ParserPool, parser: ParserProcess, spec: Spec, training: float | None
    ) -> None:
        self.done: asyncio.Future[AlignedPredictions] = asyncio.get_running_loop().create_future()
        self._parsers, self._parser = parsers, parser
        self._spec, self._training = spec, training

    def on_reply(self, kind: bytes, content: bytes) -> None:
        """Take what the parser says; one that does not answer as it should is of no more use."""
        if kind == wire.ARRAY and len(content) > _LARGE_REPLY:
            self._parsers.spawn(self._read_large(content))
            return
        if kind == NO_REPLY:
            self._parsers.spawn(self._find_failure_cause())
            return
        try:
            self._finish(self._read(kind, content))
        except InvalidWorkerReply:
            self._fail(self._parsers.resource_limit_error(self._spec.seconds))
        except WorkerError as error:
            self._fail(error)

    def _read(self, kind: bytes, content: bytes) -> AlignedPredictions | InvalidPredictions:
        if kind == wire.ARRAY:
            return self._spec.submission(content, self._training)
        if kind == wire.REFUSED:
            return read_refusal(content)
        if kind == wire.BROKEN:
            _LOG.error(
                "a parser broke down: %s", _settings.safe_repr(content.decode("ascii", "replace"))
            )
            raise WorkerError("A parser broke down; the log says where.")
        raise InvalidWorkerReply

    async def _read_large(self, content: bytes) -> None:
        try:
            self._finish(await asyncio.to_thread(self._spec.submission, content, self._training))
        except InvalidWorkerReply:
            self._fail(self._parsers.resource_limit_error(self._spec.seconds))

    async def _find_failure_cause(self) -> None:
        """Blame the body for a parser that did not answer, unless something else ended it."""
        signal_name = await self._parser.killing_signal()
        if self._parsers.closed:
            self._fail(WorkerError(_CLOSED))
        elif signal_name is not None:
            self._fail(_Killed(signal_name))
        else:
            self._fail(self._parsers.resource_limit_error(self._spec.seconds))

    def _finish(self, result: AlignedPredictions | InvalidPredictions) -> None:
        self._parsers.release(self._parser)
        if self.done.done():  # whoever asked has gone
            return
        if isinstance(result, InvalidPredictions):
            self.done.set_exception(result)
        else:
            self.done.set_result(result)

    def _fail(self, error: Exception) -> None:
        self._parsers.discard(self._parser)
        if not self.done.done():
            self.done.set_exception(error)


class ParserPool:
    """Reads bodies in processes of their own, each with limits on memory and time.

    Such a process knows ids, a loss and limits. It is started afresh, not forked from the server,
    so that it has no label, no key and no connection, and its surroundings hold no secret. It runs
    under the server's user all the same; on Linux (Landlock, since 5.13) it can open nothing but
    programs and libraries, elsewhere what that user may open, a body that takes it over may.

    Parameters
    ----------
    count
        How many bodies are read at once.
    seconds, memory
        How long one may take, and how many bytes above what a parser needs anyway, ids included.
    uses
        After how many bodies a parser makes way for a new one.
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
        """Whether they take nothing more."""
        self.on_restart: Callable[[], object] = lambda: None
        """Called when a parser died, or was ended because of what it read, and is replaced."""

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
        """How many parsers read something now."""
        return len(self._parsers) - len(self._idle)

    @property
    def waiting(self) -> int:
        """How many bodies wait for a parser."""
        return len(self._waiting)

    async def start(self) -> None:
        """Start all parsers, and wait for the first one; without this the first body waits."""
        self.release(await self._acquire())

    async def read(
        self, key: Hashable, spec: Spec, body: Body, *, training: float | None = None
    ) -> AlignedPredictions:
        """Return the predictions in a body, in the holdout's order.

        ``key`` names what ``spec`` says: the same for as long as this is the same. Whoever asks may
        go away: the parser is of use to others when it has answered.

        Raises
        ------
        InvalidPredictions
            As the same body would be refused in this process, or because it takes too much.
        Busy
            Too many wait already.
        WorkerError
            Parsers cannot be started, or break down where no body can be to blame, or are killed
            from outside, as the kernel does when memory is short: a second one tries first.
        """
        name = ""
        for _ in range(_TRIES):
            try:
                return await self._read_once(key, spec, body, training)
            except _Killed as killed:
                name = str(killed)
                _LOG.warning("a parser was killed from outside: %s", name)
        raise WorkerError(
            f"{_TRIES} parsers were killed from outside ({name}) while they read one file. "
            "The kernel does this when memory is short."
        )

    async def _read_once(
        self, key: Hashable, spec: Spec, body: Body, training: float | None
    ) -> AlignedPredictions:
        parser = await self._acquire()
        try:
            packed = b"" if parser.has_spec(key) else await asyncio.to_thread(spec.pack)
            job = _Job(self, parser, spec, training)
            parser.send_body(
                key,
                packed,
                body.content,
                body.format,
                max_bytes=spec.max_reply_bytes,
                on_reply=job.on_reply,
                seconds=spec.seconds,
            )
        except BaseException:
            self.release(parser)
            raise
        return await job.done

    async def close(self) -> None:
        """End all parsers, and wait until nothing is left of them."""
        self.closed = True
        for turn in self._waiting:
            if not turn.done():
                turn.set_exception(WorkerError(_CLOSED))
        self._waiting.clear()
        for parser in tuple(self._parsers):
            self.discard(parser)
        for parser in tuple(self._starting):
            parser.kill()
        while self._tasks:
            await asyncio.wait(tuple(self._tasks))

    def release(self, parser: ParserProcess) -> None:
        """Hand a parser to who waits longest, or let it rest."""
        if parser not in self._parsers:  # it died meanwhile
            return
        if self.closed or parser.replaced:
            self.discard(parser)
            return
        if parser.used >= self._uses and not parser.being_replaced:
            parser.being_replaced = True
            self._start_count += 1
            self.spawn(self._start(parser))
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(parser)
                return
        self._idle.append(parser)

    def discard(self, parser: ParserProcess) -> None:
        """End a parser, and have another one in its place."""
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
        """Return what is said of a body that ended its parser."""
        seconds, memory = self._limits
        seconds = seconds if limit is None else min(seconds, limit)
        message = f"The predictions could not be read within {seconds:g} seconds and "
        message += f"{max(1, memory // _MIB)} MiB of memory."
        return InvalidPredictions(message, problems=(Problem("too_costly", None, 1, (), message),))

    def spawn(self, work: Coroutine[Any, Any, Any]) -> None:
        """Do something that ends before the parsers do."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _acquire(self) -> ParserProcess:
        """Return a parser that has nothing to do, when there is one."""
        if self.closed:
            raise WorkerError(_CLOSED)
        if self._idle:
            return self._idle.pop()
        self._start_missing()
        if len(self._waiting) >= max(self._max_waiting, self._start_count):
            raise ParsersBusy
        turn: asyncio.Future[ParserProcess] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            parser = await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled() and not turn.exception():
                self.release(turn.result())
            raise
        finally:
            if turn in self._waiting:
                self._waiting.remove(turn)
        # One that died on the way is nobody's fault who waits.
        return parser if parser in self._parsers else await self._acquire()

    def _start_missing(self) -> None:
        while len(self._parsers) + self._start_count < self._count:
            self._start_count += 1
            self.spawn(self._start())

    async def _start(self, old: ParserProcess | None = None) -> None:
        """Start a parser; the one whose place it takes works until it is ready."""
        try:
            parser = await self._start_process()
        except WorkerError as error:
            self._start_count -= 1
            if old is not None:
                old.being_replaced = False  # it is tried again after its next body
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
        ready: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        parser = ParserProcess(self._limits, self.discard)
        self._starting.add(parser)
        kind = b""
        try:
            parser.prepare(lambda kind, _: None if ready.done() else ready.set_result(kind))
            kind = await ready
        finally:
            self._starting.discard(parser)
            if kind != wire.READY:
                await parser.end()
        if kind != wire.READY:
            raise WorkerError("A parser was started and did not get ready.")
        return parser

    def _on_start_failure(self, error: WorkerError) -> None:
        """Tell those who wait, if nobody is left to serve them."""
        if not self.closed:
            _LOG.error("%s", error)
        if not self._parsers and not self._start_count:
            while self._waiting:
                turn = self._waiting.popleft()
                if not turn.done():
                    turn.set_exception(error)


class _LocalBody(NamedTuple):
    content: bytes
    format: str | None


@contextmanager
def sandbox() -> Iterator[ParseSubmission]:
    """Give a function that parses a file in a process of its own, with limits on time and memory.

    The process is started with the first file, and ended with the block. It knows no label and no
    key. Not for a thread in which an event loop runs.
    """
    with asyncio.Runner() as runner:
        parsers = ParserPool(1)

        def parse(
            roster: Roster,
            loss: Loss,
            limits: Limits,
            body: bytes,
            file_format: str | None,
        ) -> AlignedPredictions:
            spec = Spec(roster, loss, limits)
            key = (id(roster), limits)
            return runner.run(parsers.read(key, spec, _LocalBody(body, file_format)))

        try:
            yield parse
        finally:
            runner.run(parsers.close())
