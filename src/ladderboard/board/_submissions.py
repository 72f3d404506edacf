"""Submissions: each is scored, recorded and answered once, and its predictions are stored."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from ladderboard._formatting import format_utc
from ladderboard.board._access import (
    Role,
    StoredBytes,
    check_permission,
    check_text,
    compute_shares,
    redact_quota,
    refuse_if_closed,
    refuse_if_over_limit,
    refuse_if_storage_full,
    refuse_without_terms,
    remaining_quota,
)
from ladderboard.board._board import KeyedLock
from ladderboard.board._model import RecordRow, SubmissionReply, SubmissionRow, make_document
from ladderboard.board._people import accepted_version
from ladderboard.board._repository import (
    board_and_team_statement,
    find_submission_by_entry,
    find_team,
    read_board,
    read_board_and_team,
    record_submission,
)
from ladderboard.board._rules import (
    SECRET_VISIBILITIES,
    format_further,
    round_release,
    serialize_bound,
    serialize_releases,
    to_metric,
)
from ladderboard.errors import (
    BrokenLedger,
    InvalidSetting,
    InvalidState,
    LadderboardError,
    NotFound,
    StorageFailed,
)
from ladderboard.files import Limits
from ladderboard.holdout import (
    ALIGNED_FORMAT,
    AlignedPredictions,
    ReplyTexts,
    format_reply,
)
from ladderboard.ledger import ScoredQuestion, SecretSide

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from ladderboard.board._access import Caller, Quota
    from ladderboard.board._board import BoardContext
    from ladderboard.board._model import BoardRow, TeamRow
    from ladderboard.board._repository import Sender, Statement
    from ladderboard.board._rules import Rules
    from ladderboard.board._store import PreparedFile
    from ladderboard.bounds import Certificate
    from ladderboard.files import Roster
    from ladderboard.ledger import (
        BookTransaction,
        Moment,
        Prefetch,
        ReadView,
        Receipt,
        RecordedAnswer,
    )
    from ladderboard.losses import Loss
    from ladderboard.mechanisms import Release

    Sandbox = Callable[[], AbstractContextManager["ParseSubmission"]]

_FRESH_SECONDS = 1.0  # in which a check before the body is good enough to score it
_MAX_MESSAGE = 500  # characters
_MAX_STORED_BYTES = 2**30  # for files accepted before the limits were lowered

Result = TypeVar("Result")


@dataclass(frozen=True, repr=False)
class IncomingSubmission:
    """A submission that was received and parsed, not yet scored.

    ``received`` is the time of its first byte. The aligned predictions will be stored, not the
    uploaded file.
    """

    submission: AlignedPredictions
    received: int
    message: str = ""
    idempotency_key: str | None = None

    @property
    def size(self) -> int:
        """The number of bytes to store."""
        return len(self.submission.packed)


@dataclass(frozen=True)
class SubmissionAnswer:
    """The answer to one submission: the release, its certificate, and the team's quota.

    Parameters
    ----------
    id, number, time, entry
        The submission's id, its number within the team, when it was answered, and the number of
        its ledger entry, which is None if it would reveal how often others submitted.
    team, name
        The team's id and name.
    release, again
        The release, and whether it repeats an earlier answer.
    bound
        The certificate for the best on this ladder; None if it would reveal others' activity.
    best
        The loss of that best; it differs from the release if an earlier answer is repeated.
    visible_gain
        The smallest gain in loss that surely shows on this ladder now; 0 if every one does, or if
        it would reveal others' activity.
    quota
        The team's remaining quota.
    reason
        The answer in one sentence.
    receipt
        The team's proof that it was answered.
    further
        The releases by the further live metrics.
    """

    id: str
    number: int
    time: int
    entry: int | None
    team: str
    name: str
    release: Release
    again: bool
    bound: Certificate | None
    best: float | None
    visible_gain: float
    quota: Quota
    reason: str
    rules: Rules
    receipt: Receipt
    further: Sequence[Release] = ()

    def describe(self) -> dict[str, Any]:
        """Return JSON-able fields in the board's metric; ``loss`` is the loss of ``released``."""
        release, shown, limit = self.release, self.rules.display, self.quota.tightest
        return make_document(
            SubmissionReply,
            self,
            id=self.id,
            number=self.number,
            time=self.time,
            entry=self.entry,
            team={"id": self.team, "name": self.name},
            released=to_metric(shown, release.value),
            loss=release.value,
            improved=release.improved,
            question=release.question,
            remaining=limit.remaining,
            limit=limit.name,
            limits=[quota_limit.describe() for quota_limit in self.quota.limits],
            next_submission_at=self.quota.next,
            bound=None if self.bound is None else serialize_bound(shown, self.bound, self.best),
            reason=self.reason,
            visible_gain=shown.metric_gain(self.visible_gain, self.best),
            score=to_metric(shown, release.score),
            score_loss=release.score,
            proven=release.proven,
            ladder=self.rules.ladder,
            again=self.again,
            metrics=serialize_releases(self.rules, self.further),
            receipt=self.receipt.describe(),
            display={
                **shown.describe(),
                "released": round_release(shown, release.value),
                "score": round_release(shown, release.score),
            },
        )


class _PendingUpload(NamedTuple):
    """A submission whose body is still unread; limits assume a size of 1 byte."""

    received: int
    size: int


class AuthorizedUpload(NamedTuple):
    """A board and a team as they were when an upload to them was authorized, and when that was.

    The team is None if its limits were not checked.
    """

    board: BoardRow
    team: TeamRow | None
    time: float

    @property
    def fresh(self) -> tuple[BoardRow, TeamRow] | None:
        """Both, if the check need not be repeated before scoring; the transaction repeats it."""
        if self.team is None or monotonic() >= self.time + _FRESH_SECONDS:
            return None
        return self.board, self.team


class SubmissionRequest(NamedTuple):
    """A submission, its sender, and the team that it is for if the sender is an evaluator.

    ``authorized`` is what was checked before its body was read.
    """

    caller: Caller
    incoming: IncomingSubmission
    team: str | None = None
    authorized: AuthorizedUpload | None = None

    @property
    def fresh(self) -> tuple[BoardRow, TeamRow] | None:
        """What was checked, if that was a moment ago."""
        return None if self.authorized is None else self.authorized.fresh

    @property
    def sender(self) -> Sender | None:
        """Who sent it, unless an evaluator did."""
        return self.caller.sender if self.team is None else None

    @property
    def key(self) -> tuple[Any, bytes]:
        """What is equal if the same predictions are sent for the same team."""
        return self.team or self.caller.team, self.incoming.submission.digest


class _CheckedSubmission(NamedTuple):
    """A submission whose sender and limits were checked, and its question, not scored.

    ``earlier`` is the answer that it got before, if it is known.
    """

    request: SubmissionRequest
    row: BoardRow
    team: TeamRow
    question: ScoredQuestion
    earlier: RecordedAnswer | None


class _ScoredSubmission(NamedTuple):
    """A scored submission that waits for its transaction."""

    id: str
    checked: _CheckedSubmission
    questions: list[ScoredQuestion]
    prepared: PreparedFile


class _RecordedAnswer(NamedTuple):
    """The result of a transaction, for the answer that is sent after the commit."""

    outcome: RecordedAnswer
    board: BoardRow
    team: TeamRow
    quota: Quota
    id: str
    number: int
    time: int
    receipt: Receipt
    visible_gain: float
    further: list[Release]


class _LabelsChanged(LadderboardError):
    """Labels were corrected while a submission was scored; it must be scored again."""


def _do_nothing() -> None:
    pass


class SubmissionService:
    """Answers the submissions to one board.

    Refused and repeated submissions are not scored, so their response times cannot depend on
    labels.
    """

    def __init__(self, board: BoardContext) -> None:
        self._board = board
        self._stored_bytes = StoredBytes()
        self._in_progress = KeyedLock()
        self._ladders: dict[int, tuple[str, str]] = {}  # the last one and the id of each team

    def authorize_upload(
        self,
        caller: Caller,
        received: int,
        *,
        team: str | None = None,
        idempotency_key: str | None = None,
        check_only: bool = False,
    ) -> AuthorizedUpload:
        """Refuse a submission that cannot be accepted now, before its body is read.

        This checks status, deadlines, limits, budget and quotas; the transaction checks them again,
        and so does ``submit`` before it scores, unless it gets the result within a second. A known
        ``idempotency_key`` passes, because repeating its answer costs nothing. If the file is only
        checked, limits do not matter.
        """
        board, time = self._board, monotonic()
        with board.book.reading_latest() as view:
            row, team_row = self._check_sender(view, caller, team)
            if idempotency_key is not None:
                key = board.book.hash_idempotency_key(
                    ScoredQuestion(b"", 1.0, asker=team_row.id, idempotency_key=idempotency_key)
                )
                if key is not None and view.find_by_dedupe_key(key) is not None:
                    return AuthorizedUpload(row, None, time)
            moment = board.book.environment.moment(view)
            incoming = _PendingUpload(received, 1)
            if check_only:
                self._refuse_if_closed(row, team_row, incoming, moment)
                return AuthorizedUpload(row, None, time)
            self._refuse_if_not_allowed_now(view, row, team_row, incoming, moment, cache=True)
        return AuthorizedUpload(row, team_row, time)

    def submit(
        self,
        caller: Caller,
        incoming: IncomingSubmission,
        team: str | None = None,
        authorized: AuthorizedUpload | None = None,
    ) -> SubmissionAnswer:
        """Answer a submission, sent by a team or by an evaluator for a team.

        A duplicate submission gets the earlier answer. Equal predictions that arrive at the same
        time are scored once; the others wait for that answer.
        """
        request = SubmissionRequest(caller, incoming, team, authorized)
        with self._in_progress.hold(request.key):
            return self._answer_one(request)

    def submit_all(
        self, requests: Sequence[SubmissionRequest], recorded: Callable[[], None] = _do_nothing
    ) -> list[SubmissionAnswer | Exception]:
        """Answer submissions as ``submit`` does; those that are refused get their exception.

        They are checked, scored and recorded together, in their order. ``recorded`` is called when
        all that is left is the commit and the answers, so that the next ones can be scored.
        """
        first: dict[tuple[Any, bytes], SubmissionRequest] = {}
        for request in requests:
            first.setdefault(request.key, request)
        with ExitStack() as stack:
            for key in sorted(first, key=repr):
                stack.enter_context(self._in_progress.hold(key))
            answers = self._answer_all(list(first.values()), recorded)
        by_key = dict(zip(first, answers, strict=True))
        return [
            by_key[request.key]
            if request is first[request.key]
            else _attempt(self.submit, *request)
            for request in requests
        ]

    def _answer_all(
        self, requests: Sequence[SubmissionRequest], recorded: Callable[[], None] = _do_nothing
    ) -> list[SubmissionAnswer | Exception]:
        """Answer submissions that all differ."""
        with self._board.book.reading_latest() as view:
            if view.reads_ahead:
                view.read_ahead(self._statements_before_scoring(view.book_id, requests))
            checked = [_attempt(self._check, view, request) for request in requests]
        scored = [
            _attempt(self._score, item)
            if isinstance(item, _CheckedSubmission) and item.earlier is None
            else item
            for item in checked
        ]
        jobs = [item for item in scored if isinstance(item, _ScoredSubmission)]
        outcomes = iter(self._record_all(jobs, recorded))
        return [
            item
            if isinstance(item, Exception)
            else _attempt(self._finish, item, _attempt(self._repeat_answer, item))
            if isinstance(item, _CheckedSubmission)
            else _attempt(self._finish, item.checked, next(outcomes))
            for item in scored
        ]

    def _check(self, view: ReadView, request: SubmissionRequest) -> _CheckedSubmission:
        """Look up a submission, and refuse one that is new and not allowed now."""
        board, (caller, incoming, team, _), fresh = self._board, request, request.fresh
        message = check_text("A message", incoming.message, at_most=_MAX_MESSAGE, lines=True)
        if message != incoming.message:
            incoming = replace(incoming, message=message)
            request = request._replace(incoming=incoming)
        if fresh is None:
            row, team_row = self._check_sender(view, caller, team)
        else:
            row, team_row = fresh
        key, digest = incoming.idempotency_key, incoming.submission.digest
        question = board.question_for(row, team_row, digest, key=key)
        # Before the lookup: the transaction need not look up again what is new since then.
        question = question._replace(unanswered_at=view.chain_state().head)
        earlier = board.book.read_duplicate(view, question)
        if earlier is None:
            board.check_predictions(row, incoming.submission)
            if fresh is None or self._may_fill_storage(row, incoming):
                moment = board.book.environment.moment(view)
                self._refuse_if_not_allowed_now(view, row, team_row, incoming, moment, cache=True)
        return _CheckedSubmission(request, row, team_row, question, earlier)

    def _score(self, checked: _CheckedSubmission) -> _ScoredSubmission:
        """Score a submission, and prepare its predictions for the store."""
        board, incoming = self._board, checked.request.incoming
        first, *further = board.score(
            checked.row, checked.team, incoming.submission, incoming.idempotency_key
        )
        questions = [first._replace(unanswered_at=checked.question.unanswered_at), *further]
        submission_id = board.book.environment.salt()[-16:].hex()
        prepared = board.store.prepare(submission_id, incoming.submission.packed)
        return _ScoredSubmission(submission_id, checked, questions, prepared)

    def _finish(
        self, checked: _CheckedSubmission, outcome: _RecordedAnswer | Exception
    ) -> SubmissionAnswer:
        """Return the answer to what was recorded now or earlier."""
        if isinstance(outcome, _LabelsChanged):
            return self._answer_one(checked.request._replace(authorized=None))
        if isinstance(outcome, Exception):
            raise outcome
        redact = _must_redact(outcome.board, checked.request.caller)
        return self._build_answer(outcome, redact=redact)

    def _answer_one(self, request: SubmissionRequest) -> SubmissionAnswer:
        (answer,) = self._answer_all([request])
        if isinstance(answer, Exception):
            raise answer
        return answer

    def _repeat_answer(self, checked: _CheckedSubmission) -> _RecordedAnswer:
        """Repeat an earlier answer; a new idempotency key is recorded for it."""
        board, number, question = self._board, checked.team.number, checked.question
        key, earlier = board.book.hash_idempotency_key(question), checked.earlier
        with board.reading() as view:
            row, team_row = read_board_and_team(view, number, checked.request.sender)
            if earlier and (key is None or view.find_by_dedupe_key(key) == earlier.entry_number):
                # An entry never changes; bound and quota need rows and state of one moment.
                earlier = earlier._replace(chain_state=view.chain_state())
                return self._answer_duplicate(view, row, team_row, earlier)
        return board.queue.run(
            lambda transaction: self._answer_retry(transaction, number, question)
        )

    def _check_sender(
        self, view: ReadView, caller: Caller, team: str | None
    ) -> tuple[BoardRow, TeamRow]:
        """Return the board and the team; refuse a caller that may not submit for this team."""
        if caller.team is None or team is not None:
            row = read_board(view)
            check_permission(caller, "submit", self._board.rules_of(row))
            if team is None:
                raise InvalidSetting("Name the team that this submission is for.")
            if caller.role < Role.EVALUATOR:
                raise InvalidSetting("A team can submit only for itself.")
            return row, find_team(view, team)
        row, team_row = read_board_and_team(view, caller.team, caller.sender, prefetched=True)
        self._ladders[team_row.number] = (self._board.ladder_of(row, team_row.id), team_row.id)
        rules = self._board.rules_of(row)
        check_permission(caller, "submit", rules)
        if rules.terms is not None and caller.identity is not None:
            refuse_without_terms(rules, accepted_version(view, caller))
        return row, team_row

    def _statements_before_scoring(
        self, book: int, requests: Sequence[SubmissionRequest]
    ) -> list[Statement]:
        """Return what teams' submissions read; a ladder is most likely the same as before."""
        statements = []
        for request in requests:
            caller, incoming, team, _ = request
            if caller.team is None or team is not None:
                continue
            if request.fresh is None:
                statements.append(board_and_team_statement(book, caller.team, caller.sender))
            if caller.team in self._ladders:
                ladder, asker = self._ladders[caller.team]
                question = ScoredQuestion(
                    incoming.submission.digest,
                    1.0,
                    ladder=ladder,
                    asker=asker,
                    idempotency_key=incoming.idempotency_key,
                )
                statements += self._board.book.statements_for(book, question, answer=False)
        return statements

    def _answer_retry(
        self, transaction: BookTransaction, number: int, question: ScoredQuestion
    ) -> _RecordedAnswer:
        """Repeat the earlier answer, and record the new idempotency key for it."""
        view = transaction.view
        earlier = transaction.find_duplicate(question)
        if earlier is None:  # labels were corrected since the lookup
            raise _LabelsChanged
        return self._answer_duplicate(view, *read_board_and_team(view, number), earlier)

    def _refuse_if_not_allowed_now(
        self,
        view: ReadView,
        row: BoardRow,
        team_row: TeamRow,
        incoming: IncomingSubmission | _PendingUpload,
        moment: Moment,
        *,
        cache: bool = False,
    ) -> None:
        """Check terms, status, deadline, limits and storage."""
        self._refuse_if_closed(row, team_row, incoming, moment)
        rules = self._board.rules_of(row)
        quota = remaining_quota(view, rules, row, team_row, moment)
        refuse_if_over_limit(quota, moment.clock)
        stored = row.stored  # of all teams; mostly so little that this team's part does not matter
        if stored + incoming.size > rules.team_quota:
            stored = self._stored_bytes.team_total(view, team_row, cache=cache)
        refuse_if_storage_full(rules, row, team_row, stored, incoming.size)

    def _may_fill_storage(self, row: BoardRow, incoming: IncomingSubmission) -> bool:
        """Tell whether a limit of stored bytes could be exceeded, if a team had them all."""
        rules = self._board.rules_of(row)
        return row.stored + incoming.size > min(rules.team_quota, rules.files.quota)

    def _refuse_if_closed(
        self,
        row: BoardRow,
        team_row: TeamRow,
        incoming: IncomingSubmission | _PendingUpload,
        moment: Moment,
    ) -> None:
        """Check terms, status and deadline, which counts from the receipt."""
        rules = self._board.rules_of(row)
        if team_row.kind != "baseline":
            refuse_without_terms(rules, team_row.accepted)
        received = moment.now - max(moment.local - incoming.received, 0)
        refuse_if_closed(rules, row, None if team_row.kind == "baseline" else received)

    def _record_all(
        self, jobs: Sequence[_ScoredSubmission], recorded: Callable[[], None]
    ) -> list[_RecordedAnswer | Exception]:
        """Record scored submissions in one transaction, if no other error than a refusal occurs."""
        last = len(jobs) - 1
        works = [
            self._queue_job(job, recorded if index == last else _do_nothing)
            for index, job in enumerate(jobs)
        ]
        queued = self._board.queue.run_all(works)
        outcomes = [_attempt(done.get_result) for done in queued]
        for job, outcome in zip(jobs, outcomes, strict=True):
            if not isinstance(outcome, Exception) and outcome.id == job.id:
                size = job.checked.request.incoming.size
                self._stored_bytes.add(job.checked.team.number, outcome.number, size)
            elif not isinstance(outcome, StorageFailed):
                # After such an error the row may be committed; otherwise the file is swept later.
                job.prepared.abandon()
        return outcomes

    def _queue_job(
        self, job: _ScoredSubmission, recorded: Callable[[], None]
    ) -> tuple[Callable[[BookTransaction], _RecordedAnswer], Prefetch]:
        """Return the work of a submission in a transaction, and the statements that it needs."""

        def record(transaction: BookTransaction) -> _RecordedAnswer:
            try:
                return self._record_in_transaction(transaction, job)
            finally:
                recorded()

        return (
            record,
            lambda book: [
                board_and_team_statement(book, job.checked.team.number, job.checked.request.sender),
                *self._board.book.statements_for(book, job.questions[0]),
            ],
        )

    def _record_in_transaction(
        self, transaction: BookTransaction, job: _ScoredSubmission
    ) -> _RecordedAnswer:
        """Check again, ask the mechanism, and store the submission, all in one transaction."""
        board, view = self._board, transaction.view
        submission_id, (request, checked_row, checked_team, *_), questions, prepared = job
        number, epoch, incoming = checked_team.number, checked_row.epoch, request.incoming
        row, team_row = read_board_and_team(
            view, number, job.checked.request.sender, prefetched=True
        )
        row = transaction.rows.get("board", row)
        team_row = transaction.rows.get(number, team_row)
        if (team_row.id, team_row.erased) != (checked_team.id, checked_team.erased):
            raise NotFound("There is no such team.")
        earlier = transaction.find_duplicate(questions[0])
        if earlier is not None:
            return self._answer_duplicate(view, row, team_row, earlier)
        if row.epoch != epoch:
            raise _LabelsChanged
        rules = board.rules_of(row)
        moment = transaction.moment()
        self._refuse_if_not_allowed_now(view, row, team_row, incoming, moment)
        outcome = transaction.answer(questions[0], budget=rules.questions)
        further = [transaction.answer(question) for question in questions[1:]]
        if further:
            outcome = outcome._replace(chain_state=further[-1].chain_state)
        moment = moment._replace(chain_state=outcome.chain_state)
        release, time, count = outcome.release, outcome.chain_state.time, team_row.used + 1
        submission = SubmissionRow(
            team=number,
            number=count,
            id=submission_id,
            entry=outcome.entry_number,
            time=time,
            message=incoming.message,
            format=ALIGNED_FORMAT,
            size=incoming.size,
            place=prepared.location,
            epoch=epoch,
            value=release.value,
            score=release.score,
            improved=release.improved,
            question=release.question,
            proven=release.proven,
        )
        best, record = row.best, None
        if release.improved:
            team_row = replace(team_row, released=release.value, since=time, proven=release.proven)
            if release.value is not None and (best is None or release.value < best):
                best = release.value
                record = RecordRow(
                    entry=outcome.entry_number,
                    epoch=epoch,
                    time=time,
                    team=number,
                    value=best,
                    proven=release.proven,
                )
        share = compute_shares(rules, row, outcome.chain_state).share
        pooled = row.pooled + (team_row.kind == "team" and team_row.used >= share)
        team_row = replace(team_row, used=count, last=time)
        row = replace(row, pooled=pooled, best=best, stored=row.stored + incoming.size)
        record_submission(
            view,
            submission,
            record,
            file=prepared.statements,
            team={
                "used": count,
                "last": time,
                "released": team_row.released,
                "since": team_row.since,
                "proven": team_row.proven,
            },
            board={"pooled": pooled, "stored": row.stored, "best": best},
        )
        transaction.rows.update({"board": row, number: team_row})
        quota = remaining_quota(view, rules, row, team_row, moment)
        receipt = outcome.receipt or board.book.receipt_for(view, outcome)
        gain = outcome.smallest_gain or 0.0
        releases = [answer.release for answer in further]
        return _RecordedAnswer(
            outcome, row, team_row, quota, submission_id, count, time, receipt, gain, releases
        )

    def _answer_duplicate(
        self, view: ReadView, row: BoardRow, team_row: TeamRow, outcome: RecordedAnswer
    ) -> _RecordedAnswer:
        known = find_submission_by_entry(view, outcome.entry_number)
        if known is None or known.team != team_row.number:
            raise NotFound("There is no such submission.")
        rules = self._board.rules_of(row)
        moment = self._board.book.environment.moment(view)
        quota = remaining_quota(view, rules, row, team_row, moment)
        receipt = self._board.book.receipt_for(view, outcome)
        gain = self._board.smallest_visible_gain(view, row, team_row)
        releases = self._board.further_releases(view, known.entry)
        return _RecordedAnswer(
            outcome,
            row,
            team_row,
            quota,
            known.id,
            known.number,
            known.time,
            receipt,
            gain,
            releases,
        )

    def _build_answer(self, recorded: _RecordedAnswer, *, redact: bool) -> SubmissionAnswer:
        board, row = self._board, recorded.board
        rules = board.rules_of(row)
        meter = board.meter(row, recorded.outcome.chain_state)
        if redact:
            recorded = self._redact(recorded)
        value = recorded.outcome.release.value
        if recorded.outcome.repeated:
            value = recorded.team.released if rules.ladder == "team" else row.best
        return SubmissionAnswer(
            id=recorded.id,
            number=recorded.number,
            time=recorded.time,
            entry=None if redact else recorded.outcome.entry_number,
            team=recorded.team.id,
            name=recorded.team.name,
            release=recorded.outcome.release,
            again=recorded.outcome.repeated,
            bound=None if redact else meter.certificate(value),
            best=value,
            visible_gain=recorded.visible_gain,
            quota=recorded.quota,
            reason=_answer_sentence(recorded, rules),
            rules=rules,
            receipt=recorded.receipt,
            further=recorded.further,
        )

    def _redact(self, recorded: _RecordedAnswer) -> _RecordedAnswer:
        """Remove what depends on others: the board's best, question numbers and the pool.

        Also whether a record is proven: the price of that counts what others were shown.
        """
        row, team, outcome = recorded.board, recorded.team, recorded.outcome
        rules = self._board.rules_of(row)
        release = outcome.release._replace(proven=None)
        if rules.ladder == "board":
            value = release.value if release.improved else None
            release = release._replace(value=value, question=recorded.number)
            recorded = recorded._replace(
                further=[
                    other._replace(value=other.value if other.improved else None)
                    for other in recorded.further
                ]
            )
        share = compute_shares(rules, row, outcome.chain_state).share
        return recorded._replace(
            outcome=outcome._replace(release=release),
            quota=redact_quota(recorded.quota, team, share),
            visible_gain=0.0 if rules.ladder == "board" else recorded.visible_gain,
            receipt=recorded.receipt.redacted(),
        )


def _attempt(work: Callable[..., Result], *arguments: Any) -> Result | Exception:
    """Return the result of a call, or its exception, which must not end the calls after it."""
    try:
        return work(*arguments)
    except Exception as error:  # noqa: BLE001 - raised for the submission that it belongs to
        return error


def _must_redact(row: BoardRow, caller: Caller) -> bool:
    """Return whether the answer must not reveal others' activity."""
    return row.visibility in SECRET_VISIBILITIES and caller.role < Role.EVALUATOR


def _answer_sentence(recorded: _RecordedAnswer, rules: Rules) -> str:
    """Return the answer's sentence, with the tightest limit as the remaining count."""
    display = rules.display
    tightest = recorded.quota.tightest
    outcome = recorded.outcome
    release = outcome.release
    best = display.named_text(release.value)
    texts = ReplyTexts(
        best,
        best if release.score == release.value else display.named_text(release.score),
        # A new best says nothing about the gains that show.
        None if release.improved else display.gain_text(recorded.visible_gain, release.value),
    )
    text = format_reply(
        release,
        texts,
        again=outcome.repeated,
        remaining=tightest.remaining,
        noun="submission",
        number=recorded.number,
    )
    if recorded.quota.next is not None and tightest.remaining == 0:
        text = f"{text[:-1]} now; next at {format_utc(recorded.quota.next, up=True)}."
    return " ".join([text, *format_further(rules, recorded.further)])


class ParseSubmission(Protocol):
    """Parses a submitted file in a process that has neither labels nor keys."""

    def __call__(
        self,
        roster: Roster,
        loss: Loss,
        limits: Limits,
        body: bytes,
        file_format: str | None,
    ) -> AlignedPredictions:
        """Return the predictions in the file."""


@contextmanager
def open_stored_predictions(
    board: BoardContext, row: BoardRow, sandbox: Sandbox | None
) -> Iterator[Callable[[SubmissionRow], AlignedPredictions]]:
    """Give a function that returns a submission's predictions, checked against the ledger.

    Since 0.1 the aligned array is stored, which needs no parsing. Older boards stored the uploaded
    file. ``sandbox`` parses such files in another process, because this one has the labels and the
    key in memory.
    """
    scorer = board.scorer_of(row)
    with ExitStack() as stack:
        parse: ParseSubmission | None = None

        def read(stored: SubmissionRow) -> AlignedPredictions:
            nonlocal parse
            body = board.read_stored_file(stored.place)
            if stored.format == ALIGNED_FORMAT:
                submission = AlignedPredictions.unpack(body)
            else:
                if parse is None:
                    parse = stack.enter_context(_require_sandbox(sandbox)())
                largest = max(board.rules_of(row).files.bytes, len(body), _MAX_STORED_BYTES)
                limits = Limits(bytes=largest, rows=2**50, columns=2**20)
                submission = parse(scorer.roster, scorer.loss, limits, body, stored.format)
            if submission.digest != read_secret_side(board, stored.entry).submission:
                raise BrokenLedger(
                    f"The stored predictions of entry {stored.entry} do not match the ledger."
                )
            return submission

        yield read


def _require_sandbox(sandbox: Sandbox | None) -> Sandbox:
    if sandbox is None:
        raise InvalidState(
            "This board stores uploaded files, which only a separate process may parse. Use "
            "ladderboard board close, or pass sandbox=ladderboard.server.sandbox."
        )
    return sandbox


def read_secret_side(board: BoardContext, entry: int) -> SecretSide:
    """Return the decrypted secret side of an entry: its exact risk and the digest of the file."""
    with board.reading() as view:
        packed = view.secret_side(entry)
    if packed is None:
        raise BrokenLedger(f"The secret side of entry {entry} of the ledger is missing.")
    return SecretSide.unpack(board.book.encryption.decrypt(f"secret {entry}", packed))
