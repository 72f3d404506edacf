"""A book: one chain with its ladders and secrets, and the operations on it."""

from __future__ import annotations

import hashlib
import secrets
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ladderboard.errors import (
    DiskFull,
    InvalidSetting,
    InvalidState,
    ReadOnly,
    StaleCopy,
    StorageFailed,
    TooManyLadders,
)
from ladderboard.ledger._book_transaction import Asked, Outcome, Turn, found_by, refuse_if_spent
from ladderboard.ledger._chain import Entry, Head, append, check, check_opening, follow
from ladderboard.ledger._commitments import fresh_salt
from ladderboard.ledger._encoding import encode
from ladderboard.ledger._encryption import NoSeal
from ladderboard.ledger._high_water import Level
from ladderboard.ledger._ladders import Ladders
from ladderboard.ledger._receipt import read_receipt
from ladderboard.ledger._storage import COPY, START
from ladderboard.mechanisms import Mechanism
from ladderboard.mechanisms import mechanism as mechanism_of
from ladderboard.tape import Tape

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from ladderboard.ledger._commitments import Opening
    from ladderboard.ledger._encryption import Seal
    from ladderboard.ledger._high_water import HighWater
    from ladderboard.ledger._receipt import Receipt
    from ladderboard.ledger._storage import At, Reading, Storage, Writing

_KEEP = "kept {}"


def _now() -> int:
    return int(time.time())


@dataclass(frozen=True)
class World:
    """The time, and randomness for salts and ids; fixed in tests, and nowhere else."""

    clock: Callable[[], int] = field(default=_now)
    salt: Callable[[], bytes] = field(default=fresh_salt)

    @property
    def real(self) -> bool:
        """Whether time is the machine's, so that a database that is shared may know better."""
        return self.clock is _now


class Book:
    """An append-only record of questions, in a storage.

    Started by ``Book.create``. Any number of processes and threads may have one of their own on the
    same storage; a thread may share its own with others.

    Parameters
    ----------
    storage, name
        Where it is, and its id.
    mechanism
        Needed only where it is not one of the house's own.
    seal
        What the secret side is closed with.
    water
        A mark beside the storage, which the book must not be behind.
    world
        Time and randomness.
    stale
        Open it although it may be an old copy: to look, or to restore it.
    """

    def __init__(
        self,
        storage: Storage,
        name: str,
        *,
        mechanism: Mechanism | None = None,
        seal: Seal | None = None,
        water: HighWater | None = None,
        world: World | None = None,
        stale: bool = False,
    ) -> None:
        self.storage, self.name = storage, name
        self.seal = NoSeal() if seal is None else seal
        self.world, self._water = World() if world is None else world, water
        level = None if water is None or stale else water.read()
        with storage.reading(name) as book:
            if book.kept(COPY) and not stale:
                raise StaleCopy(
                    "This is a copy made by a backup, and cannot know what was asked since."
                )
            if water is not None and not stale:
                water.check(level, name, book.at(), book)
            first = next(iter(book.entries(0, 1)), None)
            if first is None:
                raise InvalidState("The book was never opened.")
            self.opening = Entry(first).read()
            """What the first entry says."""
            key, self._marking = self._kept(book, "key"), self._kept(book, "marking")
        if mechanism is None:
            mechanism = mechanism_of(self.opening["mechanism"])
        elif mechanism.describe() != self.opening["mechanism"]:
            raise InvalidSetting("This was started with another mechanism.")
        self.mechanism: Mechanism = mechanism
        """What answers."""
        self.sessions = Ladders(mechanism, self.opening["n"], Tape(key=key), self.seal)
        self._numbers = {"": 0}
        self.most_ladders: int | None = self.opening["rules"].get("ladders")
        """On how many ladders questions may be asked; None if the rules set no limit."""

    @classmethod
    def create(
        cls,
        storage: Storage,
        opening: Opening,
        *,
        name: str,
        mechanism: Mechanism | None = None,
        key: bytes | None = None,
        keep: Mapping[str, bytes] | None = None,
        seal: Seal | None = None,
        water: HighWater | None = None,
        world: World | None = None,
        also: Callable[[Writing], None] | None = None,
    ) -> Book:
        """Start a book: commit to everything that decides releases, and append that first.

        ``key`` is the noise key, from the operating system if not given; ``keep`` is what else is
        kept with the secret side; ``also`` is done in the same transaction.
        """
        world = World() if world is None else world
        seal = NoSeal() if seal is None else seal
        key = secrets.token_bytes(32) if key is None else key
        found = mechanism_of(opening.mechanism) if mechanism is None else mechanism
        salts = (world.salt(), world.salt())
        kept = {
            "key": key,
            "marking": world.salt(),
            "salt of the holdout": salts[0],
            "salt of the key": salts[1],
            **(keep or {}),
        }
        ladders = Ladders(found, opening.n, Tape(key=key), seal)
        fields = opening.public(opening.hidden(key, salts))
        if water is not None:  # before there is anything, so that a crash leaves no file without
            water.replace(Level.of(name, START))
        with storage.add_book(name) as book:
            for each, content in kept.items():
                book.keep(each, seal.close(_KEEP.format(each), content))
            at = append(book, name, START, "opened", world.clock(), fields)
            at = append(book, name, at, "ladder", world.clock(), {"ladder": 0}, ladders=1)
            ladders.add(book, 0, "")
            if also is not None:
                also(book)
        if water is not None:
            water.rise(Level.of(name, at))
        return cls(storage, name, mechanism=mechanism, seal=seal, water=water, world=world)

    @property
    def budget(self) -> int:
        """How many questions are allowed."""
        return int(self.opening["rules"]["questions"])

    def at(self) -> At:
        """Return where the book stands."""
        with self.storage.reading(self.name) as book:
            return book.at()

    def head(self) -> Head:
        """Return what to keep to be able to tell a rewrite."""
        at = self.at()
        return Head(at.entries, at.head)

    def kept(self, what: str) -> bytes:
        """Return what is kept with the secret side under a name."""
        with self.storage.reading(self.name) as book:
            return self._kept(book, what)

    def keep(self, view: Writing, what: str, content: bytes) -> None:
        """Keep something more with the secret side, in a transaction of the caller's."""
        view.keep(what, self.seal.close(_KEEP.format(what), content))

    def _kept(self, book: Reading, what: str) -> bytes:
        held = book.kept(what)
        if held is None:
            raise InvalidState("A part of the secret side is missing.")
        return self.seal.open(_KEEP.format(what), held)

    def ladders(self) -> list[str]:
        """Return the names of all ladders, in the order of their numbers; the first has none."""
        with self.storage.reading(self.name) as book:
            return book.ladders()

    def value(self, ladder: str = "") -> float | None:
        """Return the release that stands on a ladder, also on one that is not started yet."""
        return self.stands(ladder)[1]

    def stands(self, ladder: str = "") -> tuple[At, float | None]:
        """Return, of one moment, where the book stands and what stands on a ladder."""
        with self.storage.reading(self.name) as book:
            at, number = book.at(), self.numbered(book, ladder)
            if number is None:
                return at, self.sessions.start(at.ladders).value
            return at, self.sessions.resume(book, number).value

    @contextmanager
    def turn(self) -> Iterator[Turn]:
        """Begin one transaction in which the book may grow; it stands when the block ends."""
        level = self._level()
        try:
            with self.storage.writing(self.name) as view:
                turn = Turn(self, view, self._checked(view, level))
                yield turn
        except BaseException:
            self._numbers = {"": 0}  # some may be of ladders that were not started after all
            raise
        self._rise(turn.at)

    def ask(self, asked: Asked) -> Outcome:
        """Answer a question, once: all that decides it is read and written in one transaction.

        Where a commit was sent and no answer came the question is looked up, never asked again.
        """
        outcome = None
        try:
            with _unasked(), self.turn() as turn:
                outcome = turn.ask(asked)
        except StorageFailed as failed:
            if not failed.uncertain:
                raise
            outcome = self._look_up(self.mark_of(asked), outcome, failed)
            self._rise(outcome.at)
        return outcome

    def known(
        self, submission: bytes, ladder: str = "", asker: str | None = None
    ) -> Outcome | None:
        """Return the answer that a submission got before; refuse where no question may be asked.

        So that nothing need be scored for it. ``ask`` looks again: others may come between.
        """
        with _unasked():
            level = self._level()
            with self.storage.reading(self.name) as view:
                at = self._checked(view, level)
                found = self.earlier(view, Asked(submission, 0, ladder=ladder, asker=asker))
                if found is None:
                    refuse_if_spent(at, self.budget)
                    self.refuse_ladder(view, at, ladder)
                return found

    def _look_up(self, mark: bytes, sent: Outcome | None, failed: StorageFailed) -> Outcome:
        # As a writer: a commit that is still under way has to end first.
        try:
            with self.storage.writing(self.name) as book:
                found = found_by(book, mark, None)
                if found is not None and sent is not None and sent.number == found.number:
                    form = next(iter(book.entries(found.number, found.number + 1)))
                    if Entry(form).hash == sent.at.head:  # salted: it is the very one that was sent
                        found = sent
        except StorageFailed:
            raise failed from None  # it may stand, and nobody can tell now
        if found is None:
            raise StorageFailed(f"{failed} The question was not asked.") from failed
        return found

    def mark_of(self, asked: Asked) -> bytes:
        """Return the mark of a submission: nobody else can tell what it is of."""
        return self._mark("submission", asked.ladder, asked.asker, asked.submission.hex())

    def retry_of(self, asked: Asked) -> bytes | None:
        """Return the mark of a key to retry with, if there is one."""
        return None if asked.retry is None else self._mark("retry", asked.asker, asked.retry)

    def signed(self, *parts: Any) -> bytes:
        """Return a mark that only whoever has the book can make."""
        return self._mark("signed", *parts)

    def _mark(self, *parts: Any) -> bytes:
        return hashlib.blake2b(encode(parts), key=self._marking, digest_size=32).digest()

    def earlier(self, view: Reading, asked: Asked) -> Outcome | None:
        """Return what came of a question before; refuse a key that belongs to another one."""
        return found_by(view, self.mark_of(asked), self.retry_of(asked))

    def receipt(self, view: Reading, outcome: Outcome) -> Receipt:
        """Return what proves that a question was answered, in a view of the caller's."""
        if outcome.receipt is not None:
            return outcome.receipt
        return self.receipt_of(view, outcome.number)

    def receipt_of(self, view: Reading, number: int) -> Receipt:
        """Return the receipt of the question at an entry."""
        return read_receipt(view, self.name, number, self.seal)

    def numbered(self, view: Reading, ladder: str) -> int | None:
        """Return the number of a ladder that was started; it never changes."""
        number = self._numbers.get(ladder)
        if number is None:
            number = view.ladder(ladder)
            if number is not None:
                self._numbers[ladder] = number
        return number

    def refuse_ladder(self, view: Reading, at: At, ladder: str) -> None:
        """Refuse a first question on a ladder if as many as were declared are in use.

        A ladder is in use from its first question on. All but the first, which has no name, are
        started together with that question.
        """
        limit = self.most_ladders
        if limit is None:
            return
        number = self.numbered(view, ladder)
        if number or at.ladders - 1 + (number is None) < limit:
            return  # it is in use, or there is room whether the first is or not
        names = self._in_use(view)
        if len(names) >= limit and ladder not in names:
            raise TooManyLadders(_too_many(ladder, limit, names, self.opening))

    def _in_use(self, view: Reading) -> list[str]:
        names = view.ladders()
        return names if self.sessions.resume(view, 0).questions else names[1:]

    def ladders_in_use(self) -> list[str]:
        """Return the names of the ladders on which a question was asked."""
        with self.storage.reading(self.name) as view:
            return self._in_use(view)

    def check_ladder(self, ladder: str = "") -> None:
        """Refuse a ladder on which no question could be asked, before one is."""
        with self.storage.reading(self.name) as view:
            self.refuse_ladder(view, view.at(), ladder)

    def close(self) -> list[float | None]:
        """End it for good, and return the last estimate of every ladder, also where kept back."""
        with self.turn() as turn:
            return turn.close()

    def entries(self) -> Iterator[tuple[Entry, dict[str, Any]]]:
        """Read the chain from its start, checking every link."""
        with self.storage.reading(self.name) as book:
            yield from follow(book.entries(), self.name)

    def standing(self) -> tuple[At, dict[str, float | None], list[dict[str, Any]]]:
        """Return, of one moment, where the book stands, each ladder's value and all entries."""
        with self.storage.reading(self.name) as book:
            entries = [fields for _, fields in follow(book.entries(), self.name)]
            values = {
                name: self.sessions.resume(book, number).value
                for number, name in enumerate(book.ladders())
            }
            return book.at(), values, entries

    def check(self) -> int:
        """Recompute everything from the key and the secret side; return how many releases hold.

        Raises ``BrokenLedger`` that names the first entry that differs.
        """
        with self.storage.reading(self.name) as book:
            key, salt = self._kept(book, "key"), self._kept(book, "salt of the key")
            check_opening(self.opening, key, salt)
            return check(book, self.name, self.sessions, self.seal)

    def _level(self) -> Level | None:
        return None if self._water is None else self._water.read(write=True)

    def _checked(self, book: Reading, level: Level | None) -> At:
        at = book.at()
        if self._water is not None:
            self._water.check(level, self.name, at, book)
        return at

    def _rise(self, at: At) -> None:
        if self._water is not None:
            level = Level.of(self.name, at)
            if at.closed:  # a copy of before has nothing left to ask either
                level = level._replace(questions=self.budget)
            with suppress(StorageFailed):  # it was answered; a mark that lags tells no lie
                self._water.rise(level)


def _too_many(ladder: str, limit: int, names: list[str], opening: dict[str, Any]) -> str:
    """Say that no ladder is left, which are in use, and how to get more."""
    shown = ", ".join(repr(each) if each else "the one without a name" for each in names[:3])
    shown += f" and {len(names) - 3} more" if len(names) > 3 else ""
    count = f"{limit} ladder{'' if limit == 1 else 's'}"
    made = f"This guard was made for {count}"
    if "ladders" not in opening["rules"]:
        made = "This guard was made by an older version and starts no new ladder"
    wanted = repr(ladder) if ladder else "the ladder without a name"
    return (
        f"{made}; in use: {shown}. {wanted[0].upper()}{wanted[1:]} would be one more. Ask on a "
        f"ladder that is in use, or make a guard with more: --ladders {limit + 1}, in Python "
        f"ladders={limit + 1}. No question was used."
    )


@contextmanager
def _unasked() -> Iterator[None]:
    """Say of a disk that is full, or may only be read, that it cost no question."""
    try:
        yield
    except (DiskFull, ReadOnly) as error:
        raise type(error)(f"{error} No question was used.") from error
