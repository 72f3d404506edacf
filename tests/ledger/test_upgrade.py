"""Upgrades copy first, whatever tables they change; a downgrade is refused with the way back."""

import os
import secrets
import shutil
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import ladderboard as lb
from ladderboard.errors import InvalidState, StorageFailed
from ladderboard.ledger import PostgresStorage, SchemaModule, SqliteStorage
from ladderboard.ledger._storage import _schema
from ladderboard.ledger._storage._schema import Migration, newer_format_message

FORMATS = Path(__file__).parent / "formats"
LATEST = _schema.latest_format()
STEP = Migration(LATEST, ("ALTER TABLE main.book ADD COLUMN colour TEXT",))
NEWER = (*_schema.MIGRATIONS, STEP)
FIRST = ("CREATE TABLE main.hat (book {whole} NOT NULL, size {real} NOT NULL)",)
SECOND = ("ALTER TABLE main.hat ADD COLUMN colour TEXT",)
OLD, NEW = SchemaModule("hats", (FIRST,)), SchemaModule("hats", (FIRST, SECOND))
BROKEN = SchemaModule("hats", (FIRST, (*SECOND, "INSERT INTO main.nowhere VALUES (1)")))


class Place:
    """A database of either kind with a book and a hat."""

    def __init__(self, open_, copies):
        self.open, self.copies = open_, copies
        with self.open(create=True) as storage, storage.add_book("first"):
            pass
        with self.open() as storage:
            storage.ensure_schema(OLD)
            with storage.write_transaction("first") as view:
                view.execute("INSERT INTO main.hat VALUES (?, ?)", (view.book_id, 0.5))

    def hats(self, **where):
        with self.open(**where) as storage, storage.read_transaction("first") as view:
            return view.query("SELECT * FROM main.hat", ())


@pytest.fixture(params=["file", "server"])
def place(request, tmp_path):
    if request.param == "file":

        def open_file(name="a.db", **more):
            return SqliteStorage(tmp_path / name, **more)

        return Place(
            open_file,
            lambda: sorted(path.name for path in tmp_path.iterdir() if "before" in path.name),
        )
    server, schema = request.getfixturevalue("postgres"), f"u_{secrets.token_hex(4)}"

    def open_schema(name=schema, **more):
        return PostgresStorage(server.url(), schema=name, **more)

    like = f"{schema}_before%"
    names = "SELECT nspname FROM pg_namespace WHERE nspname LIKE %s ORDER BY 1"
    return Place(open_schema, lambda: [row[0] for row in server.run(names, like)])


def test_a_parts_step_copies_first(place):
    with place.open() as storage:
        storage.ensure_schema(OLD)
        assert place.copies() == []
        storage.ensure_schema(NEW)
        storage.ensure_schema(NEW)
        assert not storage.is_copy("first")
    (copy,) = place.copies()
    assert copy.replace("_", "-").endswith("before-hats-1")
    assert (place.hats(), place.hats(name=copy)) == ([(1, 0.5, None)], [(1, 0.5)])
    with place.open(name=copy) as storage:
        assert storage.is_copy("first")


def test_a_parts_step_that_fails_changes_nothing(place):
    with place.open() as storage, pytest.raises(StorageFailed, match="nowhere"):
        storage.ensure_schema(BROKEN)
    assert place.hats() == [(1, 0.5)]
    before = place.copies()
    with place.open() as storage:
        storage.ensure_schema(NEW)
    assert place.hats() == [(1, 0.5, None)]
    assert set(before) < set(place.copies())


def test_an_older_program_names_the_copy_of_a_part(place):
    with place.open() as storage:
        storage.ensure_schema(NEW)
        (copy,) = place.copies()
        message = rf"format 2; this one knows formats up to 1\. .* Or put {copy} back"
        with pytest.raises(InvalidState, match=message):
            storage.ensure_schema(OLD)


def test_an_older_program_names_the_copy(place, monkeypatch):
    with monkeypatch.context() as newer_program:
        newer_program.setattr(_schema, "MIGRATIONS", NEWER)
        place.open().close()
    (copy,) = place.copies()
    message = (
        rf"up to {LATEST}\. Install the newer one again; this is {lb.__version__}\. "
        f"Or put {copy} back"
    )
    with pytest.raises(InvalidState, match=message):
        place.open()
    assert place.hats(name=copy) == [(1, 0.5)]


def test_an_upgrade_works_again_after_going_back(postgres, monkeypatch):
    schema = f"u_{secrets.token_hex(4)}"
    PostgresStorage(postgres.url(), create=True, schema=schema).close()
    for round_ in (1, 2):
        with monkeypatch.context() as newer_program:
            newer_program.setattr(_schema, "MIGRATIONS", NEWER)
            PostgresStorage(postgres.url(), schema=schema).close()
        postgres.run(f"ALTER SCHEMA {schema} RENAME TO {schema}_newer_{round_}")
        if round_ == 1:
            # Only looked at: the first copy stays where it is.
            PostgresStorage(postgres.url(), create=True, schema=schema).close()
    names = "SELECT nspname FROM pg_namespace WHERE nspname LIKE %s ORDER BY 1"
    copies = [row[0] for row in postgres.run(names, f"{schema}_before%")]
    assert copies == [f"{schema}_before_{LATEST}", f"{schema}_before_{LATEST}_2"]


def test_the_newest_copy_that_can_be_read_here_is_named():
    copies = ["a.before-1", "a.before-2", "a.before-2-2", "a.before-3", "a.before-10"]
    assert "put a.before-2-2 back" in newer_format_message("a was written", 4, 2, copies)
    assert "put a.before-10 back" in newer_format_message("a was written", 12, 11, copies)
    assert "back" not in newer_format_message("a was written", 4, 2, ["a.before-3"])


NO_ROOM = """
import resource, signal, sys
from ladderboard.ledger import SqliteStorage
from ladderboard.ledger._storage import _schema
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (36_000, 36_000))
step = _schema.Migration(_schema.latest_format(), ("ALTER TABLE main.book ADD COLUMN colour TEXT",))
_schema.MIGRATIONS = (*_schema.MIGRATIONS, step)
try:
    SqliteStorage(sys.argv[1])
except Exception as error:
    print(type(error).__name__, error)
"""


def test_no_room_for_the_copy_changes_nothing(tmp_path):
    file = Path(shutil.copy(FORMATS / f"{LATEST}.db", tmp_path / "guard.db"))
    before = file.read_bytes()
    done = subprocess.run(
        [sys.executable, "-c", NO_ROOM, file], capture_output=True, text=True, check=False
    )
    assert done.stdout.startswith("StorageFailed")
    assert "copied before it is upgraded, which failed: " in done.stdout
    assert done.stdout.endswith("Nothing was changed.\n")
    assert [path.name for path in tmp_path.iterdir()] == ["guard.db"]
    assert file.read_bytes() == before
    with sqlite3.connect(file) as database:
        assert database.execute("PRAGMA user_version").fetchone() == (LATEST,)
    database.close()


def test_a_copy_is_its_owners_whatever_the_umask(tmp_path, monkeypatch):
    file = Path(shutil.copy(FORMATS / f"{LATEST}.db", tmp_path / "guard.db"))
    old = os.umask(0)
    try:
        monkeypatch.setattr(_schema, "MIGRATIONS", NEWER)
        SqliteStorage(file).close()
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / f"guard.db.before-{LATEST}").stat().st_mode) == 0o600
