"""One transaction on a book: the questions it answers, and their outcomes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ladderboard.errors import BudgetSpent, IdempotencyKeyReused, SessionClosed
from ladderboard.ledger._chain import Entry, append, release_of
from ladderboard.ledger._commitments import Secret
from ladderboard.ledger._ladders import state_digest, write_state
from ladderboard.ledger._receipt import Receipt

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ladderboard.ledger._book import Book
    from ladderboard.ledger._storage import At, Reading, Writing
    from ladderboard.mechanisms import Release


class Asked(NamedTuple):
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


class Outcome(NamedTuple):
    """What came of a question: its release, its entry, and where the book stands.

    ``number`` is the entry's; ``again`` says that it had been answered before. Then there is no
    ``receipt`` here: it is read from the book by whoever wants it.
    """

    release: Release
    number: int
    at: At
    again: bool
    receipt: Receipt | None = None


class Turn:
    """A book and a view of it that may change; ``at`` is where the book stands by now.

    What is refused is refused before anything is written, so the block may go on.
    """

    def __init__(self, book: Book, view: Writing, at: At) -> None:
        self._book, self.view, self.at = book, view, at
        self._now: int | None = None

    @property
    def now(self) -> int:
        """The time: the database's where it has one, and never before the last entry."""
        world = self._book.world
        if self._now is None and world.real:
            self._now = self.view.now()
        return max(world.clock() if self._now is None else self._now, self.at.time)

    def ask(self, asked: Asked, *, budget: int | None = None) -> Outcome:
        """Answer a question, or return what came of it before; ``budget`` is that of now."""
        found = self.again(asked)
        if found is not None:
            return found
        book = self._book
        refuse_if_spent(self.at, book.budget if budget is None else budget)
        book.refuse_ladder(self.view, self.at, asked.ladder)
        outcome = self._answer(asked)
        for each in (book.mark_of(asked), book.retry_of(asked)):
            if each is not None:
                self.view.mark(each, outcome.number)
        return outcome

    def again(self, asked: Asked) -> Outcome | None:
        """Return what came of a question before, if it did; its key belongs to it from now on."""
        mark, retry = self._book.mark_of(asked), self._book.retry_of(asked)
        found = found_by(self.view, mark, retry)
        if found is not None and retry is not None and self.view.find(retry) is None:
            self.view.mark(retry, found.number)
        return found

    def _answer(self, asked: Asked) -> Outcome:
        book, view = self._book, self.view
        ladder = book.numbered(view, asked.ladder)
        if ladder is None:
            ladder = self.at.ladders
            self.note("ladder", {"ladder": ladder}, ladders=ladder + 1)
            book.sessions.add(view, ladder, asked.ladder)
        before, session = book.sessions.take(view, ladder)
        given: dict[str, Any] = (
            {"risk": asked.risk} if asked.losses is None else {"losses": asked.losses}
        )
        if asked.training is not None:
            given["training"] = asked.training
        release = session.ask(**given, context=asked.submission)
        after = write_state(session)
        secret = Secret(
            risk=float(asked.risk),
            training=asked.training,
            broken=asked.broken,
            draws=session.draws,
            before=state_digest(before),
            after=state_digest(after),
            salt=book.world.salt(),
            submission=asked.submission,
            submission_salt=book.world.salt(),
        )
        submission, shown, packed = secret.written()
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
        number = self.at.entries
        self.note(
            "question",
            fields,
            book.seal.close(f"secret {number}", packed),
            asked=self.at.asked + 1,
            changes=self.at.changes + release.improved,
        )
        book.sessions.put(view, ladder, after, session)
        receipt = Receipt(book.name, number, self.at.head, asked.submission, secret.submission_salt)
        return Outcome(release, number, self.at, again=False, receipt=receipt)

    def note(
        self, kind: str, fields: dict[str, Any], secret: bytes | None = None, **moved: Any
    ) -> At:
        """Append an entry of any kind; ``moved`` is what it changes in where the book stands."""
        self.at = append(
            self.view, self._book.name, self.at, kind, self.now, fields, secret, **moved
        )
        return self.at

    def close(self, **fields: Any) -> list[float | None]:
        """End it for good, and return the last estimate of every ladder, also where kept back."""
        refuse_if_closed(self.at)
        sessions = self._book.sessions
        values = [sessions.resume(self.view, each).close() for each in range(self.at.ladders)]
        self.note("closed", {"values": values, **fields}, closed=True)
        return values


def found_by(view: Reading, mark: bytes, retry: bytes | None) -> Outcome | None:
    """Return what came of the question that bears a mark."""
    by_mark = view.find(mark)
    if retry is not None:
        by_retry = view.find(retry)
        if by_retry is not None and by_retry != by_mark:
            raise IdempotencyKeyReused("This key was used for another submission; take a new one.")
    if by_mark is None:
        return None
    form = next(iter(view.entries(by_mark, by_mark + 1)))
    return Outcome(release_of(Entry(form).read()), by_mark, view.at(), again=True)


def refuse_if_closed(at: At) -> None:
    """Refuse what comes after the end."""
    if at.closed:
        raise SessionClosed("This is closed; it answers no more questions.")


def refuse_if_spent(at: At, budget: int) -> None:
    """Refuse a question past the budget."""
    refuse_if_closed(at)
    if at.asked + at.charged >= budget:
        raise BudgetSpent(f"All {budget} questions were asked; the budget is spent.")
