"""Group commit: threads that write to one book share transactions."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from copy import copy
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from ladderboard.errors import LadderboardError, StorageFailed

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator

    from ladderboard.ledger import Book, BookTransaction

_MAX_JOBS_PER_TRANSACTION = 64  # bounds how long a job waits for others

Result = TypeVar("Result")


class KeyedLock:
    """A lock for each key, which exists while a thread holds it or waits for it."""

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
        self.wake = threading.Lock()  # released when the job is done, or when its thread must lead
        self.wake.acquire()
        self.result: Result | None = None
        self.error: BaseException | None = None


class _TransactionFailure(NamedTuple):
    """Why a transaction failed or is uncertain, and whether it had begun."""

    error: Exception
    begun: bool

    @property
    def uncertain(self) -> bool:
        return isinstance(self.error, StorageFailed) and self.error.uncertain

    def copy_for_thread(self) -> Exception:
        """Return the error for one thread; if all threads raise it, each gets a copy."""
        error = self.error
        return error if self.begun else copy(error).with_traceback(error.__traceback__)


class TransactionQueue:
    """Runs jobs on one book; several jobs may share a transaction.

    A job must check everything before it writes. If it raises a ``LadderboardError`` it has changed
    nothing, and the other jobs go on. Any other error rolls back the transaction, and each job runs
    again in its own. So jobs must be idempotent; questions are, because recorded answers are looked
    up first.
    Results are returned only after the commit. If no transaction can begin, all waiting jobs fail
    at once.

    One thread, the leader, works for all waiting threads. It wakes the next leader first, then all
    threads whose jobs are done.
    """

    def __init__(self, book: Book) -> None:
        self._book = book
        self._waiting: list[_QueuedJob[Any]] = []
        self._busy = False  # whether a thread leads, or is about to
        self._lock = threading.Lock()  # protects both
        self._leader_lock = threading.Lock()  # held by the leader

    def run(self, work: Callable[[BookTransaction], Result]) -> Result:
        """Run a job, perhaps together with others; return its result after the commit."""
        job = _QueuedJob(work)
        with self._lock:
            self._waiting.append(job)
            first, self._busy = not self._busy, True
        try:
            if not first:
                job.wake.acquire()
        except BaseException:  # such as Ctrl-C: no other thread may wait for this one
            if self._cancel(job) and not job.done:
                self._wake_waiters([])
            raise
        if not job.done:
            self._lead_batch(job)
        if job.error is not None:
            raise job.error
        return job.result  # type: ignore[return-value]  # set if there is no error

    def _cancel(self, job: _QueuedJob[Any]) -> bool:
        """Take back a job that has not begun; return whether this thread was to lead."""
        with self._lock:
            if job in self._waiting:
                self._waiting.remove(job)
            return job.wake.acquire(blocking=False)

    def _lead_batch(self, job: _QueuedJob[Any]) -> None:
        """Run the jobs of all threads that wait now, this one included."""
        jobs = [job]
        try:
            with self._leader_lock:
                jobs = self._take_batch(job)
                self._run_batch(jobs)
        finally:
            self._cancel(job)
            self._wake_waiters([other for other in jobs if other is not job])

    def _take_batch(self, job: _QueuedJob[Any]) -> list[_QueuedJob[Any]]:
        with self._lock:
            jobs, self._waiting = (
                self._waiting[:_MAX_JOBS_PER_TRANSACTION],
                self._waiting[_MAX_JOBS_PER_TRANSACTION:],
            )
            if job not in jobs:  # the batch was full
                self._waiting.remove(job)
                jobs.append(job)
            return jobs

    def _wake_waiters(self, finished: list[_QueuedJob[Any]]) -> None:
        """Wake the next leader, if a thread waits; then wake those whose jobs are done."""
        with self._lock:
            self._busy = bool(self._waiting)
            if self._busy:
                self._waiting[0].wake.release()
        for job in finished:
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
        """Run jobs in one transaction; return the failure if it was rolled back."""
        begun = False
        try:
            with self._book.transaction() as transaction:
                begun = True
                for job in jobs:
                    job.result = job.error = None
                    state_before = transaction.chain_state
                    try:
                        job.result = job.work(transaction)
                    except StorageFailed:
                        raise
                    except LadderboardError as refused:
                        if (
                            transaction.chain_state is not state_before
                        ):  # it had begun to write: roll back
                            raise
                        job.error = refused
        except Exception as error:  # noqa: BLE001 - raised in the waiting threads
            return _TransactionFailure(error, begun)
        return None

    def _run_one_by_one(self, jobs: list[_QueuedJob[Any]], first: _TransactionFailure) -> None:
        """Run each job in its own transaction, after a shared one failed."""
        failed: _TransactionFailure | None = first
        for job in jobs:
            if failed is None or failed.begun:
                failed = self._run_in_one_transaction([job])
            if failed is None:
                continue
            job.result, job.error = None, failed.copy_for_thread()
            if isinstance(job.error, StorageFailed) and first.uncertain:
                # The first attempt may be committed, and could not be looked up.
                job.error = StorageFailed(str(job.error), uncertain=True)
