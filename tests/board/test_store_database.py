"""A store in the database: a file exists if and only if its row does."""

import secrets

import pytest

from ladderboard.board import DatabaseStore
from ladderboard.errors import InvalidSetting, InvalidState, StorageFailed
from ladderboard.ledger import PostgresStorage, SqliteStorage

ID = "00c0ffee"


@pytest.fixture(params=["sqlite", "postgresql"])
def storage(request, tmp_path):
    """Return a database with a book."""
    if request.param == "sqlite":
        storage_, blob = SqliteStorage(tmp_path / "boards.db", create=True), "BLOB"
    else:
        server = request.getfixturevalue("postgres")
        schema = f"s_{secrets.token_hex(6)}"
        storage_, blob = PostgresStorage(server.url(), create=True, schema=schema), "BYTEA"
    with storage_:
        with storage_.add_book("b") as view:
            table = "CREATE TABLE IF NOT EXISTS main.upload (id TEXT PRIMARY KEY, body {} NOT NULL)"
            view.query(table.format(blob))
        yield storage_


def read(store, location):
    with store.get(location) as file:
        return file.read()


def test_a_file_is_written_with_its_row(storage, tmp_path):
    store = DatabaseStore(storage)
    path = tmp_path / "body"
    path.write_bytes(bytes(range(256)) * 1000)
    with storage.write_transaction("b") as view:
        stored = store.prepare(ID, path)
        stored.commit(view)
        store.prepare("00c0ffef", b"").commit(view)
    path.unlink()
    assert read(store, stored.location) == bytes(range(256)) * 1000
    assert read(DatabaseStore(storage), "00c0ffef") == b""
    assert store.sweep(lambda _: False, older=0) == 0
    store.delete(stored.location)
    store.delete(stored.location)
    with pytest.raises(InvalidState, match="There is no file"):
        store.get(stored.location)


def test_a_file_is_rolled_back_with_its_transaction(storage):
    store = DatabaseStore(storage)
    prepared = store.prepare(ID, b"x")

    def fail():
        with storage.write_transaction("b") as view:
            prepared.commit(view)
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    prepared.abandon()
    with pytest.raises(InvalidState, match="There is no file"):
        store.get(prepared.location)


def test_ids_are_checked_and_a_missing_file_raises(storage, tmp_path):
    store = DatabaseStore(storage)
    for use in (store.get, store.delete, lambda location: store.prepare(location, b"")):
        with pytest.raises(InvalidSetting, match="hex digits"):
            use("x' OR 1=1")
    with pytest.raises(StorageFailed, match="No such file"):
        store.prepare(ID, tmp_path / "gone")
