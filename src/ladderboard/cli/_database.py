"""Commands on a database of boards: shared options, opening, boards and teams.

Whoever can open the database is the organiser: there is nobody who could keep them from it.
"""

import sqlite3
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote

import typer

from ladderboard.cli._output import wrap_lines
from ladderboard.errors import InvalidSetting, MissingDependency, NotFound

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ladderboard.board import Board, BoardFolder, Boards, Caller
    from ladderboard.ledger import SqlStorage

DATABASE_VARIABLE, DEFAULT_DATABASE = "LADDERBOARD_DATABASE", "ladderboard.db"
_SELECT_SLUGS = "SELECT slug FROM board ORDER BY book"


def complete_board_names(ctx: Any, incomplete: str) -> list[str]:
    """Return the boards in the database that was named, if it is a file; it is only looked at."""
    database = str(ctx.params.get("database") or "").removeprefix("sqlite:///")
    if "://" in database or not Path(database).is_file():
        return []
    # Nothing is made or brought to a newer format while somebody types: who looks at a file that
    # nobody has open would leave a log beside it, which might be another's then.
    beside = all(Path(database + each).exists() for each in ("-wal", "-shm"))
    how = "mode=ro" if beside else "mode=ro&immutable=1"
    address = f"file:{quote(str(Path(database).absolute()))}?{how}"
    try:
        with closing(sqlite3.connect(address, uri=True, timeout=0.1)) as opened:
            found = [each for (each,) in opened.execute(_SELECT_SLUGS)]
    except sqlite3.Error:
        return []
    return [each for each in found if each.startswith(incomplete)]


def _resolve_setting(context: typer.Context, param: typer.CallbackParam, value: Any) -> Any:
    """Return what was typed, or else what the environment or the settings file says."""
    name = str(param.name)
    source = context.get_parameter_source(name)
    if context.resilient_parsing or (source is not None and source.name == "COMMANDLINE"):
        return value
    from ladderboard.server import find_settings  # noqa: PLC0415 - the help must not wait

    return find_settings(context.params.get("config"), only=(name,))[name]


Config = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        is_eager=True,  # others look into it
        help="The settings file; the one that LADDERBOARD_CONFIG names if left out.",
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
        help="The key file, where the secret side is encrypted.",
    ),
]
Slug = Annotated[
    str,
    typer.Argument(
        metavar="BOARD",
        help="The board's slug, as in its address.",
        autocompletion=complete_board_names,
    ),
]
Folder = Annotated[
    Path, typer.Argument(metavar="DIR", help="The board's folder, with board.yaml and holdout.csv.")
]


@contextmanager
def open_database(
    database: str, key_file: Path | None = None, *, create: bool = False
) -> "Iterator[Boards]":
    """Open the boards of a database, and let go of them at the end."""
    try:
        from ladderboard.board import open_boards  # noqa: PLC0415 - the help first
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


def open_public_storage(database: str) -> "SqlStorage":
    """Open a database to look at what is public in it; no key file is needed for that."""
    from ladderboard.board import open_storage  # noqa: PLC0415 - the help first

    file = _database_file(database)
    if file is not None:
        _check_database_file(file, create=False)
    return open_storage(database)


def _database_file(database: str) -> Path | None:
    """Return the file that a database is; None if it is elsewhere."""
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
            f"There is no database {file}. One is made with: ladderboard board create DIR, or "
            f"ladderboard serve DIR. Another one is named with --database or {DATABASE_VARIABLE}."
        )
    if not file.parent.is_dir():
        raise InvalidSetting(f"There is no directory {file.parent} for the database.")


def require_existing_key_file(database: str, key_file: Path | None, *, create: bool) -> None:
    """Refuse a key file that is not there, where it would be made and fit nothing."""
    file = _database_file(database)
    there = not create or (file is not None and file.exists())
    if key_file is not None and there and not key_file.exists():
        raise InvalidSetting(
            f"There is no key file {key_file}; give the one that the database was made with."
        )


def organiser() -> "Caller":
    """Return who we are."""
    from ladderboard.board import Caller, Role  # noqa: PLC0415 - the help must not wait

    return Caller(Role.ORGANISER)


def open_board(boards: "Boards", slug: str) -> "Board":
    """Return a board; where there is none of that name, say which there are."""
    try:
        return boards.open(slug)
    except NotFound:
        there = boards.list()
        known = f"there is {', '.join(there)}" if there else "there is none yet"
        raise NotFound(f"There is no board {slug!r:.80} in this database; {known}.") from None


def list_teams(board: "Board") -> list[dict[str, Any]]:
    """Return all teams of a board, with baselines and those that are not shown."""
    view, found, after = board.as_seen_by(organiser()), [], 0
    while page := view.teams(limit=1000, after=after):
        found += page
        after = page[-1]["number"]
    return found


def find_team(board: "Board", team: str, *, with_token: bool = False) -> dict[str, Any]:
    """Return the team with this id, or else with this name."""
    from ladderboard.board import comparable_name  # noqa: PLC0415 - the help must not wait

    every = list_teams(board)
    # Ids first: who takes another team's id for a name must not be taken for it.
    found = [each for each in every if each["id"] == team]
    found += [each for each in every if comparable_name(each["name"]) == comparable_name(team)]
    if not found:
        raise NotFound(
            f"There is no team {team!r:.80} on {board.slug}; "
            f"ladderboard team list {board.slug} tells which there are."
        )
    if with_token and found[0]["kind"] == "baseline":
        raise InvalidSetting(f"{found[0]['name']!r:.80} is a baseline, which has no token.")
    return found[0]


def describe_created(folder: "BoardFolder", board: "Board") -> list[str]:
    """Return what was made, for its organiser."""
    rules = folder.rules
    public, private = int(folder.public.sum()), int(folder.private.sum())
    asked = f" ({rules.asked_baselines} for baselines)" if rules.asked_baselines else ""
    made = (
        f"{rules.slug} is made: {public:,} public rows and {private:,} private ones; "
        f"{rules.questions:,} questions{asked} for at most {rules.teams:,} teams."
    )
    hidden = "Labels" if rules.takes == "predictions" else "Ids"
    return [
        *wrap_lines(made, indent="  ", first=""),
        f"{hidden}, noise key and rules are committed to:",
        f"  {board.book.opening['commitment']}",
    ]
