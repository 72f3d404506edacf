"""A book: one chain, its ladders and its secrets, and the one transaction in which they grow."""

from __future__ import annotations

import hashlib
import secrets
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ladderboard.errors import (
    BudgetSpent,
    InvalidSetting,
    InvalidState,
    OldCopy,
    SessionClosed,
    StorageFailed,
)
from ladderboard.ledger._asked import Outcome, release_of
from ladderboard.ledger._canonical import encode
from ladderboard.ledger._chain import Head, append, follow
from ladderboard.ledger._check import check, check_opening
from ladderboard.ledger._entry import Entry
from ladderboard.ledger._ladders import Ladders
from ladderboard.ledger._seal import NoSeal
from ladderboard.ledger._secret import Secret
from ladderboard.ledger._state import state_digest, write_state
from ladderboard.ledger._storage import COPY, START
from ladderboard.ledger._water import Level
from ladderboard.ledger._world import World
from ladderboard.mechanisms import Mechanism
from ladderboard.mechanisms import mechanism as mechanism_of
from ladderboard.tape import Tape

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ladderboard.ledger._asked import Asked
    from ladderboard.ledger._opening import Opening
    from ladderboard.ledger._seal import Seal
    from ladderboard.ledger._storage import At, Reading, Storage, Writing
    from ladderboard.ledger._water import HighWater

__all__ = ["Book"]

_KEEP = "kept {}"


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
        self._seal = NoSeal() if seal is None else seal
        self._water, self._world = water, World() if world is None else world
        level = None if water is None or stale else water.read()
        with storage.reading(name) as book:
            if book.kept(COPY) and not stale:
                raise OldCopy(
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
        self._ladders = Ladders(mechanism, self.opening["n"], Tape(key=key), self._seal)
        self._numbers = {"": 0}

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
    ) -> Book:
        """Start a book: commit to everything that decides releases, and append that first.

        ``key`` is the noise key, from the operating system if not given; ``keep`` is what else is
        kept with the secret side.
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

    def _kept(self, book: Reading, what: str) -> bytes:
        held = book.kept(what)
        if held is None:
            raise InvalidState("A part of the secret side is missing.")
        return self._seal.open(_KEEP.format(what), held)

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
            at, number = book.at(), self._numbered(book, ladder)
            if number is None:
                return at, self._ladders.start(at.ladders).value
            return at, self._ladders.resume(book, number).value

    def ask(self, asked: Asked) -> Outcome:
        """Answer a question, once: all that decides it is read and written in one transaction.

        Where a commit was sent and no answer came the question is looked up, never asked again.
        """
        mark = self._mark("submission", asked.ladder, asked.asker, asked.submission.hex())
        retry = None if asked.retry is None else self._mark("retry", asked.asker, asked.retry)
        level = self._level()
        outcome = None
        try:
            with self.storage.writing(self.name) as book:
                at = self._checked(book, level)
                outcome = self._earlier(book, at, mark, retry)
                if outcome is None:
                    outcome = self._answer(book, at, asked)
                    for each in (mark, retry):
                        if each is not None:
                            book.mark(each, outcome.number)
        except StorageFailed as failed:
            if not failed.uncertain:
                raise
            outcome = self._look_up(mark, outcome, failed)
        self._rise(outcome.at)
        return outcome

    def known(
        self, submission: bytes, ladder: str = "", asker: str | None = None
    ) -> Outcome | None:
        """Return the answer that a submission got before; refuse where no question may be asked.

        So that nothing need be scored for it. ``ask`` looks again: others may come between.
        """
        mark = self._mark("submission", ladder, asker, submission.hex())
        level = self._level()
        with self.storage.reading(self.name) as book:
            at = self._checked(book, level)
            found = self._earlier(book, at, mark, None)
            if found is None:
                self._refuse_if_spent(at)
            return found

    def _look_up(self, mark: bytes, sent: Outcome | None, failed: StorageFailed) -> Outcome:
        # As a writer: a commit that is still under way has to end first.
        with self.storage.writing(self.name) as book:
            found = self._earlier(book, book.at(), mark, None)
            if found is None:
                raise StorageFailed(f"{failed} The question was not asked.") from failed
            if sent is not None and sent.number == found.number:
                form = next(iter(book.entries(found.number, found.number + 1)))
                if Entry(form).hash == sent.at.head:  # salted, so it is the very one that was sent
                    return sent
        return found

    def _mark(self, *parts: Any) -> bytes:
        """Return the mark of a submission or a key: nobody else can tell what it is of."""
        return hashlib.blake2b(encode(parts), key=self._marking, digest_size=32).digest()

    def _earlier(self, book: Reading, at: At, mark: bytes, retry: bytes | None) -> Outcome | None:
        by_mark = book.find(mark)
        if retry is not None:
            by_retry = book.find(retry)
            if by_retry is not None and by_retry != by_mark:
                raise InvalidSetting("This key was used for another submission; take a new one.")
        if by_mark is None:
            return None
        form = next(iter(book.entries(by_mark, by_mark + 1)))
        return Outcome(release_of(Entry(form).read()), by_mark, at, again=True)

    def _answer(self, book: Writing, at: At, asked: Asked) -> Outcome:
        self._refuse_if_spent(at)
        ladder = self._numbered(book, asked.ladder)
        if ladder is None:
            ladder = at.ladders
            at = self._append(book, at, "ladder", {"ladder": ladder}, ladders=ladder + 1)
            self._ladders.add(book, ladder, asked.ladder)
        before, session = self._ladders.take(book, ladder)
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
            salt=self._world.salt(),
            submission=asked.submission,
            submission_salt=self._world.salt(),
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
        packed = self._seal.close(f"secret {at.entries}", packed)
        now = self._append(
            book,
            at,
            "question",
            fields,
            packed,
            asked=at.asked + 1,
            changes=at.changes + release.improved,
        )
        self._ladders.put(book, ladder, after, session)
        return Outcome(release, at.entries, now, again=False)

    def _refuse_if_spent(self, at: At) -> None:
        _refuse_if_closed(at)
        if at.asked + at.charged >= self.budget:
            raise BudgetSpent(f"All {self.budget} questions were asked; the budget is spent.")

    def _numbered(self, book: Reading, ladder: str) -> int | None:
        """Return the number of a ladder that was started; it never changes."""
        number = self._numbers.get(ladder)
        if number is None:
            names = book.ladders()
            self._numbers.update((name, at) for at, name in enumerate(names))
            number = self._numbers.get(ladder)
        return number

    def close(self) -> list[float | None]:
        """End it for good, and return the last estimate of every ladder, also where kept back."""
        level = self._level()
        with self.storage.writing(self.name) as book:
            at = self._checked(book, level)
            _refuse_if_closed(at)
            values = [self._ladders.resume(book, each).close() for each in range(at.ladders)]
            at = self._append(book, at, "closed", {"values": values}, closed=True)
        self._rise(at)
        return values

    def entries(self) -> Iterator[tuple[Entry, dict[str, Any]]]:
        """Read the chain from its start, checking every link."""
        with self.storage.reading(self.name) as book:
            yield from follow(book.entries(), self.name)

    def standing(self) -> tuple[At, dict[str, float | None], list[dict[str, Any]]]:
        """Return, of one moment, where the book stands, each ladder's value and all entries."""
        with self.storage.reading(self.name) as book:
            entries = [fields for _, fields in follow(book.entries(), self.name)]
            values = {
                name: self._ladders.resume(book, number).value
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
            return check(book, self.name, self._ladders, self._seal)

    def _append(
        self,
        book: Writing,
        at: At,
        kind: str,
        fields: dict[str, Any],
        secret: bytes | None = None,
        **moved: Any,
    ) -> At:
        return append(book, self.name, at, kind, self._world.clock(), fields, secret, **moved)

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


def _refuse_if_closed(at: At) -> None:
    if at.closed:
        raise SessionClosed("This is closed; it answers no more questions.")
