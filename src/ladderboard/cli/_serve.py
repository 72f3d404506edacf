"""``ladderboard serve``: boards over HTTP, and the welcome with the next steps."""

import inspect
import os
import shlex
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from ladderboard import server
from ladderboard._formatting import format_status
from ladderboard.cli._database import (
    DATABASE_VARIABLE,
    Config,
    describe_created,
    list_teams,
    open_database,
    organiser,
    refuse_if_lost,
    require_server,
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
from ladderboard.errors import InvalidSetting

if TYPE_CHECKING:
    from ladderboard.board import Board, BoardFolder, Boards
_MAX_BOARDS_SHOWN = 10
_EXAMPLE_SCRIPT = Path("data", "example_submission.py")


def _setting_options() -> dict[str, inspect.Parameter]:
    """Return the options of settings, by the names of the settings."""
    require_server("serve")
    options = {}
    for setting in server.SETTINGS.values():
        if setting.option is not None:
            default = f"; default: {setting.default}" if setting.default else ""
            option = typer.Option(
                setting.option,
                metavar=setting.metavar,
                help=f"{setting.meaning}  [env var: {setting.variable}{default}]",
            )
            kind = setting.type if setting.type in {int, Path} else str
            options[setting.name] = inspect.Parameter(
                setting.field,
                inspect.Parameter.KEYWORD_ONLY,
                default=None,
                annotation=Annotated[kind | None, option],
            )
    return options


def serve(
    folders: Annotated[
        list[Path] | None,
        typer.Argument(metavar="DIR", help="Folders of boards; new boards are created."),
    ] = None,
    *,
    config: Config = None,
    as_json: AsJson = False,
    **options: Any,
) -> None:
    """Serve the boards of a database, and those of new folders, over HTTP.

    The database is created if needed. The folder of an existing board must be the one that the
    board was created from; board amend changes a board. Ctrl-C stops the server, and nothing is
    lost. Options that are left out come from the environment or the settings file; see ladderboard
    settings.
    """
    require_server("serve", needs="serve")
    settings = server.find_settings(
        config, {name: options[option.name] for name, option in _setting_options().items()}
    )
    serving = settings.settings.with_metrics_token()
    serving.check_workers()
    if server.serve_as_worker(serving):
        return
    log = server.ServerLog(serving.log, server.machine_time)
    _warn_about_unknown_variables(log)
    contents = _read_folders(folders or [])
    server.check_port_free(serving.host, serving.port)  # before a board is created in vain
    refuse_if_lost(serving.database)
    with open_database(serving.database, serving.key_file, create=True) as boards:
        for folder in contents:
            _create_or_compare(boards, folder, quiet=as_json)

        listening = False

        def report(address: str, token: str | None) -> None:
            """Print the address as soon as the server listens."""
            nonlocal listening
            listening = True
            public = serving.url or address
            if as_json:
                echo_json(
                    {
                        "url": public,
                        "listening": address,
                        "boards": boards.list(),
                        "token": token,
                    }
                )
            else:
                _echo_welcome(boards, contents, public, token, settings)

        try:
            server.serve(serving, boards=boards, announce=report, command=server.restart_command())
        except Exception as error:
            if not listening or as_json or sys.stderr.isatty():
                raise
            log.write_error(error)  # once it listens, every line on stderr is JSON
            raise typer.Exit(exit_code(error)) from None
    if not as_json:
        echo("", format_farewell(serving.database))


# The options of settings take the place of **options.
_folders, _config, _as_json, _ = inspect.signature(serve).parameters.values()
serve.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
    [_folders, _config, *_setting_options().values(), _as_json]
)


def _warn_about_unknown_variables(log: "server.ServerLog") -> None:
    """Warn about unknown LADDERBOARD_* variables: on a terminal as text, otherwise in the log."""
    for warning in server.unknown_variables(os.environ):
        if sys.stderr.isatty():
            echo_err(warning)
        else:
            log.write("warning", said=warning)


def _read_folders(folders: list[Path]) -> "list[BoardFolder]":
    """Read all folders, before a board is created from any of them."""
    from ladderboard.board import read_folder  # noqa: PLC0415 - keeps --help fast

    contents = [read_folder(folder) for folder in folders]
    slugs = [content.rules.slug for content in contents]
    duplicate = next((slug for slug in slugs if slugs.count(slug) > 1), None)
    if duplicate is not None:
        raise InvalidSetting(
            f"Two of the folders have the slug {duplicate!r}; give one another slug."
        )
    return contents


def _create_or_compare(boards: "Boards", folder: "BoardFolder", *, quiet: bool) -> None:
    """Create the board of a new folder; raise if an existing board differs from its folder."""
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
    differences = compare_with_folder(board, folder)
    first = compare_with_folder(board, folder, first=True) if differences else differences
    if first:
        amended = differences.amended_since(first)
        set_back = f"; this also reverts earlier amendments of {', '.join(amended)}"
        raise InvalidSetting(
            f"The folder {folder.path} differs from the board {slug!r}: "
            f"{'; '.join(differences.sentences)}. Nothing was changed. To amend the board: "
            f"ladderboard board amend {slug} --rules {folder.path}{set_back if amended else ''}. "
            "For its labels: --labels. To create another board, give the folder another slug."
        )
    if differences and not quiet:  # the board was amended; the folder is unchanged
        changes = "; ".join(differences.sentences)
        echo(f"{slug} was amended after it was created from this folder: {changes}.")
    if board.row().status == "open":
        submit_baselines(board, folder)  # in case of a crash between creation and baselines


def _echo_welcome(
    boards: "Boards",
    contents: "list[BoardFolder]",
    url: str,
    token: str | None,
    settings: "server.ResolvedSettings",
) -> None:
    access = DatabaseAccess(settings["database"], settings["key_file"], settings.file)
    folders = {content.rules.slug: content for content in contents}
    # Of many boards, those given as folders, which have something to submit, and a few more.
    slugs = dict.fromkeys([*folders, *boards.list_open_first(_MAX_BOARDS_SHOWN)])
    listed = [boards.open(slug) for slug in slugs]
    others = len(boards.list()) - len(listed)
    echo(*format_welcome(url, listed, others))
    board = next((board for board in listed if board.row().status == "open"), None)
    if board is not None:
        echo(*format_next_steps(url, board, folders.get(board.slug), access))
    echo(*format_sign_in(url, token, organiser_token_command(access)))


class DatabaseAccess(NamedTuple):
    """How to open a database: its URL, its key file and the settings file, if any."""

    database: str
    key_file: Path | None
    config: Path | None


def format_welcome(url: str, boards: "list[Board]", others: int) -> list[str]:
    """Return lines with the addresses of boards."""
    lines = [f"Ladderboard is at {url}; Ctrl-C stops it."]
    lines += [_board_line(url, board.as_seen_by(organiser()).summary()) for board in boards]
    lines += [f"  and {others} more: {program_command()} board list"] if others else []
    if not boards:
        lines += [
            "There are no boards yet. Create one, also while this runs, with:",
            f"  {program_command()} board create DIR",
        ]
    return [*lines, ""]


def format_sign_in(url: str, token: str | None, another: str) -> list[str]:
    """Return lines that say how the organiser signs in, the token last.

    ``token`` is the first organiser's token of a new database; ``another`` is the command that
    prints another one.
    """
    where = f"Sign in as the organiser at {url}/login"
    if token is None:
        return [f"{where}, with a token from:", f"  {another}", ""]
    return [
        f"{where} with the token below.",
        f"It is not shown again; another one: {another}",
        "",
        f"  {token}",
        "",
    ]


def organiser_token_command(access: DatabaseAccess) -> str:
    """Return the command that prints another organiser's token."""
    exports, key, _ = _shell_setup(access)
    words = [export.replace(f"export {DATABASE_VARIABLE}=", "--database ") for export in exports]
    variables = "".join(
        f"{word.removeprefix('export ')} " for word in words if server.CONFIG in word
    )
    options = "".join(f" {word}" for word in words if server.CONFIG not in word)
    return f"{variables}{program_command()} board token{options}{key}"


def _shell_setup(access: DatabaseAccess) -> tuple[list[str], str, bool]:
    """Return exports, options for a command, and whether these are enough to open the database.

    A password is not shown; it must be given again.
    """
    database, key_file, config = access
    names = ("database", "key_file")
    defaults = server.find_settings(config, only=names, environment={})
    exports = []
    if config is not None:
        exports.append(f"export {server.CONFIG}={shlex.quote(str(relative_to_cwd(config)))}")
    shown = database == defaults["database"] or not server.has_password(database)
    if database != defaults["database"] and shown:
        exports.append(f"export {DATABASE_VARIABLE}={shlex.quote(database)}")
    same = key_file is None or key_file == defaults["key_file"]
    return exports, "" if same else f" --key-file {shlex.quote(str(key_file))}", shown


def format_farewell(database: str) -> str:
    """Return the last line printed."""
    where = "the database" if server.has_password(database) else database
    return f"Stopped. All data are in {where}."


def _board_line(url: str, summary: dict[str, Any]) -> str:
    left, status = summary["questions"] - summary["used"], format_status(summary, time.time())
    if status not in {"closed", "moved"}:
        status = f"{status}, {left:,} of {summary['questions']:,} submissions left"
    return f"  {summary['title']}: {url}/boards/{summary['slug']} ({status})"


def format_next_steps(
    url: str, board: "Board", folder: "BoardFolder | None", access: DatabaseAccess
) -> list[str]:
    """Return commands for another terminal that take part in a board; they work as printed."""
    exports, key, complete = _shell_setup(access)
    condition = "" if complete else f", with {DATABASE_VARIABLE} set to the same database"
    setup = [f"cd {shlex.quote(str(Path.cwd()))}", *exports]
    lines = setup[:]
    name = _unused_team_name(board)
    if name is not None:
        words = f"team add {board.slug} {shlex.quote(name)}{key}"
        lines += [f"LADDERBOARD_TOKEN=$({program_command()} {words})", "export LADDERBOARD_TOKEN"]
    else:
        condition += ", with the token of a team as LADDERBOARD_TOKEN"
    commands, predictions = _example_predictions(folder)
    # On a loopback address the token is not sent over a network.
    insecure = "" if parse_address(url).is_secure else " --insecure"
    lines += [
        *commands,
        f"{program_command()} submit {url}/boards/{board.slug}{insecure} \\",
        f"  -f {predictions}",
        f"{program_command()} leaderboard {url}/boards/{board.slug}{insecure}",
    ]
    steps = [f"Next, in another terminal{condition}:", "", *(f"  {line}" for line in lines), ""]
    if name is not None and board.rules.registration == "invited":
        invite = f"{program_command()} team invite {board.slug} --url {url}{key}"
        steps += ["To invite teams, one link for each:", ""]
        steps += [*(f"  {line}" for line in (*setup, invite)), ""]
    return steps


def _example_predictions(folder: "BoardFolder | None") -> tuple[list[str], str]:
    """Return commands that make predictions, and their file: from the example, or the sample."""
    if folder is not None and (folder.path / _EXAMPLE_SCRIPT).is_file():
        path = relative_to_cwd(folder.path)
        command = f"{python_command()} {shlex.quote(str(path / _EXAMPLE_SCRIPT))}"
        return [command], "predictions.csv"
    if folder is not None and folder.sample is not None and folder.sample.suffix == ".csv":
        return [], shlex.quote(str(relative_to_cwd(folder.sample)))
    return [], "predictions.csv"


def _unused_team_name(board: "Board") -> str | None:
    """Return a name that no team has; None if the board has no place left."""
    from ladderboard.board import comparable_name  # noqa: PLC0415 - keeps --help fast

    teams = list_teams(board)
    if sum(team["kind"] == "team" for team in teams) >= board.rules.teams:
        return None
    taken = {comparable_name(team["name"]) for team in teams}
    names = (f"Team {number}" for number in range(1, len(teams) + 2))
    return next(name for name in names if comparable_name(name) not in taken)
