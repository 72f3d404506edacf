"""Boards of every released format open, show the same, continue, verify and can be dumped."""

import json
import re
import runpy
import secrets
import shutil
from pathlib import Path

import pytest

from ladderboard.board import (
    BOARD_SCHEMA,
    _boards,
    check_backup,
    dump_board,
    find_backup,
    open_boards,
    restore_backup,
    restore_board,
    write_board_bundle,
)
from ladderboard.errors import InvalidState, StaleCopy
from ladderboard.ledger import SecretKey, read_secret_key
from ladderboard.server import sandbox
from ladderboard.verify import verify_bundle

FORMATS = Path(__file__).parent / "formats"
MAKE = runpy.run_path(str(FORMATS / "make.py"))
NUMBERS = [str(1 + index) for index in range(len(BOARD_SCHEMA.migrations))]
NEWER = BOARD_SCHEMA._replace(
    migrations=(*BOARD_SCHEMA.migrations, ("ALTER TABLE main.board ADD COLUMN colour TEXT",))
)


def test_every_format_that_was_released_is_kept():
    for end in ("db", "sql", "backup"):
        assert sorted(path.stem for path in FORMATS.glob(f"*.{end}")) == NUMBERS


@pytest.fixture(params=NUMBERS)
def number(request):
    return request.param


@pytest.fixture(params=["file", "server"])
def address(request, number, tmp_path):
    """Return the address of a copy of the fixture."""
    if request.param == "file":
        for path in FORMATS.glob(f"{number}.db*"):
            to = tmp_path / path.name.replace(f"{number}.db", "boards.db")
            shutil.copytree(path, to) if path.is_dir() else shutil.copy(path, to)
        yield str(tmp_path / "boards.db")
        return
    server, name = request.getfixturevalue("postgres"), f"f_{secrets.token_hex(6)}"
    server.run(f"CREATE DATABASE {name}")
    url = server.url().replace("/postgres", f"/{name}")
    run_sql(url, (FORMATS / f"{number}.sql").read_text())
    yield url
    server.run(f"DROP DATABASE {name} WITH (FORCE)")


def run_sql(url, text):
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(text)


@pytest.fixture
def boards(address):
    boards_ = open_boards(address)
    yield boards_
    boards_.close()


def test_old_boards_show_the_same_as_before(boards, number):
    assert MAKE["describe_boards"](boards) == json.loads((FORMATS / f"{number}.json").read_text())
    assert [boards.open(slug).book.check() for slug in boards.list()] == [8, 8]


def test_old_boards_continue_and_verify_after_the_close(boards, tmp_path):
    board = boards.open("open")
    assert MAKE["submit"](board, 5).again
    assert not MAKE["submit"](board, 6).again
    board.closer.close(MAKE["ORGANISER"], sandbox=sandbox)
    for slug in ("open", "closed"):
        path = tmp_path / f"{slug}.bundle"
        write_board_bundle(boards.open(slug), path, labels=True, submissions=True)
        verify_bundle(path, heads=[boards.open(slug).book.head().hash.hex()])


def test_the_high_water_mark_is_renamed_to_the_full_id(boards, address):
    if "://" in address:
        return
    for slug in boards.list():
        book = boards.open(slug).book.name
        assert Path(f"{address}.{book}.mark").exists()
        assert not Path(f"{address}.{book[:8]}.mark").exists()


def test_old_boards_are_dumped(boards, tmp_path):
    key = SecretKey.make()
    target = open_boards(tmp_path / "other.db", create=True)
    for slug in boards.list():
        head = dump_board(boards, slug, tmp_path / slug, public_key=key.public)
        restore_board(target, tmp_path / slug, secret_key=key)
        assert target.open(slug).book.head().entries == head.entries + 1
    target.close()


def test_a_dump_and_a_backup_of_every_format_are_restored(number, tmp_path):
    key = read_secret_key(FORMATS / f"{number}.key")
    backup = find_backup(FORMATS / f"{number}.backup")
    results = check_backup(backup, secret_key=key)
    assert [(result.board, result.wrong) for result in results] == [
        ("open", None),
        ("closed", None),
    ]
    heads = json.loads((FORMATS / f"{number}.json").read_text())
    assert {board.board: board.head for board in backup.boards} == {
        slug: result["head"] for slug, result in heads.items()
    }
    with_others = open_boards(tmp_path / "boards.db", create=True)
    restore_backup(with_others, backup, secret_key=key)
    assert [with_others.open(slug).row().status for slug in with_others.list()] == [
        "restored", "closed"
    ]  # fmt: skip
    with_others.close()


def copies(address, tmp_path):
    """Return the names of the copies that upgrades made."""
    if "://" not in address:
        return [path.name for path in tmp_path.iterdir() if ".before-" in path.name]
    import psycopg

    with psycopg.connect(address) as connection:
        rows = connection.execute("SELECT nspname FROM pg_namespace WHERE nspname LIKE '%before%'")
        return [row[0] for row in rows]


def restore_copy(address, copy, tmp_path):
    """Do what docs/how-to/upgrade.md says."""
    if "://" in address:
        run_sql(
            address,
            "ALTER SCHEMA ladderboard RENAME TO ladderboard_newer;"
            f"ALTER SCHEMA {copy} RENAME TO ladderboard",
        )
        return
    (tmp_path / "newer").mkdir()
    for end in ("", "-wal", "-shm"):
        if (tmp_path / f"boards.db{end}").exists():
            (tmp_path / f"boards.db{end}").rename(tmp_path / "newer" / f"boards.db{end}")
    (tmp_path / copy).rename(tmp_path / "boards.db")


def test_a_newer_database_is_refused_and_the_suggested_copy_can_be_restored(
    address, tmp_path, monkeypatch
):
    monkeypatch.setattr(_boards, "BOARD_SCHEMA", NEWER)
    boards = open_boards(address)
    MAKE["submit"](boards.open("open"), 7)  # which will be lost
    boards.close()
    monkeypatch.undo()
    # Another copy was made before the ledger's tables were upgraded.
    (copy,) = [name for name in copies(address, tmp_path) if re.search("before[-_]board", name)]
    with pytest.raises(InvalidState, match=rf"board were written .* Or put {copy} back"):
        open_boards(address)
    restore_copy(address, copy, tmp_path)
    boards = open_boards(address)
    with pytest.raises(StaleCopy):
        boards.open("open")
    for slug in boards.list():
        boards.adopt_old_copy(slug, 1 if slug == "open" else 0)
    assert boards.open("closed").row().status == "closed"
    assert not MAKE["submit"](boards.open("open"), 8).again
    boards.close()
