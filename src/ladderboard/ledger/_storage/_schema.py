"""The tables of a database, their formats, and the migrations between them.

A new database is made in format 1 and takes all steps, as an old one takes those it lacks; so the
two cannot differ. A step is never changed once it was released.
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
# Format 1, for good: what comes later is a step in STEPS. {blob}, {whole}, {serial} and
# {tail} differ between the databases. An entry's place is its book's number and its own in one
# whole number, so rows that are only ever appended cost one page each; where a book stands is
# written with its last entry, so it costs no page of its own and cannot differ from the chain.
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
    """What leads from format ``before`` to the next, in the words of both databases."""

    before: int
    statements: tuple[str, ...]


MIGRATIONS: tuple[Migration, ...] = ()


def latest_format() -> int:
    """Return the format that this version writes."""
    return 1 + len(MIGRATIONS)


def create_tables(run: Callable[[str], object], words: Mapping[str, str]) -> None:
    """Make the tables of a new database, in a transaction of the caller's."""
    for table in TABLES:
        run(table.format(**words))
    migrate(1, run, words)


def migrate(version: int, run: Callable[[str], object], words: Mapping[str, str]) -> None:
    """Take the steps from a format to the latest, in a transaction of the caller's."""
    for step in MIGRATIONS:
        if step.before >= version:
            for statement in step.statements:
                run(statement.format(**words))


def refuse_unknown_format(version: object, where: object, copies: Iterable[str] = ()) -> None:
    """Refuse what a later version wrote: what it means cannot be known here."""
    if not isinstance(version, int) or version < 1:
        raise InvalidState(f"{where} is damaged: its tables are not those of a ledger.")
    if version > latest_format():
        raise InvalidState(
            newer_format_message(f"{where} was written", version, latest_format(), copies)
        )


def newer_format_message(what: str, version: int, known: int, copies: Iterable[str] = ()) -> str:
    """Return what is said of a newer format, and the way back.

    ``copies`` are the names of all copies that were made before upgrades, each with the number of
    its format; the last that can be read here is named.
    """
    said = (
        f"{what} by a newer Ladderboard, in format {version}; this one knows formats up to "
        f"{known}. Install the newer one again; this is {__version__}."
    )
    for copy in sorted(copies, key=_age, reverse=True):
        if _age(copy)[0] <= known:
            return (
                f"{said} Or put {copy} back, the copy that was made before the upgrade; what was "
                "answered since is not in it, and has to be charged."
            )
    return said


def _age(copy: str) -> tuple[int, int]:
    """Return the format of a copy, and which one it is of those made before the same step."""
    found = re.search(r"before[-_](?:[a-z]+[-_])?(\d+)(?:[-_](\d+))?$", copy)
    return (int(found[1]), int(found[2] or 1)) if found else (0, 0)


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
    """A room's tables: the statements that lead from each format to the next, the first from none.

    A step is never changed once it was released. A process of an older version that still runs is
    kept from writing by the ledger's own format only: a step that it must not write beside comes
    with one of the ledger's.
    """

    name: str
    migrations: tuple[tuple[str, ...], ...]


def module_format(
    link: Connection, part: SchemaModule, tables: set[str], copies: Callable[[str], Iterable[str]]
) -> int:
    """Return the format of a part's tables, 0 where there are none.

    ``copies`` returns the names of the copies that were made before the part's steps.
    """
    if f"{part.name}_format" not in tables:
        return 0
    rows = link.query(select_from(f"{part.name}_format", "version"))
    version = rows[0][0] if len(rows) == 1 else None
    if not isinstance(version, int) or version < 1:
        raise InvalidState(f"The database is damaged: the tables of {part.name} are not whole.")
    if version > len(part.migrations):
        what, known = f"The tables of {part.name} were written", len(part.migrations)
        raise InvalidState(newer_format_message(what, version, known, copies(part.name)))
    return version


def migrate_module(
    link: Connection, part: SchemaModule, version: int, words: Mapping[str, str]
) -> None:
    """Take the steps from a format to the latest, in a transaction of the caller's."""
    if not version:
        for statement in _CREATE_FORMAT:
            link.query(statement.format(name=part.name, **words))
    for step in part.migrations[version:]:
        for statement in step:
            link.query(statement.format(**words))
    link.query(_SET_FORMAT.format(name=part.name), (len(part.migrations),))
