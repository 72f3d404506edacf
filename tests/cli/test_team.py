"""``ladderboard team``: tokens, invitations and disqualification."""

import sqlite3
import time

import pytest

from ladderboard.board import Role, VerifiedIdentity, open_boards
from ladderboard.errors import NotAllowed
from support.traces import traces_in_files


@pytest.fixture
def board(run_cli, folder):
    assert run_cli("board", "create", folder).code == 0


def role_of(token):
    """Return the role of a token's bearer on the board."""
    boards = open_boards("ladderboard.db")
    try:
        return boards.caller_by_token(token, "first").role
    except NotAllowed:
        return None
    finally:
        boards.close()


def teams_by_name(run_cli):
    return {team["name"]: team for team in run_cli("team", "list", "first", "--json").json["teams"]}


def test_team_add_prints_only_the_token_on_stdout(run_cli, board):
    result = run_cli("team", "add", "first", "Ada & Co")
    (token,) = result.out.splitlines()
    assert token not in result.err
    assert "Ada & Co is on first now" in result.err
    assert role_of(token) is Role.TEAM
    assert teams_by_name(run_cli)["Ada & Co"]["id"] in result.err


def test_a_new_token_revokes_the_previous_one(run_cli, board):
    first = run_cli("team", "add", "first", "Ada").out.strip()
    second = run_cli("team", "rotate-token", "first", "ada", "--json").json["token"]
    assert (role_of(first), role_of(second)) == (None, Role.TEAM)
    third = run_cli("team", "rotate-token", "first", "Ada")
    assert "The old token of Ada has ended.\nThe new token went to standard output" in third.err
    run_cli("team", "revoke", "first", teams_by_name(run_cli)["Ada"]["id"])
    assert role_of(third.out.strip()) is None


def test_an_invitation_lets_one_team_in(run_cli, board):
    made = run_cli("team", "invite", "first", "--days", "2")
    token = made.out.strip()
    assert "on the board's page Join" in made.err
    boards = open_boards("ladderboard.db")
    registered = boards.open("first").teams.register("Bob", token)
    with pytest.raises(NotAllowed):
        boards.open("first").teams.register("Eve", token)
    boards.close()
    assert registered.id == teams_by_name(run_cli)["Bob"]["id"]
    for days in ("1000", "inf", "nan"):
        assert "at most 366 days" in run_cli("team", "invite", "first", "--days", days).err


@pytest.mark.parametrize("address", ["http://127.0.0.1:8000", "https://boards.example.org"])
def test_links_that_nobody_else_can_open_come_with_a_warning(run_cli, board, monkeypatch, address):
    monkeypatch.setenv("LADDERBOARD_URL", address)
    result = run_cli("team", "invite", "first")
    assert result.out.startswith(f"{address}/boards/first/join#lb_invitation_")
    warning = f"Only this machine reaches {address}; give its public address with --url."
    assert (warning in result.err) == ("127" in address)


def test_twenty_invitations_are_twenty_lines(run_cli, board, folder):
    result = run_cli("team", "invite", "first", "--count", "20")
    tokens = result.out.splitlines()
    assert len(set(tokens)) == 20
    assert all(token.startswith("lb_invitation_") for token in tokens)
    after_a_week = time.strftime("%Y-%m-%d", time.gmtime(time.time() + 7 * 86_400))
    assert f"20 invitations to first (for one team each, valid until {after_a_week}" in result.err
    arguments = ["--count", "2", "--url", "https://boards.example.org/"]
    links = run_cli("team", "invite", "first", *arguments).out.splitlines()
    assert all(
        link.startswith("https://boards.example.org/boards/first/join#lb_invitation_")
        for link in links
    )
    answer = run_cli("team", "invite", "first", *arguments, "--json").json
    assert answer["urls"][0].endswith(f"#{answer['invitation']}")
    assert run_cli("board", "amend", "first", "--set", "end=2099-01-31 AoE").code == 0
    assert run_cli("team", "invite", "first", "--json").json["days"] == 366  # the longest
    deadline = time.strftime("%Y-%m-%dT12:00:00Z", time.gmtime(time.time() + 30 * 86_400))
    assert run_cli("board", "amend", "first", "--set", f"end={deadline}").code == 0
    assert run_cli("team", "invite", "first", "--json").json["expires"] == deadline
    shown = run_cli("team", "invite", "first").err
    assert f"valid until {deadline[:10]} 12:00 UTC" in shown


def test_a_team_is_disqualified_and_reinstated(run_cli, board):
    run_cli("team", "add", "first", "Ada")
    assert "no longer shown" in run_cli("team", "disqualify", "first", "Ada").out
    assert teams_by_name(run_cli)["Ada"]["disqualified"] is True
    assert "disqualified" in run_cli("team", "list", "first").out
    assert run_cli("team", "reinstate", "first", "Ada").code == 0
    assert teams_by_name(run_cli)["Ada"]["disqualified"] is False


def test_a_team_named_like_another_team_id_is_not_confused_with_it(run_cli, board):
    run_cli("team", "add", "first", "Ada")
    ada = teams_by_name(run_cli)["Ada"]["id"]
    run_cli("team", "add", "first", ada)
    assert run_cli("team", "disqualify", "first", ada, "--json").json["name"] == "Ada"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["disqualify", "first", "Nobody"], "ladderboard team list first"),
        (["add", "first", "HALF"], "Another team has this name"),
        (["add", "first", "a\u202eb"], "invisible"),
        (["add", "first", " "], "visible name"),
        (["rotate-token", "first", "Half"], "is a baseline"),
        (["add", "second", "Ada"], "Boards: first"),
    ],
)
def test_a_refusal_is_one_line(run_cli, board, arguments, message):
    result = run_cli("team", *arguments)
    assert (result.code, result.out) == (2, "")
    (line,) = result.err.splitlines()
    assert message in line
    assert line.isprintable()


def test_a_full_board_refuses_another_team(run_cli, board):
    for index in range(4):
        assert run_cli("team", "add", "first", f"Team {index}").code == 0
    assert "has 4 teams" in run_cli("team", "add", "first", "Late").err


def test_control_characters_in_names_are_escaped(run_cli, board):
    """Names are checked at registration; the output is escaped all the same."""
    run_cli("team", "add", "first", "Ada")
    database = sqlite3.connect("ladderboard.db")
    with database:
        database.execute("UPDATE team SET name = ? WHERE name = 'Ada'", ("\x1b[2J\u202eevil",))
    database.close()
    for arguments in (["list", "first"], ["disqualify", "first", "\x1b[2J\u202eevil"]):
        output = run_cli("team", *arguments).out
        assert "\\x1b[2J\\u202eevil" in output
        assert all(line.isprintable() for line in output.splitlines())


def test_tables_at_a_terminal_have_lines_and_no_markup(run_cli, board, monkeypatch):
    run_cli("team", "add", "first", "[red]Ada[/red]")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("NO_COLOR", "1")
    output = run_cli("team", "list", "first").out
    assert "[red]Ada[/red]" in output
    assert "───" in output


def test_tokens_are_listed_by_id_and_revoked(run_cli, board):
    created = run_cli("board", "token", "first", "--evaluator")
    assert created.code == 0
    token = created.out.strip()
    invited = run_cli("team", "invite", "first").out.strip()
    listed = run_cli("board", "tokens", "first", "--json")
    roles = {token["role"]: token["id"] for token in listed.json["tokens"]}
    assert {"evaluator", "invitation"} <= set(roles)
    assert token not in listed.out
    assert invited not in listed.out
    result = run_cli("board", "tokens", "first", "--end", roles["evaluator"])
    assert roles["evaluator"] not in result.out
    assert roles["invitation"] in result.out
    assert run_cli("board", "tokens", "first", "--end", roles["evaluator"]).code == 2


def test_webhooks_are_added_listed_and_removed(run_cli, board):
    added = run_cli("board", "webhooks", "first", "--add", "https://example.org/a")
    assert (added.code, added.out[:6]) == (0, "whsec_")
    options = ("--event", "closed", "--event", "results", "--format", "discord", "--json")
    second = run_cli("board", "webhooks", "first", "--add", "https://example.org/b", *options)
    assert (second.json["number"], second.json["board"]) == (2, "first")
    listed = run_cli("board", "webhooks", "first", "--test", "1", "--json").json["webhooks"]
    assert [row["waiting"] for row in listed] == [1, 0]
    assert (listed[1]["format"], listed[1]["events"]) == ("discord", ["closed", "results"])
    assert len(listed[0]["events"]) == 6
    table = run_cli("board", "webhooks", "first", "--remove", "1").out
    assert "https://example.org/b" in table
    assert "https://example.org/a" not in table
    for refused in (
        ("--remove", "1"),
        ("--event", "closed"),
        ("--add", "example.org"),
        ("--add", "https://example.org/", "--event", "opened"),
        ("--add", "https://example.org/", "--format", "mail"),
    ):
        assert run_cli("board", "webhooks", "first", *refused).code == 2
    assert run_cli("board", "webhooks", "first", "--remove", "2").out.startswith("first has no")


def test_an_erased_team_is_gone_from_the_database(run_cli, board, tmp_path):
    token = run_cli("team", "add", "first", "Quixotic Walruses").out.strip()
    team = teams_by_name(run_cli)["Quixotic Walruses"]["id"]
    refused = run_cli("team", "erase", "first", "quixotic walruses")
    assert (refused.code, "give --yes to go ahead" in refused.err) == (2, True)
    assert "Quixotic" in run_cli("team", "list", "first").out
    result = run_cli("team", "erase", "first", "quixotic walruses", "--yes")
    assert result.out.startswith(f"The team is Team {team[:4]} now. Bundles, exports, dumps")
    assert "free space" not in result.out
    assert role_of(token) is None
    assert teams_by_name(run_cli)[f"Team {team[:4]}"]["erased"]
    assert traces_in_files(tmp_path, ["Quixotic Walruses"]) == set()
    again = run_cli("team", "erase", "first", team, "--yes", "--json").json
    assert again == {
        "board": "first", "team": team, "name": f"Team {team[:4]}", "kept_in_ledger": False,
        "scrubbed": True,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["Nobody"], "no team"),
        (["Ada", "--person"], "Give the person's number"),
        (["7", "--person"], "There is no such registration"),
    ],
)
def test_what_cannot_be_erased(run_cli, board, arguments, message):
    run_cli("team", "add", "first", "Ada")
    result = run_cli("team", "erase", "first", *arguments, "--yes")
    assert result.code != 0
    assert message in result.err
    assert "Ada" in teams_by_name(run_cli)


def test_people_are_approved_rejected_merged_and_made_organisers(run_cli, folder):
    rules = (folder / "board.yaml").read_text()
    lines = [line for line in rules.splitlines() if not line.startswith("registration")]
    text = "\n".join([*lines, "registration: sign_in", "sign_in: {approval: true}", ""])
    (folder / "board.yaml").write_text(text)
    assert run_cli("board", "create", folder).code == 0
    boards = open_boards("ladderboard.db")
    board = boards.open("first")
    for name in ("Ada", "Bob", "Carl", "Dora"):
        person = VerifiedIdentity("u", "https://u.example", name, f"\x1b[1m{name}")
        hashed = board.identities.sign_in(person, seconds=60)
        if name != "Dora":
            caller = boards.caller_by_token_hash(hashed, "first")
            board.identities.register(caller, f"Team {name}")
    boards.close()
    listed = run_cli("team", "registrations", "first")
    assert "Team Bob" in listed.out
    assert "\x1b" not in listed.out
    for number in ("1", "2"):
        assert run_cli("team", "approve", "first", number).code == 0
    assert run_cli("team", "reject", "first", "3", "--reason", "Late.").code == 0
    assert "Person 4 organises first." in run_cli("team", "organiser", "first", "4").out
    people = run_cli("team", "registrations", "first", "--json").json["registrations"]
    states = [(person["state"], person["role"], person["reason"]) for person in people]
    assert states == [
        ("registered", "owner", ""),
        ("registered", "owner", ""),
        ("rejected", None, "Late."),
        ("signed_in", "organiser", ""),
    ]
    merged = run_cli("team", "merge", "first", "Team Bob", "Team Ada")
    assert "Team Bob is merged into Team Ada." in merged.out
    assert list(teams_by_name(run_cli)) == ["Half", "Team Ada"]
    assert run_cli("team", "merge", "first", "Team Ada", "Team Ada").code == 2
    assert run_cli("team", "organiser", "first", "4", "--remove", "--json").json["person"] == 4
    assert run_cli("team", "approve", "first", "9").code == 2
