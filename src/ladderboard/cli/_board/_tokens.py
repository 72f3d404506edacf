"""``ladderboard board token`` and ``tokens``: who may act for the organiser."""

from typing import Annotated

import typer

from ladderboard.cli._database import (
    DEFAULT_DATABASE,
    Database,
    KeyFile,
    Slug,
    open_board,
    open_database,
    organiser,
)
from ladderboard.cli._options import AsJson
from ladderboard.cli._output import echo_json, echo_secret, echo_table, format_minute
from ladderboard.errors import InvalidSetting


def token(
    board: Annotated[
        str | None,
        typer.Argument(metavar="BOARD", help="Good for this board only; all if left out."),
    ] = None,
    *,
    evaluator: Annotated[
        bool,
        typer.Option(
            "--evaluator",
            help="For a harness that submits for teams and sees everything, and changes nothing.",
        ),
    ] = False,
    end_others: Annotated[
        bool,
        typer.Option("--end-others", help="End all organisers' tokens for all boards before."),
    ] = False,
    database: Database = DEFAULT_DATABASE,
    key_file: KeyFile = None,
    as_json: AsJson = False,
) -> None:
    """Print another organiser's token.

    For when the first was lost, or for a second organiser. The token is alone on stdout, so that a
    shell can take it.
    """
    from ladderboard.board import Role  # noqa: PLC0415 - keeps --help fast

    role = Role.EVALUATOR if evaluator else Role.ORGANISER
    if end_others and (board is not None or evaluator):
        raise InvalidSetting("--end-others goes with an organiser's token for all boards.")
    with open_database(database, key_file) as boards:
        if board is None:
            made = boards.issue_token(role, end_others=end_others)
        else:
            made = open_board(boards, board).teams.issue_staff_token(organiser(), role)
    if as_json:
        echo_json({"board": board, "role": role.name.lower(), "token": made})
        return
    where = "all boards" if board is None else board
    echo_secret(f"An {role.name.lower()}'s token for {where}", made)


def tokens(
    board: Slug,
    *,
    end: Annotated[
        str | None,
        typer.Option("--end", metavar="ID", help="End this one, with the sessions it began."),
    ] = None,
    database: Database = DEFAULT_DATABASE,
    key_file: KeyFile = None,
    as_json: AsJson = False,
) -> None:
    """List the tokens and invitations of a board that are good, or end one.

    They are not told: an id is the beginning of a hash.
    """
    with open_database(database, key_file) as boards:
        teams = open_board(boards, board).teams
        if end is not None:
            teams.revoke_token(organiser(), end)
        good = teams.list_tokens(organiser())
    if as_json:
        echo_json({"tokens": good})
        return
    echo_table(
        ("id", "role", "team", "made (UTC)", "expires (UTC)"),
        [
            (
                each["id"],
                each["role"],
                each["team"],
                format_minute(each["made"]),
                format_minute(each["expires"]),
            )
            for each in good
        ],
    )
