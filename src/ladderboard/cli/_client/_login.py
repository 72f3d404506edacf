"""``ladderboard login``: keep a team's token for a board."""

import re
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from ladderboard.cli._client._options import (
    Insecure,
    Quiet,
    echo_retries,
    format_board_names,
    suggest_boards,
)
from ladderboard.cli._options import AsJson
from ladderboard.cli._output import echo, echo_json
from ladderboard.errors import InvalidSetting, NotAllowed

if TYPE_CHECKING:
    from ladderboard.client import Client


def login(
    url: Annotated[
        str | None,
        typer.Argument(
            metavar="URL",
            help="The address of a board's page, or of a server; or a board's short name on the "
            "usual server, which is taken if left out.",
        ),
    ] = None,
    *,
    board: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The board that the token is for."),
    ] = None,
    default: Annotated[
        bool, typer.Option("--default", help="Make this the usual server; the first one is.")
    ] = False,
    forget: Annotated[
        bool,
        typer.Option("--forget", help="Forget the token of a board, or all those of a server."),
    ] = False,
    insecure: Insecure = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Keep the token of a board, so that it need not be given again.

    The token is typed without being shown, or comes through a pipe; the server is asked whether it
    is good before it is kept, in a file that only you can read. A token goes to no other server.
    """
    server, slug = _parse_server_and_board(url, board)
    if forget:
        names = _boards_with_tokens(server, slug)
        said = {
            "url": server,
            "board": slug,
            "forgotten": _forget_tokens(server, slug),
            "boards": names,
        }
        told = f"Forgotten at {server}: {', '.join(names)}."
        if not names:
            told = f"Nothing of {slug or 'any board'} at {server} was kept."
    else:
        from ladderboard.client import Client, find_access  # noqa: PLC0415 - keeps --help fast

        find_access(server, "", insecure=insecure).check_encrypted()  # before anybody types a token
        with (
            Client(server, "", receipts=None) as client,  # as the public
            echo_retries(quiet=quiet or as_json),
        ):
            slug = _choose_board(client, slug)
        token = _read_token(f"{server}/boards/{slug}")
        with Client(server, token, receipts=None, insecure=insecure) as client:
            name = _check_token(client, slug)
        said = {"url": server, "board": slug, "team": name}
        said["file"] = _save_token(server, slug, token, default=default)
        told = f"The token of {name or 'this board'} is good, and kept in {said['file']}. Next:\n"
        told += f"  ladderboard submit {_board_argument(server, slug)} -f predictions.csv"
    if as_json:
        echo_json(said)
    elif not quiet:
        echo(*told.splitlines())


def _parse_server_and_board(url: str | None, board: str | None) -> tuple[str, str | None]:
    """Return the server, and the board if one is named."""
    from ladderboard.client import find_access, parse_address, split_board  # noqa: PLC0415

    slug = None
    if url is not None and "://" not in url:
        if re.search("[.:/]", url):
            raise InvalidSetting(_suggest_scheme(url))
        url, board = None, _require_same_board(split_board(url)[1], board)
    if url is not None and "/boards/" in url:
        url, slug = split_board(url)
        if board not in {None, slug}:
            raise InvalidSetting("The address names another board; leave --board out.")
    if board is not None:
        slug = split_board(board)[1]
    if url is None:
        return find_access(None, "").address.url, slug
    return parse_address(url).url, slug


def _require_same_board(named: str, board: str | None) -> str:
    if board not in {None, named}:
        raise InvalidSetting("Two boards are named; leave --board out.")
    return named


def _suggest_scheme(url: str) -> str:
    """Return what to say of an address that has no beginning."""
    from ladderboard.client import parse_address  # noqa: PLC0415 - keeps --help fast

    said = "An address begins with http:// or https://"
    try:
        alone = parse_address(f"http://{url.partition('/')[0]}").is_secure
    except InvalidSetting:
        return f"{said}; got {url!r:.80}."
    return f"{said}; try {'http' if alone else 'https'}://{url}"


def _choose_board(client: "Client", slug: str | None) -> str:
    """Return the board that is meant: the one that is named, or the only one there is."""
    if slug is not None:
        with suggest_boards(client.url, slug):
            return client.board(slug).slug
    names = [board.slug for board in client.boards()]
    if len(names) != 1:
        raise InvalidSetting(
            f"A token is for one board; name it with --board, or give its page's address. At "
            f"{client.url} there is: {format_board_names(names)}."
        )
    return names[0]


def _read_token(page: str) -> str:
    """Return what is typed without being shown, or what comes through a pipe."""
    if sys.stdin is not None and sys.stdin.isatty():
        try:
            typed: str = typer.prompt(f"The token for {page}", hide_input=True, err=True)
        except typer.Abort:
            raise KeyboardInterrupt from None  # which has an exit code of its own
    else:
        typed = "" if sys.stdin is None else sys.stdin.readline(4096)
    if not typed.strip():
        raise InvalidSetting("A token is typed, or comes through a pipe; there was none.")
    return typed.strip()


def _check_token(client: "Client", slug: str) -> str | None:
    """Return the team's name; None for an evaluator or an organiser. A bad token is refused."""
    try:
        client.board(slug)
    except NotAllowed:
        raise NotAllowed(
            "The token is not good on this board, and was not kept; check that it was copied whole."
        ) from None
    try:
        return client.team(slug).name
    except NotAllowed:
        return None


def _boards_with_tokens(server: str, slug: str | None) -> list[str]:
    """Return the boards of a server that tokens are kept for."""
    from ladderboard.client import read_config  # noqa: PLC0415 - keeps --help fast

    return [each for each in read_config().tokens.get(server, {}) if slug in {None, each}]


def _save_token(server: str, slug: str, token: str, *, default: bool) -> str:
    from ladderboard.client import Config, change_config  # noqa: PLC0415 - keeps --help fast

    def add_token(config: Config) -> Config:
        config = config.with_token(server, slug, token)
        return replace(config, default=server) if default else config

    return str(change_config(add_token)[1])


def _forget_tokens(server: str, slug: str | None) -> bool:
    from ladderboard.client import change_config  # noqa: PLC0415 - keeps --help fast

    return change_config(lambda config: config.without_token(server, slug))[0]


def _board_argument(server: str, slug: str) -> str:
    from ladderboard.client import read_config  # noqa: PLC0415 - keeps --help fast

    return slug if read_config().default == server else f"{server}/boards/{slug}"
