"""The content of a dump: it is complete, and forged records are refused."""

import io
import os
import re
import signal
from pathlib import Path

import pytest

from ladderboard.board import BOARD_SCHEMA, dump_board, restore_board
from ladderboard.board._backup._restore import read_header
from ladderboard.board._model import TABLES
from ladderboard.errors import Conflict, LadderboardError
from ladderboard.ledger import (
    Position,
    RecordReader,
    RecordWriter,
    SecretKey,
    read_vault,
    write_vault,
)

KEY = SecretKey.make()
KINDS = ("dump", "entry", "ladder", "mark", "kept", "board", "team", "credential", "submission")
KINDS += ("record", "identity", "datafile")


@pytest.mark.parametrize("kind", ["file", "server"])
def test_the_dump_has_every_table_and_column(make_boards, kind):
    with make_boards(kind).storage.read_tables() as view:
        for table in TABLES:
            if kind == "file":
                columns = [row[1] for row in view.query(f"PRAGMA table_info({table.name})")]
            else:
                schema = view._connection._prefix.strip('".')
                columns = [
                    row[0]
                    for row in view.query(
                        "SELECT column_name FROM information_schema.columns "
                        "WHERE table_schema = ? AND table_name = ?",
                        (schema, table.name),
                    )
                ]
            assert sorted(columns) == sorted(["book", *table.columns])
    statements = " ".join(table_ for step in BOARD_SCHEMA.migrations for table_ in step)
    created = set(re.findall(r"CREATE TABLE main\.(\w+)", statements))
    assert created == {*(table_.name for table_ in TABLES), "session", "upload", "server"}


@pytest.fixture
def dumped(make_boards, moved_dump, tmp_path):
    """Return a function that restores a dump with changed records, and the target."""
    target, (path, key) = make_boards(), moved_dump

    def restore(change=lambda records: records):
        with read_vault(path, key) as vault:
            records = list(_all_records(RecordReader(vault)))
        with write_vault(tmp_path / "changed", KEY.public) as vault:
            writer = RecordWriter(vault)
            for kind, content in change(records):
                if kind == "file":
                    writer.write_file(content[0], io.BytesIO(content[1]))
                else:
                    writer.write_record(kind, content)
            writer.finish()
        return restore_board(target, tmp_path / "changed", secret_key=KEY)

    restore.target = target
    return restore


def _all_records(records):
    for kind in KINDS:
        for content in records.read_section(kind):
            yield kind, content
    for name, file in records.read_files():
        yield "file", (name, file.read())
    records.expect_end()


def set_fields(kind, **changes):
    """Return a change to all records of a kind."""

    def change(records):
        return [
            (record_kind, {**content, **changes} if record_kind == kind else content)
            for record_kind, content in records
        ]

    return change


def without_last(kind, key=None):
    """Return a change that removes the last record of a kind, or one key of all its records."""

    def change(records):
        if key is None:
            last = max(index for index, record in enumerate(records) if record[0] == kind)
            return [record for index, record in enumerate(records) if index != last]
        return [
            (
                record_kind,
                {k: v for k, v in content.items() if k != key} if record_kind == kind else content,
            )
            for record_kind, content in records
        ]

    return change


def duplicated(kind):
    return lambda records: [record for record in records for _ in range(1 + (record[0] == kind))]


def other_labels(records):
    return [
        (
            kind,
            [content[0], records[-1][1][1], True]
            if kind == "kept" and content[0] == "sample"
            else content,
        )
        for kind, content in records
    ]


def undo_correction(records):
    """Replace the labels of the second epoch by those of the first."""
    first = next(
        content[1] for kind, content in records if kind == "kept" and content[0] == "sample"
    )
    return [
        (
            kind,
            ["sample 1", first, True] if kind == "kept" and content[0] == "sample 1" else content,
        )
        for kind, content in records
    ]


def test_an_unchanged_dump_is_restored(dumped):
    assert dumped() == "digits"
    assert dumped.target.open("digits").book.check() > 12


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (set_fields("dump", format=2), "newer Ladderboard, in format 2 of dumps"),
        (set_fields("dump", tables=99), "newer Ladderboard, in format 99 of boards"),
        (set_fields("dump", status="moved"), "status"),
        (set_fields("dump", status="paused"), "has moved"),
        (set_fields("dump", book="server"), "not write"),
        (set_fields("dump", book=7), "not write"),
        (set_fields("dump", book="0" * 31), "not write"),
        (set_fields("dump", book="0" * 31 + "G"), "not write"),
        (set_fields("dump", book="../../../../../../tmp/mark00000000"[:32]), "not write"),
        (set_fields("dump", more=7), "not write"),
        (set_fields("dump", entries=3), "header"),
        (set_fields("dump", head=bytes(32)), "header"),
        (set_fields("dump", slug="other"), "header"),
        (set_fields("board", slug="other"), "header"),
        (set_fields("board", epoch=0), "epoch"),
        (set_fields("board", rules="{"), "not write"),
        (set_fields("board", rules="{}"), "."),
        (set_fields("team", used="many"), "a team whose used "),
        (set_fields("team", used=2**63), "a team whose used "),
        (set_fields("team", name="a\0b"), "a team whose name "),
        (set_fields("team", name="\ud800"), "a team whose name "),
        (set_fields("team", name=None), "a team whose name "),
        (set_fields("team", colour="red"), "a team with other columns"),
        (without_last("team", "name"), "a team with other columns"),
        (duplicated("team"), "This database already has this team row"),
        (duplicated("board"), "not write"),
        (without_last("dump"), "not write"),
        (without_last("file"), "lacks files"),
        (lambda records: [*records, ("file", ("00" * 16, b""))], "belongs to no submission"),
        (duplicated("file"), "belongs to no submission"),
        (lambda records: [*records, ("strange", 1)], "not write"),
        (lambda records: [*records[:5], ("entry", 7), *records[5:]], "not write"),
        (other_labels, "labels"),
        (undo_correction, "commitment"),
    ],
)
def test_a_forged_dump_is_refused(dumped, change, message):
    with pytest.raises(LadderboardError, match=message):
        dumped(change)
    assert dumped.target.storage.books() == []
    assert dumped.target.list() == []


def test_a_dump_with_a_similar_id_leaves_the_mark_of_another_board(dumped, make_board):
    victim = make_board(dumped.target, "victim").board.book
    mark = dumped.target.high_water_mark(victim.name)
    mark_before = mark.path.read_bytes()
    alike = victim.name[:8] + "0" * 24  # the file name once had only the first digits
    with pytest.raises(LadderboardError):
        dumped(set_fields("dump", book=alike))
    assert mark.path.read_bytes() == mark_before


def test_an_existing_high_water_mark_stays_and_nothing_is_restored(dumped, moved_dump):
    book = read_header(moved_dump[0], secret_key=moved_dump[1]).book
    mark = dumped.target.high_water_mark(book)
    mark.replace(Position("f" * 32, 9, 7, "0" * 64))  # as of a renamed file
    with pytest.raises(Conflict, match="is the mark of another board"):
        dumped()
    assert mark.read().book == "f" * 32
    assert dumped.target.list() == []


def test_a_restore_that_fails_puts_the_mark_of_the_same_board_back(dumped, moved_dump):
    book = read_header(moved_dump[0], secret_key=moved_dump[1]).book
    mark = dumped.target.high_water_mark(book)
    mark.replace(Position(book, 9, 7, "0" * 64))
    with pytest.raises(LadderboardError):
        dumped(set_fields("board", epoch=0))
    assert mark.read().entries == 9


@pytest.mark.parametrize("kind", ["file", "server"])
def test_a_process_that_is_killed_leaves_no_board(make_boards, moved_dump, kind, monkeypatch):
    target, (path, key) = make_boards(kind), moved_dump
    child = os.fork()
    if child == 0:
        monkeypatch.setattr(
            "ladderboard.board._backup._restore.check_book",
            lambda *_: os.kill(os.getpid(), signal.SIGKILL),
        )
        restore_board(target, path, secret_key=key)
        os._exit(0)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL
    assert target.storage.books() == []
    assert target.list() == []
    assert restore_board(target, path, secret_key=key) == "digits"
    assert target.open("digits").book.check() > 12


def test_a_dump_shows_no_secret(make_boards, make_board, tmp_path):
    history = make_board(source := make_boards(key=True))
    dump_board(source, "digits", tmp_path / "dump", public_key=KEY.public)
    form = Path(tmp_path / "dump").read_bytes()
    for secret in (
        history.book.read_encrypted("key"),
        b"digits",
        history.book.name.encode(),
        b"id,prediction",
    ):
        assert secret not in form
