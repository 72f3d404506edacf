"""An SQLite file at work: what a failure leaves, who waits, and what is let go of."""

import os
import pickle
import resource
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from ladderboard.errors import DiskFull, InvalidState, StorageFailed
from ladderboard.ledger import SqliteStorage
from ladderboard.ledger._storage import _pool, _sqlite


def entries(storage):
    with storage.read_transaction("b") as book:
        return book.chain_state().entries


def test_what_may_not_be_written_is_a_failure(in_a_child, touch, grow):
    """By another user, where the tests are run by root, who may do everything."""

    def as_nobody(task):
        def drop():
            if os.geteuid() == 0:
                os.setgid(65534)
                os.setuid(65534)
            return task()

        return in_a_child(drop)

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with SqliteStorage(folder / "guard.db", create=True) as storage, storage.add_book("b") as b:
            grow(b)
        folder.chmod(0o555)
        (folder / "guard.db").chmod(0o444)
        written = as_nobody(lambda: touch(folder / "guard.db"))
        created = as_nobody(lambda: SqliteStorage(folder / "new.db", create=True))
        (folder / "guard.db").chmod(0o000)
        unread = as_nobody(lambda: SqliteStorage(folder / "guard.db"))
        folder.chmod(0o755)
    assert written.startswith("ReadOnly: "), written
    assert unread.startswith("StorageFailed: "), unread
    assert created.startswith("StorageFailed: "), created
    assert "cannot be created: Permission denied" in created


def test_a_full_disk_is_a_failure_and_leaves_nothing(file, in_a_child, grow):
    def fill():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))
        storage, commits = SqliteStorage(file), 0
        while True:
            try:
                with storage.write_transaction("b") as book:
                    grow(book, b"s" * 5000)
            except StorageFailed as error:
                return commits, error
            commits += 1

    output = in_a_child(fill)
    assert "cannot be used: the disk" in output, output
    commits = int(output.partition(",")[0].strip("("))
    assert commits > 5
    storage = SqliteStorage(file)
    assert entries(storage) in {commits + 1, commits + 2}  # the last one was not acknowledged
    with storage.write_transaction("b") as book:
        assert len(list(book.entries())) == book.chain_state().entries
        grow(book)
    storage.close()


def test_a_short_disk_is_not_taken_up_by_the_log(disk):
    """What is written over and over takes room in the write-ahead log, but not in the file."""
    storage = SqliteStorage(disk.path / "guard.db", create=True)
    with storage.add_book("b") as book:
        book.set_value("name", b"0" * 2**18)
    disk.fill(leave=2**21)
    for number in range(16):  # twice what is left
        with storage.write_transaction("b") as book:
            book.set_value("name", b"%d" % (number % 10) * 2**18)
    log = disk.path / "guard.db-wal"
    assert log.stat().st_size < 2**20 + 2**19
    with storage.read_transaction(
        "b"
    ):  # who looks meanwhile keeps the log as it is, and fails nobody
        for number in range(3):
            with storage.write_transaction("b") as book:
                book.set_value("name", b"%d" % number * 2**18)
    disk.fill()
    with (
        pytest.raises(DiskFull, match="Free at least 64 MB"),
        storage.write_transaction("b") as book,
    ):
        book.set_value("name", b"1" * 2**22)
    storage.close()


def no_room(storage):
    connection = storage._pool.acquire()
    connection.query("PRAGMA max_page_count = 1")
    storage._pool.release(connection)


def test_no_room_inside_a_block_ends_it(file, grow):
    storage = SqliteStorage(file)
    no_room(storage)
    with (
        pytest.raises(StorageFailed, match="disk is full") as first,
        storage.write_transaction("b") as book,
    ):
        grow(book, b"s" * 50_000)

    def swallow():
        with storage.write_transaction("b") as book:
            with pytest.raises(StorageFailed, match="disk is full"):
                book.set_value("name", b"s" * 50_000)
            with pytest.raises(StorageFailed, match="cannot go on"):
                book.set_value("name", b"")  # would stand alone, outside of any transaction

    no_room(storage)
    with pytest.raises(StorageFailed, match="cannot go on") as second:
        swallow()
    assert not first.value.uncertain
    assert not second.value.uncertain
    with storage.read_transaction("b") as book:
        assert (book.chain_state().entries, book.get_value("name")) == (1, None)
    storage.close()


class Interrupted:
    """A cursor whose COMMIT ends badly, before or after it is done."""

    def __init__(self, cursor, code, *, done):
        self.cursor, self.code, self.done = cursor, code, done

    def execute(self, statement, *values):
        if statement == "COMMIT":
            if self.done:
                self.cursor.execute(statement)
            error = sqlite3.OperationalError("bad")
            error.sqlite_errorcode = self.code
            raise error
        return self.cursor.execute(statement, *values)


@pytest.mark.parametrize("done", [True, False])
def test_a_commit_without_an_answer_is_uncertain(file, done, grow):
    storage = SqliteStorage(file)
    connection = storage._pool.acquire()
    connection._cursor = Interrupted(connection._cursor, sqlite3.SQLITE_IOERR_FSYNC, done=done)
    storage._pool.release(connection)
    with (
        pytest.raises(StorageFailed, match="may or may not") as caught,
        storage.write_transaction("b") as book,
    ):
        grow(book)
    assert caught.value.uncertain
    assert entries(storage) == 1 + done  # looked up, through a new connection
    assert storage._pool.acquire() is not connection
    storage.close()


def test_a_commit_that_is_refused_is_certain(file, grow):
    storage = SqliteStorage(file)
    connection = storage._pool.acquire()
    connection._cursor = Interrupted(connection._cursor, sqlite3.SQLITE_BUSY, done=False)
    storage._pool.release(connection)
    with pytest.raises(StorageFailed) as caught, storage.write_transaction("b") as book:
        grow(book)
    assert not caught.value.uncertain
    assert entries(storage) == 1
    storage.close()


def test_waiting_for_others_has_an_end(file, monkeypatch, grow):
    monkeypatch.setattr(_sqlite, "WRITER_TIMEOUT", 0.05)
    monkeypatch.setattr(_pool, "WRITER_TIMEOUT", 0.05)
    first, second = SqliteStorage(file), SqliteStorage(file)
    failures = []

    def try_both():
        for storage in (first, second):
            try:
                with storage.write_transaction("b"):
                    pass
            except StorageFailed as error:
                failures.append((str(error), error.uncertain))

    with first.write_transaction("b") as book:
        grow(book)
        thread = threading.Thread(target=try_both)
        thread.start()
        thread.join()
    assert len(failures) == 2
    assert "waiting for the write lock" in failures[0][0]
    assert "locked by another process" in failures[1][0]
    assert not any(doubt for _, doubt in failures)
    try_both()
    assert len(failures) == 2
    first.close()
    second.close()


def test_a_thread_does_not_wait_for_itself(file):
    storage = SqliteStorage(file)
    for _ in range(2):
        with storage.write_transaction("b"):
            with pytest.raises(InvalidState, match="already"), storage.write_transaction("b"):
                pass
            with pytest.raises(InvalidState, match="already"), storage.add_book("c"):
                pass
    storage.close()


def test_a_storage_travels_as_its_path(file, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    storage = SqliteStorage("guard.db")
    monkeypatch.chdir("/")
    assert entries(storage) == entries(pickle.loads(pickle.dumps(storage))) == 1
    storage.close()
    assert entries(storage) == 1  # taken hold of again
    storage.close()


def test_names_with_a_meaning_in_addresses_are_names(tmp_path):
    for name in ("a?mode=memory", "b%41", "c#d", "e f", "ü.db"):
        with SqliteStorage(tmp_path / name, create=True) as storage, storage.add_book("b"):
            pass
        with SqliteStorage(tmp_path / name) as storage:
            assert storage.books() == ["b"]
    assert len(list(tmp_path.iterdir())) == 5


def test_the_log_is_started_over_once_no_reader_looks_at_it(file, monkeypatch, grow):
    """Without SQLite's own checkpoints, which readers may keep from ever finishing."""
    monkeypatch.setattr(_sqlite, "_LONG_WAL", 300_000)
    monkeypatch.setattr(_sqlite, "_COMMITS_PER_WAL_CHECK", 8)
    monkeypatch.setattr(_sqlite, "_EXTENDED_SIZES", ())
    monkeypatch.setattr(_sqlite, "_SETTINGS", ("PRAGMA wal_autocheckpoint = 0",))
    storage, log = SqliteStorage(file), file.with_name("guard.db-wal")

    def write(times):
        for _ in range(times):
            with storage.write_transaction("b") as book:
                grow(book, b"s" * 5000)
        return log.stat().st_size

    assert write(80) < 600_000  # of more than 1,500,000 bytes that went through it
    with storage.read_transaction("b") as view:
        assert write(60) > 900_000  # it cannot be helped, and nobody is kept from writing
        assert len(list(view.entries())) == 81
    long = write(8)
    assert write(80) == long  # started over, from its beginning
    storage.close()


def test_the_log_is_extended_before_it_is_full(file, tmp_path, grow, monkeypatch):
    """Commits overwrite zeros; for another connection, and after a crash, the log ends there."""

    def write(storage, times):
        sizes = []
        for _ in range(times):
            with storage.write_transaction("b") as book:
                grow(book, b"s" * 5000)
            sizes.append(log.stat().st_size)
        return sizes

    storage, log = SqliteStorage(file), file.with_name("guard.db-wal")
    few = write(storage, 8)
    assert len(set(few)) == 8  # each made it grow
    first = write(storage, 40)
    assert first[-1] > 2**20 > 2**19 > few[-1]
    assert len(set(first[-20:])) == 1
    with SqliteStorage(file) as other:
        assert set(write(other, 12)) == {first[-1]}
        assert len(set(write(other, 200))) < 30
        assert entries(storage) == entries(other) == 261
    crashed = tmp_path / "crashed"
    crashed.mkdir()
    subprocess.run(["cp", file, log, crashed], check=True)  # only SQLite may open the file here
    with SqliteStorage(crashed / file.name) as copy:
        assert entries(copy) == 261
        with copy.write_transaction("b") as book:
            grow(book)
    monkeypatch.setattr(_sqlite, "_free_bytes", lambda path: 2**28 - 1)
    assert len(set(write(storage, 300)[-30:])) == 30  # not on a disk that is nearly full
    storage.close()


def test_a_storage_that_is_dropped_closes_its_connections(file):
    storage = SqliteStorage(file)
    entries(storage)
    connection = storage._pool._free[0].connection
    pools = len(_pool._FORKS._pools)
    del storage
    assert len(_pool._FORKS._pools) == pools - 1
    with pytest.raises(sqlite3.ProgrammingError):
        connection.execute("SELECT 1")


def test_opening_it_again_gives_up_no_lock(file):
    """A file that is opened and closed by anybody but SQLite takes all locks of the process away.

    Without its lock, the next process to leave would remove the log under the feet of this one.
    """
    code = (
        "import fcntl, sys\n"
        "file = open(sys.argv[1], 'r+b')\n"
        "try: fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 510, 0x40000002)\n"
        "except OSError: print('held')\n"
    )

    def is_locked():
        done = subprocess.run(
            [sys.executable, "-c", code, file], capture_output=True, text=True, check=True
        )
        return done.stdout == "held\n"

    first = SqliteStorage(file)
    assert entries(first) == 1
    assert is_locked()
    second = SqliteStorage(file)
    assert is_locked()
    second.backup(file.with_name("copy.db"))
    second.close()
    pickle.loads(pickle.dumps(first)).close()
    with pytest.raises(InvalidState):
        SqliteStorage(file, create=True)
    assert is_locked()
    first.close()
    assert not is_locked()


def test_loading_it_loads_no_other_database():
    code = "import sys, ladderboard.ledger; print({'psycopg', 'sqlalchemy'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_a_deferred_change_of_no_row_commits_nothing(file, grow):
    """Also if its error is suppressed: a part of the deferred statements has been run."""

    def change_missing_ladder():
        with storage.write_transaction("b") as book:
            grow(book, b"secret")
            book.set_ladder_state(9, b"after", defer=True)
            with suppress(InvalidState):
                book.ladder_names()

    with SqliteStorage(file) as storage:
        before = entries(storage)
        with pytest.raises(StorageFailed):
            change_missing_ladder()
        assert entries(storage) == before


def test_deferred_statements_do_not_grow_without_limit(file, monkeypatch, grow):
    """As when a long ledger is restored."""
    monkeypatch.setattr(_pool, "_MAX_DEFERRED", 10)
    waiting = []
    combine = _sqlite.combine_deferred
    monkeypatch.setattr(
        _sqlite, "combine_deferred", lambda items: waiting.append(len(items)) or combine(items)
    )
    with SqliteStorage(file) as storage, storage.write_transaction("b") as book:
        for _ in range(30):
            grow(book, b"secret")
    assert max(waiting) == 10
