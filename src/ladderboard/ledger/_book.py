"""A book: one chain with its ladders and secrets, and the operations on it."""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar

from ladderboard.errors import (
    DiskFull,
    InvalidSetting,
    InvalidState,
    LadderboardError,
    ReadOnly,
    StaleCopy,
    StorageFailed,
)
from ladderboard.ledger._book_transaction import (
    BookContext,
    BookTransaction,
    LedgerEnvironment,
    RecordedAnswer,
    ScoredQuestion,
    find_recorded_answer,
    find_recorded_look,
    refuse_if_budget_spent,
    refuse_without_incumbent,
)
from ladderboard.ledger._chain import (
    ChainHead,
    Entry,
    LadderSessions,
    append_entry,
    check_opening,
    examples_in_sessions,
    iter_checked_entries,
    read_changes,
    read_receipt,
    verify_chain,
)
from ladderboard.ledger._commitments import NoEncryption
from ladderboard.ledger._gate import GateState, RecordedLook
from ladderboard.ledger._high_water import Position
from ladderboard.ledger._storage import COPY, EMPTY_CHAIN
from ladderboard.mechanisms import Mechanism, VisibleChange
from ladderboard.mechanisms import mechanism as mechanism_of
from ladderboard.tape import Tape

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from ladderboard.ledger._chain import Receipt
    from ladderboard.ledger._commitments import Encryption, Opening
    from ladderboard.ledger._gate import ScoredLook
    from ladderboard.ledger._high_water import HighWaterMark
    from ladderboard.ledger._storage import ChainState, Prefetch, ReadView, Storage, WriteView

    AnyAnswer = TypeVar("AnyAnswer", RecordedAnswer, RecordedLook)

_VALUE_CONTEXT = "kept {}"


class Book(BookContext):
    """An append-only record of questions, in a storage.

    ``Book.create`` starts one. Any number of processes and threads may open the same book, and
    threads may share a ``Book`` object.

    Parameters
    ----------
    storage, name
        The database, and the book's id in it.
    mechanism
        Needed only if it is not one of Ladderboard's own.
    encryption
        Encrypts and decrypts the secret side.
    high_water
        The high-water mark beside the storage; a book that is behind it is refused.
    environment
        The clock and the source of randomness.
    allow_stale
        Open the book even if it may be an old copy: to read or to restore it.
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
        allow_stale: bool = False,
    ) -> None:
        self.storage, self._high_water = storage, high_water
        encryption = NoEncryption() if encryption is None else encryption
        position = None if high_water is None or allow_stale else high_water.read()
        with storage.read_transaction(name) as book:
            if book.get_value(COPY) and not allow_stale:
                raise StaleCopy(
                    "This is a copy made by a backup; questions answered since are missing from it."
                )
            if high_water is not None and not allow_stale:
                high_water.check(position, name, book.chain_state(), book)
            first_entry = next(iter(book.entries(0, 1)), None)
            if first_entry is None:
                raise InvalidState("The book has no first entry.")
            opening = Entry(first_entry).read()
            key = _decrypt_value(book, "key", encryption)
            hash_key = _decrypt_value(book, "marking", encryption)
        if mechanism is None:
            mechanism = mechanism_of(opening["mechanism"])
        elif mechanism.describe() != opening["mechanism"]:
            raise InvalidSetting("This book was started with another mechanism.")
        self._is_past_mark = not allow_stale  # as far as the last transaction has seen
        self._changes: tuple[VisibleChange, ...] = ()
        self._changes_lock = Lock()
        self.mechanism: Mechanism = mechanism
        """The mechanism that answers questions."""
        examples = examples_in_sessions(opening["n"], opening["rules"])
        super().__init__(
            name,
            opening,
            hash_key=hash_key,
            ladder_sessions=LadderSessions(mechanism, examples, Tape(key=key), encryption),
            encryption=encryption,
            environment=LedgerEnvironment() if environment is None else environment,
        )

    @classmethod
    def create(
        cls,
        storage: Storage,
        opening: Opening,
        *,
        name: str,
        mechanism: Mechanism | None = None,
        key: bytes | None = None,
        extra_secrets: Mapping[str, bytes] | None = None,
        encryption: Encryption | None = None,
        high_water: HighWaterMark | None = None,
        environment: LedgerEnvironment | None = None,
        also_write: Callable[[WriteView], None] | None = None,
    ) -> Book:
        """Start a book whose first entry commits to everything that decides releases.

        ``key`` is the noise key, random if not given; ``extra_secrets`` are further values to store
        with the secret side; ``also_write`` is called in the same transaction.
        """
        environment = LedgerEnvironment() if environment is None else environment
        encryption = NoEncryption() if encryption is None else encryption
        key = os.urandom(32) if key is None else key
        answering_mechanism = mechanism_of(opening.mechanism) if mechanism is None else mechanism
        salts = (environment.salt(), environment.salt())
        secret_values = {
            "key": key,
            "marking": environment.salt(),
            "salt of the holdout": salts[0],
            "salt of the key": salts[1],
            **(extra_secrets or {}),
        }
        examples = examples_in_sessions(opening.n, opening.rules)
        ladders = LadderSessions(answering_mechanism, examples, Tape(key=key), encryption)
        fields = opening.first_entry_fields(opening.make_commitments(key, salts))
        if (
            high_water is not None
        ):  # before there is anything, so that a crash leaves no file without
            high_water.replace(Position.from_state(name, EMPTY_CHAIN))
        with storage.add_book(name) as book:
            for secret_name, content in secret_values.items():
                book.set_value(
                    secret_name, encryption.encrypt(_VALUE_CONTEXT.format(secret_name), content)
                )
            chain_state = append_entry(
                book, name, EMPTY_CHAIN, "opened", fields, time=environment.clock()
            )
            chain_state = append_entry(
                book,
                name,
                chain_state,
                "ladder",
                {"ladder": 0},
                time=environment.clock(),
                ladders=1,
            )
            ladders.add(book, 0, "")
            if also_write is not None:
                also_write(book)
        if high_water is not None:
            high_water.advance(Position.from_state(name, chain_state))
        return cls(
            storage,
            name,
            mechanism=mechanism,
            encryption=encryption,
            high_water=high_water,
            environment=environment,
        )

    def chain_state(self) -> ChainState:
        """Return the current state of the chain: its length, its head and its counts."""
        with self.storage.read_transaction(self.name) as book:
            return book.chain_state()

    def head(self) -> ChainHead:
        """Return the head of the chain; compare a saved one later to detect a rewritten history."""
        chain_state = self.chain_state()
        return ChainHead(chain_state.entries, chain_state.head)

    def read_encrypted(self, value_name: str) -> bytes:
        """Return a value stored with the secret side."""
        with self.storage.read_transaction(self.name) as book:
            return _decrypt_value(book, value_name, self.encryption)

    def store_encrypted(self, view: WriteView, value_name: str, content: bytes) -> None:
        """Store a value with the secret side, in the caller's transaction."""
        view.set_value(
            value_name, self.encryption.encrypt(_VALUE_CONTEXT.format(value_name), content)
        )

    def ladder_names(self) -> list[str]:
        """Return the names of all ladders, in the order of their numbers; the first has none."""
        with self.storage.read_transaction(self.name) as book:
            return book.ladder_names()

    def ladder_value(self, ladder: str = "") -> float | None:
        """Return the current release of a ladder, even of one that is not started yet."""
        return self.chain_state_and_value(ladder)[1]

    def chain_state_and_value(self, ladder: str = "") -> tuple[ChainState, float | None]:
        """Return the chain state and the current release of a ladder, from one consistent view."""
        with self.storage.read_transaction(self.name) as book:
            chain_state, number = book.chain_state(), self.ladder_number(book, ladder)
            if number is None:
                return chain_state, self.ladder_sessions.start(chain_state.ladders).value
            return chain_state, self.ladder_sessions.resume(book, number).value

    @contextmanager
    def reading(self) -> Iterator[ReadView]:
        """Begin to read the book, as it is now."""
        with self.storage.read_transaction(self.name) as view:
            yield view

    @contextmanager
    def reading_latest(self) -> Iterator[ReadView]:
        """Begin to read the book without a transaction: each statement sees the latest commit."""
        with self.storage.read_latest(self.name) as view:
            yield view

    @contextmanager
    def transaction(self, prefetch: Prefetch | None = None) -> Iterator[BookTransaction]:
        """Begin a transaction that can append entries; it is committed when the block ends.

        ``prefetch`` as for ``Storage.write_transaction``.
        """
        self._is_past_mark = False
        position = self._read_mark()
        try:
            with self.storage.write_transaction(self.name, prefetch) as view:
                transaction = BookTransaction(self, view, self._checked_chain_state(view, position))
                self._is_past_mark = True
                yield transaction
        except BaseException:
            self.forget_ladder_numbers()
            raise
        transaction.note_commit()
        self._advance_mark(transaction.chain_state)

    def ask(
        self, question: ScoredQuestion, score: Callable[[], ScoredQuestion] | None = None
    ) -> RecordedAnswer:
        """Answer a question exactly once, in one transaction; ``score`` is called in it.

        If the database did not confirm the commit, the answer is looked up; the question is never
        asked a second time.
        """
        outcome = None
        try:
            with self.transaction() as transaction:
                outcome = transaction.ask(question, score=score)
        except (DiskFull, ReadOnly) as error:
            raise _explain_unused(error) from error
        except StorageFailed as failed:
            if not failed.uncertain:
                raise
            key = self.dedupe_key(question)
            outcome = self._find_unconfirmed(
                lambda view: find_recorded_answer(view, key, None), outcome, failed
            )
            self._advance_mark(outcome.chain_state)
        return outcome

    def promote(
        self, submission: bytes, predictions: bytes, *, even_if_equal: bool = False
    ) -> GateState:
        """Make a model the gate's incumbent: the digest of its predictions, and their bytes.

        One that is equal to the incumbent changes nothing, unless that would say that it is equal.
        """
        try:
            with self.transaction() as transaction:
                return transaction.promote(submission, predictions, even_if_equal=even_if_equal)
        except StorageFailed as failed:
            if not failed.uncertain:
                raise
            with self.transaction() as transaction:  # nothing changes if the first succeeded
                return transaction.promote(submission, predictions)

    def look(self, look: ScoredLook) -> RecordedLook | GateState:
        """Answer a look exactly once, in one transaction; see ``ask``.

        Returns the state of the gate if no look was needed.
        """
        outcome = None
        try:
            with self.transaction() as transaction:
                outcome = transaction.look(look)
        except (DiskFull, ReadOnly) as error:
            raise _explain_unused(error, "look") from error
        except StorageFailed as failed:
            if not failed.uncertain or not isinstance(outcome, RecordedLook):
                raise
            key = outcome.dedupe_key
            outcome = self._find_unconfirmed(
                lambda view: find_recorded_look(view, key), outcome, failed
            )
            self._advance_mark(outcome.chain_state)
        return outcome

    def find_look(
        self, submission: bytes, margin: float, nonce: bytes = b""
    ) -> tuple[RecordedLook | None, GateState]:
        """Return the answer that a look got before, and the gate; refuse if none may be taken.

        Called before scoring, as ``find_duplicate``.
        """
        gate = GateState()

        def find(view: ReadView) -> RecordedLook | None:
            nonlocal gate
            view.chain_state()  # the gate is read again only if it is another one
            gate = self.read_gate(view)
            refuse_without_incumbent(gate)
            key = self.look_key(gate.submission, margin, submission, nonce)
            answer = find_recorded_look(view, key)
            if answer is None:
                chain_state = view.chain_state()
                refuse_if_budget_spent(chain_state, self.budget, "looks")
            return answer

        return self._look_up(find, "look"), gate

    def gate_state(self) -> GateState:
        """Return the state of the gate."""
        with self.storage.read_transaction(self.name) as view:
            return self.read_gate(view)

    def find_duplicate(
        self, submission: bytes, ladder: str = "", asker: str | None = None, nonce: bytes = b""
    ) -> RecordedAnswer | None:
        """Return the answer that a submission got before; refuse if no question may be asked.

        For questions that take long to score: called before, outside of the transaction. ``ask``
        checks again, since others may have asked in between.
        """
        key = self.dedupe_key(
            ScoredQuestion(submission, 0, ladder=ladder, asker=asker, nonce=nonce)
        )

        def find(view: ReadView) -> RecordedAnswer | None:
            answer = find_recorded_answer(view, key, None)
            if answer is None:
                chain_state = view.chain_state()
                refuse_if_budget_spent(chain_state, self.budget)
                self.refuse_ladder(view, chain_state, ladder)
            return answer

        return self._look_up(find, "question")

    def _look_up(self, find: Callable[[ReadView], AnyAnswer | None], unit: str) -> AnyAnswer | None:
        """Return the recorded answer that ``find`` returns, or its refusal, from a checked book.

        A new question is checked against the mark in its own transaction, so here the mark is read
        only for an answer or a refusal, and after a transaction that was refused. Until then no
        transaction is needed either.
        """
        if self._is_past_mark:
            with suppress(LadderboardError), self.storage.read_latest(self.name) as view:
                if find(view) is None:
                    return None
        try:
            position = self._read_mark()
            with self.storage.read_transaction(self.name) as view:
                self._checked_chain_state(view, position)
                return find(view)
        except (DiskFull, ReadOnly) as error:
            raise _explain_unused(error, unit) from error

    def _find_unconfirmed(
        self,
        find: Callable[[ReadView], AnyAnswer | None],
        expected: AnyAnswer | None,
        error: StorageFailed,
    ) -> AnyAnswer:
        # In a write transaction, which waits for a commit that is still under way.
        try:
            with self.storage.write_transaction(self.name) as book:
                answer = find(book)
                if (
                    answer is not None
                    and expected is not None
                    and expected.entry_number == answer.entry_number
                ):
                    encoded = next(iter(book.entries(answer.entry_number, answer.entry_number + 1)))
                    # Entries are salted, so an equal hash means that our own commit succeeded.
                    if Entry(encoded).hash == expected.chain_state.head:
                        answer = expected
        except StorageFailed:
            raise error from None  # whether it was committed cannot be found out now
        if answer is None:
            raise StorageFailed(f"{error} The question was not asked.") from error
        return answer

    def read_duplicate(self, view: ReadView, question: ScoredQuestion) -> RecordedAnswer | None:
        """Return the answer recorded for a question; refuse an idempotency key used for another."""
        return find_recorded_answer(
            view,
            self.dedupe_key(question),
            self.hash_idempotency_key(question),
            by_key_only=bool(question.nonce),
        )

    def receipt_for(self, view: ReadView, answer: RecordedAnswer) -> Receipt:
        """Return the receipt of an answer, read in the caller's transaction if need be."""
        if answer.receipt is not None:
            return answer.receipt
        return self.read_receipt(view, answer.entry_number)

    def read_receipt(self, view: ReadView, number: int) -> Receipt:
        """Return the receipt of the question recorded in an entry."""
        return read_receipt(view, self.name, number, self.encryption)

    def ladders_in_use(self) -> list[str]:
        """Return the names of the ladders on which a question was asked."""
        with self.storage.read_transaction(self.name) as view:
            return self.read_ladders_in_use(view)

    def check_ladder(self, ladder: str = "") -> None:
        """Refuse a ladder on which no question can be asked, before one is."""
        with self.storage.read_transaction(self.name) as view:
            self.refuse_ladder(view, view.chain_state(), ladder)

    def close(self) -> list[float | None]:
        """Close the book for good; return every ladder's last estimate, published or not."""
        with self.transaction() as transaction:
            return transaction.close()

    def entries(self) -> Iterator[tuple[Entry, dict[str, Any]]]:
        """Return all entries from the start, checking that each follows from the one before."""
        with self.storage.read_transaction(self.name) as book:
            yield from iter_checked_entries(book.entries(), self.name)

    def visible_changes(self, chain_state: ChainState) -> tuple[VisibleChange, ...]:
        """Return the changes of all ladders up to a state of the chain, in order.

        They are cached, because entries never change; new ones are found by bisection.
        """
        with self._changes_lock:
            if len(self._changes) < chain_state.changes:
                with self.storage.read_transaction(self.name) as view:
                    known, answers = len(self._changes), self.opening["rules"].get("answers", 1)
                    self._changes += read_changes(view, known, chain_state, answers)
            return self._changes[: chain_state.changes]

    def snapshot(self) -> tuple[ChainState, dict[str, float | None], list[dict[str, Any]]]:
        """Return the chain state, each ladder's value and all entries, from one consistent view."""
        with self.storage.read_transaction(self.name) as book:
            entries = [fields for _, fields in iter_checked_entries(book.entries(), self.name)]
            values = {
                name: self.ladder_sessions.resume(book, number).value
                for number, name in enumerate(book.ladder_names())
            }
            return book.chain_state(), values, entries

    def check(self) -> int:
        """Recompute everything from the key and the secret side; return how many releases match.

        Raises ``BrokenLedger``, which names the first entry that differs.
        """
        with self.storage.read_transaction(self.name) as book:
            key = _decrypt_value(book, "key", self.encryption)
            salt = _decrypt_value(book, "salt of the key", self.encryption)
            check_opening(self.opening, key, salt)
            return verify_chain(book, self.name, self.ladder_sessions, self.encryption)

    def _read_mark(self) -> Position | None:
        return None if self._high_water is None else self._high_water.read(write=True)

    def _checked_chain_state(self, book: ReadView, position: Position | None) -> ChainState:
        chain_state = book.chain_state()
        if self._high_water is not None:
            self._high_water.check(position, self.name, chain_state, book)
        return chain_state

    def _advance_mark(self, chain_state: ChainState) -> None:
        if self._high_water is not None:
            position = Position.from_state(self.name, chain_state)
            if chain_state.closed:  # an earlier copy must not answer any more either
                position = position._replace(questions=self.budget)
            # The answer is committed; a mark that lags behind is harmless.
            with suppress(StorageFailed):
                self._high_water.advance(position)


def _decrypt_value(book: ReadView, value_name: str, encryption: Encryption) -> bytes:
    encrypted = book.get_value(value_name)
    if encrypted is None:
        raise InvalidState("A value of the secret side is missing.")
    return encryption.decrypt(_VALUE_CONTEXT.format(value_name), encrypted)


def _explain_unused(error: DiskFull | ReadOnly, unit: str = "question") -> DiskFull | ReadOnly:
    """Return the error of a full or read-only disk, with the addition that no question was used."""
    return type(error)(f"{error} No {unit} was used.")
