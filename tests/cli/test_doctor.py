"""``ladderboard doctor`` on an SQLite file: what is well or broken, and that nothing moves."""

import json
import os
import sqlite3
import stat
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from ladderboard.board import open_boards, read_folder
from ladderboard.ledger import LedgerEnvironment


@pytest.fixture(autouse=True)
def _clean(monkeypatch):
    for name in list(os.environ):
        if name.startswith("LADDERBOARD_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("LADDERBOARD_SERVE_PORT", "0")


def examined(done):
    """Return the findings by what they are about; the exit code fits them."""
    found = done.json
    states = [each["state"] for each in found["checks"]]
    assert set(states) <= {"ok", "note", "problem"}
    assert found["ok"] == ("problem" not in states) == (done.code == 0)
    assert done.code in {0, 1}
    assert all(each["do"] for each in found["checks"] if each["state"] == "problem")
    by_name = {}
    for each in found["checks"]:
        by_name.setdefault(each["about"], []).append((each["state"], each["said"], each["do"]))
    return by_name


def problems(found):
    return {name for name, all_ in found.items() for each in all_ if each[0] == "problem"}


@pytest.fixture
def doctor(program):
    return lambda *words: examined(program("doctor", "--json", *words))


@pytest.fixture
def place(program, folder, tmp_path):
    """Make a database and its key, each in a folder of its own."""
    home, etc = tmp_path / "srv", tmp_path / "etc"
    home.mkdir(0o700)
    etc.mkdir(0o700)
    words = ["--database", home / "boards.db", "--key-file", etc / "key"]
    assert program("board", "create", folder, *words).code == 0
    return words


def listing(folder):
    """Return everything below a folder, to the byte and the moment."""
    return {
        path: (path.stat().st_mtime_ns, path.read_bytes() if path.is_file() else None)
        for path in sorted(folder.rglob("*"))
    }


def test_all_is_well_and_nothing_moves(doctor, program, place, tmp_path):
    before = listing(tmp_path)
    found = doctor(*place)
    assert problems(found) == set()
    assert found["database"][0][:2] == ("ok", f"{place[1]} has 1 board, in format 1.")
    assert found["key file"] == [("ok", f"{place[3]} is there and fits the database.", None)]
    assert [each[0] for each in found["writing"] + found["privacy"] + found["clock"]] == ["ok"] * 3
    done = program("doctor", *place)
    assert done.code == 0
    assert done.out.splitlines()[-1].startswith("No problems, ")
    assert f"ok key file: {place[3]} is there" in " ".join(done.out.split())
    assert listing(tmp_path) == before


def test_where_nothing_is_yet_nothing_is_made(doctor, tmp_path):
    found = doctor("--key-file", "key")
    assert problems(found) == set()
    assert found["database"][0][0] == "note"
    assert "board create DIR makes it" in found["database"][0][2]
    assert found["key file"][0][:2] == (
        "note",
        "There is no key file key yet; it is made with the database.",
    )
    assert not list(tmp_path.iterdir())
    found = doctor("--database", "none/boards.db")
    assert found["database"][0][::2] == ("problem", f"mkdir -m 700 {tmp_path}/none")
    assert doctor("--database", ".")["database"][0][0] == "problem"
    assert "mysql://" in doctor("--database", "mysql://me:pw@there/b")["database"][0][1]


def test_keys_that_do_not_fit(doctor, place, tmp_path):
    database = place[:2]
    (state, said, do), *_ = doctor(*database)["key file"]
    assert (state, "encrypted" in said) == ("problem", True)
    assert "LADDERBOARD_KEY_FILE" in do
    (state, said, _), *_ = doctor(*database, "--key-file", tmp_path / "none")["key file"]
    assert (state, said) == ("problem", f"There is no key file {tmp_path}/none.")
    secret = os.urandom(32).hex()
    (tmp_path / "wrong").write_text(secret)
    (state, said, _), *_ = doctor(*database, "--key-file", tmp_path / "wrong")["key file"]
    assert (state, "another one" in said) == ("problem", True)
    (tmp_path / "wrong").write_text(secret[:-2])
    (state, said, _), *_ = doctor(*database, "--key-file", tmp_path / "wrong")["key file"]
    assert (state, "64 hex digits" in said, secret[:8] in said) == ("problem", True, False)
    place[3].chmod(0o644)
    (state, _, do), *_ = doctor(*place)["key file"]
    assert (state, do) == ("problem", f"chmod 600 {place[3]}")
    place[3].chmod(0o640)
    assert [each[0] for each in doctor(*place)["key file"]] == ["ok", "note"]


def test_a_key_beside_the_database_and_a_database_without_one(doctor, program, folder, tmp_path):
    assert program("board", "create", folder, "--key-file", "key").code == 0
    assert "beside the database" in doctor("--key-file", "key")["key file"][1][1]
    (tmp_path / "key").unlink()
    program("board", "create", folder, "--database", "open.db")
    (state, said, _), *_ = doctor("--database", "open.db")["key file"]
    assert (state, "can read the labels" in said) == ("note", True)
    words = ["--database", "open.db", "--key-file", "other"]
    (tmp_path / "other").write_text("0" * 64)
    (state, said, _), *_ = doctor(*words)["key file"]
    assert (state, "leave the key file out" in said) == ("problem", True)


def test_formats_that_are_newer_or_older(doctor, place, monkeypatch):
    monkeypatch.setattr("ladderboard.server._doctor._database.latest_format", lambda: 2)
    state, said, do = doctor(*place)["database"][0]
    assert (state, "format 1, which is an old one" in said) == ("note", True)
    assert "after copying it" in do
    monkeypatch.undo()
    monkeypatch.setenv("LADDERBOARD_SERVE_PORT", "0")
    with closing(sqlite3.connect(place[1])) as database:
        assert database.execute("PRAGMA user_version").fetchone() == (1,)  # it was only looked at
        database.execute("PRAGMA user_version = 99")
    state, said, do = doctor(*place)["database"][0]
    assert (state, "newer Ladderboard" in said) == ("problem", True)
    assert "Install that version again" in do
    with closing(sqlite3.connect(place[1])) as database:
        database.execute("PRAGMA user_version = 1")
        database.execute("UPDATE board_format SET version = 99")
        database.commit()
    assert doctor(*place)["database"][0][0] == "problem"


def test_files_that_are_no_database(doctor, place, tmp_path):
    Path("text.db").write_text("no database" * 1000)
    Path("empty.db").write_bytes(b"")
    with closing(sqlite3.connect("theirs.db")) as database:
        database.execute("CREATE TABLE other (x)")
    Path("cut.db").write_bytes(place[1].read_bytes()[:6000])
    for name in ("text.db", "empty.db", "theirs.db", "cut.db"):
        before = listing(tmp_path)
        state, said, do = doctor("--database", name)["database"][0]
        assert (state, name in said) == ("problem", True)
        assert "backup" in do
        assert listing(tmp_path) == before


def test_a_database_that_others_may_open_or_replace(doctor, place):
    place[1].chmod(0o644)
    assert doctor(*place)["privacy"][0][::2] == ("problem", f"chmod 600 {place[1]}")
    place[1].chmod(0o640)
    assert doctor(*place)["privacy"][0][0] == "note"
    place[1].chmod(0o600)
    place[1].parent.chmod(0o777)
    assert doctor(*place)["privacy"][0][::2] == ("problem", f"chmod o-w {place[1].parent}")
    place[1].parent.chmod(0o777 | stat.S_ISVTX)
    assert doctor(*place)["privacy"][0][0] == "ok"


def test_an_entry_of_tomorrow_tells_of_a_clock(doctor, folder, tmp_path):
    world = LedgerEnvironment(clock=lambda: int(time.time()) + 90_000)
    with closing(open_boards(tmp_path / "late.db", create=True, world=world)) as boards:
        boards.create(read_folder(folder))
    state, said, do = doctor("--database", "late.db")["clock"][0]
    assert (state, "newest ledger entry" in said) == ("problem", True)
    assert "timedatectl" in do


def test_settings_that_cannot_be_understood(doctor, program, place, tmp_path):
    config = tmp_path / "ladderboard.toml"
    config.write_text("[serve]\nprot = 80\n")
    found = doctor("--config", config)
    assert problems(found) == {"settings"}
    assert "Did you mean serve.port?" in found["settings"][0][1]
    assert "database" not in found  # nobody knows which
    assert doctor("--config", config, *place)["database"][0][0] == "ok"
    config.write_text("[serve]\nmetrics_token_file = 'none'\nhost = 'here'\nport = 8000\n")
    assert problems(doctor("--config", config)) == {"settings"}
    config.write_text(f"database = '{place[1]}'\nkey_file = '{place[3]}'\n[serve]\nhost = 'here'\n")
    found = doctor("--config", config)
    assert problems(found) == {"port"}
    assert found["database"][0][0] == "ok"
    config.chmod(0o660)
    assert [each[0] for each in doctor("--config", config)["settings"]] == ["ok", "note"]


def test_settings_that_do_not_go_together_or_are_open(doctor, place, tmp_path, monkeypatch):
    monkeypatch.setenv("LADDERBOARD_SERVE_WORKERS", "2")
    assert "one process alone" in doctor(*place)["settings"][1][1]
    monkeypatch.setenv("LADDERBOARD_SERVE_WORKERS", "1")
    token = tmp_path / "token"
    token.write_text("hunter2-hunter2")
    token.chmod(0o644)
    monkeypatch.setenv("LADDERBOARD_SERVE_METRICS_TOKEN_FILE", str(token))
    state, said, do = doctor(*place)["settings"][1]
    assert (state, do) == ("note", f"If that is not meant: chmod o-r {token}")
    assert "hunter2" not in said


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
def test_somebody_who_may_not_look_is_told_so(place):
    """Not as a traceback: whoever operates a server is not the user who serves it."""
    code = (
        "import os, sys, ladderboard.server._doctor, ladderboard.board, ladderboard.holdout\n"
        "os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
        f"from ladderboard.server import check_installation\nfrom pathlib import Path\n"
        f"database, key_file = {str(place[1])!r}, Path({str(place[3])!r})\n"
        "for check in check_installation(database=database, key_file=key_file):\n"
        "    print(check.state, check.subject, check.message, check.remedy)\n"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert "problem database" in done.stdout
    assert "problem key file" in done.stdout
    assert "Permission denied. Run this as the user who serves." in done.stdout


def test_a_variable_that_means_nothing_is_noted(doctor, monkeypatch):
    monkeypatch.setenv("LADDERBOARD_DATABSE", "secret")
    found = doctor()["settings"]
    assert found[1][:2] == (
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
EXTRAS = "polars cryptography starlette uvicorn httpx psycopg yaml fastapi jinja2 "
EXTRAS += "python_multipart multipart itsdangerous uvloop httptools numba scipy "
EXTRAS += "matplotlib cloudpickle distributed sklearn optuna mcp"


def without(blocked, *words, cwd):
    code = BLOCKED.format(blocked=blocked.split(), words=list(map(str, words)))
    command = [sys.executable, "-c", code]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=cwd, timeout=120
    )


def test_it_runs_with_the_least_that_is_installed(place, tmp_path):
    done = without(EXTRAS, "doctor", "--json", *place, cwd=tmp_path)
    assert done.stderr == ""
    found = {each["about"]: each for each in json.loads(done.stdout)["checks"]}
    assert found["extra server"]["state"] == "note"
    assert found["extra server"]["do"].endswith("pip install 'ladderboard[server]'")
    assert "psycopg" in found["extra server"]["said"]
    assert "extra sklearn" not in found
    assert "cluster, mcp, sklearn, optuna" in found["other extras"]["said"]
    assert found["other extras"]["do"].endswith("pip install 'ladderboard[cluster]'")
    assert found["database"]["state"] == "ok"
    assert "pip install 'ladderboard[guard]'" in found["key file"]["do"]
    assert "server" not in found
    done = without(EXTRAS, "doctor", "--database", "postgresql://me@there/b", cwd=tmp_path)
    assert "PostgreSQL needs psycopg" in done.stdout
    assert done.returncode == 1
    assert done.stderr == ""


@pytest.mark.parametrize("verb", ["doctor", "settings"])
def test_without_typer_it_says_what_to_install(verb, tmp_path):
    done = without("typer", verb, cwd=tmp_path)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert "typer: pip install 'ladderboard[client]'" in line


def test_a_server_that_is_broken_is_found(place, tmp_path):
    """A module is there, and cannot be loaded."""
    (tmp_path / "uvloop.py").write_text("")
    (tmp_path / "httptools.py").write_text("raise OSError('libhttp.so: no such file')")
    code = BLOCKED.format(blocked=[], words=["doctor", *map(str, place)])
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, '.')\n{code}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 1
    assert "problem  server: It is installed, but cannot be loaded" in done.stdout
