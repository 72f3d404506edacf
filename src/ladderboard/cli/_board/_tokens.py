"""``ladderboard board token``, ``tokens`` and ``webhooks``: access, and receivers of events."""

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
from ladderboard.cli._output import echo, echo_json, echo_secret, echo_table, format_minute
from ladderboard.errors import InvalidSetting


def token(
    board: Annotated[
        str | None,
        typer.Argument(metavar="BOARD", help="Valid for this board only; for all if left out."),
    ] = None,
    *,
    evaluator: Annotated[
        bool,
        typer.Option(
            "--evaluator",
            help="For an evaluator: it submits for teams, sees everything, changes nothing.",
        ),
    ] = False,
    end_others: Annotated[
        bool,
        typer.Option("--end-others", help="End all earlier organisers' tokens for all boards."),
    ] = False,
    database: Database = DEFAULT_DATABASE,
    key_file: KeyFile = None,
    as_json: AsJson = False,
) -> None:
    """Print another organiser's token.

    For a second organiser, or if the first token was lost. The token is alone on stdout, for a
    shell to capture.
    """
    from ladderboard.board import Role  # noqa: PLC0415 - keeps --help fast

    role = Role.EVALUATOR if evaluator else Role.ORGANISER
    if end_others and (board is not None or evaluator):
        raise InvalidSetting(
            "--end-others is for tokens for all boards: leave out BOARD and --evaluator."
        )
    with open_database(database, key_file) as boards:
        if board is None:
            new_token = boards.issue_token(role, end_others=end_others)
        else:
            new_token = open_board(boards, board).teams.issue_staff_token(organiser(), role)
    if as_json:
        echo_json({"board": board, "role": role.name.lower(), "token": new_token})
        return
    scope = "all boards" if board is None else board
    echo_secret(f"An {role.name.lower()}'s token for {scope}", new_token)


def tokens(
    board: Slug,
    *,
    end: Annotated[
        str | None,
        typer.Option(
            "--end", metavar="ID", help="End this token and the sessions started with it."
        ),
    ] = None,
    database: Database = DEFAULT_DATABASE,
    key_file: KeyFile = None,
    as_json: AsJson = False,
) -> None:
    """List the valid tokens and invitations of a board, or end one.

    The tokens themselves are not shown: an id is the beginning of a token's hash.
    """
    with open_database(database, key_file) as boards:
        teams = open_board(boards, board).teams
        if end is not None:
            teams.revoke_token(organiser(), end)
        valid = teams.list_tokens(organiser())
    if as_json:
        echo_json({"tokens": valid})
        return
    echo_table(
        ("id", "role", "team", "made (UTC)", "expires (UTC)"),
        [
            (
                row["id"],
                row["role"],
                row["team"],
                format_minute(row["made"]),
                format_minute(row["expires"]),
            )
            for row in valid
        ],
    )


def webhooks(
    board: Slug,
    *,
    add: Annotated[
        str | None,
        typer.Option("--add", metavar="URL", help="Send the board's events to this URL."),
    ] = None,
    event: Annotated[
        list[str] | None,
        typer.Option("--event", metavar="NAME", help="With --add: only these; all if left out."),
    ] = None,
    kind: Annotated[
        str, typer.Option("--format", metavar="FORMAT", help="With --add: json, slack or discord.")
    ] = "json",
    test: Annotated[
        int | None, typer.Option("--test", metavar="NUMBER", help="Send a test to this webhook.")
    ] = None,
    remove: Annotated[
        int | None, typer.Option("--remove", metavar="NUMBER", help="Remove this webhook.")
    ] = None,
    database: Database = DEFAULT_DATABASE,
    key_file: KeyFile = None,
    as_json: AsJson = False,
) -> None:
    """List the webhooks of a board with their last results; add, test or remove one.

    A new webhook's secret is printed once, alone on stdout. A running server sends the deliveries.
    Events: registration_waiting, registration_approved, deadline_near, paused, closed, results.
    """
    if add is None and (event or kind != "json"):
        raise InvalidSetting("--event and --format go with --add.")
    with open_database(database, key_file) as boards:
        service = open_board(boards, board).webhooks
        if remove is not None:
            service.remove(organiser(), remove)
        if test is not None:
            service.test(organiser(), test)
        if add is not None:
            events = {"events": tuple(event)} if event else {}
            added = service.add(organiser(), add, kind=kind, **events)
            if as_json:
                echo_json({"board": board, **added._asdict()})
            else:
                echo_secret(f"The secret of webhook {added.number} of {board}", added.secret)
            return
        listed = service.list(organiser())
    if as_json:
        echo_json({"board": board, "webhooks": listed})
        return
    if not listed:
        echo(f"{board} has no webhooks. Add one with: ladderboard board webhooks {board} --add URL")
        return
    echo_table(
        ("number", "url", "format", "events", "last (UTC)", "result", "waiting"),
        [
            (
                f"{row['number']}",
                row["url"],
                row["format"],
                ", ".join(row["events"]),
                format_minute(row["last"]),
                row["result"],
                f"{row['waiting']}",
            )
            for row in listed
        ],
        right=("number", "waiting"),
    )
