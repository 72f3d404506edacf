"""``ladderboard serve``: boards over HTTP, and what it prints at the start."""

import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TextIO

import typer

from ladderboard.cli._database import (
    DATABASE_VARIABLE,
    DEFAULT_DATABASE,
    Config,
    Database,
    KeyFile,
    describe_created,
    list_teams,
    open_database,
    organiser,
)
from ladderboard.cli._options import AsJson
from ladderboard.cli._output import (
    echo,
    echo_err,
    echo_json,
    program_command,
    python_command,
    relative_to_cwd,
)
from ladderboard.cli._run import exit_code
from ladderboard.client import parse_address
from ladderboard.errors import InvalidSetting, MissingDependency

if TYPE_CHECKING:
    from ladderboard.board import Board, BoardFolder, Boards
    from ladderboard.server import ResolvedSettings

_MAX_BOARDS_SHOWN = 10
_EXAMPLE_SCRIPT = Path("public", "example_submission.py")


def serve(
    folders: Annotated[
        list[Path] | None,
        typer.Argument(metavar="DIR", help="Folders of boards; those that are new are made."),
    ] = None,
    *,
    config: Config = None,
    database: Database = DEFAULT_DATABASE,
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
    server = _import_server()
    typed = {"host": host, "port": port, "workers": workers, "url": url, "proxy": proxy}
    given: dict[str, Any] = {"database": database, "key_file": key_file}
    given |= {f"serve.{name}": value for name, value in typed.items()}
    found = server.find_settings(config, given)
    how = _serving_settings(found, _settings_for_url(server, found["serve.url"]))
    if server.serve_as_worker(how):
        return
    _warn_about_unknown_variables(how.settings.log)
    contents = _read_folders(folders or [])
    _check_port_free(how)
    with open_database(database, key_file, create=True) as boards:
        for content in contents:
            _create_or_compare(boards, content, quiet=as_json)

        begun = False

        def told(address: str, token: str | None) -> None:
            """Say where it is, as soon as it listens."""
            nonlocal begun
            begun = True
            public = how.settings.url or address
            if as_json:
                said = {"url": public, "listening": address, "boards": boards.list()}
                echo_json({**said, "token": token})
            else:
                _echo_welcome(boards, contents, public, token, found)

        try:
            server.serve(how, boards=boards, told=told, command=server.own_command())
        except Exception as error:
            if not begun or as_json or sys.stderr.isatty():
                raise
            _server_log(how.settings.log).error(error)  # from here on every line there is JSON
            raise typer.Exit(exit_code(error)) from None
    if not as_json:
        echo("", format_farewell(database))


def _settings_for_url(server: Any, url: str | None) -> Any:
    if url is None:
        return server.Settings()
    public = parse_address(url)
    return server.Settings(
        hosts=frozenset({public.host}),
        url=public.url,
        secure=True if public.scheme == "https" else None,
    )


def _serving_settings(found: "ResolvedSettings", by_url: Any) -> Any:
    from ladderboard.server import make_serving  # noqa: PLC0415 - keeps --help fast

    return make_serving(found, by_url)


def _server_log(to: TextIO | None) -> Any:
    from ladderboard.server import ServerLog, machine_time  # noqa: PLC0415 - keeps --help fast

    return ServerLog(to, machine_time)


def _warn_about_unknown_variables(to: TextIO | None) -> None:
    """Name variables that mean nothing: to a person in a sentence, elsewhere in the log."""
    from ladderboard.server import unknown_variables  # noqa: PLC0415 - keeps --help fast

    for said in unknown_variables(os.environ):
        if sys.stderr.isatty():
            echo_err(said)
        else:
            _server_log(to).write("warning", said=said)


def _check_port_free(how: Any) -> None:
    """Refuse a port that is taken before anything is made, which could not be served."""
    from ladderboard.server import check_port_free  # noqa: PLC0415 - keeps --help fast

    check_port_free(how.host, how.port)


def _import_server() -> Any:
    try:
        from ladderboard import server  # noqa: PLC0415 - an extra
        from ladderboard.server import serve as _  # noqa: F401, PLC0415 - same
    except ImportError as error:
        raise MissingDependency(
            f"serve needs {error.name}: pip install 'ladderboard[server]'."
        ) from None
    return server


def _read_folders(folders: list[Path]) -> "list[BoardFolder]":
    """Return what is in all folders, before anything is made of one."""
    from ladderboard.board import read_folder  # noqa: PLC0415 - keeps --help fast

    contents = [read_folder(folder) for folder in folders]
    slugs = [content.rules.slug for content in contents]
    twice = next((slug for slug in slugs if slugs.count(slug) > 1), None)
    if twice is not None:
        raise InvalidSetting(f"Two of the folders are called {twice!r}; give one another slug.")
    return contents


def _create_or_compare(boards: "Boards", folder: "BoardFolder", *, quiet: bool) -> None:
    """Make a board of a folder that is new; of one that is known, see that it is the same."""
    from ladderboard.board import (  # noqa: PLC0415
        compare_with_folder,
        submit_baselines,
    )

    slug = folder.rules.slug
    if slug not in boards.list():
        board = boards.create(folder)
        echo(*([] if quiet else [*describe_created(folder, board), ""]))
        return
    board = boards.open(slug)
    found = compare_with_folder(board, folder)
    if found and compare_with_folder(board, folder, first=True):
        raise InvalidSetting(
            f"The folder {folder.path} is not what the board {slug!r} is: "
            f"{'; '.join(found.sentences)}. Nothing was changed. "
            f"ladderboard board amend {slug} --rules {folder.path} changes what may change, with "
            "--labels its labels; or give the folder another slug to make another board."
        )
    if found and not quiet:  # the board was amended, and the folder is as it was at the start
        echo(f"{slug} was amended since it was made of this folder: {'; '.join(found.sentences)}.")
    if board.row().status == "open":
        submit_baselines(board, folder)  # a crash may have come between


def _echo_welcome(
    boards: "Boards", contents: "list[BoardFolder]", url: str, token: str | None, found: "ResolvedSettings"
) -> None:
    way = DatabaseAccess(found["database"], found["key_file"], found.file)
    folders = {content.rules.slug: content for content in contents}
    # Of many boards those that came with a folder, where there is something to submit, and some.
    slugs = dict.fromkeys([*folders, *boards.list_open_first(_MAX_BOARDS_SHOWN)])
    some = [boards.open(slug) for slug in slugs]
    more = len(boards.list()) - len(some)
    echo(*format_welcome(url, some, more, token, organiser_token_command(way)))
    ready = [each for each in some if each.row().status == "open"]
    if ready:
        board = ready[0]
        echo(*format_next_steps(url, board, folders.get(board.slug), way))


class DatabaseAccess(NamedTuple):
    """What leads to a database: its address, its key file, and the settings file, if there is."""

    database: str
    key_file: Path | None
    config: Path | None


def format_welcome(
    url: str, boards: "list[Board]", more: int, token: str | None, another: str
) -> list[str]:
    """Return where the boards are, and how the organiser comes in; a new token is told."""
    lines = [f"Ladderboard is at {url}; Ctrl-C stops it."]
    lines += [_board_line(url, board.as_seen_by(organiser()).summary()) for board in boards]
    lines += [f"  and {more} more: {program_command()} board list"] if more else []
    if not boards:
        lines += [
            "There are no boards yet. One is made, while this runs or before, with:",
            f"  {program_command()} board create DIR",
        ]
    if token is not None:
        lines += [
            "",
            f"You are the organiser: sign in at {url}/login",
            "with this token, which is not shown again:",
            f"  {token}",
            f"Another one: {another}",
        ]
    else:
        lines += ["", f"The organiser signs in at {url}/login", f"Another token: {another}"]
    return lines


def organiser_token_command(way: DatabaseAccess) -> str:
    """Return what to type for another organiser's token."""
    from ladderboard.server import CONFIG  # noqa: PLC0415 - keeps --help fast

    exports, key, _ = _shell_setup(way)
    before = [export.replace(f"export {DATABASE_VARIABLE}=", "--database ") for export in exports]
    first = "".join(f"{each.removeprefix('export ')} " for each in before if CONFIG in each)
    rest = "".join(f" {each}" for each in before if CONFIG not in each)
    return f"{first}{program_command()} board token{rest}{key}"


def _shell_setup(way: DatabaseAccess) -> tuple[list[str], str, bool]:
    """Return what to set, what to type behind a verb, and whether that leads to the database.

    A password is not shown: whoever gave it must give it again.
    """
    from ladderboard.server import CONFIG, find_settings, has_password  # noqa: PLC0415 - keeps --help fast

    database, key_file, config = way
    names = ("database", "key_file")
    known = find_settings(config, only=names, environment={})  # to whoever types nothing more
    exports = []
    if config is not None:
        exports.append(f"export {CONFIG}={shlex.quote(str(relative_to_cwd(config)))}")
    shown = database == known["database"] or not has_password(database)
    if database != known["database"] and shown:
        exports.append(f"export {DATABASE_VARIABLE}={shlex.quote(database)}")
    same = key_file is None or key_file == known["key_file"]
    return exports, "" if same else f" --key-file {shlex.quote(str(key_file))}", shown


def format_farewell(database: str) -> str:
    """Return what to say at the end."""
    from ladderboard.server import has_password  # noqa: PLC0415 - keeps --help fast

    where = "the database" if has_password(database) else database
    return f"Stopped; everything is kept in {where}."


def _board_line(url: str, summary: dict[str, Any]) -> str:
    left, said = summary["questions"] - summary["used"], summary["status"]
    if said not in {"closed", "moved"}:  # which answer nothing more
        said = f"{said}, {left:,} of {summary['questions']:,} questions left"
    return f"  {summary['title']}: {url}/boards/{summary['slug']} ({said})"


def format_next_steps(
    url: str, board: "Board", folder: "BoardFolder | None", way: DatabaseAccess
) -> list[str]:
    """Return what to type into another terminal to take part in a board; it works as it stands."""
    exports, key, whole = _shell_setup(way)
    ready = "" if whole else f", with {DATABASE_VARIABLE} set to the same database"
    lines = [f"cd {shlex.quote(str(Path.cwd()))}", *exports]
    name = _unused_team_name(board)
    if name is not None:
        words = f"team add {board.slug} {shlex.quote(name)}{key}"
        lines += [f"LADDERBOARD_TOKEN=$({program_command()} {words})", "export LADDERBOARD_TOKEN"]
    else:
        ready += ", with the token of a team as LADDERBOARD_TOKEN"
    made, predictions = _example_predictions(folder)
    # From this very machine nothing goes over a wire.
    trusted = "" if parse_address(url).is_secure else " --insecure"
    lines += [
        *made,
        f"{program_command()} submit {url}/boards/{board.slug}{trusted} \\",
        f"  -f {predictions}",
        f"{program_command()} leaderboard {url}/boards/{board.slug}{trusted}",
    ]
    return ["", f"Next, in another terminal{ready}:", "", *(f"  {line}" for line in lines), ""]


def _example_predictions(folder: "BoardFolder | None") -> tuple[list[str], str]:
    """Return how predictions are made, and where they are: by an example, or the sample."""
    if folder is not None and (folder.path / _EXAMPLE_SCRIPT).is_file():
        place = relative_to_cwd(folder.path)
        command = f"{python_command()} {shlex.quote(str(place / _EXAMPLE_SCRIPT))}"
        return [command], shlex.quote(str(place / _EXAMPLE_SCRIPT.parent / "predictions.csv"))
    if folder is not None and folder.sample is not None and folder.sample.suffix == ".csv":
        return [], shlex.quote(str(relative_to_cwd(folder.sample)))
    return [], "predictions.csv"


def _unused_team_name(board: "Board") -> str | None:
    """Return a name that no team has yet; None if all places are taken."""
    from ladderboard.board import comparable_name  # noqa: PLC0415 - keeps --help fast

    every = list_teams(board)
    taken = {comparable_name(each["name"]) for each in every}
    if sum(each["kind"] == "team" for each in every) >= board.rules.teams:
        return None
    return next(
        each
        for at in range(len(every) + 1)
        if comparable_name(each := f"Team {at + 1}") not in taken
    )
