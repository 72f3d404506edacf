"""Checking a backup: it is restored into a temporary database and its damage is named."""

import json
import os
import shutil

import pytest

from ladderboard.board import (
    Caller,
    Role,
    check_backup,
    compare_with_database,
    find_backup,
    restore_backup,
)
from ladderboard.errors import BrokenDump, InvalidSetting, InvalidState, WrongKey
from ladderboard.ledger import SecretKey
from support.credentials import random_secret


@pytest.fixture
def saved(backup_of_two, tmp_path):
    """A backup of the boards digits and birds, to be changed."""
    return find_backup(shutil.copytree(backup_of_two[0], tmp_path / "saved"))


@pytest.fixture
def problems(backup_of_two):
    """Return a function that checks a backup and returns the problems by board."""

    def look(backup, **options):
        results = check_backup(backup, secret_key=backup_of_two[1], **options)
        return {result.board: result.wrong for result in results if result.wrong}

    return look


@pytest.fixture
def key(backup_of_two):
    """The key of the backup."""
    return backup_of_two[1]


def test_check_reports_what_would_be_lost(saved, key, make_boards, make_board, open_board):
    target = make_boards()
    restore_backup(target, saved, secret_key=key)
    checked = check_backup(saved, secret_key=key)
    comparison = compare_with_database(saved, target.storage, checked)
    assert comparison.entries == {"digits": 1, "birds": 1}  # that they were restored
    assert comparison.questions == {"digits": 0, "birds": 0}
    digits = open_board(target)
    digits.board.amendments.resume(Caller(Role.ORGANISER), charge=3)
    for index in (20, 21):
        digits.submit(index)
    make_board(target, "fish")
    comparison = compare_with_database(saved, target.storage, checked)
    assert comparison.questions == {"digits": 2, "birds": 0}  # not what was charged
    assert (comparison.missing_boards, comparison.diverged_boards) == (("fish",), ())


def test_check_recognises_another_board_with_the_same_slug(saved, key, make_boards, make_board):
    target = make_boards()
    make_board(target, "digits")
    comparison = compare_with_database(saved, target.storage, check_backup(saved, secret_key=key))
    assert comparison.diverged_boards == ("digits", "birds")


def _truncate(folder):
    (folder / "digits.dump").write_bytes((folder / "digits.dump").read_bytes()[:-1])


def _change(folder):
    content = bytearray((folder / "digits.dump").read_bytes())
    content[len(content) // 2] ^= 1
    (folder / "digits.dump").write_bytes(content)


def _swap(folder):
    (folder / "digits.dump").rename(folder / "x")
    (folder / "birds.dump").rename(folder / "digits.dump")
    (folder / "x").rename(folder / "birds.dump")


def _swap_with_manifest(folder):
    """Exchange two dumps, with their sizes and hashes in the manifest."""
    _swap(folder)
    manifest = json.loads((folder / "manifest.json").read_text())
    first, second = manifest["boards"]
    for name in ("bytes", "sha256"):
        first[name], second[name] = second[name], first[name]
    (folder / "manifest.json").write_text(json.dumps(manifest))


def _other_head(folder):
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["boards"][0]["head"] = "00" * 32
    (folder / "manifest.json").write_text(json.dumps(manifest))


def _pipe(path):
    (path / "digits.dump").unlink()
    os.mkfifo(path / "digits.dump")
    manifest = json.loads((path / "manifest.json").read_text())
    manifest["boards"][[board["board"] for board in manifest["boards"]].index("digits")][
        "bytes"
    ] = 0
    (path / "manifest.json").write_text(json.dumps(manifest))


DAMAGE = {
    "cut": (_truncate, {"digits": "is cut off"}),
    "changed": (_change, {"digits": "was changed"}),
    "missing": (lambda folder: (folder / "digits.dump").unlink(), {"digits": "is missing"}),
    "a pipe": (_pipe, {"digits": "is not a file"}),
    "swapped": (_swap, {"digits": "digits.dump ", "birds": "birds.dump "}),  # by size or by hash
    "swapped well": (_swap_with_manifest, {"digits": "another board", "birds": "another board"}),
    "another time": (_other_head, {"digits": "another time"}),
    "strange": (lambda folder: (folder / "fish.dump").touch(), {"fish.dump": "manifest"}),
}


@pytest.mark.parametrize(("damage", "expected"), DAMAGE.values(), ids=DAMAGE)
def test_check_names_the_damage(saved, problems, damage, expected):
    damage(saved.path)
    backup = find_backup(saved.path)
    problems_found = problems(backup)
    assert problems_found.keys() == expected.keys()
    assert all(text in problems_found[board] for board, text in expected.items())


@pytest.mark.parametrize(
    "damage", [_truncate, _change, _swap, _swap_with_manifest, _other_head, _pipe]
)
def test_nothing_is_restored_from_a_damaged_backup(saved, key, make_boards, damage):
    damage(saved.path)
    target = make_boards()
    with pytest.raises(BrokenDump, match=r"Nothing was restored\. digits\.dump"):
        restore_backup(target, find_backup(saved.path), secret_key=key)
    assert target.list() == []


@pytest.mark.parametrize(
    "content",
    [
        *("", "[]", '{"format": 1}', '{"format": "x"}', "\x00", '{"format": 1, "boards": 3}'),
        '{"format": 0, "time": 1, "ladderboard": "", "boards": [], "without": []}',
        '{"format": 1, "time": Infinity, "ladderboard": "", "boards": [], "without": []}',
        "[" * 100_000,
    ],
    ids=range(9),
)
def test_a_damaged_manifest_is_refused(saved, content):
    (saved.path / "manifest.json").write_text(content)
    with pytest.raises(InvalidState, match="is damaged"):
        find_backup(saved.path)


def test_a_manifest_cannot_name_files_outside_the_backup(saved):
    manifest = json.loads((saved.path / "manifest.json").read_text())
    manifest["boards"][0]["file"] = "../digits.dump"
    (saved.path / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(InvalidState, match="damaged"):
        find_backup(saved.path)


def test_a_manifest_names_a_board_once(saved):
    manifest = json.loads((saved.path / "manifest.json").read_text())
    manifest["boards"] *= 2
    (saved.path / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(InvalidState, match="damaged"):
        find_backup(saved.path)


def test_a_newer_backup_is_refused_and_both_formats_are_named(saved):
    (saved.path / "manifest.json").write_text('{"format": 2, "ladderboard": "9.0"}')
    with pytest.raises(InvalidState, match=r"\('9\.0'\), in format 2 of backups; this one reads 1"):
        find_backup(saved.path)


def test_a_wrong_key_is_not_damage(saved):
    with pytest.raises(WrongKey):
        check_backup(saved, secret_key=SecretKey.make())
    with pytest.raises(WrongKey):
        check_backup(saved, passphrase=random_secret())


def test_check_leaves_no_files_and_no_schemas(
    saved, problems, key, postgres, tmp_path, monkeypatch
):
    scratch = tmp_path / "tmp"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    schemas_before = postgres.run("SELECT count(*) FROM pg_namespace")
    assert problems(saved) == problems(saved, scratch=postgres.url()) == {}
    _truncate(saved.path)
    assert problems(saved, scratch=postgres.url())
    with pytest.raises(WrongKey):
        check_backup(saved, secret_key=SecretKey.make(), scratch=postgres.url())
    assert postgres.run("SELECT count(*) FROM pg_namespace") == schemas_before
    assert list(scratch.iterdir()) == []
    with pytest.raises(InvalidSetting, match="scratch must be postgresql"):
        check_backup(saved, secret_key=key, scratch="boards.db")
