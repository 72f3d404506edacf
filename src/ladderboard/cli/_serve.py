"""``ladderboard serve``: boards over HTTP."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from ladderboard.cli._board_options import (
    DEFAULT,
    AsJson,
    Config,
    Database,
    KeyFile,
    open_database,
)
from ladderboard.cli._run import exit_code
from ladderboard.cli._said import note, say, say_json
from ladderboard.client import read_address
from ladderboard.errors import InvalidSetting, MissingDependency

if TYPE_CHECKING:
    from ladderboard.board import BoardFolder, Boards
    from ladderboard.server import Found

__all__ = ["serve"]

_SHOWN = 10


def serve(
    folders: Annotated[
        list[Path] | None,
        typer.Argument(metavar="DIR", help="Folders of boards; those that are new are made."),
    ] = None,
    *,
    config: Config = None,
    database: Database = DEFAULT,
    host: Annotated[
        str | None, typer.Option(help="The address to listen at; 127.0.0.1 if left out.")
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            min=0, max=65535, help="The port to listen on, 8000 if left out; 0 for any free one."
        ),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(
            min=1, help="How many processes answer, 1 if left out; several need PostgreSQL."
        ),
    ] = None,
    key_file: KeyFile = None,
    url: Annotated[
        str | None,
        typer.Option(
            metavar="URL", help="What people type to come here, where a name leads to the server."
        ),
    ] = None,
    proxy: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="The address of a reverse proxy that is believed who asks, and whether by TLS; "
            "several with commas between.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Serve the boards of a database, and those of new folders, over HTTP.

    The database is made if it is not there. A folder whose board is in it must be what the board
    was made from; board amend changes a board. Ctrl-C stops it, and nothing is lost. Whatever is
    left out is as the environment or the settings file has it; ladderboard settings tells.
    """
    server = _load()
    typed = {"host": host, "port": port, "workers": workers, "url": url, "proxy": proxy}
    given: dict[str, Any] = {"database": database, "key_file": key_file}
    given |= {f"serve.{name}": value for name, value in typed.items()}
    found = server.find_settings(config, given)
    how = _serving(found, _settings(server, found["serve.url"]))
    if server.serve_as_worker(how):
        return
    _warn(how.settings.log)
    contents = _read(folders or [])
    _try_port(how)
    with open_database(database, key_file, create=True) as boards:
        for each in contents:
            _settle(boards, each, quiet=as_json)

        begun = False

        def told(address: str, token: str | None) -> None:
            """Say where it is, as soon as it listens."""
            nonlocal begun
            begun = True
            public = how.settings.url or address
            if as_json:
                said = {"url": public, "listening": address, "boards": boards.list()}
                say_json({**said, "token": token})
            else:
                _welcome(boards, contents, public, token, found)

        try:
            server.serve(how, boards=boards, told=told, command=server.own_command())
        except Exception as error:
            if not begun or as_json or sys.stderr.isatty():
                raise
            _log(how.settings.log).error(error)  # from here on every line there is JSON
            raise typer.Exit(exit_code(error)) from None
    if not as_json:
        from ladderboard.cli._serve_words import farewell  # noqa: PLC0415 - the help first

        say("", farewell(database))


def _settings(server: Any, url: str | None) -> Any:
    if url is None:
        return server.Settings()
    public = read_address(url)
    return server.Settings(
        hosts=frozenset({public.host}),
        url=public.url,
        secure=True if public.scheme == "https" else None,
    )


def _serving(found: "Found", by_url: Any) -> Any:
    from ladderboard.server import make_serving  # noqa: PLC0415 - the help first

    return make_serving(found, by_url)


def _log(to: TextIO | None) -> Any:
    from ladderboard.server import Log, machine_time  # noqa: PLC0415 - the help first

    return Log(to, machine_time)


def _warn(to: TextIO | None) -> None:
    """Name variables that mean nothing: to a person in a sentence, elsewhere in the log."""
    from ladderboard.server import strangers  # noqa: PLC0415 - the help must not wait

    for said in strangers(os.environ):
        if sys.stderr.isatty():
            note(said)
        else:
            _log(to).write("warning", said=said)


def _try_port(how: Any) -> None:
    """Refuse a port that is taken before anything is made, which could not be served."""
    from ladderboard.server import try_port  # noqa: PLC0415 - the help first

    try_port(how.host, how.port)


def _load() -> Any:
    try:
        from ladderboard import server  # noqa: PLC0415 - an extra
        from ladderboard.server import serve as _  # noqa: F401, PLC0415 - same
    except ImportError as error:
        raise MissingDependency(
            f"serve needs {error.name}: pip install 'ladderboard[server]'."
        ) from None
    return server


def _read(folders: list[Path]) -> "list[BoardFolder]":
    """Return what is in all folders, before anything is made of one."""
    from ladderboard.board import read_folder  # noqa: PLC0415 - the help must not wait

    contents = [read_folder(each) for each in folders]
    slugs = [each.rules.slug for each in contents]
    twice = next((each for each in slugs if slugs.count(each) > 1), None)
    if twice is not None:
        raise InvalidSetting(f"Two of the folders are called {twice!r}; give one another slug.")
    return contents


def _settle(boards: "Boards", folder: "BoardFolder", *, quiet: bool) -> None:
    """Make a board of a folder that is new; of one that is known, see that it is the same."""
    from ladderboard.board import (  # noqa: PLC0415
        ask_baselines,
        differences,
    )
    from ladderboard.cli._board_make import described  # noqa: PLC0415 - same

    slug = folder.rules.slug
    if slug not in boards.list():
        board = boards.create(folder)
        say(*([] if quiet else [*described(folder, board), ""]))
        return
    board = boards.open(slug)
    found = differences(board, folder)
    if found and differences(board, folder, first=True):
        raise InvalidSetting(
            f"The folder {folder.path} is not what the board {slug!r} is: "
            f"{'; '.join(found.sentences)}. Nothing was changed. "
            f"ladderboard board amend {slug} --rules {folder.path} changes what may change, with "
            "--labels its labels; or give the folder another slug to make another board."
        )
    if found and not quiet:  # the board was amended, and the folder is as it was at the start
        say(f"{slug} was amended since it was made of this folder: {'; '.join(found.sentences)}.")
    if board.row().status == "open":
        ask_baselines(board, folder)  # a crash may have come between


def _welcome(
    boards: "Boards", contents: "list[BoardFolder]", url: str, token: str | None, found: "Found"
) -> None:
    from ladderboard.cli._serve_words import Way, another_token, next_steps, welcome  # noqa: PLC0415

    way = Way(found["database"], found["key_file"], found.file)
    folders = {each.rules.slug: each for each in contents}
    # Of many boards those that came with a folder, where there is something to submit, and some.
    slugs = dict.fromkeys([*folders, *boards.open_first(_SHOWN)])
    some = [boards.open(each) for each in slugs]
    more = len(boards.list()) - len(some)
    say(*welcome(url, some, more, token, another_token(way)))
    ready = [each for each in some if each.row().status == "open"]
    if ready:
        board = ready[0]
        say(*next_steps(url, board, folders.get(board.slug), way))
