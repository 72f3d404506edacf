"""The tables of a database, their formats, and the migrations between them.

A new database is created in format 1 and takes all migrations, as an old one takes those it lacks,
so that the two cannot differ. A migration is never changed once it was released.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from ladderboard._version import __version__
from ladderboard.errors import InvalidState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from ladderboard.ledger._storage._pool import Connection

TABLE_NAMES = ("book", "entry", "secret", "mark", "ladder", "kept")
# Format 1, for good; later changes go to MIGRATIONS. {blob}, {whole}, {serial} and {tail} differ
# between the databases. An entry's place combines its book's number and its own in one integer,
# so that appending a row writes one page. The chain state is stored with the last entry, so that it
# needs no page of its own and cannot differ from the chain.
TABLES = (
    "CREATE TABLE main.book (id {serial}, name TEXT NOT NULL UNIQUE)",
    """CREATE TABLE main.entry (
        place {whole} PRIMARY KEY, kind TEXT NOT NULL, ladder {whole}, question {whole}, asker TEXT,
        hash {blob} NOT NULL, time {whole} NOT NULL, asked {whole} NOT NULL,
        changes {whole} NOT NULL, ladders {whole} NOT NULL, lost {whole} NOT NULL,
        charged {whole} NOT NULL, closed {whole} NOT NULL, form {blob} NOT NULL)""",
    "CREATE TABLE main.secret (place {whole} PRIMARY KEY, packed {blob} NOT NULL)",
    """CREATE TABLE main.mark (
        book {whole} NOT NULL, mark {blob} NOT NULL, number {whole} NOT NULL,
        PRIMARY KEY (book, mark)){tail}""",
    """CREATE TABLE main.ladder (
        book {whole} NOT NULL, number {whole} NOT NULL, name TEXT NOT NULL, state {blob} NOT NULL,
        PRIMARY KEY (book, number), UNIQUE (book, name)){tail}""",
    """CREATE TABLE main.kept (
        book {whole} NOT NULL, name TEXT NOT NULL, value {blob} NOT NULL,
        PRIMARY KEY (book, name)){tail}""",
)


class Migration(NamedTuple):
    """The statements that lead from format ``before`` to the next, for both databases."""

    before: int
    statements: tuple[str, ...]


# An entry's place is 2^40 times its book's number, and its own.
_COUNT_LADDER_CHANGES = """
    UPDATE main.ladder SET changes = counted.changes FROM (
        SELECT entry.place / 1099511627776 AS book, entry.ladder AS number, COUNT(*) AS changes
        FROM main.entry AS entry JOIN main.entry AS previous ON previous.place = entry.place - 1
        WHERE entry.kind = 'question' AND entry.changes > previous.changes
        GROUP BY entry.place / 1099511627776, entry.ladder) AS counted
    WHERE ladder.book = counted.book AND ladder.number = counted.number"""
MIGRATIONS: tuple[Migration, ...] = (
    Migration(
        1,
        (
            "ALTER TABLE main.ladder ADD COLUMN changes {whole} NOT NULL DEFAULT 0",
            _COUNT_LADDER_CHANGES,
        ),
    ),
)


def latest_format() -> int:
    """Return the format that this version writes."""
    return 1 + len(MIGRATIONS)


def create_tables(run: Callable[[str], object], type_names: Mapping[str, str]) -> None:
    """Create the tables of a new database, in the caller's transaction."""
    for table in TABLES:
        run(table.format(**type_names))
    migrate(1, run, type_names)


def migrate(version: int, run: Callable[[str], object], type_names: Mapping[str, str]) -> None:
    """Run the migrations from a format to the latest, in the caller's transaction."""
    for step in MIGRATIONS:
        if step.before >= version:
            for statement in step.statements:
                run(statement.format(**type_names))


def refuse_unknown_format(version: object, where: object, copies: Iterable[str] = ()) -> None:
    """Refuse a format that a later version wrote, or that does not exist."""
    if not isinstance(version, int) or version < 1:
        raise InvalidState(f"{where} is damaged: its tables are not those of a ledger.")
    if version > latest_format():
        raise InvalidState(
            newer_format_message(f"{where} was written", version, latest_format(), copies)
        )


def newer_format_message(subject: str, version: int, known: int, copies: Iterable[str] = ()) -> str:
    """Return the message about a newer format, with how to go back.

    ``copies`` are the names of all copies that were made before upgrades, which end in their
    format; the message names the latest one that this version can read.
    """
    message = (
        f"{subject} by a newer Ladderboard, in format {version}; this one knows formats up to "
        f"{known}. Install the newer one again; this is {__version__}."
    )
    for copy in sorted(copies, key=_copy_format, reverse=True):
        if _copy_format(copy)[0] <= known:
            return (
                f"{message} Or put {copy} back, the copy that was made before the upgrade; what "
                "was answered since is not in it, and has to be charged."
            )
    return message


def _copy_format(copy: str) -> tuple[int, int]:
    """Return the format of a copy, and its number among the copies of that format."""
    match = re.search(r"before[-_](?:[a-z]+[-_])?(\d+)(?:[-_](\d+))?$", copy)
    return (int(match[1]), int(match[2] or 1)) if match else (0, 0)


_CREATE_FORMAT = (
    "CREATE TABLE main.{name}_format (version {whole} NOT NULL)",
    "INSERT INTO main.{name}_format (version) VALUES (0)",
)
_SET_FORMAT = "UPDATE main.{name}_format SET version = ?"


def select_from(table: str, columns: str, rest: str = "") -> str:
    """Return a statement that reads columns of a table; all three are constants of this package.

    >>> select_from("team", "id, name", "WHERE book = ?")
    'SELECT id, name FROM main.team WHERE book = ?'
    """
    return f"SELECT {columns} FROM main.{table} {rest}".rstrip()  # noqa: S608 - no values


class SchemaModule(NamedTuple):
    """The tables of another package: the statements of each migration, the first from nothing.

    A migration is never changed once it was released. A process of an older version that is still
    running is stopped from writing only by a change of the ledger's own format; so a migration that
    older versions must not write to comes with one of the ledger's.
    """

    name: str
    migrations: tuple[tuple[str, ...], ...]


def module_format(
    connection: Connection,
    module: SchemaModule,
    tables: set[str],
    copies: Callable[[str], Iterable[str]],
) -> int:
    """Return the format of a module's tables, 0 if there are none.

    ``copies`` returns the names of the copies that were made before the module's migrations.
    """
    if f"{module.name}_format" not in tables:
        return 0
    rows = connection.query(select_from(f"{module.name}_format", "version"))
    version = rows[0][0] if len(rows) == 1 else None
    if not isinstance(version, int) or version < 1:
        raise InvalidState(
            f"The database is damaged: the tables of {module.name} are not complete."
        )
    if version > len(module.migrations):
        subject, known = f"The tables of {module.name} were written", len(module.migrations)
        raise InvalidState(newer_format_message(subject, version, known, copies(module.name)))
    return version


def migrate_module(
    connection: Connection, module: SchemaModule, version: int, type_names: Mapping[str, str]
) -> None:
    """Run the migrations from a format to the latest, in the caller's transaction."""
    if not version:
        for statement in _CREATE_FORMAT:
            connection.query(statement.format(name=module.name, **type_names))
    for step in module.migrations[version:]:
        for statement in step:
            connection.query(statement.format(**type_names))
    connection.query(_SET_FORMAT.format(name=module.name), (len(module.migrations),))
