"""Commands on a database of boards: shared options, opening it, finding boards and teams.

Every user who can open the database acts as the organiser.
"""

import glob
import shlex
import time
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ladderboard import server
from ladderboard.cli._output import wrap_lines
from ladderboard.errors import InvalidSetting, MissingDependency, NotFound, StaleCopy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ladderboard.board import Board, BoardFolder, Boards, Caller
    from ladderboard.ledger import Storage

DATABASE_VARIABLE, DEFAULT_DATABASE = "LADDERBOARD_DATABASE", "ladderboard.db"


def require_server(command: str, *, needs: str = "SETTINGS") -> None:
    """Raise if what a command uses of the server cannot be imported."""
    try:
        getattr(server, needs)
    except ImportError as error:
        raise MissingDependency(
            f"{command} needs {error.name}: pip install 'ladderboard[server]'."
        ) from None


def _resolve_setting(context: typer.Context, param: typer.CallbackParam, value: Any) -> Any:
    """Return the option's value from the command line, the environment or the settings file."""
    name = str(param.name)
    source = context.get_parameter_source(name)
    if context.resilient_parsing or (source is not None and source.name == "COMMANDLINE"):
        return value
    require_server(str(context.info_name))
    return server.find_settings(context.params.get("config"), only=(name,))[name]


Config = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        is_eager=True,  # other options are looked up in it
        help="The settings file; LADDERBOARD_CONFIG if left out.",
    ),
]
Database = Annotated[
    str,
    typer.Option(
        metavar="URL",
        envvar=DATABASE_VARIABLE,
        callback=_resolve_setting,
        help="The database: a file, or postgresql+psycopg://user@host/name.",
    ),
]
KeyFile = Annotated[
    Path | None,
    typer.Option(
        metavar="PATH",
        envvar="LADDERBOARD_KEY_FILE",
        callback=_resolve_setting,
        help="The key file, if labels are encrypted.",
    ),
]
Slug = Annotated[
    str,
    typer.Argument(
        metavar="BOARD",
        help="The board's slug, as in its address.",
    ),
]
Folder = Annotated[
    Path, typer.Argument(metavar="DIR", help="The board's folder, with board.yaml and holdout.csv.")
]


@contextmanager
def open_database(
    database: str, key_file: Path | None = None, *, create: bool = False
) -> "Iterator[Boards]":
    """Open the boards of a database, and close them at the end."""
    try:
        from ladderboard.board import open_boards  # noqa: PLC0415 - keeps --help fast
    except ImportError as error:
        raise MissingDependency(
            f"Boards need {error.name}: pip install 'ladderboard[server]'."
        ) from None
    file = _database_file(database)
    if file is not None:
        _check_database_file(file, create=create)
    require_existing_key_file(database, key_file, create=create)
    with closing(open_boards(database, create=create, key_file=key_file)) as boards:
        yield boards


def refuse_if_lost(database: str) -> None:
    """Refuse to create a database where the marks of another one are: that one was moved away.

    ``backup restore`` and ``board restore`` may create it, because they bring its boards back.
    """
    file = _database_file(database)
    if file is None or file.exists():
        return
    marks = sorted(file.parent.glob(f"{glob.escape(file.name)}.*.mark"))
    if marks:
        raise StaleCopy(
            f"{file} is missing, but {marks[0].name} beside it belongs to a board of it. Put the "
            f"database back, or restore a backup; to start a new one, move {file.name}.*.mark away."
        )


def database_options(database: str, key_file: Path | None) -> str:
    """Return the options that a further command on this database needs, each after a space.

    Values from the environment or the settings file are left out, and so is a password.
    """
    usual = server.find_settings(None, only=("database", "key_file"))
    options = ""
    if database != usual["database"] and not server.has_password(database):
        options += f" --database {shlex.quote(database)}"
    if key_file is not None and key_file != usual["key_file"]:
        options += f" --key-file {shlex.quote(str(key_file))}"
    return options


def open_public_storage(database: str) -> "Storage":
    """Open a database to read its public side, which needs no key file."""
    from ladderboard.board import open_storage  # noqa: PLC0415 - keeps --help fast

    file = _database_file(database)
    if file is not None:
        _check_database_file(file, create=False)
    return open_storage(database)


def _database_file(database: str) -> Path | None:
    """Return the file of a SQLite database; None for PostgreSQL."""
    if database.startswith("sqlite:///"):
        return Path(database.removeprefix("sqlite:///"))
    if "://" not in database:
        return Path(database)
    return None


def _check_database_file(file: Path, *, create: bool) -> None:
    if file.is_dir():
        raise InvalidSetting(f"{file} is a directory; a database is one file.")
    if file.exists():
        return
    if not create:
        raise InvalidSetting(
            f"There is no database {file}. If it is in another folder or has another name, give "
            f"its path with --database or in {DATABASE_VARIABLE}. To create one: ladderboard board "
            "create DIR, or ladderboard serve DIR."
        )
    if not file.parent.is_dir():
        raise InvalidSetting(f"There is no directory {file.parent} for the database.")


def require_existing_key_file(database: str, key_file: Path | None, *, create: bool) -> None:
    """Raise if an existing database is opened with a key file that does not exist."""
    file = _database_file(database)
    exists = not create or (file is not None and file.exists())
    if key_file is not None and exists and not key_file.exists():
        raise InvalidSetting(
            f"There is no key file {key_file}; give the one that the database was created with."
        )


def organiser() -> "Caller":
    """Return the caller that every command acts as."""
    from ladderboard.board import Caller, Role  # noqa: PLC0415 - keeps --help fast

    return Caller(Role.ORGANISER)


def open_board(boards: "Boards", slug: str) -> "Board":
    """Return a board; the error for an unknown name lists the existing boards."""
    try:
        return boards.open(slug)
    except NotFound:
        existing = ", ".join(boards.list()) or "none yet"
        raise NotFound(
            f"There is no board {slug!r:.80} in this database. Boards: {existing}."
        ) from None


def list_teams(board: "Board") -> list[dict[str, Any]]:
    """Return all teams of a board, with baselines and disqualified teams."""
    view, teams, after = board.as_seen_by(organiser()), [], 0
    while page := view.teams(limit=1000, after=after):
        teams += page
        after = page[-1]["number"]
    return teams


def find_team(board: "Board", team: str, *, with_token: bool = False) -> dict[str, Any]:
    """Return the team with this id, or else the one with this name."""
    from ladderboard.board import comparable_name  # noqa: PLC0415 - keeps --help fast

    teams = list_teams(board)
    # Ids first: a team named like another team's id must not be mistaken for it.
    matches = [row for row in teams if row["id"] == team]
    matches += [row for row in teams if comparable_name(row["name"]) == comparable_name(team)]
    if not matches:
        raise NotFound(
            f"There is no team {team!r:.80} on {board.slug}; "
            f"ladderboard team list {board.slug} lists them."
        )
    if with_token and matches[0]["kind"] == "baseline":
        raise InvalidSetting(f"{matches[0]['name']!r:.80} is a baseline; baselines have no token.")
    return matches[0]


def describe_created(folder: "BoardFolder", board: "Board") -> list[str]:
    """Return lines that describe a new board to its organiser."""
    from ladderboard.board import past_deadline  # noqa: PLC0415 - keeps --help fast

    rules = folder.rules
    public, private = int(folder.public.sum()), int(folder.private.sum())
    baselines = (
        f" ({rules.scored_baseline_count} for baselines)" if rules.scored_baseline_count else ""
    )
    summary = (
        f"{rules.slug} is created: {public:,} public and {private:,} private rows; "
        f"{rules.questions:,} submissions{baselines} for at most {rules.teams:,} teams."
    )
    hidden = "Labels" if rules.takes == "predictions" else "Ids"
    warnings = [f"Warning: {sentence}" for sentence in past_deadline(rules, time.time())]
    return [
        *wrap_lines(summary, indent="  ", first=""),
        f"{hidden}, noise key and rules are committed to:",
        f"  {board.book.opening['commitment']}",
        *warnings,
    ]
