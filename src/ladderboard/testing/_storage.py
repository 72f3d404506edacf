"""The conformance suite of storages, also with several threads at once."""

from __future__ import annotations

import hashlib
import secrets
import threading
from typing import TYPE_CHECKING

from ladderboard.errors import InvalidInput, LadderboardError
from ladderboard.ledger import ChainState, EntryRow
from ladderboard.testing._assertions import require, require_refusal

if TYPE_CHECKING:
    from collections.abc import Callable

    from ladderboard.ledger import ReadView, Storage, WriteView

_THREADS = 4
_TURNS = 15
_TIMEOUT_SECONDS = 120.0  # seconds after which a thread counts as stuck
_EMPTY_BOOK = ChainState(0, bytes(32), 0, 0, 0, 0, 0, 0, closed=False)
_LARGEST_INTEGER = 2**63 - 1
_NAMES = ("", " ", "team 1", "Zoë", "雪", "'; DROP TABLE book; --", "a" * 500)
_BYTES = (b"", b"\0", b"plain", bytes(range(256)))


def check_isolation(
    make: Callable[[], Storage], name: str, append_entry: Callable[[WriteView], bytes]
) -> None:
    """Check that a reader sees one snapshot and does not block writers."""
    storage, errors = make(), list[BaseException]()

    def write() -> None:
        with storage.write_transaction(name) as book:
            append_entry(book)
            book.set_ladder_state(0, b"%d" % book.chain_state().entries)
            book.set_value("entries", b"%d" % book.chain_state().entries)

    write()
    with storage.read_transaction(name) as view:
        _run_threads([write], errors)
        before = (
            view.chain_state().entries,
            len(list(view.entries())),
            view.ladder_state(0),
            view.get_value("entries"),
        )
        require(before == (2, 2, b"2", b"2"), "A view must stay as its transaction began.")
        with storage.read_transaction(name) as second:
            after = (
                second.chain_state().entries,
                second.ladder_state(0),
                second.get_value("entries"),
            )
            require(after == (3, b"3", b"3"), "A later transaction must see what was committed.")
    with storage.write_transaction(name) as book:
        append_entry(book)
        with storage.read_transaction(name) as view:
            require(
                view.chain_state().entries == 3,
                "Other transactions must not see what is not committed.",
            )
    storage.close()
    _raise_first_error(errors)


def check_writers(
    make: Callable[[], Storage], name: str, append_entry: Callable[[WriteView], bytes]
) -> None:
    """Check that writers take turns, in one storage and in several of the same database."""
    shared, errors = make(), list[BaseException]()
    separate = [make() for _ in range(_THREADS // 2)]

    def write(storage: Storage) -> None:
        for _ in range(_TURNS):
            with storage.write_transaction(name) as book:
                state = int(book.ladder_state(0) or b"")
                append_entry(book)
                book.add_dedupe_key(b"%d" % state, book.chain_state().entries - 1)
                book.set_ladder_state(0, b"%d" % (state + 1))

    def read() -> None:
        for _ in range(_TURNS):
            with shared.read_transaction(name) as view:
                state_counts = (view.chain_state().entries - 1, int(view.ladder_state(0) or b""))
                counted = len(list(view.entries())) - 1
            require(
                state_counts == (counted, counted),
                "A reader must never see a part of a transaction.",
            )

    writers = [*separate, *[shared] * (_THREADS - len(separate))]
    _run_threads([*(lambda storage=storage: write(storage) for storage in writers), read], errors)
    _raise_first_error(errors)
    total = _THREADS * _TURNS
    with shared.read_transaction(name) as view:
        require(
            view.ladder_state(0) == b"%d" % total, "No update of concurrent writers may be lost."
        )
        require(view.chain_state().entries == total + 1, "Every transaction must keep its entry.")
        entries = [view.find_by_dedupe_key(b"%d" % state) for state in range(total)]
        require(entries == list(range(1, total + 1)), "Writers must take turns.")
    for storage in (shared, *separate):
        storage.close()


def _run_threads(tasks: list[Callable[[], None]], errors: list[BaseException]) -> None:
    def guarded(task: Callable[[], None]) -> None:
        try:
            task()
        except BaseException as error:  # noqa: BLE001 - raised again by the main thread
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(task,), daemon=True) for task in tasks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(_TIMEOUT_SECONDS)
        require(not thread.is_alive(), "Readers and writers must not keep each other waiting.")


def _raise_first_error(errors: list[BaseException]) -> None:
    for error in errors:
        sentence = f"Threads must not disturb each other: {type(error).__name__}: {error}"
        raise AssertionError(sentence) from error


def check_storage(make: Callable[[], Storage], *, entries: int = 1100) -> None:
    """Check that the storages that ``make`` opens meet the requirements.

    ``make`` opens an existing database, the same one every time; it is called often, and storages
    are closed after use. Books with random names are added and stay. What is written reads back, in
    order and in pages (``entries`` of them); a failed transaction leaves nothing; numbers,
    deduplication keys and names are unique; books are separate; readers see one snapshot; four
    writing threads take turns; and everything is there when opened again.

    Examples
    --------
    >>> import tempfile
    >>> from ladderboard.ledger import SqliteStorage
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     SqliteStorage(f"{folder}/guard.db", create=True).close()
    ...     check_storage(lambda: SqliteStorage(f"{folder}/guard.db"), entries=20)
    """
    try:
        for check in _CHECKS:
            storage = make()
            try:
                check(storage)
            finally:
                storage.close()
        _check_pages(make, entries)
        _check_reopened(make)
        check_isolation(make, _new_book(make), append_entry)
        check_writers(make, _new_book(make), append_entry)
    except LadderboardError as error:
        sentence = f"A storage must not refuse a valid use. Got {type(error).__name__}: {error}"
        raise AssertionError(sentence) from error


def _random_name() -> str:
    return secrets.token_hex(16)


def _new_book(make: Callable[[], Storage]) -> str:
    """Add a book with one entry and one ladder, and return its name."""
    storage, name = make(), _random_name()
    with storage.add_book(name) as book:
        append_entry(book)
        book.add_ladder(0, "", b"0")
    storage.close()
    return name


def append_entry(
    book: WriteView, encoded: bytes | None = None, secret: bytes | None = None
) -> bytes:
    """Append the next entry, and return its bytes."""
    state = book.chain_state()
    encoded = b"entry %d" % state.entries if encoded is None else encoded
    head = hashlib.sha256(encoded).digest()
    new_state = state._replace(entries=state.entries + 1, head=head, asked=state.asked + 1)
    book.append(
        EntryRow(state.entries, "question", encoded, head, 0, state.asked + 1, "asker"),
        new_state,
        secret,
    )
    return encoded


def _snapshot(book: ReadView) -> tuple[object, ...]:
    """Return everything that can be read of a small book."""
    state, ladders = book.chain_state(), book.ladder_names()
    return (
        state,
        list(book.entries()),
        [book.secret_side(number) for number in range(-1, state.entries + 2)],
        ladders,
        [book.ladder_state(number) for number in range(-1, len(ladders) + 2)],
        [book.find_by_dedupe_key(mark) for mark in _BYTES],
        [book.get_value(name) for name in _NAMES],
    )


def _check_books(storage: Storage) -> None:
    names = sorted((_random_name() for _ in range(3)), reverse=True)
    before = storage.books()
    for name in names:
        with storage.add_book(name) as book:
            require(book.chain_state() == _EMPTY_BOOK, "A new book must have an empty chain.")
            require(not list(book.entries()), "A new book must have no entries.")
    require(storage.books() == [*before, *names], "books() must return all books, oldest first.")
    with storage.read_transaction(names[1]) as view:
        require(
            view.chain_state() == _EMPTY_BOOK, "A book without entries must have an empty chain."
        )
        require(view.ladder_names() == [], "A new book must have no ladders.")
        missing = (
            view.secret_side(0),
            view.ladder_state(0),
            view.find_by_dedupe_key(b"mark"),
            view.get_value("name"),
        )
        require(missing == (None,) * 4, "What was never written must read as None.")


def _check_reads_back(storage: Storage) -> None:
    name, first = _random_name(), ChainState(1, b"\1" * 32, 2, 3, 4, 5, 6, 7, closed=False)
    second = ChainState(2, b"\2" * 32, *(_LARGEST_INTEGER,) * 6, closed=True)
    with storage.add_book(name) as book:
        book.append(EntryRow(0, "opened", b"first", first.head), first)
        require(book.chain_state() == first, "A transaction must see its own entry.")
        row = EntryRow(
            1, "question", bytes(range(256)), second.head, _LARGEST_INTEGER, _LARGEST_INTEGER, "Zoë"
        )
        book.append(row, second, b"\0secret")
        for number, state in enumerate(_BYTES):
            book.add_ladder(number, _NAMES[number], state)
        book.set_ladder_state(1, b"changed")
        for number, mark in enumerate(_BYTES):
            book.add_dedupe_key(mark, number % 2)
        for key in _NAMES:
            book.set_value(key, b"once")
            book.set_value(key, key.encode())
        inside = _snapshot(book)
    with storage.read_transaction(name) as view:
        require(_snapshot(view) == inside, "A commit must keep what its transaction saw.")
        require(
            view.chain_state() == second,
            "chain_state() must read back as it was written, large numbers too.",
        )
        require(type(view.chain_state().closed) is bool, "closed must be True or False.")
        forms, secret = list(view.entries()), view.secret_side(1)
        require(forms == [b"first", bytes(range(256))], "Entries must read back byte for byte.")
        require(
            (view.secret_side(0), secret) == (None, b"\0secret"),
            "The secret side must read back byte for byte.",
        )
        states = [view.ladder_state(number) for number in range(5)]
        expected = [_BYTES[0], b"changed", *_BYTES[2:], None]
        require(states == expected, "A ladder's state must be the last one that was set.")
        require(view.ladder_names() == list(_NAMES[:4]), "Ladders must be in the order of numbers.")
        require(
            [view.find_by_dedupe_key(mark) for mark in _BYTES] == [0, 1, 0, 1],
            "Deduplication keys must be found.",
        )
        values = [view.get_value(key) for key in _NAMES]
        require(values == [key.encode() for key in _NAMES], "The last value set must count.")
        read_back = (*forms, secret, view.chain_state().head, *states[:4], *values)
        require(all(type(value) is bytes for value in read_back), "Bytes must read back as bytes.")


def _check_rollback(storage: Storage) -> None:
    name, failed_name = _random_name(), _random_name()
    with storage.add_book(name) as book:
        append_entry(book)
        book.add_ladder(0, "", b"before")
        book.set_value("", b"before")
    with storage.read_transaction(name) as view:
        before = _snapshot(view)
    for reason in (ValueError, KeyboardInterrupt):
        try:
            with storage.write_transaction(name) as book:
                append_entry(book, secret=b"secret")
                book.add_dedupe_key(b"plain", 1)
                book.set_ladder_state(0, b"after")
                book.add_ladder(1, "another", b"after")
                book.set_value("", b"after")
                raise reason
        except reason:
            pass
        with storage.read_transaction(name) as view:
            require(_snapshot(view) == before, "A failed transaction must leave nothing.")
    try:
        with storage.add_book(failed_name) as book:
            append_entry(book)
            raise ValueError
    except ValueError:
        pass
    require(
        failed_name not in storage.books(), "A book whose first transaction failed must not exist."
    )
    with storage.add_book(failed_name) as book:
        require(
            book.chain_state() == _EMPTY_BOOK, "Such a book must be empty when it is added again."
        )


def _check_refusals(storage: Storage) -> None:
    name = _random_name()
    with storage.add_book(name) as book:
        append_entry(book)
        book.add_ladder(0, "first", b"state")
        book.add_dedupe_key(b"mark", 0)
    with (
        require_refusal(InvalidInput, "The name of an existing book must be refused."),
        storage.add_book(name),
    ):
        pass
    for block in (storage.read_transaction, storage.write_transaction):
        with (
            require_refusal(InvalidInput, "A missing book must be refused."),
            block(_random_name()),
        ):
            pass
    with storage.write_transaction(name) as book:
        state = book.chain_state()
        for number in (0, 2, -1, _LARGEST_INTEGER):
            row = EntryRow(number, "question", b"form", b"\1" * 32)
            new_state = state._replace(entries=number + 1, head=row.hash)
            with require_refusal(InvalidInput, "An entry must have the next number."):
                book.append(row, new_state)
        with require_refusal(InvalidInput, "The new chain state must count the entry."):
            book.append(EntryRow(1, "question", b"form", b"\1" * 32), state)
        for number, ladder in ((0, "second"), (1, "first")):
            with require_refusal(InvalidInput, "A ladder's number and name must be unique."):
                book.add_ladder(number, ladder, b"other")
        with require_refusal(InvalidInput, "A deduplication key must be unique."):
            book.add_dedupe_key(b"mark", 0)
        with require_refusal(InvalidInput, "The state of a missing ladder must be refused."):
            book.set_ladder_state(7, b"other")
        append_entry(book)
    with storage.read_transaction(name) as view:
        require(
            list(view.entries()) == [b"entry 0", b"entry 1"],
            "A transaction must continue after refusals.",
        )
        require(
            (view.ladder_state(0), view.find_by_dedupe_key(b"mark")) == (b"state", 0),
            "A refusal must change nothing.",
        )
        require(
            (view.ladder_names(), view.chain_state().entries) == (["first"], 2),
            "A refusal must change nothing.",
        )


def _check_unstorable_text(storage: Storage) -> None:
    """Check that text which one database cannot store is refused by all: ledgers may move."""
    for bad in ("a\0b", "\ud800", "\0"):
        sentence = f"The text {bad!r} must be refused."
        with require_refusal(InvalidInput, sentence), storage.add_book(bad):
            pass
        with storage.add_book(_random_name()) as book:
            with require_refusal(InvalidInput, sentence):
                book.set_value(bad, b"")
            with require_refusal(InvalidInput, sentence):
                book.add_ladder(0, bad, b"")
            now = _EMPTY_BOOK._replace(entries=1)
            with require_refusal(InvalidInput, sentence):
                book.append(EntryRow(0, "opened", b"form", now.head, asker=bad), now)
            with require_refusal(InvalidInput, "A number of more than 64 bits must be refused."):
                book.append(EntryRow(0, "opened", b"form", now.head), now._replace(time=2**63))
            require(book.chain_state() == _EMPTY_BOOK, "A refusal must change nothing.")


def _check_books_are_separate(storage: Storage) -> None:
    names = [_random_name(), _random_name(), _random_name()]
    for name in names:
        with storage.add_book(name) as book:
            for _ in range(3):
                append_entry(
                    book, name.encode() + b"%d" % book.chain_state().entries, secret=name.encode()
                )
            book.add_ladder(0, "same", name.encode())
            book.add_dedupe_key(b"same", names.index(name))
            book.set_value("same", name.encode())
    for index, name in enumerate(names):
        with storage.read_transaction(name) as view:
            content = name.encode()
            require(
                list(view.entries(-9)) == [content + b"%d" % number for number in range(3)]
                and [view.secret_side(number) for number in (-1, 2, 3, 2**40)]
                == [None, content, None, None]
                and (view.ladder_names(), view.ladder_state(0)) == (["same"], content)
                and (view.find_by_dedupe_key(b"same"), view.get_value("same")) == (index, content),
                "A book must not show anything of another book.",
            )


def _check_large(storage: Storage) -> None:
    name, large = _random_name(), secrets.token_bytes(3 * 2**20)
    with storage.add_book(name) as book:
        append_entry(book, large, secret=large[::-1])
        book.add_ladder(0, "", large)
        book.set_value("large", large)
    with storage.read_transaction(name) as view:
        read_back = (
            next(view.entries()),
            view.secret_side(0),
            view.ladder_state(0),
            view.get_value("large"),
        )
        require(read_back == (large, large[::-1], large, large), "Three megabytes must read back.")


def _check_copies(storage: Storage) -> None:
    name = _random_name()
    with storage.add_book(name) as book:
        append_entry(book)
    require(storage.is_copy(name) is False, "A new book must not be a copy.")
    with storage.write_transaction(name) as book:
        book.clear_copy_flag()
    require(storage.is_copy(name) is False, "An adopted book must not be a copy.")


def _check_closed_views(storage: Storage) -> None:
    name = _random_name()
    with storage.add_book(name) as book:
        append_entry(book)
    with storage.read_transaction(name) as view:
        pass
    sentence = "A view must not work after its transaction."
    for use in (
        view.chain_state,
        view.ladder_names,
        lambda: list(view.entries()),
        lambda: view.get_value("name"),
    ):
        with require_refusal(LadderboardError, sentence):
            use()
    for change in (
        lambda: append_entry(book),
        lambda: book.set_value("name", b""),
        book.chain_state,
    ):
        with require_refusal(LadderboardError, sentence):
            change()
    with storage.read_transaction(name) as view:
        require((view.chain_state().entries, view.get_value("name")) == (1, None), sentence)


def _check_pages(make: Callable[[], Storage], entries: int) -> None:
    storage, name = make(), _new_book(make)
    while True:
        with storage.write_transaction(name) as book:
            for _ in range(min(400, entries - book.chain_state().entries)):
                append_entry(book)
            if book.chain_state().entries == entries:
                break
    forms = [b"entry %d" % number for number in range(entries)]
    with storage.read_transaction(name) as view:
        require(list(view.entries()) == forms, "entries() must return all entries once, in order.")
        for first, last in ((0, 1), (0, 0), (5, 2), (1, entries - 1), (entries - 1, None)):
            part = list(view.entries(first, last))
            require(part == forms[first:last], "entries() must return exactly the given range.")
        beyond = list(view.entries(entries)) + list(view.entries(entries - 1, entries + 5))
        require(beyond == forms[-1:], "entries() must return nothing after the last entry.")
    storage.close()


def _check_reopened(make: Callable[[], Storage]) -> None:
    first, second, name = make(), make(), _new_book(make)
    snapshot: tuple[object, ...] = ()
    for storage, other in ((first, second), (second, first), (first, second)):
        with storage.write_transaction(name) as book:
            append_entry(book, secret=b"secret")
            snapshot = _snapshot(book)
        with other.read_transaction(name) as view:
            require(
                _snapshot(view) == snapshot,
                "Every storage must see a commit at once.",
            )
    books = first.books()
    first.close()
    second.close()
    third = make()
    with third.read_transaction(name) as view:
        require(_snapshot(view) == snapshot, "A reopened storage must have everything committed.")
    require(third.books() == books, "Books must be in the same order when opened again.")
    third.close()


_CHECKS = (
    _check_books,
    _check_reads_back,
    _check_rollback,
    _check_refusals,
    _check_unstorable_text,
    _check_books_are_separate,
    _check_large,
    _check_copies,
    _check_closed_views,
)
