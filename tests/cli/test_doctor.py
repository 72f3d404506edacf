"""``ladderboard doctor`` on an SQLite file: findings, and that nothing is changed."""

import os
import shutil
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def _clean(monkeypatch):
    for name in list(os.environ):
        if name.startswith("LADDERBOARD_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("LADDERBOARD_SERVE_PORT", "0")


def findings_by_subject(result):
    """Return the findings by subject, after checking the exit code."""
    report = result.json
    states = [check["state"] for check in report["checks"]]
    assert set(states) <= {"ok", "note", "problem"}
    assert report["ok"] == ("problem" not in states) == (result.code == 0)
    assert result.code in {0, 1}
    assert all(check["do"] for check in report["checks"] if check["state"] == "problem")
    by_name = {}
    for check in report["checks"]:
        by_name.setdefault(check["about"], []).append((check["state"], check["said"], check["do"]))
    return by_name


def problems(findings):
    return {name for name, checks in findings.items() for check in checks if check[0] == "problem"}


@pytest.fixture
def doctor(run_cli):
    return lambda *arguments: findings_by_subject(run_cli("doctor", "--json", *arguments))


@pytest.fixture
def database_options(run_cli, folder, tmp_path):
    """Create a database and its key in separate folders; return their options."""
    home, etc = tmp_path / "srv", tmp_path / "etc"
    home.mkdir(0o700)
    etc.mkdir(0o700)
    arguments = ["--database", home / "boards.db", "--key-file", etc / "key"]
    assert run_cli("board", "create", folder, *arguments).code == 0
    return arguments


def snapshot(folder):
    """Return the content and modification time of every file below a folder."""
    return {
        path: (path.stat().st_mtime_ns, path.read_bytes() if path.is_file() else None)
        for path in sorted(folder.rglob("*"))
    }


def test_a_sound_installation_passes_and_stays_unchanged(
    doctor, run_cli, database_options, tmp_path
):
    listing_before = snapshot(tmp_path)
    findings = doctor(*database_options)
    assert problems(findings) == set()
    assert findings["database"][0][:2] == ("ok", f"{database_options[1]} has 1 board, in format 2.")
    assert findings["key file"] == [
        ("ok", f"{database_options[3]} exists and fits the database.", None)
    ]
    assert [finding[0] for finding in findings["writing"] + findings["privacy"]] == ["ok"] * 2
    assert [finding[0] for finding in findings["Python"] + findings["Ladderboard"]] == ["ok"] * 2
    result = run_cli("doctor", *database_options)
    assert result.code == 0
    assert result.out.splitlines()[-1].startswith("No problems, ")
    assert f"ok key file: {database_options[3]} exists" in " ".join(result.out.split())
    assert snapshot(tmp_path) == listing_before


def test_doctor_creates_no_files(doctor, tmp_path):
    findings = doctor("--key-file", "key")
    assert problems(findings) == set()
    assert findings["database"][0][0] == "note"
    assert "board create DIR creates it" in findings["database"][0][2]
    assert findings["key file"][0][:2] == (
        "note",
        "There is no key file key yet; it is created with the database.",
    )
    assert not list(tmp_path.iterdir())
    findings = doctor("--database", "none/boards.db")
    assert findings["database"][0][::2] == ("problem", f"mkdir -m 700 {tmp_path}/none")
    assert doctor("--database", ".")["database"][0][0] == "problem"
    assert "mysql://" in doctor("--database", "mysql://me:pw@there/b")["database"][0][1]


def test_keys_that_do_not_fit(doctor, database_options, tmp_path):
    database = database_options[:2]
    (state, message, do), *_ = doctor(*database)["key file"]
    assert (state, "encrypted" in message) == ("problem", True)
    assert "LADDERBOARD_KEY_FILE" in do
    (state, message, _), *_ = doctor(*database, "--key-file", tmp_path / "none")["key file"]
    assert (state, message) == ("problem", f"There is no key file {tmp_path}/none.")
    secret = os.urandom(32).hex()
    (tmp_path / "wrong").write_text(secret)
    (state, message, _), *_ = doctor(*database, "--key-file", tmp_path / "wrong")["key file"]
    assert (state, "wrong" in message) == ("problem", True)
    (tmp_path / "wrong").write_text(secret[:-2])
    (state, message, _), *_ = doctor(*database, "--key-file", tmp_path / "wrong")["key file"]
    assert (state, "64 hex digits" in message, secret[:8] in message) == ("problem", True, False)
    database_options[3].chmod(0o644)
    (state, _, do), *_ = doctor(*database_options)["key file"]
    assert (state, do) == ("problem", f"chmod 600 {database_options[3]}")
    database_options[3].chmod(0o640)
    assert [finding[0] for finding in doctor(*database_options)["key file"]] == ["ok", "note"]


def test_a_key_beside_the_database_and_a_database_without_one(doctor, run_cli, folder, tmp_path):
    assert run_cli("board", "create", folder, "--key-file", "key").code == 0
    assert "in the database's folder" in doctor("--key-file", "key")["key file"][1][1]
    (tmp_path / "key").unlink()
    run_cli("board", "create", folder, "--database", "open.db")
    (state, message, _), *_ = doctor("--database", "open.db")["key file"]
    assert (state, "can read the labels" in message) == ("note", True)
    arguments = ["--database", "open.db", "--key-file", "other"]
    (tmp_path / "other").write_text("0" * 64)
    (state, message, _), *_ = doctor(*arguments)["key file"]
    assert (state, "leave the key file out" in message) == ("problem", True)


def test_formats_that_are_newer_or_older(doctor, database_options, monkeypatch):
    monkeypatch.setattr("ladderboard.server._doctor.latest_format", lambda: 3)
    state, message, do = doctor(*database_options)["database"][0]
    assert (state, "format 2, an old one" in message) == ("note", True)
    assert "copies and migrates it" in do
    monkeypatch.undo()
    monkeypatch.setenv("LADDERBOARD_SERVE_PORT", "0")
    with closing(sqlite3.connect(database_options[1])) as database:
        assert database.execute("PRAGMA user_version").fetchone() == (2,)  # it was only looked at
        database.execute("PRAGMA user_version = 99")
    state, message, do = doctor(*database_options)["database"][0]
    assert (state, "newer Ladderboard" in message) == ("problem", True)
    assert "Install that version again" in do
    with closing(sqlite3.connect(database_options[1])) as database:
        database.execute("PRAGMA user_version = 2")
        database.execute("UPDATE board_format SET version = 99")
        database.commit()
    assert doctor(*database_options)["database"][0][0] == "problem"


def test_files_that_are_not_a_database(doctor, database_options, tmp_path):
    Path("text.db").write_text("no database" * 1000)
    Path("empty.db").write_bytes(b"")
    with closing(sqlite3.connect("theirs.db")) as database:
        database.execute("CREATE TABLE other (x)")
    Path("cut.db").write_bytes(database_options[1].read_bytes()[:6000])
    for name in ("text.db", "empty.db", "theirs.db", "cut.db"):
        listing_before = snapshot(tmp_path)
        state, message, do = doctor("--database", name)["database"][0]
        assert (state, name in message) == ("problem", True)
        assert "backup" in do
        assert snapshot(tmp_path) == listing_before


def test_a_database_that_others_may_open_or_replace(doctor, database_options):
    database_options[1].chmod(0o644)
    assert doctor(*database_options)["privacy"][0][::2] == (
        "problem",
        f"chmod 600 {database_options[1]}",
    )
    database_options[1].chmod(0o640)
    assert doctor(*database_options)["privacy"][0][0] == "note"
    database_options[1].chmod(0o600)
    database_options[1].parent.chmod(0o777)
    assert doctor(*database_options)["privacy"][0][::2] == (
        "problem",
        f"chmod o-w {database_options[1].parent}",
    )
    database_options[1].parent.chmod(0o777 | stat.S_ISVTX)
    assert doctor(*database_options)["privacy"][0][0] == "ok"


def test_invalid_settings(doctor, run_cli, database_options, tmp_path):
    config = tmp_path / "ladderboard.toml"
    config.write_text("[serve]\nprot = 80\n")
    findings = doctor("--config", config)
    assert problems(findings) == {"settings"}
    assert "Did you mean serve.port?" in findings["settings"][0][1]
    assert "database" not in findings  # the database is unknown
    assert doctor("--config", config, *database_options)["database"][0][0] == "ok"
    config.write_text("[serve]\nmetrics_token_file = 'none'\nhost = 'here'\nport = 8000\n")
    assert problems(doctor("--config", config)) == {"settings"}
    config.write_text(
        f"database = '{database_options[1]}'\nkey_file = '{database_options[3]}'\n"
        "[serve]\nhost = 'here'\n"
    )
    findings = doctor("--config", config)
    assert problems(findings) == {"port"}
    assert findings["database"][0][0] == "ok"


def test_conflicting_settings(doctor, database_options, monkeypatch):
    monkeypatch.setenv("LADDERBOARD_SERVE_WORKERS", "2")
    assert "allows one process" in doctor(*database_options)["settings"][1][1]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
def test_missing_permissions_are_reported(database_options):
    """Not as a traceback: the operator may be another user than the server's."""
    code = (
        "import os, sys, ladderboard.server._doctor, ladderboard.board, ladderboard.holdout\n"
        "os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
        f"from ladderboard.server import check_installation\nfrom pathlib import Path\n"
        f"database, key_file = {str(database_options[1])!r}, Path({str(database_options[3])!r})\n"
        "for check in check_installation(database=database, key_file=key_file):\n"
        "    print(check.state, check.subject, check.message, check.remedy)\n"
    )
    command = [sys.executable, "-c", code]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.stderr == ""
    assert "problem database" in result.stdout
    assert "problem key file" in result.stdout
    assert "Permission denied. Run this as the server's user." in result.stdout


def test_an_unknown_environment_variable_is_noted(doctor, monkeypatch):
    monkeypatch.setenv("LADDERBOARD_DATABSE", "secret")
    findings = doctor()["settings"]
    assert findings[1][:2] == (
        "note",
        "LADDERBOARD_DATABSE is not a known variable. Did you mean LADDERBOARD_DATABASE?",
    )


BLOCKED = """
import sys
for name in {blocked}:
    sys.modules[name] = None
sys.argv = ["ladderboard", *{words}]
from ladderboard.cli import main
main()
"""


def run_without(blocked, *arguments, cwd):
    code = BLOCKED.format(blocked=blocked.split(), words=list(map(str, arguments)))
    command = [sys.executable, "-c", code]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=cwd, timeout=120
    )


@pytest.mark.parametrize("command", ["doctor", "settings", "serve", "board list"])
def test_a_missing_server_extra_is_named(command, tmp_path):
    result = run_without("pydantic_settings", *command.split(), cwd=tmp_path)
    assert (result.returncode, result.stdout) == (2, "")
    (line,) = result.stderr.splitlines()
    assert "needs pydantic_settings: pip install 'ladderboard[server]'" in line
    assert "serve " in run_without("pydantic_settings", "--help", cwd=tmp_path).stdout


def test_without_psycopg_a_postgres_database_is_a_problem(tmp_path):
    address = "postgresql://me@there/b"
    result = run_without("psycopg", "doctor", "--database", address, cwd=tmp_path)
    assert "PostgreSQL needs psycopg" in result.stdout
    assert (result.returncode, result.stderr) == (1, "")


def test_a_board_without_its_mark_is_a_problem(doctor, run_cli, database_options, tmp_path):
    path = Path(database_options[1])
    assert problems(doctor(*database_options)) == set()
    (mark,) = path.parent.glob("*.mark")
    for content in (None, b"damaged"):
        mark.unlink()
        if content is not None:
            mark.write_bytes(content)
        state, message, remedy = doctor(*database_options)["database"][1]
        assert (state, mark.name in message) == ("problem", True)
        assert remedy.endswith("ladderboard board resume first --charge N")
        refused = run_cli("board", "list", *database_options)
        assert (refused.code, "board resume first --charge N" in refused.err) == (4, True)
        assert run_cli("board", "resume", "first", "--charge", 0, *database_options).code == 0
        assert problems(doctor(*database_options)) == set()


def test_a_closed_board_is_not_behind_its_mark(doctor, run_cli, database_options, tmp_path):
    path = Path(database_options[1])
    shutil.copy(path, tmp_path / "old.db")
    assert run_cli("board", "close", "first", "--yes", *database_options).code == 0
    assert problems(doctor(*database_options)) == set()
    (tmp_path / "old.db").replace(path)
    assert problems(doctor(*database_options)) == {"database"}


def test_a_board_behind_its_mark_is_a_problem(doctor, run_cli, database_options, tmp_path):
    path = Path(database_options[1])
    shutil.copy(path, tmp_path / "old.db")
    run_cli("board", "pause", "first", *database_options)
    run_cli("board", "resume", "first", "--charge", 3, *database_options)
    (tmp_path / "old.db").replace(path)
    state, message, _ = doctor(*database_options)["database"][1]
    assert (state, "shows that answers are missing from it" in message) == ("problem", True)


def test_boards_that_wait_after_a_restore_are_notes(doctor, run_cli, database_options, tmp_path):
    assert "boards" not in doctor(*database_options)
    public = run_cli("board", "keygen", tmp_path / "restore.key").out.strip()
    run_cli("backup", "create", tmp_path / "backups", "--to", public, *database_options)
    options = ["--database", tmp_path / "srv/new.db", *database_options[2:]]
    secret = ("--secret-key", tmp_path / "restore.key")
    assert run_cli("backup", "restore", tmp_path / "backups", *secret, *options).code == 0
    assert doctor(*options)["boards"] == [
        (
            "note",
            "first was restored and takes no submissions until it is resumed.",
            "ladderboard board resume first --charge N",
        )
    ]
    assert run_cli("board", "resume", "first", "--charge", 0, *options).code == 0
    assert "boards" not in doctor(*options)
