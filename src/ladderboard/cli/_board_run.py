"""``ladderboard board pause``, ``resume`` and ``token``."""

from typing import TYPE_CHECKING, Annotated

import typer

from ladderboard.cli._board_options import (
    DEFAULT,
    AsJson,
    Database,
    KeyFile,
    Slug,
    open_board,
    open_database,
    organiser,
)
from ladderboard.cli._numbers import whole
from ladderboard.cli._said import say, say_json, say_secret
from ladderboard.errors import InvalidSetting, OldCopy

if TYPE_CHECKING:
    from ladderboard.board import Board, Boards

__all__ = ["pause", "resume", "token"]


def pause(
    board: Slug,
    *,
    database: Database = DEFAULT,
    key_file: KeyFile = None,
    as_json: AsJson = False,
) -> None:
    """Take no questions until board resume."""
    with open_database(database, key_file) as boards:
        found = open_board(boards, board)
        found.amending.pause(organiser())
        status = found.row().status
    if as_json:
        say_json({"board": board, "status": status})
    else:
        say(f"{board} is {status}; ladderboard board resume {board} lets it go on.")


def resume(
    board: Slug,
    *,
    charge: Annotated[
        int | None,
        typer.Option(
            parser=whole,
            help="After a restore: how many questions may have been answered since the copy.",
        ),
    ] = None,
    database: Database = DEFAULT,
    key_file: KeyFile = None,
    as_json: AsJson = False,
) -> None:
    """Let a paused board go on.

    After a restore, or with an old copy of the database, say how many questions may have been
    answered since the copy was made. They are charged; charge too many rather than too few.
    """
    with open_database(database, key_file) as boards:
        found = _go_on(boards, board, charge)
        summary = found.as_seen_by(organiser()).summary()
    left = summary["questions"] - summary["used"]
    if as_json:
        told = {"status": summary["status"], "charged": charge or 0, "remaining": left}
        say_json({"board": board, **told})
    else:
        charged = f" {charge:,} questions were charged." if charge else ""
        say(f"{board} is {summary['status']}.{charged} {left:,} questions are left.")


def _go_on(boards: "Boards", slug: str, charge: int | None) -> "Board":
    try:
        board = open_board(boards, slug)
        if charge is not None or board.row().status != "restored":
            board.amending.resume(organiser(), charge)
            return board
    except OldCopy as error:
        if charge is not None:
            return boards.adopt(slug, charge)
        least = f", at least {error.least:,}"
    else:
        least = ""
    raise InvalidSetting(
        f"{slug} comes from a copy. Say with --charge N how many questions may have been answered "
        f"since the copy was made{least}; they are taken off the budget."
    )


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
    database: Database = DEFAULT,
    key_file: KeyFile = None,
    as_json: AsJson = False,
) -> None:
    """Print another organiser's token.

    For when the first was lost, or for a second organiser. The token is alone on stdout, so that a
    shell can take it.
    """
    from ladderboard.board import Role  # noqa: PLC0415 - the help must not wait

    role = Role.EVALUATOR if evaluator else Role.ORGANISER
    if end_others and (board is not None or evaluator):
        raise InvalidSetting("--end-others goes with an organiser's token for all boards.")
    with open_database(database, key_file) as boards:
        if board is None:
            made = boards.new_token(role, end_others=end_others)
        else:
            made = open_board(boards, board).seats.trust(organiser(), role)
    if as_json:
        say_json({"board": board, "role": role.name.lower(), "token": made})
        return
    where = "all boards" if board is None else board
    say_secret(f"An {role.name.lower()}'s token for {where}", made)
