"""Old formats open, newer ones are refused, and a database is copied before it is changed."""

import runpy
import secrets
import shutil
import sqlite3
import stat
from pathlib import Path

import pytest

from ladderboard.errors import InvalidState, StorageFailed
from ladderboard.ledger import PostgresStorage, SqliteStorage
from ladderboard.ledger._storage import _schema
from ladderboard.ledger._storage._schema import Migration

FORMATS = Path(__file__).parent / "formats"
MAKE = runpy.run_path(str(FORMATS / "make.py"))
LATEST = _schema.latest_format()
STEP = Migration(
    LATEST,
    (
        "ALTER TABLE main.book ADD COLUMN colour TEXT",
        "CREATE TABLE main.extra (id {serial}, value {blob} NOT NULL)",
        "UPDATE main.book SET colour = 'blue'",
    ),
)
BROKEN = Migration(LATEST, (*STEP.statements, "INSERT INTO main.nowhere VALUES (1)"))
NEWER, FAILING = (*_schema.MIGRATIONS, STEP), (*_schema.MIGRATIONS, BROKEN)


def check_content(storage):
    content = MAKE["CONTENT"]
    assert storage.books() == list(content)
    for name, book in content.items():
        with storage.read_transaction(name) as view:
            assert list(view.entries()) == [row.encoded for row, _, _ in book["entries"]]
            for number, (_, _, secret) in enumerate(book["entries"]):
                assert view.secret_side(number) == secret
            if book["entries"]:
                assert view.chain_state() == book["entries"][-1][1]
            assert view.ladder_names() == [ladder for ladder, *_ in book["ladders"]]
            for number, (_, state, changes) in enumerate(book["ladders"]):
                assert view.ladder_state(number) == state
                assert view.ladder_changes(number) == changes
            assert [(mark, view.find_by_dedupe_key(mark)) for mark, _ in book["marks"]] == book[
                "marks"
            ]
            for key, value in book["kept"].items():
                assert view.get_value(key) == value


@pytest.mark.parametrize("format_", sorted(FORMATS.glob("*.db")), ids=lambda path: path.stem)
def test_every_format_opens_and_reads_back(format_, tmp_path, grow):
    path = shutil.copy(format_, tmp_path / "guard.db")
    with SqliteStorage(path) as storage:
        check_content(storage)
        with storage.write_transaction("first") as book:
            grow(book)
            assert book.chain_state().entries == 4
    assert {path.stem for path in FORMATS.glob("*.db")} == {
        str(number) for number in range(1, _schema.latest_format() + 1)
    }


def test_the_script_reproduces_the_stored_file(tmp_path):
    MAKE["write"](tmp_path / "guard.db")
    with SqliteStorage(tmp_path / "guard.db") as storage:
        check_content(storage)
    expected = FORMATS / f"{_schema.latest_format()}.db"
    assert _dump(tmp_path / "guard.db") == _dump(expected)


def _dump(path):
    with sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True) as database:
        lines = list(database.iterdump())
    database.close()
    return lines


def test_a_newer_file_is_refused_and_both_formats_are_named(file):
    before = file.read_bytes()
    database = sqlite3.connect(file)
    database.execute("PRAGMA user_version = 7")
    database.close()
    with pytest.raises(InvalidState, match=rf"format 7; this one knows formats up to {LATEST}\."):
        SqliteStorage(file)
    assert len(before) == len(file.read_bytes())


def test_a_newer_schema_is_refused_and_both_formats_are_named(postgres, schema):
    postgres.run(f"UPDATE {schema}.format SET version = 7")
    for create in (True, False):
        with pytest.raises(
            InvalidState, match=rf"format 7; this one knows formats up to {LATEST}\."
        ):
            PostgresStorage(postgres.url(), schema=schema, create=create)
    postgres.run(f"DELETE FROM {schema}.format")
    with pytest.raises(InvalidState, match="damaged"):
        PostgresStorage(postgres.url(), schema=schema)


def test_steps_follow_each_other():
    assert [step.before for step in _schema.MIGRATIONS] == list(range(1, _schema.latest_format()))


def colours(path):
    database = sqlite3.connect(path)
    try:
        return database.execute("SELECT colour FROM book").fetchall()
    except sqlite3.OperationalError:
        return None
    finally:
        database.close()


def test_a_file_is_copied_and_then_migrated(tmp_path, monkeypatch, grow):
    file = Path(shutil.copy(FORMATS / f"{LATEST}.db", tmp_path / "guard.db"))
    old = SqliteStorage(file)
    check_content(old)
    monkeypatch.setattr(_schema, "MIGRATIONS", NEWER)
    with SqliteStorage(file) as storage:
        check_content(storage)
        assert not any(storage.is_copy(name) for name in storage.books())
    assert colours(file) == [("blue",)] * 3
    copy = tmp_path / f"guard.db.before-{LATEST}"
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    assert colours(copy) is None
    with (
        pytest.raises(InvalidState, match=f"format {LATEST + 1} now"),
        old.write_transaction("first") as book,
    ):
        grow(book)  # by a process that still runs the older version
    old.close()
    with SqliteStorage(file) as storage:  # nothing left to do
        check_content(storage)
    monkeypatch.undo()
    with pytest.raises(
        InvalidState, match=f"format {LATEST + 1}; this one knows formats up to {LATEST}"
    ):
        SqliteStorage(file)
    with SqliteStorage(copy) as storage:
        check_content(storage)
        assert all(storage.is_copy(name) for name in storage.books())
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "guard.db",
        f"guard.db.before-{LATEST}",
    ]


def test_a_new_file_is_like_a_migrated_one(tmp_path, monkeypatch):
    shutil.copy(FORMATS / f"{LATEST}.db", tmp_path / "old.db")
    monkeypatch.setattr(_schema, "MIGRATIONS", NEWER)
    SqliteStorage(tmp_path / "old.db").close()
    SqliteStorage(tmp_path / "new.db", create=True).close()

    def tables(path):
        with sqlite3.connect(path) as database:
            rows = database.execute("SELECT sql FROM sqlite_schema ORDER BY name").fetchall()
        database.close()
        return rows

    assert tables(tmp_path / "old.db") == tables(tmp_path / "new.db")


def test_a_migration_that_fails_changes_nothing_and_overwrites_no_copy(tmp_path, monkeypatch):
    file = Path(shutil.copy(FORMATS / f"{LATEST}.db", tmp_path / "guard.db"))
    monkeypatch.setattr(_schema, "MIGRATIONS", FAILING)
    with pytest.raises(StorageFailed, match="nowhere"):
        SqliteStorage(file)
    assert colours(file) is None
    first = (tmp_path / f"guard.db.before-{LATEST}").read_bytes()
    monkeypatch.setattr(_schema, "MIGRATIONS", NEWER)
    SqliteStorage(file).close()
    assert colours(file) == [("blue",)] * 3
    assert (tmp_path / f"guard.db.before-{LATEST}").read_bytes() == first
    assert (tmp_path / f"guard.db.before-{LATEST}-2").is_file()


def test_a_schema_is_copied_and_then_migrated(postgres, monkeypatch, grow):
    schema = f"m_{secrets.token_hex(4)}"
    old = PostgresStorage(postgres.url(), create=True, schema=schema)
    for name in ("b", "c"):
        with old.add_book(name) as book:
            grow(book, b"secret")
            book.add_ladder(0, "", b"state")
    monkeypatch.setattr(_schema, "MIGRATIONS", FAILING)
    with pytest.raises(StorageFailed, match="nowhere"):
        PostgresStorage(postgres.url(), schema=schema)
    assert (
        postgres.run("SELECT 1 FROM pg_namespace WHERE nspname = %s", f"{schema}_before_{LATEST}")
        == []
    )
    monkeypatch.setattr(_schema, "MIGRATIONS", NEWER)
    with PostgresStorage(postgres.url(), schema=schema) as storage:
        assert storage.books() == ["b", "c"]
        assert not storage.is_copy("b")
    assert postgres.run(f"SELECT colour FROM {schema}.book") == [("blue",), ("blue",)]
    assert postgres.run(f"SELECT version FROM {schema}.format") == [(LATEST + 1,)]
    monkeypatch.undo()
    with (
        pytest.raises(InvalidState, match=f"format {LATEST + 1}"),
        old.write_transaction("b") as book,
    ):
        grow(book)
    old.close()
    with PostgresStorage(postgres.url(), schema=f"{schema}_before_{LATEST}") as storage:
        assert storage.is_copy("b")
        with storage.read_transaction("c") as view:
            assert (list(view.entries()), view.secret_side(0)) == ([b"entry 0"], b"secret")
        with storage.add_book("d"), storage.read_transaction("c"):
            pass
        assert storage.books() == ["b", "c", "d"]


def test_changes_of_ladders_are_counted_from_the_entries_of_format_1(postgres, monkeypatch):
    schema = f"m_{secrets.token_hex(4)}"
    insert_ladder = "INSERT INTO main.ladder (book, number, name, state) VALUES (?, ?, ?, ?)"
    with monkeypatch.context() as older:
        older.setattr(_schema, "MIGRATIONS", ())
        with PostgresStorage(postgres.url(), create=True, schema=schema) as old:
            for name, content in MAKE["CONTENT"].items():
                with old.add_book(name) as book:
                    MAKE["write_book"](book, {**content, "ladders": []})
                    for number, (ladder, state, _) in enumerate(content["ladders"]):
                        book.execute(insert_ladder, (book.book_id, number, ladder, state))
    with PostgresStorage(postgres.url(), schema=schema) as storage:
        check_content(storage)


def test_a_copy_knows_that_it_is_one_until_it_is_adopted(file, tmp_path, grow):
    with SqliteStorage(file) as storage:
        with storage.add_book("c"):
            pass
        storage.backup(tmp_path / "copy.db")
        with storage.write_transaction("b") as book:
            grow(book)
        with pytest.raises(InvalidState, match="already"):
            storage.backup(tmp_path / "copy.db")
        with pytest.raises(StorageFailed, match="cannot be created"):
            storage.backup(tmp_path / "nowhere" / "copy.db")
        assert not storage.is_copy("b")
    with SqliteStorage(tmp_path / "copy.db") as copy:
        assert copy.is_copy("b")
        assert copy.is_copy("c")
        with copy.write_transaction("b") as book:
            assert book.chain_state().entries == 1
            book.clear_copy_flag()
        assert (copy.is_copy("b"), copy.is_copy("c")) == (False, True)
        copy.backup(tmp_path / "again.db")
    with SqliteStorage(tmp_path / "again.db") as again:
        assert again.is_copy("b")


def test_a_backup_is_one_moment_while_others_write(file, tmp_path, grow):
    storage = SqliteStorage(file)
    with storage.write_transaction("b") as book:
        grow(book)
        storage.backup(tmp_path / "copy.db")
    with SqliteStorage(tmp_path / "copy.db") as copy, copy.read_transaction("b") as view:
        assert view.chain_state().entries == len(list(view.entries())) == 1
    storage.close()
