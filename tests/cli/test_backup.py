"""``ladderboard backup``: creating, checking and restoring backups."""

import json
import secrets
import shutil
from pathlib import Path

import pytest


@pytest.fixture
def boards(run_cli, folder, monkeypatch):
    """A database with a board and a team, a folder for backups, and a key for them."""
    monkeypatch.delenv("LADDERBOARD_DATABASE", raising=False)
    assert run_cli("board", "create", folder).code == 0
    Path("backups").mkdir()
    public = run_cli("board", "keygen", "restore.key").out.strip()
    return ("--to", public), ("--secret-key", "restore.key")


def test_create_prints_a_line_per_board_and_keep_deletes_old_backups(run_cli, boards):
    to, key = boards
    result = run_cli("backup", "create", "backups", *to)
    assert (result.code, result.err) == (0, "")
    lines = result.out.splitlines()
    assert lines[0].startswith("first: 4 entries, ")
    assert " holds 1 board, " in lines[1]
    output = run_cli("backup", "create", "backups", *to, "--keep", 1).out
    assert output.splitlines()[-1].startswith("Removed ")
    report = run_cli("backup", "create", "backups", *to, "--keep", 1, "--json").json
    assert [board["board"] for board in report["boards"]] == ["first"]
    assert len(report["removed"]) == 1
    assert [str(path.absolute()) for path in Path("backups").iterdir()] == [report["folder"]]
    result = run_cli("backup", "check", "backups", *key)
    assert result.code == 0
    assert "less than an hour ago by ladderboard" in result.out
    assert result.out.endswith(
        "  first: restored and recomputed, 1 submission.\nThis backup can be restored.\n"
    )


def test_check_counts_submissions_and_no_charges(run_cli, boards):
    to, key = boards
    run_cli("board", "pause", "first")
    run_cli("board", "resume", "first", "--charge", 2)
    run_cli("backup", "create", "backups", *to)
    result = run_cli("backup", "check", "backups", *key, "--database", "ladderboard.db")
    assert "  first: restored and recomputed, 1 submission.\n" in result.out
    run_cli("board", "pause", "first")
    run_cli("board", "resume", "first", "--charge", 3)
    result = run_cli("backup", "check", "backups", *key, "--database", "ladderboard.db")
    assert "first has 2 more entries, 0 of them submissions" in result.out


def test_create_checks_everything_before_it_asks_for_a_passphrase(run_cli, boards, monkeypatch):
    prompts = []

    def prompt(*args, **kwargs):
        prompts.append(kwargs)
        return "correct horse battery staple"

    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("typer.prompt", prompt)
    assert "There is no folder" in run_cli("backup", "create", "nowhere/there").err
    assert "no board 'fish'" in run_cli("backup", "create", "new", "--without", "fish").err
    assert (prompts, Path("new").exists()) == ([], False)
    assert run_cli("backup", "create", "new").code == 0
    assert (len(prompts), Path("new").stat().st_mode & 0o777) == (1, 0o700)
    assert len(list(Path("new").iterdir())) == 1


def test_check_fails_with_a_reason(run_cli, boards, folder, monkeypatch):
    to, key = boards
    run_cli("backup", "create", "backups", *to)
    (backup,) = Path("backups").iterdir()
    monkeypatch.setenv("LADDERBOARD_DATABASE", "ladderboard.db")
    assert run_cli("backup", "check", backup, *key, "--within", 1).code == 0
    run_cli("board", "pause", "first")
    text = (folder / "board.yaml").read_text()
    (folder / "board.yaml").write_text(text.replace("slug: first", "slug: second"))
    run_cli("board", "create", folder)
    result = run_cli("backup", "check", backup, *key)
    assert result.code == 0
    assert "first has 1 more entry, 0 of them submissions" in result.out
    assert "second was created since" in result.out
    manifest = json.loads((backup / "manifest.json").read_text())
    (backup / "manifest.json").write_text(
        json.dumps({**manifest, "time": manifest["time"] - 3 * 3600})
    )
    result = run_cli("backup", "check", backup, *key, "--within", 2)
    assert result.code == 1
    assert "older than 2 hours" in result.out
    assert run_cli("backup", "check", backup, *key, "--within", 2, "--json").json["late"]
    (backup / "manifest.json").write_text(
        json.dumps({**manifest, "time": manifest["time"] + 3 * 3600})
    )
    result = run_cli("backup", "check", backup, *key)
    assert result.code == 1
    assert "future" in result.out
    (backup / "first.dump").unlink()
    result = run_cli("backup", "check", backup, *key)
    assert result.code == 1
    assert "  first: first.dump is missing.\n" in result.out
    assert run_cli("backup", "check", backup, *key, "--json").json["good"] is False


def test_check_refuses_another_database(run_cli, boards, folder):
    to, key = boards
    run_cli("backup", "create", "backups", *to)
    run_cli("board", "create", folder, "--database", "other.db")
    result = run_cli("backup", "check", "backups", *key, "--database", "other.db")
    assert result.code == 1
    assert "first is missing in the database in use, or is another board there" in result.out


def test_restore_recovers_a_lost_database(run_cli, boards, predictions, postgres, monkeypatch):
    to, key = boards
    token = run_cli("team", "add", "first", "Ada").out.strip()
    created = run_cli("backup", "create", "backups", *to, "--json").json
    for path in Path().glob("ladderboard.db*"):
        path.unlink() if path.is_file() else shutil.rmtree(path)
    name = f"cli_{secrets.token_hex(6)}"
    postgres.run(f"CREATE DATABASE {name}")
    address = postgres.url().replace("/postgres", f"/{name}")
    for database in (address, "new.db"):
        monkeypatch.setenv("LADDERBOARD_DATABASE", database)
        result = run_cli("backup", "restore", "backups", *key)
        assert result.code == 0
        head = created["boards"][0]["head"]
        assert f"first is restored, and paused; continues {head}; head " in result.out
        assert "Nothing was restored." not in result.out
        assert "ladderboard board resume first --charge N" in result.out
        assert run_cli("board", "resume", "first", "--charge", 3).code == 0
        assert run_cli("board", "list", "--json").json["boards"][0]["status"] == "open"
        again = run_cli("backup", "restore", "backups", *key, "--json")
        boards_now = [(board["new"], board["status"]) for board in again.json["boards"]]
        assert (again.code, boards_now) == (1, [(False, "open")])
        result = run_cli("backup", "restore", "backups", *key)
        assert (result.code, result.out.endswith("\nNothing was restored.\n")) == (1, True)
    assert token
    postgres.run(f"DROP DATABASE {name} WITH (FORCE)")


def test_restore_prints_a_command_for_the_same_database(run_cli, boards, monkeypatch):
    to, key = boards
    run_cli("backup", "create", "backups", *to)
    into = ("--database", "a copy.db", "--key-file", "copy.key")
    result = run_cli("backup", "restore", "backups", *key, *into)
    assert "copy.key is created; keep a copy: without it the boards are lost." in result.out
    assert result.out.endswith(
        "  ladderboard board resume first --charge N --database 'a copy.db' --key-file copy.key\n"
    )
    monkeypatch.setenv("LADDERBOARD_DATABASE", "other.db")  # the next command finds it, too
    assert run_cli("backup", "restore", "backups", *key).out.endswith("first --charge N\n")


@pytest.mark.parametrize("command", ["check", "restore"])
def test_a_backup_encrypted_to_a_public_key_needs_the_secret_key(run_cli, boards, command):
    to, _ = boards
    run_cli("backup", "create", "backups", *to)
    result = run_cli("backup", command, "backups")
    assert (result.code, result.out) == (2, "")
    assert "It is encrypted to a public key" in result.err
    assert "give --secret-key PATH" in " ".join(result.err.split())


def test_unusable_backups_and_keys_are_refused_with_a_reason(run_cli, boards, tmp_path):
    to, key = boards
    for arguments, message in (
        (("create", "nowhere/there", *to), "There is no folder"),
        (("create", "restore.key", *to), "restore.key is not a folder"),
        (("create", "backups"), "A passphrase is needed"),
        (("create", "backups", "--to", "restore.key"), "restore.key holds a secret key"),
        (("create", "backups", *to, "--keep", 0), "--keep must be at least 1; got 0."),
        (("create", "backups", *to, "--without", "fish"), "no board 'fish' to leave out"),
        (("create", "backups", *to, "--passphrase-file", "x"), "not both"),
        (("check", "backups", *key), "There is no backup in"),
        (("restore", "backups", *key, "--passphrase-file", "x"), "not both"),
        (("check", "nowhere", *key), "There is no folder"),
    ):
        result = run_cli("backup", *arguments)
        assert (result.code, result.out) == (2, "")
        assert message in result.err
    assert list((tmp_path / "backups").iterdir()) == []
    run_cli("backup", "create", "backups", *to)
    run_cli("board", "keygen", "other.key")
    assert run_cli("backup", "check", "backups", "--secret-key", "other.key").code == 2
    Path("backup.pub").write_text(to[1])
    result = run_cli("backup", "check", "backups", "--secret-key", "backup.pub")
    assert result.code == 2
    assert "This backup has problems" not in result.out
    assert "backup.pub has no key that begins with AGE-SECRET-KEY-1" in result.err
