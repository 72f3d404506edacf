"""Board commands on PostgreSQL, and moves between the kinds of database."""

import secrets

import pytest

from support.credentials import random_secret


@pytest.fixture
def database_url(postgres):
    """Create an empty database; return its URL."""
    name = f"cli_{secrets.token_hex(6)}"
    postgres.run(f"CREATE DATABASE {name}")
    yield postgres.url().replace("/postgres", f"/{name}").replace("sql:", "sql+psycopg:")
    postgres.run(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.mark.slow
def test_a_board_moves_to_postgresql_and_back(run_cli, folder, database_url, monkeypatch):
    monkeypatch.setenv("LADDERBOARD_PASSPHRASE", "four words nobody guesses")
    assert run_cli("board", "create", folder).code == 0
    run_cli("team", "add", "first", "Ada")
    heads = set()
    for source, target, file in (
        ("ladderboard.db", database_url, "a.dump"),
        (database_url, "back.db", "b.dump"),
    ):
        arguments = ["--database", source, "--out", file, "--move"]
        assert run_cli("board", "dump", "first", *arguments).code == 0
        report = run_cli("board", "restore", file, "--database", target, "--json").json
        assert report["status"] == "open"
        heads.add(report["head"])
        listed = run_cli("team", "list", "first", "--database", target, "--json").json
        assert [team["name"] for team in listed["teams"]] == ["Half", "Ada"]
    assert len(heads) == 2  # moving on is an entry, too
    assert run_cli("team", "add", "first", "Bob", "--database", database_url).code == 3


def test_a_password_is_in_no_message(run_cli, folder, postgres, database_url, monkeypatch):
    monkeypatch.setenv("LADDERBOARD_DATABASE", database_url)
    assert run_cli("board", "list").code == 4  # there are no tables yet
    assert run_cli("board", "create", folder).code == 0
    assert run_cli("board", "list", "--json").json["boards"][0]["slug"] == "first"
    password = random_secret()
    result = run_cli("board", "list", "--database", postgres.url(password=password))
    assert result.code == 4
    assert password not in result.err
