"""Tables of other packages in a ledger's database, and transactions that hold both."""

import secrets
from concurrent.futures import ThreadPoolExecutor

import pytest

from ladderboard.errors import InvalidState, StorageFailed
from ladderboard.ledger import PostgresStorage, SchemaModule, SqliteStorage

FIRST = ("CREATE TABLE main.hat (book {whole} NOT NULL, size {real} NOT NULL)",)
SECOND = ("ALTER TABLE main.hat ADD COLUMN colour TEXT",)


def sizes(storage):
    with storage.read_transaction("first") as view:
        return view.query("SELECT size FROM main.hat WHERE book = ? ORDER BY size", (view.book_id,))


@pytest.fixture(params=["sqlite", "postgres"])
def furnished(request, tmp_path):
    if request.param == "sqlite":
        storage = SqliteStorage(tmp_path / "a.db", create=True)
    else:
        server = request.getfixturevalue("postgres")
        storage = PostgresStorage(server.url(), create=True, schema=f"s_{secrets.token_hex(6)}")
    with storage.add_book("first"):
        pass
    with ThreadPoolExecutor(4) as threads:  # at once, as servers start
        list(threads.map(lambda _: storage.ensure_schema(SchemaModule("hats", (FIRST,))), range(4)))
    yield storage
    storage.close()


def test_rows_of_a_part_share_the_books_transaction(furnished):
    with furnished.write_transaction("first") as view:
        assert view.execute("INSERT INTO main.hat VALUES (?, ?)", (view.book_id, 0.1)) == 1
        view.set_value("colour", b"blue")
    with pytest.raises(StorageFailed), furnished.write_transaction("first") as view:  # noqa: PT012
        view.execute("INSERT INTO main.hat VALUES (?, ?)", (view.book_id, 0.2))
        view.query("SELECT nothing FROM main.nowhere")
    assert sizes(furnished) == [(0.1,)]


def test_a_part_takes_the_steps_that_it_lacks(furnished):
    with furnished.write_transaction("first") as view:
        view.execute("INSERT INTO main.hat VALUES (?, ?)", (view.book_id, 0.1))
    furnished.ensure_schema(SchemaModule("hats", (FIRST, SECOND)))
    furnished.ensure_schema(SchemaModule("hats", (FIRST, SECOND)))
    assert sizes(furnished) == [(0.1,)]
    with furnished.read_transaction("first") as view:
        assert view.query("SELECT colour FROM main.hat") == [(None,)]
    with pytest.raises(InvalidState, match="format 2; this one knows formats up to 1"):
        furnished.ensure_schema(SchemaModule("hats", (FIRST,)))


def test_a_step_that_fails_leaves_nothing(furnished):
    broken = SchemaModule("hats", (FIRST, (*SECOND, "INSERT INTO main.nowhere VALUES (1)")))
    with pytest.raises(Exception, match="nowhere"):
        furnished.ensure_schema(broken)
    furnished.ensure_schema(SchemaModule("hats", (FIRST, SECOND)))


def test_a_view_that_has_ended_runs_nothing(furnished):
    with furnished.read_transaction("first") as view:
        pass
    with pytest.raises(InvalidState, match="has ended"):
        view.query("SELECT 1")
    with pytest.raises(InvalidState, match="has ended"):
        view.now()
