"""The doctor's checks of a PostgreSQL server, and that they change nothing."""

import os
import secrets
import socket
from contextlib import closing

import pytest

from ladderboard.board import open_boards, read_folder
from ladderboard.ledger import PostgresStorage
from ladderboard.server import check_installation
from support.credentials import random_secret
from support.postgres import PASSWORD


@pytest.fixture(autouse=True)
def _clean(monkeypatch, tmp_path):
    for name in list(os.environ):
        if name.startswith(("LADDERBOARD_", "PG")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("LADDERBOARD_SERVE_PORT", "0")
    monkeypatch.setenv("HOME", str(tmp_path))


@pytest.fixture
def database_url(postgres):
    """The address of an empty database."""
    name = f"doctor_{secrets.token_hex(6)}"
    postgres.run(f"CREATE DATABASE {name}")
    yield postgres.url().replace("/postgres", f"/{name}").replace("sql:", "sql+psycopg:")
    postgres.run(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def board_folder(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "board.yaml").write_text(
        "slug: first\ntitle: First\nloss: zero_one\nmechanism: {name: ladder, step: 0.1}\n"
        "questions: 9\nteams: 2\n"
    )
    rows = "".join(f"{index},{index % 2}\n" for index in range(100))
    (folder / "holdout.csv").write_text(f"id,label\n{rows}")
    return read_folder(folder)


def checks_by_subject(url, **options):
    checks = {}
    for check in check_installation(database=url, **options):
        assert PASSWORD not in repr(check)
        checks.setdefault(check.subject, check)
    return checks


def test_a_good_installation_has_no_problems(database_url, board_folder, tmp_path):
    checks = checks_by_subject(database_url)
    assert (checks["database"].state, "no boards yet" in checks["database"].message) == (
        "note",
        True,
    )
    with closing(open_boards(database_url, create=True, key_file=tmp_path / "key")) as boards:
        boards.create(board_folder)
    checks = checks_by_subject(database_url, key_file=tmp_path / "key")
    assert {check.subject for check in checks.values() if check.state == "problem"} == set()
    assert checks["database"].message.endswith("has 1 board, in format 2.")
    assert checks["PostgreSQL"].message.startswith("Version 1")
    assert checks["key file"].message.endswith("fits the database.")
    (tmp_path / "other").write_text("0" * 64)
    assert (
        checks_by_subject(database_url, key_file=tmp_path / "other")["key file"].state == "problem"
    )


def test_the_doctor_creates_no_schema(database_url, postgres):
    checks_by_subject(database_url)
    name = database_url.rpartition("/")[2]
    schemas = "SELECT 1 FROM pg_namespace WHERE nspname = 'ladderboard'"
    import psycopg

    url = postgres.url().replace("/postgres", f"/{name}")
    with psycopg.connect(url) as connection:
        assert connection.execute(schemas).fetchall() == []


def test_an_unreachable_server_and_a_wrong_password(postgres):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    checks = checks_by_subject(f"postgresql://tester:{PASSWORD}@127.0.0.1:{port}/postgres")
    assert (checks["database"].state, "Cannot connect to" in checks["database"].message) == (
        "problem",
        True,
    )
    assert "PostgreSQL runs" in checks["database"].remedy
    assert "PostgreSQL" not in checks
    wrong = random_secret()
    checks = checks_by_subject(postgres.url(password=wrong))
    assert checks["database"].state == "problem"
    assert wrong not in checks["database"].message
    assert "PGPASSWORD" in checks["database"].remedy
    checks = checks_by_subject("postgresql://me:a@b@there/boards")
    assert "Correct the address" in checks["database"].remedy


def test_the_password_comes_from_where_libpq_looks(postgres, database_url, tmp_path, monkeypatch):
    without_password = database_url.replace(f":{PASSWORD}@", "@")
    assert checks_by_subject(without_password)["database"].state == "problem"
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    assert checks_by_subject(without_password)["database"].state == "note"
    with closing(open_boards(without_password, create=True)) as boards:
        assert boards.list() == []
    monkeypatch.delenv("PGPASSWORD")
    password_file = tmp_path / "passwords"
    password_file.write_text(f"127.0.0.1:{postgres.port}:*:tester:{PASSWORD}\n")
    password_file.chmod(0o600)
    monkeypatch.setenv("PGPASSFILE", str(password_file))
    assert checks_by_subject(without_password)["database"].state == "ok"
    with closing(open_boards(without_password)) as boards:
        assert boards.list() == []


def test_older_newer_and_damaged_formats(database_url, monkeypatch):
    PostgresStorage(database_url, create=True).close()
    assert (
        checks_by_subject(database_url)["database"].state == "note"
    )  # the tables of boards do not exist yet
    open_boards(database_url).close()
    assert checks_by_subject(database_url)["database"].state == "ok"
    with monkeypatch.context() as newer:
        newer.setattr("ladderboard.server._doctor.latest_format", lambda: 3)
        assert "an old one" in checks_by_subject(database_url)["database"].message
    import psycopg

    with psycopg.connect(database_url.replace("+psycopg", "")) as connection:
        assert connection.execute("SELECT version FROM ladderboard.format").fetchall() == [(2,)]
        connection.execute("UPDATE ladderboard.format SET version = 99")
    check = checks_by_subject(database_url)["database"]
    assert (check.state, "newer Ladderboard" in check.message) == ("problem", True)
    with psycopg.connect(database_url.replace("+psycopg", "")) as connection:
        connection.execute("DROP TABLE ladderboard.kept")
        connection.execute("UPDATE ladderboard.format SET version = 2")
    assert "damaged" in checks_by_subject(database_url)["database"].message


def test_settings_that_risk_durability_are_problems(postgres, database_url):
    database = database_url.rpartition("/")[2]
    postgres.run(f"ALTER DATABASE {database} SET synchronous_commit = off")
    check = checks_by_subject(database_url)["database"]
    assert (check.state, "synchronous_commit = off" in check.message) == ("problem", True)
    assert check.remedy.startswith("ALTER SYSTEM SET synchronous_commit = on;")
