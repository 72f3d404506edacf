"""``ladderboard team``: the teams of a board."""

import shlex
import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ladderboard import _settings
from ladderboard._formatting import format_time
from ladderboard.cli._app import make_group
from ladderboard.cli._bundle import confirm
from ladderboard.cli._database import (
    DEFAULT_DATABASE,
    Database,
    KeyFile,
    Slug,
    find_team,
    list_teams,
    open_board,
    open_database,
    organiser,
)
from ladderboard.cli._options import AsJson
from ladderboard.cli._output import (
    echo,
    echo_err,
    echo_json,
    echo_secret,
    echo_table,
    format_minute,
    wrap_lines,
)
from ladderboard.client import parse_address
from ladderboard.errors import InvalidSetting

if TYPE_CHECKING:
    from ladderboard.board import TeamWithToken

_HELP = """Add teams and manage their tokens and people. TEAM is a team's id or its name.

A token or an invitation is printed once, alone on stdout, for a shell to capture:
TOKEN=$(ladderboard team add BOARD NAME). Only its hash is stored.
"""

_ERASURE = (
    "The name, the messages of submissions, identities, tokens and sessions are removed. Scores, "
    "predictions and the ledger stay, with a pseudonym."
)
_KEPT_IN_LEDGER = (
    "An older version closed this board: its ledger commits to a ranking with the old name, which "
    "stays in the database and in bundles."
)
_OLD_ROWS_IN_POSTGRES = (
    "PostgreSQL keeps the old rows until it needs their space. To remove them now, run in psql: "
    "VACUUM FULL ladderboard.team, ladderboard.identity, ladderboard.submission;"
)
_OLD_ROWS_IN_FILE = (
    "Old rows may still be in free space of the file. To remove them, stop the server and run: "
    "sqlite3 {} VACUUM"
)
_PersonNumber = Annotated[
    int, typer.Argument(metavar="PERSON", help="The person's number in registrations.", min=1)
]
_TeamName = Annotated[str, typer.Argument(metavar="TEAM", help="The team's id or its name.")]


app = make_group(
    "team",
    _HELP,
    {
        "add": "_team:add",
        "list": "_team:list_",
        "invite": "_team:invite",
        "rotate-token": "_team:rotate_token",
        "revoke": "_team:revoke",
        "disqualify": "_team:disqualify",
        "reinstate": "_team:reinstate",
        "erase": "_team:erase",
        "merge": "_team:merge",
        "registrations": "_team:registrations",
        "approve": "_team:approve",
        "reject": "_team:reject",
        "organiser": "_team:set_organiser",
    },
    {
        "list": "List all teams, hidden ones too.",
        "invite": "Print an invitation for one team.",
        "rotate-token": "Replace a team's token.",
        "erase": "Remove the name of a team or a person.",
        "merge": "Merge a team into another.",
        "registrations": "List the people who signed in.",
        "approve": "Register a waiting person's team.",
        "reject": "Reject a registration, with a reason.",
        "organiser": "Make a person an organiser.",
    },
)


def add(
    board: Slug,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The new team's name.")],
    *,
    database: Database = DEFAULT_DATABASE,
    key_file: KeyFile = None,
    as_json: AsJson = False,
) -> None:
    """Add a team and print its token, once.

    The token is alone on stdout, for a shell to capture; everything else is on stderr.
    """
    with open_database(database, key_file) as boards:
        credentials = open_board(boards, board).teams.create(organiser(), name)
    _echo_new_token(
        board,
        credentials,
        f"{credentials.name} is on {board} now, with id {credentials.id}.",
        as_json=as_json,
    )


def rotate_token(
    board: Slug,
    team: _TeamName,
    *,
    database: Database = DEFAULT_DATABASE,
    key_file: KeyFile = None,
    as_json: AsJson = False,
) -> None:
    """Replace a team's token; the old one stops working.

    Sessions started with the old token end, too. The new token is alone on stdout, for a shell to
    capture.
    """
    with open_database(database, key_file) as boards:
        opened = open_board(boards, board)
        row = find_team(opened, team, with_token=True)
        credentials = opened.teams.rotate_token(organiser(), row["id"])
    ended = f"The old token of {credentials.name} has ended."
    _echo_new_token(board, credentials, ended, label="The new token", as_json=as_json)


def _echo_new_token(
    board: str,
    credentials: "TeamWithToken",
    sentence: str,
    *,
    label: str = "Its token",
    as_json: bool,
) -> None:
    if as_json:
        echo_json(
            {
                "board": board,
                "id": credentials.id,
                "name": credentials.name,
                "token": credentials.token,
            }
        )
        return
    echo_err(sentence)
    echo_secret(label, credentials.token)


def invite(
    board: Slug,
    *,
    count: Annotated[
        int, typer.Option(help="How many invitations, one for each team.", min=1, max=1000)
    ] = 1,
    days: Annotated[
        float | None,
        typer.Option(
            help="For how many days they are valid; default: until the deadline, or 7 days."
        ),
    ] = None,
    url: Annotated[
        str | None,
        typer.Option(
            envvar="LADDERBOARD_URL",
            help="The server's URL: print links to its Join page, with the invitations in them.",
        ),
    ] = None,
    database: Database = DEFAULT_DATABASE,
    key_file: KeyFile = None,
    as_json: AsJson = False,
) -> None:
    """Print invitations; each registers one team.

    They are alone on stdout, one on each line, for a shell to capture. With a URL they are links
    that fill in the form.
    """
    address = None if url is None else parse_address(url)
    join_url = None if address is None else f"{address.url}/boards/{board}/join"
    with open_database(database, key_file) as boards:
        opened = open_board(boards, board)
        end = opened.teams.invitation_end(time.time(), days)
        tokens = [opened.teams.invite_team(organiser(), days=days) for _ in range(count)]
    if address is not None and _settings.is_loopback(address.host):
        echo_err(f"Only this machine reaches {address.url}; give its public address with --url.")
    links = [token if join_url is None else f"{join_url}#{token}" for token in tokens]
    if as_json:
        listed = {"invitations": tokens, "urls": [] if join_url is None else links}
        left = (end - time.time()) / 86400 if days is None else days
        times = {"days": round(left, 4), "expires": format_time(end)}
        echo_json({"board": board, "invitation": tokens[0], **times, **listed})
        return
    if join_url is None:
        echo_err("Teams enter an invitation on the board's page Join; --url prints links to it.")
    what = "An invitation" if count == 1 else f"{count:,} invitations"
    share = "" if count == 1 else " each"
    until = format_minute(format_time(end))
    echo_secret(f"{what} to {board} (for one team{share}, valid until {until} UTC)", *links)


def list_(
    board: Slug,
    *,
    database: Database = DEFAULT_DATABASE,
    key_file: KeyFile = None,
    as_json: AsJson = False,
) -> None:
    """List all teams, with baselines and disqualified teams."""
    with open_database(database, key_file) as boards:
        opened = open_board(boards, board)
        teams, display = list_teams(opened), opened.rules.display
    if as_json:
        echo_json({"board": board, "teams": teams})
        return
    if not teams:
        echo(f"{board} has no teams yet. Add one with: ladderboard team add {board} NAME")
        return
    echo_table(
        ("id", "name", "status", "submissions", "last (UTC)", display.name),
        [
            (
                team["id"],
                team["name"],
                "disqualified" if team["disqualified"] else team["kind"],
                f"{team['submissions']:,}",
                format_minute(team["last"]),
                display.text(team["loss"]),
            )
            for team in teams
        ],
        right=("submissions", display.name),
    )


def revoke(
    board: Slug,
    team: _TeamName,
    *,
    database: Database = DEFAULT_DATABASE,
    key_file: KeyFile = None,
    as_json: AsJson = False,
) -> None:
    """End a team's token and its sessions.

    Its submissions stay; rotate-token gives it another token.
    """
    with open_database(database, key_file) as boards:
        opened = open_board(boards, board)
        row = find_team(opened, team, with_token=True)
        opened.teams.revoke_team_tokens(organiser(), row["id"])
    _echo_team(board, row, f"The token of {row['name']} has ended.", as_json=as_json)


def disqualify(
    board: Slug,
    team: _TeamName,
    *,
    database: Database = DEFAULT_DATABASE,
    key_file: KeyFile = None,
    as_json: AsJson = False,
) -> None:
    """Hide a team from the standings. Its submissions still count; its ladder stays."""
    row = _set_disqualified(board, team, database, key_file, reinstate=False)
    _echo_team(board, row, f"{row['name']} is no longer shown on {board}.", as_json=as_json)


def reinstate(
    board: Slug,
    team: _TeamName,
    *,
    database: Database = DEFAULT_DATABASE,
    key_file: KeyFile = None,
    as_json: AsJson = False,
) -> None:
    """Show a disqualified team again."""
    row = _set_disqualified(board, team, database, key_file, reinstate=True)
    _echo_team(board, row, f"{row['name']} is shown on {board} again.", as_json=as_json)


def erase(
    board: Slug,
    team: Annotated[
        str, typer.Argument(metavar="TEAM", help="The team's id or name, or a person's number.")
    ],
    *,
    person: Annotated[
        bool,
        typer.Option("--person", help="Erase a person who signed in, by the number on the page."),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
    database: Database = DEFAULT_DATABASE,
    key_file: KeyFile = None,
    as_json: AsJson = False,
) -> None:
    """Remove a team's name, its messages and the identities of its people; a pseudonym stays.

    Scores, predictions and the ledger stay, and verify as before. Tokens and sessions end. With
    --person one person is removed; the team's name goes with the last person in it.
    """
    with open_database(database, key_file) as boards:
        opened = open_board(boards, board)
        if person and not (team.isascii() and team.isdigit()):
            raise InvalidSetting("Give the person's number, which the Organise page lists.")
        row = None if person else find_team(opened, team)
        if not yes:
            action = f"Erasing {f'person {team}' if row is None else row['name']}"
            confirm(action, f"{action} cannot be undone. {_ERASURE}", team, "erase")
        if row is None:
            erased = opened.erasure.erase_person(organiser(), int(team))
        else:
            erased = opened.erasure.erase_team(organiser(), row["id"])
        scrubbed = erased.scrubbed or opened.erasure.scrub()
    if as_json:
        echo_json({"board": board, **erased._asdict(), "scrubbed": scrubbed})
        return
    name = "The person is removed" if erased.name is None else f"The team is {erased.name} now"
    sentences = [f"{name}. Bundles, exports, dumps and backups made before keep the old name."]
    if erased.kept_in_ledger:
        sentences.append(_KEPT_IN_LEDGER)
    if not scrubbed:
        is_file = "://" not in database
        sentences.append(
            _OLD_ROWS_IN_FILE.format(shlex.quote(database)) if is_file else _OLD_ROWS_IN_POSTGRES
        )
    echo(*wrap_lines(" ".join(sentences)))


def _set_disqualified(
    board: str, team: str, database: str, key_file: Any, *, reinstate: bool
) -> dict[str, Any]:
    with open_database(database, key_file) as boards:
        opened = open_board(boards, board)
        row = find_team(opened, team)
        opened.teams.disqualify(organiser(), row["id"], reinstate=reinstate)
    return row


def _echo_team(board: str, row: dict[str, Any], sentence: str, *, as_json: bool) -> None:
    if as_json:
        echo_json({"board": board, "id": row["id"], "name": row["name"]})
    else:
        echo(sentence)


def merge(
    board: Slug,
    team: _TeamName,
    into: Annotated[str, typer.Argument(metavar="INTO", help="The id or name of the other team.")],
    *,
    database: Database = DEFAULT_DATABASE,
    key_file: KeyFile = None,
    as_json: AsJson = False,
) -> None:
    """Merge a team into another, if neither has submitted. Its token ends, and its people move."""
    with open_database(database, key_file) as boards:
        opened = open_board(boards, board)
        row, target = find_team(opened, team), find_team(opened, into)
        opened.members.merge(organiser(), row["id"], target["id"])
    sentence = f"{row['name']} is merged into {target['name']}."
    _echo_team(board, target, sentence, as_json=as_json)


def registrations(
    board: Slug,
    *,
    database: Database = DEFAULT_DATABASE,
    key_file: KeyFile = None,
    as_json: AsJson = False,
) -> None:
    """List the people who signed in, with their states and roles."""
    with open_database(database, key_file) as boards:
        listing = open_board(boards, board).identities.registrations(organiser())
    if as_json:
        echo_json({"board": board, **listing})
        return
    echo_table(
        ("number", "name", "mail", "state", "role", "team"),
        [
            (
                person["number"],
                person["name"] or person["subject"],
                person["mail"],
                person["state"],
                person["role"],
                person["team_name"] or person["team"],
            )
            for person in listing["registrations"]
        ],
        right=("number",),
    )
    echo(f"{listing['listed']:,} on the list have not signed in.")


def approve(
    board: Slug,
    person: _PersonNumber,
    *,
    database: Database = DEFAULT_DATABASE,
    key_file: KeyFile = None,
    as_json: AsJson = False,
) -> None:
    """Register the team of a person whose registration waits or was rejected."""
    with open_database(database, key_file) as boards:
        open_board(boards, board).identities.approve(organiser(), person)
    _echo_person(board, person, f"Person {person} is approved.", as_json=as_json)


def reject(
    board: Slug,
    person: _PersonNumber,
    *,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="The reason to show them.")] = "",
    database: Database = DEFAULT_DATABASE,
    key_file: KeyFile = None,
    as_json: AsJson = False,
) -> None:
    """Reject a person's registration, or remove them from a team with others."""
    with open_database(database, key_file) as boards:
        open_board(boards, board).identities.reject(organiser(), person, reason)
    _echo_person(board, person, f"Person {person} is rejected.", as_json=as_json)


def set_organiser(
    board: Slug,
    person: _PersonNumber,
    *,
    remove: Annotated[bool, typer.Option("--remove", help="Withdraw the role.")] = False,
    database: Database = DEFAULT_DATABASE,
    key_file: KeyFile = None,
    as_json: AsJson = False,
) -> None:
    """Make a person who signed in an organiser of the board; the ledger records it."""
    with open_database(database, key_file) as boards:
        members = open_board(boards, board).members
        members.set_organiser(organiser(), person, organiser=not remove)
    verb = "no longer organises" if remove else "organises"
    _echo_person(board, person, f"Person {person} {verb} {board}.", as_json=as_json)


def _echo_person(board: str, person: int, sentence: str, *, as_json: bool) -> None:
    if as_json:
        echo_json({"board": board, "person": person})
    else:
        echo(sentence)
