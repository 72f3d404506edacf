"""The verbs of ``ladderboard team``."""

import sqlite3

import pytest

from ladderboard.board import Role, open_boards
from ladderboard.errors import NotAllowed


@pytest.fixture
def board(program, folder):
    assert program("board", "create", folder).code == 0


def who(token):
    """Return the role of a token's bearer on the board."""
    boards = open_boards("ladderboard.db")
    try:
        return boards.caller_by_token(token, "first").role
    except NotAllowed:
        return None
    finally:
        boards.close()


def named(program):
    return {each["name"]: each for each in program("team", "list", "first", "--json").json["teams"]}


def test_a_shell_can_take_the_token(program, board):
    done = program("team", "add", "first", "Ada & Co")
    (token,) = done.out.splitlines()
    assert token not in done.err
    assert "Ada & Co is on first now" in done.err
    assert who(token) is Role.TEAM
    assert named(program)["Ada & Co"]["id"] in done.err


def test_another_token_ends_the_one_before(program, board):
    first = program("team", "add", "first", "Ada").out.strip()
    second = program("team", "rotate-token", "first", "ada", "--json").json["token"]
    assert (who(first), who(second)) == (None, Role.TEAM)
    program("team", "revoke", "first", named(program)["Ada"]["id"])
    assert who(second) is None


def test_an_invitation_lets_one_team_in(program, board):
    token = program("team", "invite", "first", "--days", "2").out.strip()
    boards = open_boards("ladderboard.db")
    made = boards.open("first").teams.register("Bob", token)
    with pytest.raises(NotAllowed):
        boards.open("first").teams.register("Eve", token)
    boards.close()
    assert made.id == named(program)["Bob"]["id"]
    assert "at most 366 days" in program("team", "invite", "first", "--days", "1000").err


def test_disqualified_and_back(program, board):
    program("team", "add", "first", "Ada")
    assert "no longer shown" in program("team", "disqualify", "first", "Ada").out
    assert named(program)["Ada"]["disqualified"] is True
    assert "disqualified" in program("team", "list", "first").out
    assert program("team", "reinstate", "first", "Ada").code == 0
    assert named(program)["Ada"]["disqualified"] is False


def test_who_is_called_like_another_s_id_is_not_taken_for_it(program, board):
    program("team", "add", "first", "Ada")
    ada = named(program)["Ada"]["id"]
    program("team", "add", "first", ada)
    assert program("team", "disqualify", "first", ada, "--json").json["name"] == "Ada"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["disqualify", "first", "Nobody"], "ladderboard team list first"),
        (["add", "first", "HALF"], "Another team has this name"),
        (["add", "first", "a\u202eb"], "invisible"),
        (["add", "first", " "], "visible name"),
        (["rotate-token", "first", "Half"], "is a baseline"),
        (["add", "second", "Ada"], "Boards: first"),
    ],
)
def test_what_is_refused_is_one_line(program, board, words, said):
    done = program("team", *words)
    assert (done.code, done.out) == (2, "")
    (line,) = done.err.splitlines()
    assert said in line
    assert line.isprintable()


def test_a_full_board_takes_no_more(program, board):
    for at in range(4):
        assert program("team", "add", "first", f"Team {at}").code == 0
    assert "has 4 teams" in program("team", "add", "first", "Late").err


def test_names_cannot_speak_to_the_terminal(program, board):
    """Names are checked when they come; should one be there all the same, it is escaped."""
    program("team", "add", "first", "Ada")
    database = sqlite3.connect("ladderboard.db")
    with database:
        database.execute("UPDATE team SET name = ? WHERE name = 'Ada'", ("\x1b[2J\u202eevil",))
    database.close()
    for words in (["list", "first"], ["disqualify", "first", "\x1b[2J\u202eevil"]):
        said = program("team", *words).out
        assert "\\x1b[2J\\u202eevil" in said
        assert all(line.isprintable() for line in said.splitlines())


def test_on_a_terminal_tables_have_lines_and_no_markup(program, board, monkeypatch):
    program("team", "add", "first", "[red]Ada[/red]")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("NO_COLOR", "1")
    said = program("team", "list", "first").out
    assert "[red]Ada[/red]" in said
    assert "───" in said


def test_tokens_are_listed_by_what_they_are_not_and_ended(program, board):
    made = program("board", "token", "first", "--evaluator")
    assert made.code == 0
    token = made.out.strip()
    invited = program("team", "invite", "first").out.strip()
    listed = program("board", "tokens", "first", "--json")
    roles = {each["role"]: each["id"] for each in listed.json["tokens"]}
    assert {"evaluator", "invitation"} <= set(roles)
    assert token not in listed.out
    assert invited not in listed.out
    done = program("board", "tokens", "first", "--end", roles["evaluator"])
    assert roles["evaluator"] not in done.out
    assert roles["invitation"] in done.out
    assert program("board", "tokens", "first", "--end", roles["evaluator"]).code == 2
