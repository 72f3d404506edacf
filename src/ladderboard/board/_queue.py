"""Writers who share a transaction: whoever comes first does everybody's work, and commits once."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from copy import copy
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from ladderboard.errors import LadderboardError, StorageFailed

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator

    from ladderboard.ledger import Book, BookTransaction

_MAX_JOBS_PER_TRANSACTION = 64  # jobs in one transaction: none waits long for the others' work

Result = TypeVar("Result")


class KeyedLock:
    """A lock for each of many keys, as long as anybody holds it or waits for it."""

    def __init__(self) -> None:
        self._locks: dict[Hashable, tuple[threading.Lock, list[None]]] = {}
        self._lock = threading.Lock()

    @contextmanager
    def hold(self, key: Hashable) -> Iterator[None]:
        """Hold the lock of a key during the block."""
        with self._lock:
            lock, users = self._locks.setdefault(key, (threading.Lock(), []))
            users.append(None)
        try:
            with lock:
                yield
        finally:
            with self._lock:
                users.pop()
                if not users:
                    del self._locks[key]


class _QueuedJob(Generic[Result]):
    __slots__ = ("done", "error", "result", "wake", "work")

    def __init__(self, work: Callable[[BookTransaction], Result]) -> None:
        self.work = work
        self.done = False
        self.wake = threading.Lock()  # let go when it is done, or when its thread shall work
        self.wake.acquire()
        self.result: Result | None = None
        self.error: BaseException | None = None


class _TransactionFailure(NamedTuple):
    """Why nothing of a turn stands, or nobody knows, and whether there was a turn at all."""

    error: Exception
    begun: bool

    @property
    def uncertain(self) -> bool:
        return isinstance(self.error, StorageFailed) and self.error.uncertain

    def copy_for_thread(self) -> Exception:
        """Return the error for one thread to raise: where all hear of it, each gets its own."""
        error = self.error
        return error if self.begun else copy(error).with_traceback(error.__traceback__)


class TransactionQueue:
    """Jobs on one book. Each is done in a turn of the book; several may share one.

    A job checks everything before it writes anything: what it refuses with a ``LadderboardError``
    has changed nothing, and the others go on. Anything else undoes the whole turn, and each job is
    done again in a turn of its own, from what the database says; so jobs must bear to be done
    again, as questions do, which are looked up first. Nobody hears of a result before the commit.
    Where no turn can be begun, nobody's is tried after that: all of them hear so at once.

    One thread works at a time, for all who wait. It wakes the next one first, then those whose jobs
    are done, all at once: nobody waits for another to wake up.
    """

    def __init__(self, book: Book) -> None:
        self._book = book
        self._waiting: list[_QueuedJob[Any]] = []
        self._busy = False  # whether a thread works, or is about to
        self._lock = threading.Lock()  # around the two
        self._leader_lock = threading.Lock()  # held by the one who works

    def run(self, work: Callable[[BookTransaction], Result]) -> Result:
        """Do a job, together with those that others wait for; return when it is committed."""
        job = _QueuedJob(work)
        with self._lock:
            self._waiting.append(job)
            first, self._busy = not self._busy, True
        try:
            if not first:
                job.wake.acquire()
        except BaseException:  # as by Ctrl-C: nobody may wait for this thread
            if self._withdraw(job) and not job.done:
                self._hand_over([])
            raise
        if not job.done:
            self._lead_batch(job)
        if job.error is not None:
            raise job.error
        return job.result  # type: ignore[return-value]  # set where there is no error

    def _withdraw(self, job: _QueuedJob[Any]) -> bool:
        """Take a job back that nobody has begun; tell whether it was this thread's turn."""
        with self._lock:
            if job in self._waiting:
                self._waiting.remove(job)
            return job.wake.acquire(blocking=False)

    def _lead_batch(self, job: _QueuedJob[Any]) -> None:
        """Work for all who wait by now, this thread included."""
        jobs = [job]
        try:
            with self._leader_lock:
                jobs = self._take_batch(job)
                self._run_batch(jobs)
        finally:
            self._withdraw(job)
            self._hand_over([other for other in jobs if other is not job])

    def _take_batch(self, job: _QueuedJob[Any]) -> list[_QueuedJob[Any]]:
        with self._lock:
            jobs, self._waiting = (
                self._waiting[:_MAX_JOBS_PER_TRANSACTION],
                self._waiting[_MAX_JOBS_PER_TRANSACTION:],
            )
            if job not in jobs:  # more than fit came before it
                self._waiting.remove(job)
                jobs.append(job)
            return jobs

    def _hand_over(self, done: list[_QueuedJob[Any]]) -> None:
        """Let the next thread work, if one waits; then wake those whose jobs are done."""
        with self._lock:
            self._busy = bool(self._waiting)
            if self._busy:
                self._waiting[0].wake.release()
        for job in done:
            job.wake.release()

    def _run_batch(self, jobs: list[_QueuedJob[Any]]) -> None:
        try:
            failed = self._run_in_one_transaction(jobs)
            if failed is not None:
                self._run_one_by_one(jobs, failed)
        except BaseException as error:
            for job in jobs:
                job.error = job.error or error
            raise
        finally:
            for job in jobs:
                job.done = True

    def _run_in_one_transaction(self, jobs: list[_QueuedJob[Any]]) -> _TransactionFailure | None:
        """Do some jobs in one turn; return why nothing of it stands, if so."""
        begun = False
        try:
            with self._book.transaction() as turn:
                begun = True
                for job in jobs:
                    job.result = job.error = None
                    before = turn.chain_state
                    try:
                        job.result = job.work(turn)
                    except StorageFailed:
                        raise
                    except LadderboardError as refused:
                        if (
                            turn.chain_state is not before
                        ):  # it had begun to write: nothing may stand
                            raise
                        job.error = refused
        except Exception as error:  # noqa: BLE001 - whoever waits for it gets it
            return _TransactionFailure(error, begun)
        return None

    def _run_one_by_one(self, jobs: list[_QueuedJob[Any]], first: _TransactionFailure) -> None:
        """Do each job in a turn of its own, after one for all of them failed."""
        failed: _TransactionFailure | None = first
        for job in jobs:
            if failed is None or failed.begun:
                failed = self._run_in_one_transaction([job])
            if failed is None:
                continue
            job.result, job.error = None, failed.copy_for_thread()
            if isinstance(job.error, StorageFailed) and first.uncertain:
                # What was sent at first may stand, and nobody could look.
                job.error = StorageFailed(str(job.error), uncertain=True)
