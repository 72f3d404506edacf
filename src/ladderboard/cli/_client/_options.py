"""Shared by the commands of participants: options, and connecting to a server."""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from ladderboard.cli._output import echo_err
from ladderboard.client import split_board
from ladderboard.errors import BudgetSpent, InvalidSetting, LadderboardError, NotFound

if TYPE_CHECKING:
    from ladderboard.client import Client

_MAX_NAMES = 10


BoardName = Annotated[
    str,
    typer.Argument(
        metavar="BOARD",
        help="The board's short name, or the address of its page.",
    ),
]
Url = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="The server's address; LADDERBOARD_URL, or the default of login, if left out.",
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


def load_client() -> "type[Client]":
    """Return the client, which loads httpx; without its own command, which takes as long again."""
    sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]
    from ladderboard.client import Client  # noqa: PLC0415 - loads httpx

    return Client


@contextmanager
def open_client(
    board: str, url: str | None, *, insecure: bool, quiet: bool = False
) -> "Iterator[tuple[Client, str]]":
    """Yield a client for the server, and the board's short name.

    The error for an unknown board lists the existing ones.
    """
    Client = load_client()  # noqa: N806 - a class
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
    """Print on a terminal when a request is retried."""
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
    """Prints log records on stderr."""

    def emit(self, record: logging.LogRecord) -> None:
        echo_err(record.getMessage())


@contextmanager
def _explain_spent_budget(client: "Client", slug: str) -> Iterator[None]:
    """Add to an error about a spent budget where to select submissions for the final ranking."""
    try:
        yield
    except BudgetSpent as error:
        page = f"{client.url}/boards/{slug}/submit"
        raise BudgetSpent(f"{error} To select submissions for a final ranking: {page}") from None


@contextmanager
def suggest_boards(url: str, slug: str | None) -> Iterator[None]:
    """Add the names of the server's boards to the error for an unknown board."""
    Client = load_client()  # noqa: N806 - a class
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
            f"There is no board {slug!r} at {url}. Boards: {format_board_names(names)}."
        ) from None


def format_board_names(names: list[str]) -> str:
    """Return the first names of boards, for a sentence.

    >>> format_board_names(["digits", "letters"]), format_board_names([])
    ('digits, letters', 'none yet')
    """
    return (
        ", ".join([*names[:_MAX_NAMES], "..."] if len(names) > _MAX_NAMES else names) or "none yet"
    )
