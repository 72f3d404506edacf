"""The suite for storages finds broken storages."""

from contextlib import suppress

import pytest

from ladderboard.ledger import SqliteStorage
from ladderboard.ledger._storage import _sql, _sqlite, _transaction
from ladderboard.ledger._storage._sql import ReadView, WriteView
from ladderboard.ledger._storage._sqlite import SqliteConnection
from ladderboard.testing import check_storage


def check(tmp_path):
    SqliteStorage(tmp_path / "guard.db", create=True).close()
    check_storage(lambda: SqliteStorage(tmp_path / "guard.db"), entries=1100)


def original_method(owner, name):
    """Return the original method, to be called from its replacement."""
    return getattr(owner, name)


def entries_backwards(patch):
    original = original_method(ReadView, "entries")
    patch.setattr(ReadView, "entries", lambda *a: iter(list(original(*a))[::-1]))


def entries_to_the_end(patch):
    original = original_method(ReadView, "entries")
    patch.setattr(ReadView, "entries", lambda self, first=0, last=None: original(self, first))


def entries_of_one_page(patch):
    def short(self, first=0, last=None):
        return iter(list(around_entries(self, first, last))[:1000])

    around_entries = original_method(ReadView, "entries")
    patch.setattr(ReadView, "entries", short)


def entries_twice_at_a_page(patch):
    original = original_method(ReadView, "entries")

    def twice(self, first=0, last=None):
        for number, form in enumerate(original(self, first, last), start=1):
            yield form
            if number == 500:
                yield form

    patch.setattr(ReadView, "entries", twice)


def entries_of_all_books(patch):
    original = original_method(ReadView, "entries")

    def wide(self, first=0, last=None):
        self._first += min(first, 0)
        return original(self, first, last)

    patch.setattr(ReadView, "entries", wide)
    patch.setattr(_sql, "_MAX_ENTRIES", 3)


def bytes_that_are_not(patch):
    original = original_method(ReadView, "ladder_state")
    patch.setattr(
        ReadView,
        "ladder_state",
        lambda *a: None if original(*a) is None else memoryview(original(*a)),
    )


def closed_as_a_number(patch):
    original = original_method(ReadView, "chain_state")

    def chain_state(self):
        state = original(self)
        return state._replace(closed=int(state.closed))

    patch.setattr(ReadView, "chain_state", chain_state)


def small_numbers(patch):
    original = original_method(ReadView, "_chain_state_from_row")

    def narrow(self, row):
        return original(self, tuple(v & 0x7FFFFFFF if i > 1 else v for i, v in enumerate(row)))

    patch.setattr(ReadView, "_chain_state_from_row", narrow)


def secrets_forgotten(patch):
    original = original_method(WriteView, "append")
    patch.setattr(WriteView, "append", lambda self, row, at, secret=None: original(self, row, at))


def entries_anywhere(patch):
    def append(self, row, at, secret=None):
        self._chain_state = at._replace(entries=row.number)
        original(self, row, at._replace(entries=row.number + 1, head=row.hash), secret)

    original = original_method(WriteView, "append")
    patch.setattr(WriteView, "append", append)


def swallow(name):
    def spoil(patch):
        original = original_method(WriteView, name)

        def quiet(self, *args):
            with suppress(ValueError):
                original(self, *args)

        patch.setattr(WriteView, name, quiet)

    spoil.__name__ = f"{name}_refuses_nothing"
    return spoil


def nothing(name):
    def spoil(patch):
        patch.setattr(WriteView, name, lambda *a: None)

    spoil.__name__ = f"{name}_does_nothing"
    return spoil


def values_set_once(patch):
    patch.setattr(
        _sql, "_UPSERT_VALUE", _sql._UPSERT_VALUE.partition(" ON ")[0] + " ON CONFLICT DO NOTHING"
    )


def dedupe_keys_of_all_books(patch):
    patch.setattr(
        _sql, "_SELECT_BY_DEDUPE_KEY", "SELECT number FROM main.mark WHERE ? AND mark = ?"
    )


def values_of_all_books(patch):
    patch.setattr(_sql, "_SELECT_VALUE", "SELECT value FROM main.kept WHERE ? AND name = ?")


def undo_commits(patch):
    def undo(self):
        if self.connection.in_transaction:
            self.connection.execute("COMMIT")

    patch.setattr(SqliteConnection, "rollback", undo)


def commit_undoes(patch):
    patch.setattr(SqliteConnection, "commit", SqliteConnection.rollback)


def readers_without_a_view(patch):
    begin = original_method(SqliteConnection, "begin")

    def lazy(self, *, write):
        if write:
            begin(self, write=True)

    patch.setattr(SqliteConnection, "begin", lazy)


def writers_without_a_turn(patch):
    def begin(self, *, write):
        self.connection.execute("BEGIN")

    patch.setattr(SqliteConnection, "begin", begin)


def states_out_of_a_cache(patch):
    cache, original, put = (
        {},
        original_method(ReadView, "ladder_state"),
        original_method(WriteView, "set_ladder_state"),
    )

    def state(self, ladder):
        key = (id(self.query.__self__), self.book_id, ladder)
        return cache.setdefault(key, original(self, ladder))

    def set_state(self, ladder, value):
        put(self, ladder, value)
        cache[id(self.query.__self__), self.book_id, ladder] = value

    patch.setattr(ReadView, "ladder_state", state)
    patch.setattr(WriteView, "set_ladder_state", set_state)


def views_without_an_end(patch):
    patch.setattr(ReadView, "invalidate", lambda self: None)


def any_text(patch):
    for module in (_sql, _transaction):
        patch.setattr(
            module, "check_text", lambda value: value.replace("\0", "").replace("\ud800", "")
        )


def books_by_name(patch):
    original = original_method(SqliteStorage, "books")
    patch.setattr(SqliteStorage, "books", lambda self: sorted(original(self)))


def books_added_twice(patch):
    patch.setattr(
        _transaction,
        "_INSERT_BOOK",
        _transaction._INSERT_BOOK.replace("NOTHING", "UPDATE SET name = name"),
    )


def everything_a_copy(patch):
    patch.setattr(SqliteStorage, "is_copy", lambda *a: True)


def forgets_at_the_end(patch):
    def close(self):
        link = self._pool.acquire()
        link.query("DELETE FROM entry WHERE place % 1099511627776 = 3 AND form = ?", (b"entry 3",))
        self._pool.release(link)
        original(self)

    original = original_method(SqliteStorage, "close")
    patch.setattr(SqliteStorage, "close", close)


MUTANTS = [
    (entries_backwards, "Entries must read back"),
    (entries_to_the_end, "exactly the given range"),
    (entries_of_one_page, "all entries once, in order"),
    (entries_twice_at_a_page, "all entries once, in order"),
    (entries_of_all_books, "anything of another book"),
    (bytes_that_are_not, "Bytes must read back as bytes"),
    (closed_as_a_number, "True or False"),
    (small_numbers, "keep what its transaction saw"),
    (secrets_forgotten, "secret side"),
    (entries_anywhere, "the next number"),
    (swallow("append"), "the next number"),
    (swallow("add_dedupe_key"), "key must be unique"),
    (swallow("add_ladder"), "number and name must be unique"),
    (swallow("set_ladder_state"), "a missing ladder"),
    (swallow("set_value"), "must be refused"),
    (nothing("append"), "its own entry"),
    (nothing("add_dedupe_key"), "Deduplication keys must be found"),
    (nothing("add_ladder"), "must not refuse a valid use"),
    (nothing("set_ladder_state"), "the last one that was set"),
    (nothing("set_value"), "The last value set"),
    (values_set_once, "The last value set"),
    (dedupe_keys_of_all_books, "anything of another book"),
    (values_of_all_books, "anything of another book"),
    (undo_commits, "must leave nothing"),
    (commit_undoes, "oldest first"),
    (readers_without_a_view, "stay as its transaction began"),
    (writers_without_a_turn, "Threads must not disturb"),
    (states_out_of_a_cache, "must leave nothing"),
    (views_without_an_end, "after its transaction"),
    (any_text, "must be refused"),
    (books_by_name, "oldest first"),
    (books_added_twice, "The name of an existing book"),
    (everything_a_copy, "must not be a copy"),
    (forgets_at_the_end, "A reopened storage|when opened again"),
]


@pytest.mark.parametrize(
    ("mutant", "sentence"), MUTANTS, ids=[mutant.__name__ for mutant, _ in MUTANTS]
)
def test_a_broken_storage_is_found(mutant, sentence, tmp_path, monkeypatch):
    monkeypatch.setattr(_sqlite, "WRITER_TIMEOUT", 2.0)
    mutant(monkeypatch)
    with pytest.raises(AssertionError, match=sentence):
        check(tmp_path)
