"""The verbs of boards on PostgreSQL, and from one kind of database to the other."""

import secrets

import pytest

from support.credentials import random_secret


@pytest.fixture
def database_url(postgres):
    """Make an empty database, and give its address."""
    name = f"cli_{secrets.token_hex(6)}"
    postgres.run(f"CREATE DATABASE {name}")
    yield postgres.url().replace("/postgres", f"/{name}").replace("sql:", "sql+psycopg:")
    postgres.run(f"DROP DATABASE {name} WITH (FORCE)")


def test_a_board_moves_to_postgresql_and_back(program, folder, database_url, monkeypatch):
    monkeypatch.setenv("LADDERBOARD_PASSPHRASE", "four words nobody guesses")
    assert program("board", "create", folder).code == 0
    program("team", "add", "first", "Ada")
    heads = set()
    for source, target, file in (
        ("ladderboard.db", database_url, "a.dump"),
        (database_url, "back.db", "b.dump"),
    ):
        words = ["--database", source, "--out", file, "--move"]
        assert program("board", "dump", "first", *words).code == 0
        found = program("board", "restore", file, "--database", target, "--json").json
        assert found["status"] == "open"
        heads.add(found["head"])
        listed = program("team", "list", "first", "--database", target, "--json").json
        assert [each["name"] for each in listed["teams"]] == ["Half", "Ada"]
    assert len(heads) == 2  # moving on is an entry, too
    assert program("team", "add", "first", "Bob", "--database", database_url).code == 3


def test_a_password_is_in_no_message(program, folder, postgres, database_url, monkeypatch):
    monkeypatch.setenv("LADDERBOARD_DATABASE", database_url)
    assert program("board", "list").code == 4  # there are no tables yet
    assert program("board", "create", folder).code == 0
    assert program("board", "list", "--json").json["boards"][0]["slug"] == "first"
    wrong = random_secret()
    done = program("board", "list", "--database", postgres.url(password=wrong))
    assert done.code == 4
    assert wrong not in done.err
