"""What every storage of a ledger must do, also with several threads at once."""

from __future__ import annotations

import hashlib
import secrets
import threading
from typing import TYPE_CHECKING

import pytest

from ladderboard.errors import InvalidInput, LadderboardError
from ladderboard.ledger import ChainState, EntryRow

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
        assert before == (2, 2, b"2", b"2")
        with storage.read_transaction(name) as second:
            after = (
                second.chain_state().entries,
                second.ladder_state(0),
                second.get_value("entries"),
            )
            assert after == (3, b"3", b"3")
    with storage.write_transaction(name) as book:
        append_entry(book)
        with storage.read_transaction(name) as view:
            assert view.chain_state().entries == 3
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
            assert state_counts == (counted, counted)

    writers = [*separate, *[shared] * (_THREADS - len(separate))]
    _run_threads([*(lambda storage=storage: write(storage) for storage in writers), read], errors)
    _raise_first_error(errors)
    total = _THREADS * _TURNS
    with shared.read_transaction(name) as view:
        assert view.ladder_state(0) == b"%d" % total
        assert view.chain_state().entries == total + 1
        entries = [view.find_by_dedupe_key(b"%d" % state) for state in range(total)]
        assert entries == list(range(1, total + 1))
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
        assert not thread.is_alive()


def _raise_first_error(errors: list[BaseException]) -> None:
    for error in errors:
        raise error


def check_storage(make: Callable[[], Storage]) -> None:
    """Check that the storages that ``make`` opens meet the requirements.

    ``make`` opens an existing database, the same one every time; it is called often, and storages
    are closed after use. Books with random names are added and stay. What is written reads back, in
    order and in pages; a failed transaction leaves nothing; numbers,
    deduplication keys and names are unique; books are separate; readers see one snapshot; four
    writing threads take turns; and everything is there when opened again.
    """
    for check in _CHECKS:
        storage = make()
        try:
            check(storage)
        finally:
            storage.close()
    _check_pages(make)
    _check_reopened(make)
    check_isolation(make, _new_book(make), append_entry)
    check_writers(make, _new_book(make), append_entry)


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
            assert book.chain_state() == _EMPTY_BOOK
            assert not list(book.entries())
    assert storage.books() == [*before, *names]
    with storage.read_transaction(names[1]) as view:
        assert view.chain_state() == _EMPTY_BOOK
        assert view.ladder_names() == []
        missing = (
            view.secret_side(0),
            view.ladder_state(0),
            view.find_by_dedupe_key(b"mark"),
            view.get_value("name"),
        )
        assert missing == (None,) * 4


def _check_reads_back(storage: Storage) -> None:
    name, first = _random_name(), ChainState(1, b"\1" * 32, 2, 3, 4, 5, 6, 7, closed=False)
    second = ChainState(2, b"\2" * 32, *(_LARGEST_INTEGER,) * 6, closed=True)
    with storage.add_book(name) as book:
        book.append(EntryRow(0, "opened", b"first", first.head), first)
        assert book.chain_state() == first
        row = EntryRow(
            1, "question", bytes(range(256)), second.head, _LARGEST_INTEGER, _LARGEST_INTEGER, "Zoë"
        )
        book.append(row, second, b"\0secret")
        for number, state in enumerate(_BYTES):
            book.add_ladder(number, _NAMES[number], state, changes=number)
        book.set_ladder_state(1, b"changed", changed=True)
        for number, mark in enumerate(_BYTES):
            book.add_dedupe_key(mark, number % 2)
        for key in _NAMES:
            book.set_value(key, b"once")
            book.set_value(key, key.encode())
        inside = _snapshot(book)
    with storage.read_transaction(name) as view:
        assert _snapshot(view) == inside
        assert view.chain_state() == second
        assert type(view.chain_state().closed) is bool
        forms, secret = list(view.entries()), view.secret_side(1)
        assert forms == [b"first", bytes(range(256))]
        assert (view.secret_side(0), secret) == (None, b"\0secret")
        states = [view.ladder_state(number) for number in range(5)]
        expected = [_BYTES[0], b"changed", *_BYTES[2:], None]
        assert states == expected
        assert [view.ladder_changes(number) for number in range(4)] == [0, 2, 2, 3]
        assert [view.largest_ladder_changes(count) for count in (2, 9)] == [(5, 2), (7, 0)]
        assert view.ladder_names() == list(_NAMES[:4])
        assert [view.find_by_dedupe_key(mark) for mark in _BYTES] == [0, 1, 0, 1]
        values = [view.get_value(key) for key in _NAMES]
        assert values == [key.encode() for key in _NAMES]
        read_back = (*forms, secret, view.chain_state().head, *states[:4], *values)
        assert all(type(value) is bytes for value in read_back)


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
            assert _snapshot(view) == before
    try:
        with storage.add_book(failed_name) as book:
            append_entry(book)
            raise ValueError
    except ValueError:
        pass
    assert failed_name not in storage.books()
    with storage.add_book(failed_name) as book:
        assert book.chain_state() == _EMPTY_BOOK


def _check_refusals(storage: Storage) -> None:
    name = _random_name()
    with storage.add_book(name) as book:
        append_entry(book)
        book.add_ladder(0, "first", b"state")
        book.add_dedupe_key(b"mark", 0)
    with (
        pytest.raises(InvalidInput),
        storage.add_book(name),
    ):
        pass
    for block in (storage.read_transaction, storage.write_transaction):
        with (
            pytest.raises(InvalidInput),
            block(_random_name()),
        ):
            pass
    with storage.write_transaction(name) as book:
        state = book.chain_state()
        for number in (0, 2, -1, _LARGEST_INTEGER):
            row = EntryRow(number, "question", b"form", b"\1" * 32)
            new_state = state._replace(entries=number + 1, head=row.hash)
            with pytest.raises(InvalidInput):
                book.append(row, new_state)
        with pytest.raises(InvalidInput):
            book.append(EntryRow(1, "question", b"form", b"\1" * 32), state)
        for number, ladder in ((0, "second"), (1, "first")):
            with pytest.raises(InvalidInput):
                book.add_ladder(number, ladder, b"other")
        with pytest.raises(InvalidInput):
            book.add_dedupe_key(b"mark", 0)
        with pytest.raises(InvalidInput):
            book.set_ladder_state(7, b"other")
        append_entry(book)
    with storage.read_transaction(name) as view:
        assert list(view.entries()) == [b"entry 0", b"entry 1"]
        assert (view.ladder_state(0), view.find_by_dedupe_key(b"mark")) == (b"state", 0)
        assert (view.ladder_names(), view.chain_state().entries) == (["first"], 2)


def _check_unstorable_text(storage: Storage) -> None:
    """Check that text which one database cannot store is refused by all: ledgers may move."""
    for bad in ("a\0b", "\ud800", "\0"):
        with pytest.raises(InvalidInput), storage.add_book(bad):
            pass
        with storage.add_book(_random_name()) as book:
            with pytest.raises(InvalidInput):
                book.set_value(bad, b"")
            with pytest.raises(InvalidInput):
                book.add_ladder(0, bad, b"")
            now = _EMPTY_BOOK._replace(entries=1)
            with pytest.raises(InvalidInput):
                book.append(EntryRow(0, "opened", b"form", now.head, asker=bad), now)
            with pytest.raises(InvalidInput):
                book.append(EntryRow(0, "opened", b"form", now.head), now._replace(time=2**63))
            assert book.chain_state() == _EMPTY_BOOK


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
            assert list(view.entries(-9)) == [content + b"%d" % number for number in range(3)]
            assert [view.secret_side(number) for number in (-1, 2, 3, 2**40)] == [
                None,
                content,
                None,
                None,
            ]
            assert (view.ladder_names(), view.ladder_state(0)) == (["same"], content)
            assert (view.find_by_dedupe_key(b"same"), view.get_value("same")) == (index, content)


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
        assert read_back == (large, large[::-1], large, large)


def _check_copies(storage: Storage) -> None:
    name = _random_name()
    with storage.add_book(name) as book:
        append_entry(book)
    assert storage.is_copy(name) is False
    with storage.write_transaction(name) as book:
        book.clear_copy_flag()
    assert storage.is_copy(name) is False


def _check_closed_views(storage: Storage) -> None:
    name = _random_name()
    with storage.add_book(name) as book:
        append_entry(book)
    with storage.read_transaction(name) as view:
        pass
    for use in (
        view.chain_state,
        view.ladder_names,
        lambda: list(view.entries()),
        lambda: view.get_value("name"),
    ):
        with pytest.raises(LadderboardError):
            use()
    for change in (
        lambda: append_entry(book),
        lambda: book.set_value("name", b""),
        book.chain_state,
    ):
        with pytest.raises(LadderboardError):
            change()
    with storage.read_transaction(name) as view:
        assert (view.chain_state().entries, view.get_value("name")) == (1, None)


def _check_pages(make: Callable[[], Storage], entries: int = 1100) -> None:
    storage, name = make(), _new_book(make)
    while True:
        with storage.write_transaction(name) as book:
            for _ in range(min(400, entries - book.chain_state().entries)):
                append_entry(book)
            if book.chain_state().entries == entries:
                break
    forms = [b"entry %d" % number for number in range(entries)]
    with storage.read_transaction(name) as view:
        assert list(view.entries()) == forms
        for first, last in ((0, 1), (0, 0), (5, 2), (1, entries - 1), (entries - 1, None)):
            part = list(view.entries(first, last))
            assert part == forms[first:last]
        beyond = list(view.entries(entries)) + list(view.entries(entries - 1, entries + 5))
        assert beyond == forms[-1:]
    storage.close()


def _check_reopened(make: Callable[[], Storage]) -> None:
    first, second, name = make(), make(), _new_book(make)
    snapshot: tuple[object, ...] = ()
    for storage, other in ((first, second), (second, first), (first, second)):
        with storage.write_transaction(name) as book:
            append_entry(book, secret=b"secret")
            snapshot = _snapshot(book)
        with other.read_transaction(name) as view:
            assert _snapshot(view) == snapshot
    books = first.books()
    first.close()
    second.close()
    third = make()
    with third.read_transaction(name) as view:
        assert _snapshot(view) == snapshot
    assert third.books() == books
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
