"""The suite for storages catches what it is there to catch."""

from contextlib import suppress

import pytest

from ladderboard.ledger import SqliteStorage
from ladderboard.ledger._storage import _sql, _sqlite, _transaction
from ladderboard.ledger._storage._sql import SqlReadView, SqlWriteView
from ladderboard.ledger._storage._sqlite import SqliteConnection
from ladderboard.testing import check_storage


def check(tmp_path):
    SqliteStorage(tmp_path / "guard.db", create=True).close()
    check_storage(lambda: SqliteStorage(tmp_path / "guard.db"), entries=1100)


def around(owner, name):
    """Return a method of ours, to be called from what stands in for it."""
    return getattr(owner, name)


def entries_backwards(patch):
    true = around(SqlReadView, "entries")
    patch.setattr(SqlReadView, "entries", lambda *a: iter(list(true(*a))[::-1]))


def entries_to_the_end(patch):
    true = around(SqlReadView, "entries")
    patch.setattr(SqlReadView, "entries", lambda self, first=0, last=None: true(self, first))


def entries_of_one_page(patch):
    def short(self, first=0, last=None):
        return iter(list(around_entries(self, first, last))[:1000])

    around_entries = around(SqlReadView, "entries")
    patch.setattr(SqlReadView, "entries", short)


def entries_twice_at_a_page(patch):
    true = around(SqlReadView, "entries")

    def twice(self, first=0, last=None):
        for number, form in enumerate(true(self, first, last), start=1):
            yield form
            if number == 500:
                yield form

    patch.setattr(SqlReadView, "entries", twice)


def entries_of_all_books(patch):
    true = around(SqlReadView, "entries")

    def wide(self, first=0, last=None):
        self._first += min(first, 0)
        return true(self, first, last)

    patch.setattr(SqlReadView, "entries", wide)
    patch.setattr(_sql, "_ENTRIES", 3)


def bytes_that_are_not(patch):
    true = around(SqlReadView, "ladder_state")
    patch.setattr(
        SqlReadView,
        "ladder_state",
        lambda *a: None if true(*a) is None else memoryview(true(*a)),
    )


def closed_as_a_number(patch):
    true = around(SqlReadView, "chain_state")

    def at(self):
        told = true(self)
        return told._replace(closed=int(told.closed))

    patch.setattr(SqlReadView, "chain_state", at)


def small_numbers(patch):
    true = around(SqlReadView, "_read")

    def narrow(self, row):
        return true(self, tuple(v & 0x7FFFFFFF if i > 1 else v for i, v in enumerate(row)))

    patch.setattr(SqlReadView, "_read", narrow)


def secrets_forgotten(patch):
    true = around(SqlWriteView, "append")
    patch.setattr(SqlWriteView, "append", lambda self, row, at, secret=None: true(self, row, at))


def entries_anywhere(patch):
    def append(self, row, at, secret=None):
        self._at = at._replace(entries=row.number)
        true(self, row, at._replace(entries=row.number + 1, head=row.hash), secret)

    true = around(SqlWriteView, "append")
    patch.setattr(SqlWriteView, "append", append)


def swallow(name):
    def spoil(patch):
        true = around(SqlWriteView, name)

        def quiet(self, *args):
            with suppress(ValueError):
                true(self, *args)

        patch.setattr(SqlWriteView, name, quiet)

    spoil.__name__ = f"{name}_refuses_nothing"
    return spoil


def nothing(name):
    def spoil(patch):
        patch.setattr(SqlWriteView, name, lambda *a: None)

    spoil.__name__ = f"{name}_does_nothing"
    return spoil


def kept_for_good(patch):
    patch.setattr(_sql, "_KEEP", _sql._KEEP.partition(" ON ")[0] + " ON CONFLICT DO NOTHING")


def marks_of_all_books(patch):
    patch.setattr(_sql, "_FIND", "SELECT number FROM main.mark WHERE ? AND mark = ?")


def kept_of_all_books(patch):
    patch.setattr(_sql, "_KEPT", "SELECT value FROM main.kept WHERE ? AND name = ?")


def undo_commits(patch):
    def undo(self):
        if self.connection.in_transaction:
            self.connection.execute("COMMIT")

    patch.setattr(SqliteConnection, "rollback", undo)


def commit_undoes(patch):
    patch.setattr(SqliteConnection, "commit", SqliteConnection.rollback)


def readers_without_a_view(patch):
    begin = around(SqliteConnection, "begin")

    def lazy(self, *, write):
        if write:
            begin(self, write=True)

    patch.setattr(SqliteConnection, "begin", lazy)


def writers_without_a_turn(patch):
    def begin(self, *, write):
        self.connection.execute("BEGIN")

    patch.setattr(SqliteConnection, "begin", begin)


def states_out_of_a_cache(patch):
    cache, true, put = (
        {},
        around(SqlReadView, "ladder_state"),
        around(SqlWriteView, "set_ladder_state"),
    )

    def state(self, ladder):
        key = (id(self.query.__self__), self.book_id, ladder)
        return cache.setdefault(key, true(self, ladder))

    def set_state(self, ladder, value):
        put(self, ladder, value)
        cache[id(self.query.__self__), self.book_id, ladder] = value

    patch.setattr(SqlReadView, "ladder_state", state)
    patch.setattr(SqlWriteView, "set_ladder_state", set_state)


def views_without_an_end(patch):
    patch.setattr(SqlReadView, "invalidate", lambda self: None)


def any_text(patch):
    for module in (_sql, _transaction):
        patch.setattr(
            module, "check_text", lambda value: value.replace("\0", "").replace("\ud800", "")
        )


def books_by_name(patch):
    true = around(SqliteStorage, "books")
    patch.setattr(SqliteStorage, "books", lambda self: sorted(true(self)))


def books_added_twice(patch):
    patch.setattr(
        _transaction, "_ADD", _transaction._ADD.replace("NOTHING", "UPDATE SET name = name")
    )


def everything_a_copy(patch):
    patch.setattr(SqliteStorage, "is_copy", lambda *a: True)


def forgets_at_the_end(patch):
    def close(self):
        link = self._pool.acquire()
        link.query("DELETE FROM entry WHERE place % 1099511627776 = 3 AND form = ?", (b"entry 3",))
        self._pool.release(link)
        true(self)

    true = around(SqliteStorage, "close")
    patch.setattr(SqliteStorage, "close", close)


MUTANTS = [
    (entries_backwards, "Entries must read back"),
    (entries_to_the_end, "keep to the part asked for"),
    (entries_of_one_page, "all, once, and in their order"),
    (entries_twice_at_a_page, "all, once, and in their order"),
    (entries_of_all_books, "nothing of another's"),
    (bytes_that_are_not, "Bytes must come back as bytes"),
    (closed_as_a_number, "True or False"),
    (small_numbers, "must be what stands after it"),
    (secrets_forgotten, "secret side"),
    (entries_anywhere, "the next number"),
    (swallow("append"), "the next number"),
    (swallow("add_dedupe_key"), "borne once"),
    (swallow("add_ladder"), "taken once"),
    (swallow("set_ladder_state"), "a ladder that is not there"),
    (swallow("set_value"), "must be refused"),
    (nothing("append"), "its own entry"),
    (nothing("add_dedupe_key"), "Marks must be found"),
    (nothing("add_ladder"), "must do what it is asked"),
    (nothing("set_ladder_state"), "the last one that was set"),
    (nothing("set_value"), "The last that is kept"),
    (kept_for_good, "The last that is kept"),
    (marks_of_all_books, "nothing of another's"),
    (kept_of_all_books, "nothing of another's"),
    (undo_commits, "leaves nothing"),
    (commit_undoes, "oldest first"),
    (readers_without_a_view, "stay as it was"),
    (writers_without_a_turn, "Threads must not disturb"),
    (states_out_of_a_cache, "leaves nothing"),
    (views_without_an_end, "after its block"),
    (any_text, "must be refused"),
    (books_by_name, "oldest first"),
    (books_added_twice, "A name that a book has"),
    (everything_a_copy, "A book is no copy"),
    (forgets_at_the_end, "when opened again"),
]


@pytest.mark.parametrize(
    ("mutant", "sentence"), MUTANTS, ids=[each[0].__name__ for each in MUTANTS]
)
def test_a_storage_that_breaks_a_promise_is_caught(mutant, sentence, tmp_path, monkeypatch):
    monkeypatch.setattr(_sqlite, "WRITER_TIMEOUT", 2.0)
    mutant(monkeypatch)
    with pytest.raises(AssertionError, match=sentence):
        check(tmp_path)
