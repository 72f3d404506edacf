"""A store in the database: a file is there if and only if its row is."""

import secrets

import pytest

from ladderboard.board import DatabaseStore
from ladderboard.errors import InvalidSetting, InvalidState, StorageFailed
from ladderboard.ledger import PostgresStorage, SqliteStorage

ID = "00c0ffee"


@pytest.fixture(params=["sqlite", "postgresql"])
def storage(request, tmp_path):
    """Give a database with a book in it."""
    if request.param == "sqlite":
        made, blob = SqliteStorage(tmp_path / "boards.db", create=True), "BLOB"
    else:
        server = request.getfixturevalue("postgres")
        schema = f"s_{secrets.token_hex(6)}"
        made, blob = PostgresStorage(server.url(), create=True, schema=schema), "BYTEA"
    with made:
        with made.add_book("b") as view:
            table = "CREATE TABLE IF NOT EXISTS main.upload (id TEXT PRIMARY KEY, body {} NOT NULL)"
            view.query(table.format(blob))
        yield made


def read(store, place):
    with store.get(place) as file:
        return file.read()


def test_a_file_is_written_with_its_row(storage, tmp_path):
    store = DatabaseStore(storage)
    path = tmp_path / "body"
    path.write_bytes(bytes(range(256)) * 1000)
    with storage.write_transaction("b") as view:
        one = store.prepare(ID, path)
        one.commit(view)
        store.prepare("00c0ffef", b"").commit(view)
    path.unlink()
    assert read(store, one.location) == bytes(range(256)) * 1000
    assert read(DatabaseStore(storage), "00c0ffef") == b""
    assert store.sweep(lambda _: False, older=0) == 0
    store.delete(one.location)
    store.delete(one.location)
    with pytest.raises(InvalidState, match="There is no file"):
        store.get(one.location)


def test_a_file_whose_transaction_fails_was_never_there(storage):
    store = DatabaseStore(storage)
    kept = store.prepare(ID, b"x")

    def fail():
        with storage.write_transaction("b") as view:
            kept.commit(view)
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    kept.abandon()
    with pytest.raises(InvalidState, match="There is no file"):
        store.get(kept.location)


def test_ids_are_checked_and_a_lost_body_is_told(storage, tmp_path):
    store = DatabaseStore(storage)
    for use in (store.get, store.delete, lambda place: store.prepare(place, b"")):
        with pytest.raises(InvalidSetting, match="hex digits"):
            use("x' OR 1=1")
    with pytest.raises(StorageFailed, match="No such file"):
        store.prepare(ID, tmp_path / "gone")
