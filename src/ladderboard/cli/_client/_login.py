"""``ladderboard login``: save the token for a board."""

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
    load_client,
    suggest_boards,
)
from ladderboard.cli._options import AsJson
from ladderboard.cli._output import echo, echo_json
from ladderboard.client import (
    Config,
    change_config,
    find_access,
    parse_address,
    read_config,
    split_board,
)
from ladderboard.errors import InvalidSetting, NotAllowed

if TYPE_CHECKING:
    from ladderboard.client import Client


def login(
    url: Annotated[
        str | None,
        typer.Argument(
            metavar="URL",
            help="The address of a board's page or of a server, or a board's short name on the "
            "default server. If left out: the default server.",
        ),
    ] = None,
    *,
    board: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The board that the token is for."),
    ] = None,
    default: Annotated[
        bool,
        typer.Option(
            "--default", help="Make this the default server; otherwise it is the first one."
        ),
    ] = False,
    forget: Annotated[
        bool,
        typer.Option(
            "--forget", help="Remove the saved token of a board, or all tokens of a server."
        ),
    ] = False,
    insecure: Insecure = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Save the token for a board, so that other commands find it.

    The token is typed at a hidden prompt, or read from a pipe. It is checked with the server and
    saved to a file that only you can read. A token is sent to its own server only.
    """
    server, slug = _parse_server_and_board(url, board)
    if forget:
        names = _boards_with_tokens(server, slug)
        forgotten = _forget_tokens(server, slug)
        result = {"url": server, "board": slug, "forgotten": forgotten, "boards": names}
        message = f"Removed at {server}: {', '.join(names)}."
        if not names:
            message = f"No token for {slug or 'any board'} at {server} was saved."
    else:
        Client = load_client()  # noqa: N806 - a class
        # Before prompting for a token.
        find_access(server, "", insecure=insecure).check_encrypted()
        with (
            Client(server, "", receipts=None) as client,  # without a token
            echo_retries(quiet=quiet or as_json),
        ):
            slug = _choose_board(client, slug)
        token = _read_token(f"{server}/boards/{slug}")
        with Client(server, token, receipts=None, insecure=insecure) as client:
            name = _check_token(client, slug)
        result = {"url": server, "board": slug, "team": name}
        result["file"] = _save_token(server, slug, token, default=default)
        message = (
            f"The token of {name or 'this board'} is valid; saved to {result['file']}. Next:\n"
        )
        message += f"  ladderboard submit {_board_argument(server, slug)} -f predictions.csv"
    if as_json:
        echo_json(result)
    elif not quiet:
        echo(*message.splitlines())


def _parse_server_and_board(url: str | None, board: str | None) -> tuple[str, str | None]:
    """Return the server's address, and the board's slug if one is given."""
    slug = None
    if url is not None and "://" not in url:
        if re.search("[.:/]", url):
            raise InvalidSetting(_suggest_scheme(url))
        url, board = None, _require_same_board(split_board(url)[1], board)
    if url is not None and "/boards/" in url:
        url, slug = split_board(url)
        if board not in {None, slug}:
            raise InvalidSetting("The address names another board; leave out --board.")
    if board is not None:
        slug = split_board(board)[1]
    if url is None:
        return find_access(None, "").address.url, slug
    return parse_address(url).url, slug


def _require_same_board(named: str, board: str | None) -> str:
    if board not in {None, named}:
        raise InvalidSetting("Two different boards are given; leave out --board.")
    return named


def _suggest_scheme(url: str) -> str:
    """Return the error for an address without http:// or https://."""
    rule = "An address begins with http:// or https://"
    try:
        local = parse_address(f"http://{url.partition('/')[0]}").is_secure
    except InvalidSetting:
        return f"{rule}; got {url!r:.80}."
    return f"{rule}; try {'http' if local else 'https'}://{url}"


def _choose_board(client: "Client", slug: str | None) -> str:
    """Return the given board, or the server's only one."""
    if slug is not None:
        with suggest_boards(client.url, slug):
            return client.board(slug).slug
    names = [board.slug for board in client.boards()]
    if len(names) != 1:
        raise InvalidSetting(
            f"A token is for one board: name it with --board, or give the address of its page. "
            f"Boards at {client.url}: {format_board_names(names)}."
        )
    return names[0]


def _read_token(page: str) -> str:
    """Read a token from a hidden prompt, or from a pipe."""
    if sys.stdin is not None and sys.stdin.isatty():
        try:
            typed: str = typer.prompt(f"The token for {page}", hide_input=True, err=True)
        except typer.Abort:
            raise KeyboardInterrupt from None  # for its exit code
    else:
        typed = "" if sys.stdin is None else sys.stdin.readline(4096)
    if not typed.strip():
        raise InvalidSetting("No token was given: type it at the prompt, or pipe it in.")
    return typed.strip()


def _check_token(client: "Client", slug: str) -> str | None:
    """Return the token's team; None for an evaluator or an organiser. Raise if it is invalid."""
    try:
        client.board(slug)
    except NotAllowed as error:
        if "invitation" in str(error):
            raise
        raise NotAllowed(
            "The token is not valid on this board, and was not saved; check that it was copied "
            "completely."
        ) from None
    try:
        return client.team(slug).name
    except NotAllowed:
        return None


def _boards_with_tokens(server: str, slug: str | None) -> list[str]:
    """Return the boards of a server that tokens are saved for."""
    return [board for board in read_config().tokens.get(server, {}) if slug in {None, board}]


def _save_token(server: str, slug: str, token: str, *, default: bool) -> str:
    def add_token(config: Config) -> Config:
        config = config.with_token(server, slug, token)
        return replace(config, default=server) if default else config

    return str(change_config(add_token)[1])


def _forget_tokens(server: str, slug: str | None) -> bool:
    return change_config(lambda config: config.without_token(server, slug))[0]


def _board_argument(server: str, slug: str) -> str:
    return slug if read_config().default == server else f"{server}/boards/{slug}"
