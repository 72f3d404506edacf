"""``ladderboard board close``: the end, and the final ranking."""

import sys
from typing import TYPE_CHECKING, Annotated, Any

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
from ladderboard.cli._said import printable, say, say_json
from ladderboard.cli._table import say_table
from ladderboard.errors import InvalidSetting, NotOpen

if TYPE_CHECKING:
    from ladderboard.board import Display

__all__ = ["close", "say_finals"]


def close(
    board: Slug,
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask whether it is meant.")] = False,
    database: Database = DEFAULT,
    key_file: KeyFile = None,
    as_json: AsJson = False,
) -> None:
    """Close a board for good, and rank what teams selected.

    It takes no more questions, selections are locked, and the private split is scored once. This
    cannot be undone.
    """
    with open_database(database, key_file) as boards:
        found = open_board(boards, board)
        status = found.row().status
        if status in {"closed", "moved"}:
            raise NotOpen(f"{board} is {status} already.")
        if not yes:
            _ask(board)
        final = found.finishing.close(organiser())
        display = found.rules.display
    if as_json:
        say_json({"board": board, "status": "closed", "finals": final})
        return
    say(f"{board} is closed for good.")
    if final is None:
        say("There is no private split, so the standings are the final ranking.")
    else:
        say_finals(final, display)


def _ask(board: str) -> None:
    """Ask somebody at a terminal; refuse where nobody is."""
    if sys.stdin is None or not sys.stdin.isatty():
        raise InvalidSetting(
            f"Closing {board} cannot be undone, and nobody is here to ask; give --yes if it is "
            "meant. Nothing was changed."
        )
    typer.echo(
        f"Closing {printable(board)} cannot be undone: it takes no more questions, and its private "
        "split is used up.",
        err=True,
    )
    typed = typer.prompt(f"Type {printable(board)} to close it", default="", show_default=False,
                         err=True)  # fmt: skip
    if typed.strip() != board:
        raise InvalidSetting("That is another name; nothing was changed.")


def say_finals(final: dict[str, Any], display: "Display") -> None:
    """Print the final ranking."""
    from ladderboard.cli._guard_words import wrapped  # noqa: PLC0415 - the help must not wait

    sentence = (
        f"Final ranking on {final['n']:,} private examples; with probability at least "
        f"{1 - final['beta']:g} every interval holds its team's true {display.name}."
    )
    say(*wrapped(sentence, indent="  ", first=""))
    say_table(
        ("rank", "team", display.name, "interval", "public rank", "move"),
        [
            (
                "baseline" if each["baseline"] else each["rank"],
                each["team"]["name"],
                display.text(each["score"]),
                _interval(display, each["low"], each["high"]),
                each["public_rank"],
                None if each["move"] is None else f"{each['move']:+d}" if each["move"] else "0",
            )
            for each in final["rows"]
        ],
        right=("rank", display.name, "public rank", "move"),
    )


def _interval(display: "Display", *ends: float) -> str:
    low, high = sorted(ends, key=display.shown)
    return f"[{display.text(low)}, {display.text(high)}]"
