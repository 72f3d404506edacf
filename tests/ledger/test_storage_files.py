"""An SQLite file: who may read it, how it is made, and what is refused."""

import os
import sqlite3
import stat
import tempfile
from contextlib import closing
from pathlib import Path

import pytest

from ladderboard.errors import InvalidState, StorageFailed
from ladderboard.ledger import SqliteStorage
from ladderboard.ledger._storage import _sqlite


def modes(folder):
    return {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077, 0o777])
def test_only_the_owner_may_read_whatever_the_umask(tmp_path, umask, grow):
    before = os.umask(umask)
    try:
        storage = SqliteStorage(tmp_path / "guard.db", create=True)
        with storage.add_book("b") as book:
            grow(book)
        names = {path.name for path in tmp_path.iterdir()}
        assert names == {"guard.db", "guard.db-wal", "guard.db-shm"}
        storage.backup(tmp_path / "copy.db")
        assert modes(tmp_path) == {0o600}
    finally:
        os.umask(before)
    storage.close()


def test_the_settings_that_durability_needs(file):
    storage = SqliteStorage(file)
    connection = storage._pool.acquire()
    assert connection.query("PRAGMA journal_mode") == [("wal",)]
    assert connection.query("PRAGMA synchronous") == [(2,)]
    assert connection.query("PRAGMA busy_timeout") == [(60_000,)]
    storage._pool.release(connection)
    storage.close()


def test_a_file_is_made_once(file, tmp_path):
    with pytest.raises(InvalidState, match="already"):
        SqliteStorage(file, create=True)
    (tmp_path / "other.db-wal").write_bytes(b"left behind")
    with pytest.raises(InvalidState, match=r"other\.db-wal is left"):
        SqliteStorage(tmp_path / "other.db", create=True)
    with pytest.raises(StorageFailed, match="cannot be created"):
        SqliteStorage(tmp_path / "nowhere" / "guard.db", create=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["guard.db", "other.db-wal"]


def test_a_file_system_without_links_will_do(tmp_path, monkeypatch):
    def refuse(*_):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    SqliteStorage(tmp_path / "guard.db", create=True).close()
    assert [path.name for path in tmp_path.iterdir()] == ["guard.db"]
    with pytest.raises(InvalidState, match="already"):
        SqliteStorage(tmp_path / "guard.db", create=True)


def foreign(path):
    database = sqlite3.connect(path)
    database.execute("CREATE TABLE book (id, name)")
    database.commit()
    database.close()


def pretending(path):
    foreign(path)
    database = sqlite3.connect(path)
    database.execute("PRAGMA application_id = 1279414081")
    database.close()


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda path: None, "no file"),
        (lambda path: path.mkdir(), "is not a file"),
        (os.mkfifo, "is not a file"),
        (lambda path: path.write_bytes(b""), "not a file of Ladderboard"),
        (lambda path: path.write_bytes(b"id,label\n1,2\n" * 50), "not a file of Ladderboard"),
        (foreign, "not a file of Ladderboard"),
        (pretending, "tables are not those of a ledger"),
    ],
)
def test_a_file_that_is_not_a_ledger_is_refused_and_not_changed(tmp_path, make, sentence):
    path = tmp_path / "thing"
    make(path)
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(InvalidState, match=sentence):
        SqliteStorage(path)
    if make is not pretending:
        assert (path.read_bytes() if path.is_file() else None) == before
        assert len(list(tmp_path.iterdir())) <= 1


def test_a_trigger_is_refused(file):
    database = sqlite3.connect(file)
    database.execute("CREATE TRIGGER t AFTER INSERT ON entry BEGIN DELETE FROM mark; END")
    database.close()
    with pytest.raises(InvalidState, match="tables are not"):
        SqliteStorage(file)


@pytest.mark.parametrize("keep", [0, 16, 99, 100, 4095, 4096, 9000, 0.5, -1])
def test_a_file_that_was_cut_off_is_refused(file, keep):
    whole = file.read_bytes()
    file.write_bytes(whole[: int(len(whole) * keep) if isinstance(keep, float) else keep])
    with pytest.raises(InvalidState, match=r"damaged|not a file of Ladderboard"):
        SqliteStorage(file)


def test_a_damaged_file_gives_a_refusal_or_the_truth(file, touch):
    """Every page in turn is overwritten; SQLite's own errors never come out."""
    whole, refused = file.read_bytes(), 0
    for page in range(len(whole) // 4096):
        for junk in (b"\xff" * 4096, bytes(4096), os.urandom(4096)):
            for start in (page * 4096, page * 4096 + 100):
                spoilt = bytearray(whole)
                spoilt[start : start + 900] = junk[:900]
                file.write_bytes(spoilt)
                for end in ("-wal", "-shm"):
                    file.with_name(file.name + end).unlink(missing_ok=True)
                try:
                    touch(file)
                except (InvalidState, StorageFailed):
                    refused += 1
    assert refused > 20


def test_values_of_a_kind_never_written_are_refused(file):
    database = sqlite3.connect(file)
    database.execute("UPDATE ladder SET state = 'text'")
    database.execute("UPDATE entry SET asked = 'many'")
    database.execute("UPDATE secret SET packed = CAST(x'ff' AS TEXT)")
    database.commit()
    database.close()
    storage = SqliteStorage(file)
    with pytest.raises(InvalidState, match="damaged"), storage.read_transaction("b"):
        pass
    with storage.write_transaction("b") as book:
        for look in (lambda: book.ladder_state(0), book.chain_state):
            with pytest.raises(InvalidState, match="damaged"):
                look()
    with pytest.raises(InvalidState, match="damaged"), storage.write_transaction("b") as book:
        book.secret_side(0)
    storage.close()


@pytest.mark.parametrize("how", ["removed", "replaced", "moved"])
def test_a_moved_file_is_not_written_to(file, how, tmp_path, monkeypatch, grow):
    monkeypatch.setattr(_sqlite, "_REPLACED_CHECK_INTERVAL", -1.0)
    storage = SqliteStorage(file)
    storage.backup(tmp_path / "old.db")
    with storage.write_transaction("b") as book:
        grow(book)
    if how == "removed":
        file.unlink()
    elif how == "replaced":
        (tmp_path / "old.db").replace(file)
    else:
        file.rename(tmp_path / "elsewhere.db")
        (tmp_path / "old.db").rename(file)
    for block in (storage.write_transaction, storage.read_transaction, storage.write_transaction):
        with pytest.raises(StorageFailed, match="moved, removed or replaced"), block("b"):
            pass
    storage.close()


@pytest.fixture
def as_somebody():
    """A folder of a user who is not root: root may write everything."""
    with tempfile.TemporaryDirectory() as top:
        if os.geteuid():
            yield Path(top)
            return
        os.chown(top, 12345, 12345)
        os.seteuid(12345)
        try:
            yield Path(top)
        finally:
            os.seteuid(0)


def write_to(path):
    with closing(SqliteStorage(path)) as storage, storage.add_book("b"):
        pass


@pytest.mark.skipif(not hasattr(os, "seteuid"), reason="there are no such users here")
@pytest.mark.parametrize(
    ("end", "message"), [("-shm", "remove it while no process"), ("-wal", "belongs")]
)
def test_a_file_beside_it_that_may_only_be_read_is_named(as_somebody, end, message):
    path = as_somebody / "guard.db"
    SqliteStorage(path, create=True).close()
    beside = Path(f"{path}{end}")
    beside.write_bytes(bytes(32768))  # SQLite mends the mode of an empty one by itself
    beside.chmod(0o444)
    with pytest.raises(StorageFailed, match=f"guard.db{end}.*{message}"):
        write_to(path)
    beside.unlink()
    write_to(path)


def test_a_read_only_file_is_reported_as_read_only(as_somebody):
    path = as_somebody / "guard.db"
    SqliteStorage(path, create=True).close()
    path.chmod(0o444)
    with pytest.raises(StorageFailed, match="it is read-only"):
        write_to(path)
