"""What the services of one board share: its ledger and its store, its rules and its labels.

Threads that write to one book share transactions (group commit).
"""

from __future__ import annotations

import json
import math
import threading
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from ladderboard.board._folder import make_scorers, split_mask
from ladderboard.board._repository import (
    find_record_entry,
    find_team_record_entry,
    read_board,
    sample_key,
)
from ladderboard.board._resolution import (
    BaselineScore,
    describe_board_gains,
    describe_board_resolution,
    typical_score,
)
from ladderboard.board._rules import Rules
from ladderboard.board._standings import read_records
from ladderboard.bounds import TYPICAL_LOSS
from ladderboard.errors import LadderboardError, StorageFailed
from ladderboard.holdout import (
    AlignedPredictions,
    Meter,
    Scorer,
    decode_sample,
)
from ladderboard.ledger import EMPTY_CHAIN, Entry, ScoredQuestion, decode, release_from_entry
from ladderboard.mechanisms import largest_standard_error

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from ladderboard.board._model import BoardRow, TeamRow
    from ladderboard.board._standings import FurtherValues, RecordHistory
    from ladderboard.board._store import SubmissionStore
    from ladderboard.files import HoldoutTable, Limits
    from ladderboard.ledger import Book, BookTransaction, ChainState, Prefetch, ReadView
    from ladderboard.mechanisms import Release


STANDINGS_KEY = "standings"
"""The key under which the standings at the close are stored, with their commitment's salt."""
_MAX_JOBS_PER_TRANSACTION = 64  # bounds how long a job waits for others

Result = TypeVar("Result")


class KeyedLock:
    """A lock for each key, which exists while a thread holds it or waits for it."""

    def __init__(self) -> None:
        self._locks: dict[Hashable, tuple[threading.Lock, list[None]]] = {}
        self._lock = threading.Lock()

    @contextmanager
    def hold(self, key: Hashable) -> Iterator[None]:
        """Hold the lock of a key during the block; several are taken in the order of their keys."""
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


class QueuedJob(Generic[Result]):
    """Work for a transaction; its result and its error, if any, are set once it is done."""

    __slots__ = ("done", "error", "prefetch", "result", "wake", "work")

    def __init__(
        self, work: Callable[[BookTransaction], Result], prefetch: Prefetch | None
    ) -> None:
        self.work, self.prefetch = work, prefetch
        self.done = False
        self.wake = threading.Lock()  # released when the job is done, or when its thread must lead
        self.wake.acquire()
        self.result: Result | None = None
        self.error: BaseException | None = None

    def get_result(self) -> Result:
        """Return the result, or raise the error."""
        if self.error is not None:
            raise self.error
        return self.result  # type: ignore[return-value]  # set if there is no error


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
        self._waiting: list[QueuedJob[Any]] = []
        self._busy = False  # whether a thread leads, or is about to
        self._lock = threading.Lock()  # protects both
        self._leader_lock = threading.Lock()  # held by the leader

    def run(
        self, work: Callable[[BookTransaction], Result], prefetch: Prefetch | None = None
    ) -> Result:
        """Run a job, perhaps together with others; return its result after the commit.

        ``prefetch`` returns statements that the job needs. Such a job keeps in
        ``BookTransaction.rows`` what it has changed, for the jobs that follow in its transaction.
        """
        (job,) = self.run_all([(work, prefetch)])
        return job.get_result()

    def run_all(
        self, works: Sequence[tuple[Callable[[BookTransaction], Result], Prefetch | None]]
    ) -> list[QueuedJob[Result]]:
        """Run several jobs as ``run`` does; return them with their results and errors."""
        jobs = [QueuedJob(*work) for work in works]
        with self._lock:
            self._waiting += jobs
            leads, self._busy = not self._busy, self._busy or bool(jobs)
        try:
            for job in jobs:
                if not leads:
                    job.wake.acquire()
                leads = False
                if not job.done:
                    self._lead_batch(job)
        except BaseException:  # such as Ctrl-C: no other thread may wait for this one
            if [job for job in jobs if self._cancel(job) and not job.done]:
                self._wake_waiters([])
            raise
        return jobs

    def _cancel(self, job: QueuedJob[Any]) -> bool:
        """Take back a job that has not begun; return whether this thread was to lead."""
        with self._lock:
            if job in self._waiting:
                self._waiting.remove(job)
            return job.wake.acquire(blocking=False)

    def _lead_batch(self, job: QueuedJob[Any]) -> None:
        """Run the jobs of all threads that wait now, this one included."""
        jobs = [job]
        try:
            with self._leader_lock:
                jobs = self._take_batch(job)
                self._run_batch(jobs)
        finally:
            self._cancel(job)
            self._wake_waiters([other for other in jobs if other is not job])

    def _take_batch(self, job: QueuedJob[Any]) -> list[QueuedJob[Any]]:
        with self._lock:
            jobs, self._waiting = (
                self._waiting[:_MAX_JOBS_PER_TRANSACTION],
                self._waiting[_MAX_JOBS_PER_TRANSACTION:],
            )
            if job not in jobs:  # the batch was full
                self._waiting.remove(job)
                jobs.append(job)
            return jobs

    def _wake_waiters(self, finished: list[QueuedJob[Any]]) -> None:
        """Wake the next leader, if a thread waits; then wake those whose jobs are done."""
        with self._lock:
            self._busy = bool(self._waiting)
            if self._busy:
                self._waiting[0].wake.release()
        for job in finished:
            job.wake.release()

    def _run_batch(self, jobs: list[QueuedJob[Any]]) -> None:
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

    def _run_in_one_transaction(self, jobs: list[QueuedJob[Any]]) -> _TransactionFailure | None:
        """Run jobs in one transaction; return the failure if it was rolled back."""
        begun = False

        def prefetch(book: int) -> Iterator[tuple[str, tuple[Any, ...]]]:
            for job in jobs:
                yield from () if job.prefetch is None else job.prefetch(book)

        try:
            with self._book.transaction(prefetch) as transaction:
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
                    if job.prefetch is None:  # it may have changed any row
                        transaction.forget_rows()
        except Exception as error:  # noqa: BLE001 - raised in the waiting threads
            return _TransactionFailure(error, begun)
        return None

    def _run_one_by_one(self, jobs: list[QueuedJob[Any]], first: _TransactionFailure) -> None:
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


class _LabelEpoch(NamedTuple):
    """The labels between two corrections, and the scorer that uses them."""

    number: int
    limits: Limits
    table: HoldoutTable
    scorers: tuple[Scorer, ...]
    """The scorers of the public split, one for each metric; the first reads submissions."""
    ranked: bool
    """Whether the split has private rows, so that there is a final ranking."""


class _FurtherReleases(NamedTuple):
    """The values that further live metrics had released in an epoch, up to a state of the book."""

    epoch: int
    state: ChainState
    values: FurtherValues


class BoardContext:
    """A board's ledger and store, with its cached rules and labels; thread-safe.

    The database is authoritative: rules, status and epoch are read with every submission, and
    cached values are used only if they still match.
    """

    def __init__(self, book: Book, store: SubmissionStore, slug: str) -> None:
        self.book, self.store, self.slug = book, store, slug
        self.queue = TransactionQueue(book)
        self._rules: tuple[str, Rules] | None = None
        self._epoch: _LabelEpoch | None = None
        self._further: dict[bool, _FurtherReleases] = {}
        self._records: tuple[BoardRow, ChainState, RecordHistory] | None = None

    def reading(self) -> AbstractContextManager[ReadView]:
        """Begin to read the board's tables, as they are now."""
        return self.book.reading()

    def row(self) -> BoardRow:
        """Return the board's current row."""
        with self.reading() as view:
            return self.read_row(view)

    def read_row(self, view: ReadView) -> BoardRow:
        """Return the board's row in an open view."""
        return read_board(view)

    def cache_key(self) -> tuple[BoardRow, ChainState]:
        """Return a value that changes whenever anything visible on the board changes.

        Every change to teams or records also appends an entry or changes the board's row. On a
        hidden or frozen board the value is secret: compare it, but never show it.
        """
        with self.reading() as view:
            return self.read_row(view), view.chain_state()

    @property
    def rules(self) -> Rules:
        """The current rules."""
        return self.rules_of(self.row())

    def rules_of(self, row: BoardRow) -> Rules:
        """Return the rules in a row; they are parsed again only if they changed."""
        cached = self._rules
        if cached is None or cached[0] != row.rules:
            cached = (row.rules, Rules.from_description(json.loads(row.rules)))
            self._rules = cached
        return cached[1]

    def epoch_of(self, row: BoardRow) -> _LabelEpoch:
        """Return the labels of the row's epoch, with their scorer; cached."""
        cached, limits = self._epoch, self.rules_of(row).files.limits
        if cached is None or cached.number != row.epoch:
            table = decode_sample(self.book.read_encrypted(sample_key(row.epoch)))
            scorers = make_scorers(table, self.rules_of(row), "public")
            private = split_mask(table, "private")
            ranked = private is not None and bool(private.any())
            cached = self._epoch = _LabelEpoch(row.epoch, limits, table, scorers, ranked)
        elif cached.limits != limits:
            scorers = tuple(scorer.with_limits(limits) for scorer in cached.scorers)
            cached = self._epoch = cached._replace(limits=limits, scorers=scorers)
        return cached

    def scorer_of(self, row: BoardRow) -> Scorer:
        """Return the scorer of the public split by the first metric."""
        return self.epoch_of(row).scorers[0]

    def check_predictions(self, row: BoardRow, submission: AlignedPredictions) -> None:
        """Refuse predictions that a further metric cannot take, whatever the labels are."""
        for scorer in self.epoch_of(row).scorers[1:]:
            scorer.check(submission)

    def scorer(self) -> Scorer:
        """Return the current scorer of the public split."""
        return self.scorer_of(self.row())

    def ladder_of(self, row: BoardRow, team: str, metric: int = 0) -> str:
        """Return the name of a team's ladder for a metric in the row's epoch."""
        name = "" if self.rules_of(row).ladder == "board" else team
        name += f" metric {metric}" if metric else ""
        return name if row.epoch == 0 else f"{name} epoch {row.epoch}".strip()

    def score(
        self, row: BoardRow, team: TeamRow, submission: AlignedPredictions, key: str | None = None
    ) -> list[ScoredQuestion]:
        """Return the questions that a submission asks, one for each live metric."""
        scorers, book = self.epoch_of(row).scorers, self.book
        return [
            self.question_for(row, team, submission.digest, metric, key)._replace(
                **scorers[metric].evidence(submission, book)
            )
            for metric in self.rules_of(row).live_metrics
        ]

    def question_for(
        self,
        row: BoardRow,
        team: TeamRow,
        digest: bytes,
        metric: int = 0,
        key: str | None = None,
    ) -> ScoredQuestion:
        """Return the question of a submission by one metric, not scored; the first has the key."""
        return ScoredQuestion(
            submission=digest,
            risk=1.0,
            ladder=self.ladder_of(row, team.id, metric),
            asker=team.id,
            idempotency_key=None if metric else key,
            metric=metric,
            nonce=self.scorer_of(row).nonce(),
        )

    def released_by_metric(self, view: ReadView, row: BoardRow, team: str) -> list[float | None]:
        """Return the released value of each further live metric on a team's ladders.

        It reads only these ladders, so its time says nothing about other teams.
        """
        values: list[float | None] = []
        for metric in self.rules_of(row).live_metrics[1:]:
            number = self.book.ladder_number(view, self.ladder_of(row, team, metric))
            changed = number is not None and view.ladder_changes(number)
            values.append(
                self.book.ladder_sessions.resume(view, number).value  # type: ignore[arg-type]
                if changed
                else None
            )
        return values

    def further_values(
        self, view: ReadView, row: BoardRow, *, as_frozen: bool = False
    ) -> FurtherValues:
        """Return the released values of all further live metrics: now, or at the freeze.

        They are read from the ledger, which is public, and only from where the last reading ended.
        """
        rules = self.rules_of(row)
        metrics = rules.live_metrics[1:]
        if not metrics or rules.ladder == "board":
            return {}
        state = view.chain_state_at(row.horizon) if as_frozen else view.chain_state()
        epoch = row.seen_epoch if as_frozen else row.epoch
        cached = self._further.get(as_frozen)
        if (
            cached is None
            or cached.epoch != epoch
            or cached.state.entries > state.entries
            or view.chain_state_at(cached.state.entries).head != cached.state.head
        ):
            cached = _FurtherReleases(epoch, EMPTY_CHAIN, {})
        if cached.state.head != state.head:
            values = dict(cached.values)
            names = view.ladder_names()
            in_epoch = replace(row, epoch=epoch)
            for encoded in view.last_changes(cached.state.entries, state.entries):
                fields = Entry(encoded).read()
                team, metric = fields["asker"], fields.get("metric", 0)
                if metric and names[fields["ladder"]] == self.ladder_of(in_epoch, team, metric):
                    before = values.get(team, (None,) * len(metrics))
                    index = metrics.index(metric)
                    values[team] = (*before[:index], fields["value"], *before[index + 1 :])
            cached = _FurtherReleases(epoch, state, values)
            self._further[as_frozen] = cached
        return cached.values

    def further_releases(self, view: ReadView, entry: int) -> list[Release]:
        """Return the releases of a submission by its further live metrics.

        Their entries follow that of the first; starts of ladders may lie between.
        """
        wanted = self.book.opening["rules"].get("answers", 1) - 1
        releases: list[Release] = []
        if wanted:
            for encoded in view.entries(entry + 1, entry + 1 + 2 * wanted):
                fields = Entry(encoded).read()
                if fields["kind"] == "question" and "metric" in fields and len(releases) < wanted:
                    releases.append(release_from_entry(fields))
        return releases

    def cached_records(self, view: ReadView, row: BoardRow, state: ChainState) -> RecordHistory:
        """Return the board's records; they are read again only if anything changed."""
        cached = self._records
        if cached is None or cached[:2] != (row, state):
            cached = self._records = (row, state, read_records(view, row.epoch, state))
        return cached[2]

    def read_final_standings(self, view: ReadView) -> dict[str, Any] | None:
        """Return the standings that the close committed to, with their salt; older boards: None."""
        if view.get_value(STANDINGS_KEY) is None:
            return None
        opened: dict[str, Any] = decode(self.book.read_encrypted(STANDINGS_KEY))
        return opened

    def names_in_ledger(self, view: ReadView) -> bool:
        """Return whether an older version closed the board: its rankings name all teams."""
        standings, final = self.read_final_standings(view), self.read_row(view).final
        rows = [] if standings is None else standings["content"]
        finals = [] if final is None else json.loads(final)["rows"]
        names = [row["name"] for row in rows if not row["baseline"]]
        names += [row["team"]["name"] for row in finals if not row["baseline"]]
        return any(name is not None for name in names)

    def meter(self, row: BoardRow, state: ChainState) -> Meter:
        """Return the meter: how much of the budget is used, and what can be promised."""
        opened = self.book.opening["rules"]
        rules: dict[str, Any] = {
            **opened,
            "questions": self.rules_of(row).questions,
            "declared": opened["questions"],
        }
        rules["corrected"] = row.epoch > 0
        book = self.book
        values_count = book.mechanism.certified_by_values
        reader = partial(book.visible_changes, state) if values_count else None
        return Meter(book.mechanism, rules, state, read_changes=reader)

    def smallest_visible_gain(self, view: ReadView, row: BoardRow, team: TeamRow) -> float:
        """Return the gain in loss that shows on a team's ladder 19 times out of 20; 0 for any."""
        book, shared = self.book, self.rules_of(row).ladder == "board"
        ladder = view.ladder_number(self.ladder_of(row, team.id))
        released = row.best if shared else team.released
        if ladder is None or (released is None and not book.mechanism.hides_value):
            return 0.0  # the first submission always gets a number
        error = None
        if book.mechanism.needs == "standard_error" and released is not None:
            entry = (
                find_record_entry(view, row.epoch, released)
                if shared
                else find_team_record_entry(view, row.epoch, team.number)
            )
            error = _read_standard_error(view, entry)
        return book.mechanism.smallest_visible_gain(
            n=book.opening["rules"]["worth"],
            released=TYPICAL_LOSS if released is None else released,
            changes=view.ladder_changes(ladder),
            others=book.ladder_sessions.changes_of_others(view, ladder),
            standard_error=error,
        )

    def describe_gains(self, best: float | None) -> str:
        """Return the smallest gains that show near a released loss; empty if it is not known."""
        mechanism = self.book.mechanism
        if best is None and mechanism.needs == "standard_error":
            return ""
        with self.reading() as view:
            row = read_board(view)
            near = None if best is None else self._released_score(view, row, best)
        rules, n = self.rules_of(row), self.book.opening["rules"]["worth"]
        return describe_board_gains(rules, mechanism, n, near)

    def _released_score(self, view: ReadView, row: BoardRow, best: float) -> BaselineScore:
        """Return a released loss with the standard error that was released with it, if any."""
        error = None
        if self.book.mechanism.needs == "standard_error":
            error = _read_standard_error(view, find_record_entry(view, row.epoch, best))
        return BaselineScore(best, error, zero_one=False)

    def score_errors(
        self, view: ReadView, state: ChainState, epoch: int, losses: Mapping[str, float]
    ) -> dict[str, float]:
        """Return the standard error of each team's released loss, as far as the public can know it.

        It has two parts. One is the error of the sample: a mechanism that needs standard errors
        releases that of every new best, rounded up; for all others it is that of a mean of costs
        between 0 and 1, which is largest if each is 0 or 1. A perfect score has the one of a loss
        on one example, not of 0. The other part is the noise and the rounding of the release, whose
        laws and sizes are public.
        """
        opened, mechanism = self.book.opening["rules"], self.book.mechanism
        n = opened["worth"]
        smallest_part = 1 / ((opened.get("promise") or {}).get("effective_n") or n)
        sampled: dict[tuple[str, float], float] = {}
        released: dict[tuple[str, float], float] = {}
        if mechanism.certified_by_values or mechanism.needs == "standard_error":
            names, changes = view.ladder_names(), self.book.visible_changes(state)
            errors = mechanism.release_errors(n, changes)
            for change, error in zip(changes, errors, strict=True):
                key = names[change.ladder], change.value
                released[key] = error
                if change.error_class is not None:
                    sampled[key] = largest_standard_error(change.error_class)
        usual = mechanism.release_error(n)
        row = replace(read_board(view), epoch=epoch)
        totals = {}
        for team, loss in losses.items():
            key = self.ladder_of(row, team), loss
            inside = min(max(loss, 0.0), 1.0)  # noise of the paper's form may release less than 0
            error = sampled.get(key, math.sqrt(inside * (1 - inside) / n))
            totals[team] = math.hypot(
                error if error > 1 / n else smallest_part, released.get(key, usual)
            )
        return totals

    def describe_resolution(self, best: float | None) -> list[str]:
        """Return what the board shows and what an attacker could gain. For the organiser only.

        Near ``best``, a released loss, as on the Rules page; before there is one, near a plausible
        score that depends on the labels.
        """
        with self.reading() as view:
            row = read_board(view)
            near = None if best is None else self._released_score(view, row, best)
        scorer = self.scorer_of(row)
        if near is None and scorer.loss.uses_labels:
            constant = scorer.best_constant()
            baseline = None if constant is None else BaselineScore.of(scorer, constant)
            near = typical_score(scorer, baseline)
        return describe_board_resolution(
            self.rules_of(row), self.book.mechanism, self.book.opening["rules"]["worth"], near
        )

    def read_stored_file(self, location: str) -> bytes:
        """Return the stored bytes of a submission."""
        with self.store.get(location) as file:
            return file.read()


def _read_standard_error(view: ReadView, entry: int | None) -> float | None:
    """Return the standard error that was released with a new best, rounded up."""
    if entry is None:
        return None
    (encoded,) = view.entries(entry, entry + 1)
    return release_from_entry(Entry(encoded).read()).standard_error
