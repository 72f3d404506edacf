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
from ladderboard.ledger._book_transaction import (
    BookTransaction,
    RecordedAnswer,
    ScoredQuestion,
    find_recorded_answer,
    refuse_if_budget_spent,
)
from ladderboard.ledger._chain import (
    ChainHead,
    Entry,
    append_entry,
    check_opening,
    iter_checked_entries,
    verify_chain,
)
from ladderboard.ledger._commitments import random_salt
from ladderboard.ledger._encoding import encode
from ladderboard.ledger._encryption import NoEncryption
from ladderboard.ledger._high_water import Position
from ladderboard.ledger._ladders import LadderSessions
from ladderboard.ledger._receipt import read_receipt
from ladderboard.ledger._storage import COPY, EMPTY_CHAIN
from ladderboard.mechanisms import Mechanism
from ladderboard.mechanisms import mechanism as mechanism_of
from ladderboard.tape import Tape

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from ladderboard.ledger._commitments import Opening
    from ladderboard.ledger._encryption import Encryption
    from ladderboard.ledger._high_water import HighWaterMark
    from ladderboard.ledger._receipt import Receipt
    from ladderboard.ledger._storage import ChainState, ReadView, Storage, WriteView

_KEEP = "kept {}"


def _now() -> int:
    return int(time.time())


@dataclass(frozen=True)
class LedgerEnvironment:
    """The time, and randomness for salts and ids; fixed in tests, and nowhere else."""

    clock: Callable[[], int] = field(default=_now)
    salt: Callable[[], bytes] = field(default=random_salt)

    @property
    def uses_system_clock(self) -> bool:
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
    encryption
        What the secret side is closed with.
    high_water
        A mark beside the storage, which the book must not be behind.
    environment
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
        encryption: Encryption | None = None,
        high_water: HighWaterMark | None = None,
        environment: LedgerEnvironment | None = None,
        stale: bool = False,
    ) -> None:
        self.storage, self.name = storage, name
        self.encryption = NoEncryption() if encryption is None else encryption
        self.environment, self._high_water = (
            LedgerEnvironment() if environment is None else environment,
            high_water,
        )
        level = None if high_water is None or stale else high_water.read()
        with storage.read_transaction(name) as book:
            if book.get_value(COPY) and not stale:
                raise StaleCopy(
                    "This is a copy made by a backup, and cannot know what was asked since."
                )
            if high_water is not None and not stale:
                high_water.check(level, name, book.chain_state(), book)
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
        self.ladder_sessions = LadderSessions(
            mechanism, self.opening["n"], Tape(key=key), self.encryption
        )
        self._numbers = {"": 0}
        self.max_ladders: int | None = self.opening["rules"].get("ladders")
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
        encryption: Encryption | None = None,
        high_water: HighWaterMark | None = None,
        environment: LedgerEnvironment | None = None,
        also: Callable[[WriteView], None] | None = None,
    ) -> Book:
        """Start a book: commit to everything that decides releases, and append that first.

        ``key`` is the noise key, from the operating system if not given; ``keep`` is what else is
        kept with the secret side; ``also`` is done in the same transaction.
        """
        environment = LedgerEnvironment() if environment is None else environment
        encryption = NoEncryption() if encryption is None else encryption
        key = secrets.token_bytes(32) if key is None else key
        found = mechanism_of(opening.mechanism) if mechanism is None else mechanism
        salts = (environment.salt(), environment.salt())
        kept = {
            "key": key,
            "marking": environment.salt(),
            "salt of the holdout": salts[0],
            "salt of the key": salts[1],
            **(keep or {}),
        }
        ladders = LadderSessions(found, opening.n, Tape(key=key), encryption)
        fields = opening.first_entry_fields(opening.make_commitments(key, salts))
        if (
            high_water is not None
        ):  # before there is anything, so that a crash leaves no file without
            high_water.replace(Position.from_state(name, EMPTY_CHAIN))
        with storage.add_book(name) as book:
            for each, content in kept.items():
                book.set_value(each, encryption.encrypt(_KEEP.format(each), content))
            at = append_entry(book, name, EMPTY_CHAIN, "opened", fields, time=environment.clock())
            at = append_entry(
                book, name, at, "ladder", {"ladder": 0}, time=environment.clock(), ladders=1
            )
            ladders.add(book, 0, "")
            if also is not None:
                also(book)
        if high_water is not None:
            high_water.advance(Position.from_state(name, at))
        return cls(
            storage,
            name,
            mechanism=mechanism,
            encryption=encryption,
            high_water=high_water,
            environment=environment,
        )

    @property
    def budget(self) -> int:
        """How many questions are allowed."""
        return int(self.opening["rules"]["questions"])

    def chain_state(self) -> ChainState:
        """Return where the book stands."""
        with self.storage.read_transaction(self.name) as book:
            return book.chain_state()

    def head(self) -> ChainHead:
        """Return what to keep to be able to tell a rewrite."""
        at = self.chain_state()
        return ChainHead(at.entries, at.head)

    def read_encrypted(self, what: str) -> bytes:
        """Return what is kept with the secret side under a name."""
        with self.storage.read_transaction(self.name) as book:
            return self._kept(book, what)

    def store_encrypted(self, view: WriteView, what: str, content: bytes) -> None:
        """Keep something more with the secret side, in a transaction of the caller's."""
        view.set_value(what, self.encryption.encrypt(_KEEP.format(what), content))

    def _kept(self, book: ReadView, what: str) -> bytes:
        held = book.get_value(what)
        if held is None:
            raise InvalidState("A part of the secret side is missing.")
        return self.encryption.decrypt(_KEEP.format(what), held)

    def ladder_names(self) -> list[str]:
        """Return the names of all ladders, in the order of their numbers; the first has none."""
        with self.storage.read_transaction(self.name) as book:
            return book.ladder_names()

    def ladder_value(self, ladder: str = "") -> float | None:
        """Return the release that stands on a ladder, also on one that is not started yet."""
        return self.chain_state_and_value(ladder)[1]

    def chain_state_and_value(self, ladder: str = "") -> tuple[ChainState, float | None]:
        """Return, of one moment, where the book stands and what stands on a ladder."""
        with self.storage.read_transaction(self.name) as book:
            at, number = book.chain_state(), self.ladder_number(book, ladder)
            if number is None:
                return at, self.ladder_sessions.start(at.ladders).value
            return at, self.ladder_sessions.resume(book, number).value

    @contextmanager
    def transaction(self) -> Iterator[BookTransaction]:
        """Begin one transaction in which the book may grow; it stands when the block ends."""
        level = self._level()
        try:
            with self.storage.write_transaction(self.name) as view:
                turn = BookTransaction(self, view, self._checked(view, level))
                yield turn
        except BaseException:
            self._numbers = {"": 0}  # some may be of ladders that were not started after all
            raise
        self._rise(turn.chain_state)

    def ask(self, asked: ScoredQuestion) -> RecordedAnswer:
        """Answer a question, once: all that decides it is read and written in one transaction.

        Where a commit was sent and no answer came the question is looked up, never asked again.
        """
        outcome = None
        try:
            with _unasked(), self.transaction() as turn:
                outcome = turn.ask(asked)
        except StorageFailed as failed:
            if not failed.uncertain:
                raise
            outcome = self._look_up(self.dedupe_key(asked), outcome, failed)
            self._rise(outcome.chain_state)
        return outcome

    def find_previous_answer(
        self, submission: bytes, ladder: str = "", asker: str | None = None
    ) -> RecordedAnswer | None:
        """Return the answer that a submission got before; refuse where no question may be asked.

        So that nothing need be scored for it. ``ask`` looks again: others may come between.
        """
        with _unasked():
            level = self._level()
            with self.storage.read_transaction(self.name) as view:
                at = self._checked(view, level)
                found = self.read_previous_answer(
                    view, ScoredQuestion(submission, 0, ladder=ladder, asker=asker)
                )
                if found is None:
                    refuse_if_budget_spent(at, self.budget)
                    self.refuse_ladder(view, at, ladder)
                return found

    def _look_up(
        self, mark: bytes, sent: RecordedAnswer | None, failed: StorageFailed
    ) -> RecordedAnswer:
        # As a writer: a commit that is still under way has to end first.
        try:
            with self.storage.write_transaction(self.name) as book:
                found = find_recorded_answer(book, mark, None)
                if (
                    found is not None
                    and sent is not None
                    and sent.entry_number == found.entry_number
                ):
                    form = next(iter(book.entries(found.entry_number, found.entry_number + 1)))
                    if (
                        Entry(form).hash == sent.chain_state.head
                    ):  # salted: it is the very one that was sent
                        found = sent
        except StorageFailed:
            raise failed from None  # it may stand, and nobody can tell now
        if found is None:
            raise StorageFailed(f"{failed} The question was not asked.") from failed
        return found

    def dedupe_key(self, asked: ScoredQuestion) -> bytes:
        """Return the mark of a submission: nobody else can tell what it is of."""
        return self._mark("submission", asked.ladder, asked.asker, asked.submission.hex())

    def retry_key(self, asked: ScoredQuestion) -> bytes | None:
        """Return the mark of a key to retry with, if there is one."""
        return None if asked.retry is None else self._mark("retry", asked.asker, asked.retry)

    def sign(self, *parts: Any) -> bytes:
        """Return a mark that only whoever has the book can make."""
        return self._mark("signed", *parts)

    def _mark(self, *parts: Any) -> bytes:
        return hashlib.blake2b(encode(parts), key=self._marking, digest_size=32).digest()

    def read_previous_answer(self, view: ReadView, asked: ScoredQuestion) -> RecordedAnswer | None:
        """Return what came of a question before; refuse a key that belongs to another one."""
        return find_recorded_answer(view, self.dedupe_key(asked), self.retry_key(asked))

    def receipt(self, view: ReadView, outcome: RecordedAnswer) -> Receipt:
        """Return what proves that a question was answered, in a view of the caller's."""
        if outcome.receipt is not None:
            return outcome.receipt
        return self.read_receipt(view, outcome.entry_number)

    def read_receipt(self, view: ReadView, number: int) -> Receipt:
        """Return the receipt of the question at an entry."""
        return read_receipt(view, self.name, number, self.encryption)

    def ladder_number(self, view: ReadView, ladder: str) -> int | None:
        """Return the number of a ladder that was started; it never changes."""
        number = self._numbers.get(ladder)
        if number is None:
            number = view.ladder_number(ladder)
            if number is not None:
                self._numbers[ladder] = number
        return number

    def refuse_ladder(self, view: ReadView, at: ChainState, ladder: str) -> None:
        """Refuse a first question on a ladder if as many as were declared are in use.

        A ladder is in use from its first question on. All but the first, which has no name, are
        started together with that question.
        """
        limit = self.max_ladders
        if limit is None:
            return
        number = self.ladder_number(view, ladder)
        if number or at.ladders - 1 + (number is None) < limit:
            return  # it is in use, or there is room whether the first is or not
        names = self._in_use(view)
        if len(names) >= limit and ladder not in names:
            raise TooManyLadders(_too_many(ladder, limit, names, self.opening))

    def _in_use(self, view: ReadView) -> list[str]:
        names = view.ladder_names()
        return names if self.ladder_sessions.resume(view, 0).questions else names[1:]

    def ladders_in_use(self) -> list[str]:
        """Return the names of the ladders on which a question was asked."""
        with self.storage.read_transaction(self.name) as view:
            return self._in_use(view)

    def check_ladder(self, ladder: str = "") -> None:
        """Refuse a ladder on which no question could be asked, before one is."""
        with self.storage.read_transaction(self.name) as view:
            self.refuse_ladder(view, view.chain_state(), ladder)

    def close(self) -> list[float | None]:
        """End it for good, and return the last estimate of every ladder, also where kept back."""
        with self.transaction() as turn:
            return turn.close()

    def entries(self) -> Iterator[tuple[Entry, dict[str, Any]]]:
        """Read the chain from its start, checking every link."""
        with self.storage.read_transaction(self.name) as book:
            yield from iter_checked_entries(book.entries(), self.name)

    def snapshot(self) -> tuple[ChainState, dict[str, float | None], list[dict[str, Any]]]:
        """Return, of one moment, where the book stands, each ladder's value and all entries."""
        with self.storage.read_transaction(self.name) as book:
            entries = [fields for _, fields in iter_checked_entries(book.entries(), self.name)]
            values = {
                name: self.ladder_sessions.resume(book, number).value
                for number, name in enumerate(book.ladder_names())
            }
            return book.chain_state(), values, entries

    def check(self) -> int:
        """Recompute everything from the key and the secret side; return how many releases hold.

        Raises ``BrokenLedger`` that names the first entry that differs.
        """
        with self.storage.read_transaction(self.name) as book:
            key, salt = self._kept(book, "key"), self._kept(book, "salt of the key")
            check_opening(self.opening, key, salt)
            return verify_chain(book, self.name, self.ladder_sessions, self.encryption)

    def _level(self) -> Position | None:
        return None if self._high_water is None else self._high_water.read(write=True)

    def _checked(self, book: ReadView, level: Position | None) -> ChainState:
        at = book.chain_state()
        if self._high_water is not None:
            self._high_water.check(level, self.name, at, book)
        return at

    def _rise(self, at: ChainState) -> None:
        if self._high_water is not None:
            level = Position.from_state(self.name, at)
            if at.closed:  # a copy of before has nothing left to ask either
                level = level._replace(questions=self.budget)
            with suppress(StorageFailed):  # it was answered; a mark that lags tells no lie
                self._high_water.advance(level)


def _too_many(ladder: str, limit: int, names: list[str], opening: dict[str, Any]) -> str:
    """Say that no ladder is left, which are in use, and how to get more."""
    shown = ", ".join(repr(name) if name else "the one without a name" for name in names[:3])
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
