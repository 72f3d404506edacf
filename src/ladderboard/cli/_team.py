"""``ladderboard team``: the teams of a board."""

from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from ladderboard.cli._app import LazyGroup
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
)

if TYPE_CHECKING:
    from ladderboard.board import TeamWithToken

_HELP = """Let teams in, and give them tokens. TEAM is a team's id or its name.

A token or an invitation is printed once, alone on stdout, so that a shell can take it:
TOKEN=$(ladderboard team add BOARD NAME). Only its hash is kept.
"""

_TeamName = Annotated[str, typer.Argument(metavar="TEAM", help="The team's id or its name.")]


class _TeamGroup(LazyGroup):
    import_paths: ClassVar[dict[str, str]] = {
        "add": "_team:add",
        "list": "_team:list_",
        "invite": "_team:invite",
        "rotate-token": "_team:rotate_token",
        "revoke": "_team:revoke",
        "disqualify": "_team:disqualify",
        "reinstate": "_team:reinstate",
    }
    short_helps: ClassVar[dict[str, str]] = {
        "list": "List all teams, those not shown, too.",
        "rotate-token": "Give a team another token.",
    }


app = typer.Typer(
    name="team",
    cls=_TeamGroup,
    help=_HELP,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)


@app.callback(help=_HELP)
def _team() -> None:
    pass


def add(
    board: Slug,
    name: Annotated[str, typer.Argument(metavar="NAME", help="What the team shall be called.")],
    *,
    database: Database = DEFAULT_DATABASE,
    key_file: KeyFile = None,
    as_json: AsJson = False,
) -> None:
    """Make a team and print its token, once.

    The token is alone on stdout, so that a shell can take it; what is said about it is on stderr.
    """
    with open_database(database, key_file) as boards:
        made = open_board(boards, board).teams.create(organiser(), name)
    _echo_new_token(
        board, made, f"{made.name} is on {board} now, with the id {made.id}.", as_json=as_json
    )


def rotate_token(
    board: Slug,
    team: _TeamName,
    *,
    database: Database = DEFAULT_DATABASE,
    key_file: KeyFile = None,
    as_json: AsJson = False,
) -> None:
    """Give a team another token, and end the one before.

    Sessions that came by the old one end, too. The new token is alone on stdout, so that a shell
    can take it.
    """
    with open_database(database, key_file) as boards:
        found = open_board(boards, board)
        who = find_team(found, team, with_token=True)
        made = found.teams.rotate_token(organiser(), who["id"])
    _echo_new_token(
        board, made, f"The token that {made.name} had before has ended.", as_json=as_json
    )


def _echo_new_token(board: str, made: "TeamWithToken", sentence: str, *, as_json: bool) -> None:
    if as_json:
        echo_json({"board": board, "id": made.id, "name": made.name, "token": made.token})
        return
    echo_err(sentence)
    echo_secret("Its token", made.token)


def invite(
    board: Slug,
    *,
    days: Annotated[float, typer.Option(help="For how many days it is good.")] = 7,
    database: Database = DEFAULT_DATABASE,
    key_file: KeyFile = None,
    as_json: AsJson = False,
) -> None:
    """Print an invitation for one team.

    With it the team can register itself. The invitation is alone on stdout, so that a shell can
    take it.
    """
    with open_database(database, key_file) as boards:
        token = open_board(boards, board).teams.invite(organiser(), days=days)
    if as_json:
        echo_json({"board": board, "invitation": token, "days": days})
        return
    echo_secret(f"An invitation to {board} for one team, good for {days:g} days", token)


def list_(
    board: Slug,
    *,
    database: Database = DEFAULT_DATABASE,
    key_file: KeyFile = None,
    as_json: AsJson = False,
) -> None:
    """List all teams, baselines and those that are not shown, too."""
    with open_database(database, key_file) as boards:
        found = open_board(boards, board)
        teams, display = list_teams(found), found.rules.display
    if as_json:
        echo_json({"board": board, "teams": teams})
        return
    if not teams:
        echo(f"{board} has no teams yet. One is made with: ladderboard team add {board} NAME")
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
        found = open_board(boards, board)
        who = find_team(found, team, with_token=True)
        found.teams.revoke_team_tokens(organiser(), who["id"])
    _echo_team(board, who, f"The token of {who['name']} has ended.", as_json=as_json)


def disqualify(
    board: Slug,
    team: _TeamName,
    *,
    database: Database = DEFAULT_DATABASE,
    key_file: KeyFile = None,
    as_json: AsJson = False,
) -> None:
    """Take a team off what is shown. Its questions stay asked, and its ladder as it is."""
    who = _set_disqualified(board, team, database, key_file, reinstate=False)
    _echo_team(board, who, f"{who['name']} is no longer shown on {board}.", as_json=as_json)


def reinstate(
    board: Slug,
    team: _TeamName,
    *,
    database: Database = DEFAULT_DATABASE,
    key_file: KeyFile = None,
    as_json: AsJson = False,
) -> None:
    """Show a team again that was disqualified."""
    who = _set_disqualified(board, team, database, key_file, reinstate=True)
    _echo_team(board, who, f"{who['name']} is shown on {board} again.", as_json=as_json)


def _set_disqualified(
    board: str, team: str, database: str, key_file: Any, *, reinstate: bool
) -> dict[str, Any]:
    with open_database(database, key_file) as boards:
        found = open_board(boards, board)
        who = find_team(found, team)
        found.teams.disqualify(organiser(), who["id"], reinstate=reinstate)
    return who


def _echo_team(board: str, who: dict[str, Any], sentence: str, *, as_json: bool) -> None:
    if as_json:
        echo_json({"board": board, "id": who["id"], "name": who["name"]})
    else:
        echo(sentence)
