"""What a doctor says of a PostgreSQL server, and that it leaves it as it was."""

import os
import secrets
import socket
from contextlib import closing

import pytest

from ladderboard.board import open_boards, read_folder
from ladderboard.ledger import PostgresStorage
from ladderboard.server import check_installation
from ladderboard.server._doctor._database import check_postgres
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
    """Make an empty database, and give its address."""
    name = f"doctor_{secrets.token_hex(6)}"
    postgres.run(f"CREATE DATABASE {name}")
    yield postgres.url().replace("/postgres", f"/{name}").replace("sql:", "sql+psycopg:")
    postgres.run(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def board(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "board.yaml").write_text(
        "slug: first\ntitle: First\nloss: zero_one\nmechanism: {name: ladder, step: 0.1}\n"
        "questions: 9\nteams: 2\n"
    )
    rows = "".join(f"{at},{at % 2}\n" for at in range(100))
    (folder / "holdout.csv").write_text(f"id,label\n{rows}")
    return read_folder(folder)


def seen(url, **more):
    found = {}
    for each in check_installation(database=url, **more):
        assert PASSWORD not in repr(each)
        found.setdefault(each.subject, each)
    return found


def test_all_is_well(database_url, board, tmp_path):
    found = seen(database_url)
    assert (found["database"].state, "no boards yet" in found["database"].message) == ("note", True)
    with closing(open_boards(database_url, create=True, key_file=tmp_path / "key")) as boards:
        boards.create(board)
    found = seen(database_url, key_file=tmp_path / "key")
    assert {each.subject for each in found.values() if each.state == "problem"} == set()
    assert found["database"].message.endswith("has 1 board, in format 1.")
    assert found["PostgreSQL"].message.startswith("PostgreSQL 1")
    assert "synchronous_commit = on, encoding UTF8" in found["durability"].message
    assert found["key file"].message.endswith("fits the database.")
    assert found["clock"].state == "ok"
    (tmp_path / "other").write_text("0" * 64)
    assert seen(database_url, key_file=tmp_path / "other")["key file"].state == "problem"


def test_nothing_is_made(database_url, postgres):
    seen(database_url)
    name = database_url.rpartition("/")[2]
    schemas = "SELECT 1 FROM pg_namespace WHERE nspname = 'ladderboard'"
    import psycopg

    url = postgres.url().replace("/postgres", f"/{name}")
    with psycopg.connect(url) as connection:
        assert connection.execute(schemas).fetchall() == []


def test_a_server_that_is_not_there_or_does_not_let_us_in(postgres):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    found = seen(f"postgresql://tester:{PASSWORD}@127.0.0.1:{port}/postgres")
    assert (found["database"].state, "no way to" in found["database"].message) == ("problem", True)
    assert "PostgreSQL runs" in found["database"].remedy
    assert "PostgreSQL" not in found
    wrong = random_secret()
    found = seen(postgres.url(password=wrong))
    assert found["database"].state == "problem"
    assert wrong not in found["database"].message
    assert "PGPASSWORD" in found["database"].remedy
    found = seen("postgresql://me:a@b@there/boards")
    assert "Correct the address" in found["database"].remedy


def test_the_password_comes_from_where_libpq_looks(postgres, database_url, tmp_path, monkeypatch):
    without = database_url.replace(f":{PASSWORD}@", "@")
    assert seen(without)["database"].state == "problem"
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    assert seen(without)["database"].state == "note"
    with closing(open_boards(without, create=True)) as boards:
        assert boards.list() == []
    monkeypatch.delenv("PGPASSWORD")
    held = tmp_path / "passwords"
    held.write_text(f"127.0.0.1:{postgres.port}:*:tester:{PASSWORD}\n")
    held.chmod(0o600)
    monkeypatch.setenv("PGPASSFILE", str(held))
    assert seen(without)["database"].state == "ok"
    with closing(open_boards(without)) as boards:
        assert boards.list() == []


def test_formats_that_are_newer_or_older(database_url, monkeypatch):
    PostgresStorage(database_url, create=True).close()
    assert seen(database_url)["database"].state == "note"  # the tables of boards are yet to be made
    open_boards(database_url).close()
    assert seen(database_url)["database"].state == "ok"
    with monkeypatch.context() as newer:
        newer.setattr("ladderboard.server._doctor._database.latest_format", lambda: 2)
        assert "which is an old one" in seen(database_url)["database"].message
    import psycopg

    with psycopg.connect(database_url.replace("+psycopg", "")) as connection:
        assert connection.execute("SELECT version FROM ladderboard.format").fetchall() == [(1,)]
        connection.execute("UPDATE ladderboard.format SET version = 99")
    found = seen(database_url)["database"]
    assert (found.state, "newer Ladderboard" in found.message) == ("problem", True)
    with psycopg.connect(database_url.replace("+psycopg", "")) as connection:
        connection.execute("DROP TABLE ladderboard.kept")
        connection.execute("UPDATE ladderboard.format SET version = 1")
    assert "damaged" in seen(database_url)["database"].message


def test_a_user_who_may_not_make_or_write_the_tables(postgres, database_url):
    name = database_url.rpartition("/")[2]
    role = f"role_{secrets.token_hex(4)}"
    postgres.run(f"CREATE ROLE {role} LOGIN PASSWORD '{PASSWORD}'")
    theirs = database_url.replace("tester:", f"{role}:")
    found = seen(theirs)["database"]
    assert (found.state, found.remedy) == ("problem", "GRANT CREATE ON DATABASE name TO user;")
    open_boards(database_url, create=True).close()
    found = seen(theirs)["database"]
    assert (found.state, found.remedy) == ("problem", "Name the user who made them.")
    assert name in found.message


def test_a_database_in_another_encoding(postgres):
    name = f"doctor_{secrets.token_hex(6)}"
    postgres.run(f"CREATE DATABASE {name} ENCODING 'SQL_ASCII' TEMPLATE template0")
    found = seen(postgres.url().replace("/postgres", f"/{name}"))
    assert found["durability"].state == "problem"
    assert "SQL_ASCII" in found["durability"].message
    postgres.run(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.mark.parametrize("name", ["fsync", "full_page_writes", "synchronous_commit"])
def test_a_server_that_may_forget(postgres, database_url, name):
    set_here = name == "synchronous_commit"  # the others are the whole server's
    if set_here:
        database = database_url.rpartition("/")[2]
        postgres.run(f"ALTER DATABASE {database} SET {name} = off")
    else:
        postgres.run(f"ALTER SYSTEM SET {name} = off")
        postgres.run("SELECT pg_reload_conf(), pg_sleep(0.2)")
    try:
        found = seen(database_url)["durability"]
    finally:
        if not set_here:
            postgres.run(f"ALTER SYSTEM RESET {name}")
            postgres.run("SELECT pg_reload_conf(), pg_sleep(0.2)")
    assert (found.state, f"{name} = off" in found.message) == ("problem", True)
    assert found.remedy.startswith(f"ALTER SYSTEM SET {name} = on;")


def test_more_connections_than_the_server_has(database_url):
    told = check_postgres(database_url, 1000)
    (found,) = (each for each in told.findings if each.subject == "connections")
    assert (found.state, "may want 1000 at once" in found.message) == ("note", True)
    assert abs(told.ahead) < 5
