"""One transaction on a book: the questions it answers, and their outcomes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ladderboard.errors import BudgetSpent, IdempotencyKeyReused, SessionClosed
from ladderboard.ledger._chain import Entry, append_entry, release_from_entry
from ladderboard.ledger._commitments import SecretSide
from ladderboard.ledger._ladders import digest_state, encode_state
from ladderboard.ledger._receipt import Receipt

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ladderboard.ledger._book import Book
    from ladderboard.ledger._storage import ChainState, ReadView, WriteView
    from ladderboard.mechanisms import Release


class ScoredQuestion(NamedTuple):
    """A question as it reaches the ledger: everything computed, nothing released.

    Parameters
    ----------
    submission
        The digest of the aligned predictions.
    risk
        Their mean loss on the holdout.
    losses
        The loss of every example, where the mechanism wants them.
    training
        The mean loss on the training data, where the mechanism looks at it.
    broken
        Whether the loss broke down, so that the risk is the worst there is.
    ladder
        The name of the ladder; it is started with the question if it is new.
    asker
        An opaque id.
    retry
        A key under which the same question may be sent again.
    """

    submission: bytes
    risk: float
    losses: NDArray[Any] | None = None
    training: float | None = None
    broken: bool = False
    ladder: str = ""
    asker: str | None = None
    retry: str | None = None


class RecordedAnswer(NamedTuple):
    """What came of a question: its release, its entry, and where the book stands.

    ``number`` is the entry's; ``again`` says that it had been answered before. Then there is no
    ``receipt`` here: it is read from the book by whoever wants it.
    """

    release: Release
    entry_number: int
    chain_state: ChainState
    repeated: bool
    receipt: Receipt | None = None


class BookTransaction:
    """A book and a view of it that may change; ``at`` is where the book stands by now.

    What is refused is refused before anything is written, so the block may go on.
    """

    def __init__(self, book: Book, view: WriteView, chain_state: ChainState) -> None:
        self._book, self.view, self.chain_state = book, view, chain_state
        self._now: int | None = None

    @property
    def now(self) -> int:
        """The time: the database's where it has one, and never before the last entry."""
        environment = self._book.environment
        if self._now is None and environment.uses_system_clock:
            self._now = self.view.now()
        return max(environment.clock() if self._now is None else self._now, self.chain_state.time)

    def ask(self, asked: ScoredQuestion, *, budget: int | None = None) -> RecordedAnswer:
        """Answer a question, or return what came of it before; ``budget`` is that of now."""
        found = self.find_previous_answer(asked)
        if found is not None:
            return found
        book = self._book
        refuse_if_budget_spent(self.chain_state, book.budget if budget is None else budget)
        book.refuse_ladder(self.view, self.chain_state, asked.ladder)
        outcome = self._answer(asked)
        for each in (book.dedupe_key(asked), book.retry_key(asked)):
            if each is not None:
                self.view.add_dedupe_key(each, outcome.entry_number)
        return outcome

    def find_previous_answer(self, asked: ScoredQuestion) -> RecordedAnswer | None:
        """Return what came of a question before, if it did; its key belongs to it from now on."""
        mark, retry = self._book.dedupe_key(asked), self._book.retry_key(asked)
        found = find_recorded_answer(self.view, mark, retry)
        if found is not None and retry is not None and self.view.find_by_dedupe_key(retry) is None:
            self.view.add_dedupe_key(retry, found.entry_number)
        return found

    def _answer(self, asked: ScoredQuestion) -> RecordedAnswer:
        book, view = self._book, self.view
        ladder = book.ladder_number(view, asked.ladder)
        if ladder is None:
            ladder = self.chain_state.ladders
            self.append_entry("ladder", {"ladder": ladder}, ladders=ladder + 1)
            book.ladder_sessions.add(view, ladder, asked.ladder)
        before, session = book.ladder_sessions.take(view, ladder)
        given: dict[str, Any] = (
            {"risk": asked.risk} if asked.losses is None else {"losses": asked.losses}
        )
        if asked.training is not None:
            given["training"] = asked.training
        release = session.ask(**given, context=asked.submission)
        after = encode_state(session)
        secret = SecretSide(
            risk=float(asked.risk),
            training=asked.training,
            broken=asked.broken,
            draws=session.draws,
            before=digest_state(before),
            after=digest_state(after),
            salt=book.environment.salt(),
            submission=asked.submission,
            submission_salt=book.environment.salt(),
        )
        submission, shown, packed = secret.commit_and_pack()
        fields = {
            "ladder": ladder,
            "question": release.question,
            "asker": asked.asker,
            "submission": submission.hex(),
            "value": release.value,
            "score": release.score,
            "improved": release.improved,
            "secret": shown.hex(),
        }
        number = self.chain_state.entries
        self.append_entry(
            "question",
            fields,
            book.encryption.encrypt(f"secret {number}", packed),
            asked=self.chain_state.asked + 1,
            changes=self.chain_state.changes + release.improved,
        )
        book.ladder_sessions.put(view, ladder, after, session)
        receipt = Receipt(
            book.name, number, self.chain_state.head, asked.submission, secret.submission_salt
        )
        return RecordedAnswer(release, number, self.chain_state, repeated=False, receipt=receipt)

    def append_entry(
        self, kind: str, fields: dict[str, Any], secret: bytes | None = None, **moved: Any
    ) -> ChainState:
        """Append an entry of any kind; ``moved`` is what it changes in where the book stands."""
        self.chain_state = append_entry(
            self.view,
            self._book.name,
            self.chain_state,
            kind,
            fields,
            time=self.now,
            secret=secret,
            **moved,
        )
        return self.chain_state

    def close(self, **fields: Any) -> list[float | None]:
        """End it for good, and return the last estimate of every ladder, also where kept back."""
        refuse_if_closed(self.chain_state)
        sessions = self._book.ladder_sessions
        values = [
            sessions.resume(self.view, index).close() for index in range(self.chain_state.ladders)
        ]
        self.append_entry("closed", {"values": values, **fields}, closed=True)
        return values


def find_recorded_answer(view: ReadView, mark: bytes, retry: bytes | None) -> RecordedAnswer | None:
    """Return what came of the question that bears a mark."""
    by_mark = view.find_by_dedupe_key(mark)
    if retry is not None:
        by_retry = view.find_by_dedupe_key(retry)
        if by_retry is not None and by_retry != by_mark:
            raise IdempotencyKeyReused("This key was used for another submission; take a new one.")
    if by_mark is None:
        return None
    form = next(iter(view.entries(by_mark, by_mark + 1)))
    return RecordedAnswer(
        release_from_entry(Entry(form).read()), by_mark, view.chain_state(), repeated=True
    )


def refuse_if_closed(at: ChainState) -> None:
    """Refuse what comes after the end."""
    if at.closed:
        raise SessionClosed("This is closed; it answers no more questions.")


def refuse_if_budget_spent(at: ChainState, budget: int) -> None:
    """Refuse a question past the budget."""
    refuse_if_closed(at)
    if at.asked + at.charged >= budget:
        raise BudgetSpent(f"All {budget} questions were asked; the budget is spent.")
