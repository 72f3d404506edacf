"""The drill: a backup is restored where nobody asks, and what is wrong with it is named."""

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
def wrong(backup_of_two):
    """Give a function that tells what the drill finds wrong, by board."""

    def look(backup, **more):
        found = check_backup(backup, secret_key=backup_of_two[1], **more)
        return {each.board: each.wrong for each in found if each.wrong}

    return look


@pytest.fixture
def key(backup_of_two):
    """What opens it."""
    return backup_of_two[1]


def test_the_drill_tells_what_would_be_lost(saved, key, make_boards, make_board, open_board):
    other = make_boards()
    restore_backup(other, saved, secret_key=key)
    checked = check_backup(saved, secret_key=key)
    found = compare_with_database(saved, other.storage, checked)
    assert found.entries == {"digits": 1, "birds": 1}  # that they were restored
    assert found.questions == {"digits": 0, "birds": 0}
    digits = open_board(other)
    digits.board.amendments.resume(Caller(Role.ORGANISER), charge=3)
    for at in (20, 21):
        digits.submit(at)
    make_board(other, "fish")
    found = compare_with_database(saved, other.storage, checked)
    assert found.questions == {"digits": 5, "birds": 0}
    assert (found.lacking, found.strange) == (("fish",), ())


def test_the_drill_knows_another_board_of_the_same_name(saved, key, make_boards, make_board):
    other = make_boards()
    make_board(other, "digits")
    found = compare_with_database(saved, other.storage, check_backup(saved, secret_key=key))
    assert found.strange == ("digits", "birds")


def _cut(folder):
    (folder / "digits.dump").write_bytes((folder / "digits.dump").read_bytes()[:-1])


def _change(folder):
    held = bytearray((folder / "digits.dump").read_bytes())
    held[len(held) // 2] ^= 1
    (folder / "digits.dump").write_bytes(held)


def _swap(folder):
    (folder / "digits.dump").rename(folder / "x")
    (folder / "birds.dump").rename(folder / "digits.dump")
    (folder / "x").rename(folder / "birds.dump")


def _swap_and_say_so(folder):
    """Exchange two dumps, with their sizes and hashes in the manifest."""
    _swap(folder)
    said = json.loads((folder / "manifest.json").read_text())
    first, second = said["boards"]
    for name in ("bytes", "sha256"):
        first[name], second[name] = second[name], first[name]
    (folder / "manifest.json").write_text(json.dumps(said))


def _other_head(folder):
    said = json.loads((folder / "manifest.json").read_text())
    said["boards"][0]["head"] = "00" * 32
    (folder / "manifest.json").write_text(json.dumps(said))


def _pipe(path):
    (path / "digits.dump").unlink()
    os.mkfifo(path / "digits.dump")
    said = json.loads((path / "manifest.json").read_text())
    said["boards"][[each["board"] for each in said["boards"]].index("digits")]["bytes"] = 0
    (path / "manifest.json").write_text(json.dumps(said))


DAMAGE = {
    "cut": (_cut, {"digits": "is cut off"}),
    "changed": (_change, {"digits": "was changed"}),
    "missing": (lambda each: (each / "digits.dump").unlink(), {"digits": "is missing"}),
    "a pipe": (_pipe, {"digits": "is not a file"}),
    "swapped": (_swap, {"digits": "was changed", "birds": "was changed"}),
    "swapped well": (_swap_and_say_so, {"digits": "another board", "birds": "another board"}),
    "another time": (_other_head, {"digits": "another time"}),
    "strange": (lambda each: (each / "fish.dump").touch(), {"fish.dump": "manifest"}),
}


@pytest.mark.parametrize(("damage", "told"), DAMAGE.values(), ids=DAMAGE)
def test_the_drill_names_what_is_damaged(saved, wrong, damage, told):
    damage(saved.path)
    backup = find_backup(saved.path)
    found = wrong(backup)
    assert found.keys() == told.keys()
    assert all(words in found[board] for board, words in told.items())


@pytest.mark.parametrize("damage", [_cut, _change, _swap, _swap_and_say_so, _other_head, _pipe])
def test_nothing_is_restored_from_a_damaged_backup(saved, key, make_boards, damage):
    damage(saved.path)
    other = make_boards()
    with pytest.raises(BrokenDump, match=r"Nothing was restored\. digits\.dump"):
        restore_backup(other, find_backup(saved.path), secret_key=key)
    assert other.list() == []


@pytest.mark.parametrize(
    "written",
    [
        *("", "[]", '{"format": 1}', '{"format": "x"}', "\x00", '{"format": 1, "boards": 3}'),
        '{"format": 0, "time": 1, "ladderboard": "", "boards": [], "without": []}',
        '{"format": 1, "time": Infinity, "ladderboard": "", "boards": [], "without": []}',
        "[" * 100_000,
    ],
    ids=range(9),
)
def test_a_damaged_manifest_is_refused(saved, written):
    (saved.path / "manifest.json").write_text(written)
    with pytest.raises(InvalidState, match="is damaged"):
        find_backup(saved.path)


def test_a_manifest_leads_nowhere_else(saved):
    said = json.loads((saved.path / "manifest.json").read_text())
    said["boards"][0]["file"] = "../digits.dump"
    (saved.path / "manifest.json").write_text(json.dumps(said))
    with pytest.raises(InvalidState, match="damaged"):
        find_backup(saved.path)


def test_a_manifest_names_a_board_once(saved):
    said = json.loads((saved.path / "manifest.json").read_text())
    said["boards"] *= 2
    (saved.path / "manifest.json").write_text(json.dumps(said))
    with pytest.raises(InvalidState, match="damaged"):
        find_backup(saved.path)


def test_a_newer_backup_is_refused_and_both_formats_are_named(saved):
    (saved.path / "manifest.json").write_text('{"format": 2, "ladderboard": "9.0"}')
    with pytest.raises(InvalidState, match=r"\('9\.0'\), in format 2 of backups; this one reads 1"):
        find_backup(saved.path)


def test_a_wrong_key_is_the_word_of_who_gave_it(saved):
    with pytest.raises(WrongKey):
        check_backup(saved, secret_key=SecretKey.make())
    with pytest.raises(WrongKey):
        check_backup(saved, passphrase=random_secret())


def test_the_drill_leaves_nothing_here_and_on_a_server(
    saved, wrong, key, postgres, tmp_path, monkeypatch
):
    scratch = tmp_path / "tmp"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    before = postgres.run("SELECT count(*) FROM pg_namespace")
    assert wrong(saved) == wrong(saved, scratch=postgres.url()) == {}
    _cut(saved.path)
    assert wrong(saved, scratch=postgres.url())
    with pytest.raises(WrongKey):
        check_backup(saved, secret_key=SecretKey.make(), scratch=postgres.url())
    assert postgres.run("SELECT count(*) FROM pg_namespace") == before
    assert list(scratch.iterdir()) == []
    with pytest.raises(InvalidSetting, match="scratch must be postgresql"):
        check_backup(saved, secret_key=key, scratch="boards.db")
