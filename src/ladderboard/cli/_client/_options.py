"""What the verbs of taking part have in common: options, and how a server is reached."""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from ladderboard.cli._output import echo_err
from ladderboard.errors import BudgetSpent, InvalidSetting, LadderboardError, NotFound

if TYPE_CHECKING:
    from ladderboard.client import Client

_MAX_NAMES = 10


def _complete_board_names(incomplete: str) -> list[str]:
    """Return the boards that tokens are kept for, for a shell to complete."""
    from ladderboard.client import read_config  # noqa: PLC0415 - only for shell completion
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
        autocompletion=_complete_board_names,
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
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="No progress bar, no hints.")]
AsCsv = Annotated[bool, typer.Option("--csv", help="Print comma-separated values, for machines.")]


@contextmanager
def open_client(
    board: str, url: str | None, *, insecure: bool, quiet: bool = False
) -> "Iterator[tuple[Client, str]]":
    """Give a client of the server that is meant, and the board's short name.

    Where there is no board of that name, those that there are are named.
    """
    from ladderboard.client import Client, split_board  # noqa: PLC0415 - keeps --help fast

    named, slug = split_board(board)
    if named is not None and url is not None:
        raise InvalidSetting(
            f"The board's address names its server; leave --url out, or type {slug}."
        )
    with (
        Client(named or url, insecure=insecure) as client,
        echo_retries(quiet=quiet),
        suggest_boards(client.url, slug),
        _explain_spent_budget(client, slug),
    ):
        yield client, slug


@contextmanager
def echo_retries(*, quiet: bool) -> Iterator[None]:
    """Say on a terminal that something is tried again, so that nobody waits in silence."""
    if quiet or not sys.stderr.isatty():
        yield
        return
    log, handler = logging.getLogger("ladderboard.client"), _EchoHandler()
    level, log.level = log.level, logging.INFO
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.level = level


class _EchoHandler(logging.Handler):
    """Tells a person what a client notes."""

    def emit(self, record: logging.LogRecord) -> None:
        echo_err(record.getMessage())


@contextmanager
def _explain_spent_budget(client: "Client", slug: str) -> Iterator[None]:
    """Say where it is chosen what counts in the end, once no question is left."""
    try:
        yield
    except BudgetSpent as error:
        page = f"{client.url}/boards/{slug}/submit"
        raise BudgetSpent(
            f"{error} If there is a final ranking, choose what counts in it at {page}"
        ) from None


@contextmanager
def suggest_boards(url: str, slug: str | None) -> Iterator[None]:
    """Name the boards that a server has, if the one that was meant is not among them."""
    from ladderboard.client import Client  # noqa: PLC0415 - keeps --help fast

    try:
        yield
    except NotFound as error:
        try:
            with Client(url, "", receipts=None, retries=0) as public:
                names = [board.slug for board in public.boards()]
        except LadderboardError:
            raise error from None
        if slug is None or slug in names:
            raise
        raise NotFound(
            f"There is no board {slug!r} at {url}. There is: {format_board_names(names)}."
        ) from None


def format_board_names(names: list[str]) -> str:
    """Return the names of boards in a sentence, not too many of them.

    >>> format_board_names(["digits", "letters"]), format_board_names([])
    ('digits, letters', 'none yet')
    """
    return (
        ", ".join([*names[:_MAX_NAMES], "..."] if len(names) > _MAX_NAMES else names) or "none yet"
    )
