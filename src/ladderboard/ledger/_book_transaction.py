"""What operations on a book share, and one transaction on it: questions and their outcomes."""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from ladderboard.errors import (
    BudgetSpent,
    IdempotencyKeyReused,
    InvalidSetting,
    InvalidState,
    SessionClosed,
    TooManyLadders,
)
from ladderboard.ledger._chain import (
    Entry,
    Receipt,
    append_entry,
    digest_state,
    encode_state,
    read_changes,
    release_from_entry,
)
from ladderboard.ledger._commitments import SecretSide, random_salt
from ladderboard.ledger._encoding import encode
from ladderboard.ledger._gate import (
    GATE_STATE,
    INCUMBENT,
    GateSecret,
    GateState,
    RecordedLook,
    ScoredLook,
)
from ladderboard.ledger._storage import question_statements

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Hashable

    from numpy.typing import NDArray

    from ladderboard.ledger._chain import LadderSessions
    from ladderboard.ledger._commitments import Encryption
    from ladderboard.ledger._storage import ChainState, ReadView, WriteView
    from ladderboard.mechanisms import Release, VisibleChange


class RecordTest(NamedTuple):
    """A model that may become the best of its ladder, and the test against the best before.

    What ``pack`` returns is stored if it does. ``is_proven`` gets what was stored for the best
    before, the changes that were visible before this question, and the chain state before it.
    """

    pack: Callable[[], bytes]
    is_proven: Callable[[bytes, tuple[VisibleChange, ...], ChainState], bool]


class ScoredQuestion(NamedTuple):
    """A question that was scored but not yet answered.

    Parameters
    ----------
    submission
        The digest of the aligned predictions.
    risk
        Their mean loss on the holdout.
    losses
        The loss of every example, if the mechanism needs them.
    standard_error
        That of the risk, if the mechanism needs it.
    record
        What is stored with the secret side if this becomes the ladder's best, and how it is
        compared with the best before; None if records are not tested.
    training
        The mean loss on the training data, if the mechanism uses it.
    broken
        Whether computing the loss failed, so that the risk is the worst possible.
    ladder
        The name of the ladder; it is started with the question if it is new.
    asker
        An opaque id of the team or run that asks.
    idempotency_key
        An idempotency key, under which the same question may be sent again.
    metric
        Which of a board's metrics the risk is in. Questions about further ones belong to the
        question before them: they use none of the budget.
    unanswered_at
        The head of a chain that has no answer to it, as it was looked up; None if it was not.
    nonce
        Random bytes if equal submissions are different questions, as equal scores are: whether
        scores are equal depends on the labels. Then only an idempotency key finds an answer again.
    """

    submission: bytes
    risk: float
    losses: NDArray[Any] | None = None
    training: float | None = None
    broken: bool = False
    ladder: str = ""
    asker: str | None = None
    idempotency_key: str | None = None
    standard_error: float | None = None
    record: RecordTest | None = None
    metric: int = 0
    unanswered_at: bytes | None = None
    nonce: bytes = b""


class RecordedAnswer(NamedTuple):
    """The answer to a question: its release, its entry's number, and the chain state after it.

    ``smallest_gain`` is what the next model on the ladder must gain to be shown 19 times out of 20.
    ``repeated`` says that the question had been answered before. Then ``receipt`` and
    ``smallest_gain`` are None, and ``Book.receipt_for`` reads the receipt.
    """

    release: Release
    entry_number: int
    chain_state: ChainState
    repeated: bool
    receipt: Receipt | None = None
    smallest_gain: float | None = None


class Moment(NamedTuple):
    """The chain state that a transaction sees, and its time.

    ``now`` is never before the last entry. ``clock`` may be: it is the database's clock if it has
    one, otherwise this machine's, which is ``local``.
    """

    chain_state: ChainState
    now: int
    clock: int
    local: int


def _now() -> int:
    return int(time.time())


@dataclass(frozen=True)
class LedgerEnvironment:
    """The clock, and the source of salts and ids; replaced in tests only."""

    clock: Callable[[], int] = field(default=_now)
    salt: Callable[[], bytes] = field(default=random_salt)

    @property
    def uses_system_clock(self) -> bool:
        """Whether the clock is this machine's; then a shared database's time takes precedence."""
        return self.clock is _now

    def moment(self, view: ReadView) -> Moment:
        """Return the chain state and the time of an open view."""
        state = view.chain_state()  # it comes with the time of a database on a server
        shared, local = view.now() if self.clock is _now else None, self.clock()
        clock = local if shared is None else shared
        return Moment(state, max(clock, state.time), clock, local)

    def current_time(self, view: ReadView) -> int:
        """Return the clock's time, but never one before the last entry."""
        return self.moment(view).now


class LastCommit(NamedTuple):
    """The heads of the chain before and after a transaction, and the dedupe keys that it added."""

    before: bytes
    after: bytes
    keys: Collection[bytes]


class BookContext:
    """What every operation on a book needs: its name and opening, its keys and its ladders."""

    def __init__(
        self,
        name: str,
        opening: dict[str, Any],
        *,
        hash_key: bytes,
        ladder_sessions: LadderSessions,
        encryption: Encryption,
        environment: LedgerEnvironment,
    ) -> None:
        self.name, self.opening = name, opening
        self.encryption, self.environment = encryption, environment
        self.ladder_sessions = ladder_sessions
        self._hash_key = hash_key
        self._last_dedupe_key: tuple[tuple[Any, ...], bytes] = ((), b"")
        self.last_commit = LastCommit(b"", b"", frozenset())
        """What the last transaction of this process added."""
        self.last_gate: tuple[bytes, GateState] = (b"", GateState())
        """A head of the chain, and the state of the gate then, which changes with an entry only."""
        self._numbers = {"": 0}
        self.budget = int(opening["rules"]["questions"])
        """How many questions are allowed."""
        self.max_ladders: int | None = opening["rules"].get("ladders")
        """How many ladders may be used; None if the rules set no limit."""
        self.tests_records: bool = opening["rules"].get("proven", False)
        """Whether every new best is tested against the one before."""

    def dedupe_key(self, question: ScoredQuestion) -> bytes:
        """Return the keyed hash by which a repeated submission is recognised."""
        identity = question.submission + question.nonce
        return self._dedupe_key("submission", question.ladder, question.asker, identity)

    def dedupe_keys(self, question: ScoredQuestion) -> list[bytes]:
        """Return all keys by which a question is recognised."""
        key, retry_key = self.dedupe_key(question), self.hash_idempotency_key(question)
        return [key] if retry_key is None else [key, retry_key]

    def hash_idempotency_key(self, question: ScoredQuestion) -> bytes | None:
        """Return the keyed hash of the question's idempotency key, if it has one."""
        return (
            None
            if question.idempotency_key is None
            else self._keyed_hash("retry", question.asker, question.idempotency_key)
        )

    def look_key(
        self, incumbent: bytes, margin: float, submission: bytes, nonce: bytes = b""
    ) -> bytes:
        """Return the keyed hash by which a repeated look is recognised."""
        return self._dedupe_key("look", incumbent.hex(), margin, submission + nonce)

    def _dedupe_key(self, *parts: Any) -> bytes:
        """Return the keyed hash of parts, of which the last is a digest."""
        # A question is looked up before it is scored, looked up again, and recorded.
        last_parts, key = self._last_dedupe_key
        if parts != last_parts:
            key = self._keyed_hash(*parts[:-1], parts[-1].hex())
            self._last_dedupe_key = parts, key
        return key

    def read_gate(self, view: ReadView) -> GateState:
        """Return the state of the gate; refuse a book without one."""
        known, (head, gate) = view.known_state, self.last_gate
        if known is not None and known.head == head:
            return gate
        stored = view.get_value(GATE_STATE)
        if stored is None:
            raise InvalidState("This file has no gate.")
        gate = GateState.decode(self.encryption.decrypt(f"kept {GATE_STATE}", stored))
        if known is not None:
            self.last_gate = known.head, gate
        return gate

    def read_incumbent(self, view: ReadView) -> bytes:
        """Return the stored predictions of the incumbent."""
        stored = view.get_value(INCUMBENT)
        if stored is None:
            raise InvalidState("The incumbent's predictions are missing.")
        return self.encryption.decrypt(f"kept {INCUMBENT}", stored)

    def mac(self, *parts: Any) -> bytes:
        """Return a keyed hash (MAC) that needs the book's secret key."""
        return self._keyed_hash("signed", *parts)

    def _keyed_hash(self, *parts: Any) -> bytes:
        return hashlib.blake2b(encode(parts), key=self._hash_key, digest_size=32).digest()

    def ladder_number(self, view: ReadView, ladder: str) -> int | None:
        """Return the number of a ladder that was started; it never changes."""
        number = self._numbers.get(ladder)
        if number is None:
            number = view.ladder_number(ladder)
            if number is not None:
                self._numbers[ladder] = number
        return number

    def refuse_ladder(self, view: ReadView, chain_state: ChainState, ladder: str) -> None:
        """Refuse a first question on a ladder if all declared ladders are in use.

        A ladder is in use from its first question on. All but the first, which has no name, are
        started together with that question.
        """
        limit = self.max_ladders
        if limit is None:
            return
        number = self.ladder_number(view, ladder)
        if number or chain_state.ladders - 1 + (number is None) < limit:
            return  # in use already, or within the limit even if the first is in use
        names = self.read_ladders_in_use(view)
        if len(names) >= limit and ladder not in names:
            raise TooManyLadders(_too_many_ladders_message(ladder, limit, names, self.opening))

    def read_ladders_in_use(self, view: ReadView) -> list[str]:
        names = view.ladder_names()
        return names if self.ladder_sessions.resume(view, 0).questions else names[1:]

    def statements_for(
        self, book: int, question: ScoredQuestion, *, answer: bool = True
    ) -> list[tuple[str, tuple[Any, ...]]]:
        """Return the statements that find or ``answer`` a question, to be prefetched."""
        ladder = self._numbers.get(question.ladder) if answer else None
        return question_statements(book, self.dedupe_keys(question), ladder)

    def forget_ladder_numbers(self) -> None:
        """Read the numbers of ladders again, because the start of some was rolled back."""
        self._numbers = {"": 0}


class BookTransaction:
    """A write transaction on a book; ``chain_state`` includes what it has appended so far.

    Everything is checked before anything is written, so the block may go on after a refusal.
    """

    def __init__(self, book: BookContext, view: WriteView, chain_state: ChainState) -> None:
        self._book, self.view, self.chain_state = book, view, chain_state
        self._first_head = chain_state.head
        self._now: int | None = None
        self.rows: dict[Hashable, Any] = {}
        """Rows of other packages as this transaction has left them, for its next operation."""

    def forget_rows(self) -> None:
        """Read everything again, because any row may have changed."""
        self.rows.clear()
        self.view.drop_prefetched()

    @property
    def now(self) -> int:
        """The time: the database's if it has one, and never before that of the last entry."""
        environment = self._book.environment
        if self._now is None and environment.uses_system_clock:
            self._now = self.view.now()
        return max(environment.clock() if self._now is None else self._now, self.chain_state.time)

    def moment(self) -> Moment:
        """Return the chain state and the time."""
        now, local = self.now, self._book.environment.clock()
        return Moment(self.chain_state, now, local if self._now is None else self._now, local)

    def ask(
        self,
        question: ScoredQuestion,
        *,
        budget: int | None = None,
        score: Callable[[], ScoredQuestion] | None = None,
    ) -> RecordedAnswer:
        """Answer a question, or return its earlier answer; ``budget`` is the amended one.

        ``score`` is called if the question has no answer and is not refused. It returns the same
        question with its risk.
        """
        answer = self.find_duplicate(question)
        return self.answer(question, budget=budget, score=score) if answer is None else answer

    def answer(
        self,
        question: ScoredQuestion,
        *,
        budget: int | None = None,
        score: Callable[[], ScoredQuestion] | None = None,
    ) -> RecordedAnswer:
        """Answer a question that has no answer yet, as ``find_duplicate`` returned."""
        book = self._book
        if not question.metric:
            refuse_if_budget_spent(self.chain_state, book.budget if budget is None else budget)
        book.refuse_ladder(self.view, self.chain_state, question.ladder)
        if score is not None:
            question = score()
        new_answer = self._ask_and_record(question)
        for key in book.dedupe_keys(question):
            self.view.add_dedupe_key(key, new_answer.entry_number, defer=True)
        return new_answer

    def find_duplicate(self, question: ScoredQuestion) -> RecordedAnswer | None:
        """Return the earlier answer to a question, if any; record its idempotency key for it."""
        dedupe_key, idempotency_dedupe_key = (
            self._book.dedupe_key(question),
            self._book.hash_idempotency_key(question),
        )
        if idempotency_dedupe_key is None and self._is_unanswered_since(question, dedupe_key):
            return None
        answer = find_recorded_answer(
            self.view, dedupe_key, idempotency_dedupe_key, by_key_only=bool(question.nonce)
        )
        if (
            answer is not None
            and idempotency_dedupe_key is not None
            and self.view.find_by_dedupe_key(idempotency_dedupe_key) is None
        ):
            self.view.add_dedupe_key(idempotency_dedupe_key, answer.entry_number)
        return answer

    def _is_unanswered_since(self, question: ScoredQuestion, dedupe_key: bytes) -> bool:
        """Return whether all that was committed since a question was looked up is known."""
        before, after, keys = self._book.last_commit
        if question.unanswered_at != self._first_head and (
            (question.unanswered_at, self._first_head) != (before, after) or dedupe_key in keys
        ):
            return False
        return not self.view.has_added(dedupe_key)

    def note_commit(self) -> None:
        """Remember what was added, once it is committed."""
        self._book.last_commit = LastCommit(
            self._first_head, self.chain_state.head, self.view.added_keys
        )

    def _ask_and_record(self, question: ScoredQuestion) -> RecordedAnswer:
        book, view = self._book, self.view
        ladder = book.ladder_number(view, question.ladder)
        if ladder is None:
            ladder = self.chain_state.ladders
            self.append_entry("ladder", {"ladder": ladder}, ladders=ladder + 1)
            book.ladder_sessions.add(view, ladder, question.ladder)
        digest_before, session = book.ladder_sessions.resume_for_update(view, ladder)
        others = book.ladder_sessions.changes_of_others(view, ladder)
        release = session.ask(
            risk=question.risk if question.losses is None else None,
            losses=question.losses,
            training=question.training,
            standard_error=question.standard_error,
            others=others,
            context=question.submission,
        )
        if question.record is not None and release.improved:
            release = release._replace(proven=self._test_record(ladder, question.record))
        state_after = encode_state(session)
        digest_after = digest_state(state_after)
        secret = SecretSide(
            risk=float(question.risk),
            training=question.training,
            broken=question.broken,
            draws=session.draws,
            before=digest_before,
            after=digest_after,
            salt=book.environment.salt(),
            submission=question.submission,
            submission_salt=book.environment.salt(),
            standard_error=question.standard_error,
        )
        submission_hash, secret_hash, packed = secret.commit_and_pack()
        fields: dict[str, Any] = {
            "ladder": ladder,
            "question": release.question,
            "asker": question.asker,
            "submission": submission_hash.hex(),
            "value": release.value,
            "score": release.score,
            "improved": release.improved,
            "secret": secret_hash.hex(),
        }
        if session.mechanism.needs == "standard_error":
            fields["error_class"] = release.error_class
        if book.tests_records:
            fields["proven"] = release.proven
        if question.metric:
            fields["metric"] = question.metric
        number = self.chain_state.entries
        self.append_entry(
            "question",
            fields,
            book.encryption.encrypt(f"secret {number}", packed),
            asked=self.chain_state.asked + (question.metric == 0),
            changes=self.chain_state.changes + release.improved,
        )
        book.ladder_sessions.store(
            view, ladder, state_after, digest_after, session, changed=release.improved
        )
        receipt = Receipt(
            book.name, number, self.chain_state.head, question.submission, secret.submission_salt
        )
        return RecordedAnswer(
            release,
            number,
            self.chain_state,
            repeated=False,
            receipt=receipt,
            smallest_gain=session.smallest_visible_gain(others),
        )

    def promote(
        self, submission: bytes, predictions: bytes, *, even_if_equal: bool = False
    ) -> GateState:
        """Make a model the incumbent; nothing changes if it is the incumbent already."""
        book = self._book
        refuse_if_closed(self.chain_state)
        gate = book.read_gate(self.view)
        if gate.submission == submission and not even_if_equal:
            return gate
        gate = gate.after_promotion(submission)
        secret = self._make_gate_secret({}, submission)
        self._append_gate_entry("promoted", {"incumbent": gate.incumbent}, secret)
        self._keep(INCUMBENT, predictions)
        self._keep_gate(gate)
        return gate

    def look(self, look: ScoredLook) -> RecordedLook | GateState:
        """Answer a look, or return its earlier answer; the gate's state if it needs no look."""
        book, view = self._book, self.view
        gate = book.read_gate(view)
        refuse_without_incumbent(gate)
        key = book.look_key(gate.submission, look.margin, look.submission, look.nonce)
        answer = find_recorded_look(view, key)
        if answer is not None:
            return answer
        refuse_if_budget_spent(self.chain_state, book.budget, "looks")
        decision = look.decide(gate, self.chain_state, lambda: book.read_incumbent(view))
        if decision is None:
            return gate
        fields = {
            "look": gate.looks + self.chain_state.charged + 1,
            "incumbent": gate.incumbent,
            "margin": look.margin,
            **decision.public,
        }
        number = self.chain_state.entries
        secret = self._make_gate_secret(decision.secret, look.submission)
        self._append_gate_entry("look", fields, secret, asked=self.chain_state.asked + 1)
        self._keep_gate(gate.after_look(fields))
        view.add_dedupe_key(key, number)
        return RecordedLook(fields, number, self.chain_state, repeated=False, dedupe_key=key)

    def _make_gate_secret(self, content: dict[str, Any], submission: bytes) -> GateSecret:
        salt = self._book.environment.salt
        return GateSecret(content, salt(), submission, salt())

    def _append_gate_entry(
        self, kind: str, fields: dict[str, Any], secret: GateSecret, **state_changes: Any
    ) -> None:
        number = self.chain_state.entries
        submission_hash, secret_hash, packed = secret.commit_and_pack()
        commitments = {"submission": submission_hash.hex(), "secret": secret_hash.hex()}
        self.append_entry(
            kind,
            {**fields, **commitments},
            self._book.encryption.encrypt(f"secret {number}", packed),
            **state_changes,
        )

    def _keep_gate(self, gate: GateState) -> None:
        self._keep(GATE_STATE, gate.encode())
        self._book.last_gate = self.chain_state.head, gate

    def _keep(self, name: str, content: bytes) -> None:
        self.view.set_value(name, self._book.encryption.encrypt(f"kept {name}", content))

    def _test_record(self, ladder: int, record: RecordTest) -> bool | None:
        """Return whether a new best is proven better than the one before, and store it.

        This is written only with a record, which is public.
        """
        encryption, name = self._book.encryption, f"record {ladder}"
        before = self.view.get_value(name)
        proven = None
        if before is not None:
            proven = record.is_proven(
                encryption.decrypt(f"kept {name}", before),
                read_changes(self.view, 0, self.chain_state),
                self.chain_state,
            )
        self.view.set_value(name, encryption.encrypt(f"kept {name}", record.pack()))
        return proven

    def append_entry(
        self, kind: str, fields: dict[str, Any], secret: bytes | None = None, **state_changes: Any
    ) -> ChainState:
        """Append an entry of any kind; ``state_changes`` are the counts that it changes."""
        self.chain_state = append_entry(
            self.view,
            self._book.name,
            self.chain_state,
            kind,
            fields,
            time=self.now,
            secret=secret,
            **state_changes,
        )
        return self.chain_state

    def close(self, **fields: Any) -> list[float | None]:
        """Close the book for good; return every ladder's last estimate, published or not."""
        refuse_if_closed(self.chain_state)
        sessions = self._book.ladder_sessions
        values = [
            sessions.resume(self.view, index).close() for index in range(self.chain_state.ladders)
        ]
        self.append_entry("closed", {"values": values, **fields}, closed=True)
        return values


def find_recorded_answer(
    view: ReadView,
    dedupe_key: bytes,
    idempotency_dedupe_key: bytes | None,
    *,
    by_key_only: bool = False,
) -> RecordedAnswer | None:
    """Return the answer to the question with this key; refuse a reused idempotency key.

    With ``by_key_only`` that key alone decides, and nothing is compared.
    """
    entry_number = view.find_by_dedupe_key(dedupe_key)
    if idempotency_dedupe_key is not None:
        retried_entry = view.find_by_dedupe_key(idempotency_dedupe_key)
        if by_key_only and entry_number is None:
            entry_number = retried_entry
        if retried_entry is not None and retried_entry != entry_number:
            raise IdempotencyKeyReused("This key was used for another submission; use a new one.")
    if entry_number is None:
        return None
    encoded = next(iter(view.entries(entry_number, entry_number + 1)))
    return RecordedAnswer(
        release_from_entry(Entry(encoded).read()), entry_number, view.chain_state(), repeated=True
    )


def find_recorded_look(view: ReadView, dedupe_key: bytes) -> RecordedLook | None:
    """Return the answer to the look with this key."""
    entry_number = view.find_by_dedupe_key(dedupe_key)
    if entry_number is None:
        return None
    encoded = next(iter(view.entries(entry_number, entry_number + 1)))
    return RecordedLook(
        Entry(encoded).read(),
        entry_number,
        view.chain_state(),
        repeated=True,
        dedupe_key=dedupe_key,
    )


def refuse_without_incumbent(gate: GateState) -> None:
    """Refuse a look before the first promotion."""
    if not gate.incumbent:
        raise InvalidSetting("There is no incumbent yet; promote one first. No look was used.")


def refuse_if_closed(chain_state: ChainState) -> None:
    """Refuse a question after the close."""
    if chain_state.closed:
        raise SessionClosed("This is closed; it answers no more questions.")


def refuse_if_budget_spent(chain_state: ChainState, budget: int, unit: str = "questions") -> None:
    """Refuse a question or a look past the budget."""
    refuse_if_closed(chain_state)
    if chain_state.asked + chain_state.charged >= budget:
        if unit == "looks":
            advice = "Make a new gate with new cases."
            used = "The only look was" if budget == 1 else f"All {budget:,} looks were"
            raise BudgetSpent(f"{used} used; the budget is spent. {advice}")
        asked = "The only question was" if budget == 1 else f"All {budget:,} {unit} were"
        raise BudgetSpent(f"{asked} asked; the budget is spent.")


def _too_many_ladders_message(
    ladder: str, limit: int, names: list[str], opening: dict[str, Any]
) -> str:
    """Return the message that no ladder is left, which are in use, and how to get more."""
    names_in_use = ", ".join(repr(name) if name else "the unnamed ladder" for name in names[:3])
    names_in_use += f" and {len(names) - 3} more" if len(names) > 3 else ""
    limited = "The only ladder is" if limit == 1 else f"All {limit} ladders are"
    if "ladders" not in opening["rules"]:
        limited = "This guard was created by an older version and starts no new ladder;"
    refused = f"Ladder {ladder!r}" if ladder else "The unnamed ladder"
    return (
        f"{refused} cannot be started. {limited} in use: {names_in_use}. Use one that is in use, "
        f"or create a guard with --ladders {limit + 1} (ladders={limit + 1} in Python). "
        "No question was used."
    )
