"""What the verbs of taking part have in common: options, and how a server is reached."""

from typing import TYPE_CHECKING, Annotated

import typer

from ladderboard.cli._options import AsJson
from ladderboard.errors import InvalidSetting

if TYPE_CHECKING:
    from ladderboard.client import Client

__all__ = ["AsCsv", "AsJson", "BoardName", "Insecure", "OfTeam", "Quiet", "Url", "open_client"]


def _kept_boards(incomplete: str) -> list[str]:
    """Return the boards that tokens are kept for, for a shell to complete."""
    from ladderboard.client import read_config  # noqa: PLC0415 - only while somebody types
    from ladderboard.errors import LadderboardError  # noqa: PLC0415 - same

    try:
        config = read_config()
    except LadderboardError:
        return []
    found = [
        board if server == config.default else f"{server}/boards/{board}"
        for server, boards in config.tokens.items()
        for board in boards
    ]
    return [each for each in found if each.startswith(incomplete)]


BoardName = Annotated[
    str,
    typer.Argument(
        metavar="BOARD",
        help="The board's short name, or its page's address.",
        autocompletion=_kept_boards,
    ),
]
Url = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="The server's address; LADDERBOARD_URL, or the one logged in to, if left out.",
    ),
]
Insecure = Annotated[
    bool,
    typer.Option("--insecure", help="Send the token to another machine without encryption."),
]
OfTeam = Annotated[
    str | None,
    typer.Option(metavar="ID", help="A team's id, for evaluators and organisers."),
]
Quiet = Annotated[
    bool, typer.Option("-q", "--quiet", help="Show no bar, and say no more than asked.")
]
AsCsv = Annotated[bool, typer.Option("--csv", help="Print comma-separated values, for machines.")]


def open_client(board: str, url: str | None, *, insecure: bool) -> "tuple[Client, str]":
    """Return a client of the server that is meant, and the board's short name."""
    from ladderboard.client import Client, split_board  # noqa: PLC0415 - the help must not wait

    named, slug = split_board(board)
    if named is not None and url is not None:
        raise InvalidSetting(
            f"The board's address names its server; leave --url out, or type {slug}."
        )
    return Client(named or url, insecure=insecure), slug
