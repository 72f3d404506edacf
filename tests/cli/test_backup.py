"""``ladderboard backup``: made by cron, tried out by cron, and the day it is needed."""

import json
import secrets
import shutil
from pathlib import Path

import pytest


@pytest.fixture
def boards(program, folder, monkeypatch):
    """A database with a board and a team, a folder for backups, and a key for them."""
    monkeypatch.delenv("LADDERBOARD_DATABASE", raising=False)
    assert program("board", "create", folder).code == 0
    Path("backups").mkdir()
    public = program("board", "keygen", "restore.key").out.strip()
    return ("--to", public), ("--secret-key", "restore.key")


def test_a_sentence_a_board_and_old_ones_go(program, boards):
    to, key = boards
    done = program("backup", "create", "backups", *to)
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert lines[0].startswith("first: 4 entries, ")
    assert " holds 1 board, " in lines[1]
    again = program("backup", "create", "backups", *to, "--keep", 1).out
    assert again.splitlines()[-1].startswith("Removed ")
    said = program("backup", "create", "backups", *to, "--keep", 1, "--json").json
    assert [each["board"] for each in said["boards"]] == ["first"]
    assert len(said["removed"]) == 1
    assert [str(path.absolute()) for path in Path("backups").iterdir()] == [said["folder"]]
    done = program("backup", "check", "backups", *key)
    assert done.code == 0
    assert "less than an hour ago by ladderboard" in done.out
    assert done.out.endswith(
        "  first: restored and recomputed, 1 question.\nThis backup can be restored.\n"
    )


def test_the_folder_is_made_and_everything_looked_at_before_a_passphrase(
    program, boards, monkeypatch
):
    asked = []

    def prompt(*given, **how):
        asked.append(how)
        return "correct horse battery staple"

    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("typer.prompt", prompt)
    assert "There is no folder" in program("backup", "create", "nowhere/there").err
    assert "no board 'fish'" in program("backup", "create", "new", "--without", "fish").err
    assert (asked, Path("new").exists()) == ([], False)
    assert program("backup", "create", "new").code == 0
    assert (len(asked), Path("new").stat().st_mode & 0o777) == (1, 0o700)
    assert len(list(Path("new").iterdir())) == 1


def test_the_drill_fails_for_cron_and_says_why(program, boards, folder, monkeypatch):
    to, key = boards
    program("backup", "create", "backups", *to)
    (made,) = Path("backups").iterdir()
    monkeypatch.setenv("LADDERBOARD_DATABASE", "ladderboard.db")
    assert program("backup", "check", made, *key, "--within", 1).code == 0
    program("board", "pause", "first")
    text = (folder / "board.yaml").read_text()
    (folder / "board.yaml").write_text(text.replace("slug: first", "slug: second"))
    program("board", "create", folder)
    done = program("backup", "check", made, *key)
    assert done.code == 0
    assert "first has 1 more entries, 0 of them questions" in done.out
    assert "second was created since" in done.out
    said = json.loads((made / "manifest.json").read_text())
    (made / "manifest.json").write_text(json.dumps({**said, "time": said["time"] - 3 * 3600}))
    done = program("backup", "check", made, *key, "--within", 2)
    assert done.code == 1
    assert "older than 2 hours" in done.out
    assert program("backup", "check", made, *key, "--within", 2, "--json").json["late"]
    (made / "manifest.json").write_text(json.dumps({**said, "time": said["time"] + 3 * 3600}))
    done = program("backup", "check", made, *key)
    assert done.code == 1
    assert "future" in done.out
    (made / "first.dump").unlink()
    done = program("backup", "check", made, *key)
    assert done.code == 1
    assert "  first: first.dump is missing.\n" in done.out
    assert program("backup", "check", made, *key, "--json").json["good"] is False


def test_another_database_is_not_what_was_backed_up(program, boards, folder):
    to, key = boards
    program("backup", "create", "backups", *to)
    program("board", "create", folder, "--database", "other.db")
    done = program("backup", "check", "backups", *key, "--database", "other.db")
    assert done.code == 1
    assert "first is missing in the database in use, or is another board there" in done.out


def test_the_day_it_is_needed(program, boards, predictions, postgres, monkeypatch):
    to, key = boards
    token = program("team", "add", "first", "Ada").out.strip()
    program("backup", "create", "backups", *to)
    for path in Path().glob("ladderboard.db*"):
        path.unlink() if path.is_file() else shutil.rmtree(path)
    name = f"cli_{secrets.token_hex(6)}"
    postgres.run(f"CREATE DATABASE {name}")
    address = postgres.url().replace("/postgres", f"/{name}")
    for database in (address, "new.db"):
        monkeypatch.setenv("LADDERBOARD_DATABASE", database)
        done = program("backup", "restore", "backups", *key)
        assert done.code == 0
        assert "first is restored, and paused; head " in done.out
        assert "ladderboard board resume first --charge N" in done.out
        assert program("board", "resume", "first", "--charge", 3).code == 0
        assert program("board", "list", "--json").json["boards"][0]["status"] == "open"
        again = program("backup", "restore", "backups", *key, "--json").json
        assert [(each["new"], each["status"]) for each in again["boards"]] == [(False, "open")]
    assert token
    postgres.run(f"DROP DATABASE {name} WITH (FORCE)")


def test_what_cannot_be_used_is_said(program, boards, tmp_path):
    to, key = boards
    for words, told in (
        (("create", "nowhere/there", *to), "There is no folder"),
        (("create", "restore.key", *to), "restore.key is not a folder"),
        (("create", "backups"), "A passphrase is needed"),
        (("create", "backups", *to, "--keep", 0), "--keep must be at least 1; got 0."),
        (("create", "backups", *to, "--without", "fish"), "no board 'fish' to leave out"),
        (("create", "backups", *to, "--passphrase-file", "x"), "not both"),
        (("check", "backups", *key), "There is no backup in"),
        (("restore", "backups", *key, "--passphrase-file", "x"), "not both"),
        (("check", "nowhere", *key), "There is no folder"),
    ):
        done = program("backup", *words)
        assert (done.code, done.out) == (2, "")
        assert told in done.err
    assert list((tmp_path / "backups").iterdir()) == []
    program("backup", "create", "backups", *to)
    program("board", "keygen", "other.key")
    assert program("backup", "check", "backups", "--secret-key", "other.key").code == 2
