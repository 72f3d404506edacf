"""The rows of a board on their way to another database: every column by its name, and its type."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ladderboard.errors import BrokenDump, Taken

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from ladderboard.ledger import RecordReader, RecordWriter, SqlReading, SqlWriting

__all__ = ["BOARD", "TABLES", "Table", "put_rows", "take_rows"]

_PAGE = 500
_TYPES = {"int": int, "real": float, "text": str, "bytes": bytes}
_WHOLE = 2**63


class Table(NamedTuple):
    """A table whose rows belong to a book.

    ``columns`` are all but the book's, each with its type and a ``?`` where it may be empty; rows
    are taken in the order of ``key``.
    """

    name: str
    columns: Mapping[str, str]
    key: tuple[str, ...]

    @classmethod
    def of(cls, name: str, columns: str, key: str) -> Table:
        """Read it from a line of words."""
        pairs = (each.split(":") for each in columns.split())
        return cls(name, dict(pairs), tuple(key.split()))


BOARD = Table.of(
    "board",
    "slug:text rules:text status:text visibility:text horizon:int seen_epoch:int epoch:int "
    "amended:int teams:int pooled:int replayed:int stored:int best:real? final:text? made:int",
    "slug",
)
TABLES = (
    Table.of(
        "team",
        "number:int id:text name:text folded:text kind:text disqualified:int made:int used:int "
        "last:int? released:real? since:int? seen_used:int? seen_last:int? seen_released:real? "
        "seen_since:int?",
        "number",
    ),
    Table.of(
        "credential", "hash:bytes role:text team:int? made:int expires:int? ended:int?", "hash"
    ),
    Table.of(
        "submission",
        "team:int number:int id:text entry:int time:int message:text format:text? size:int "
        "place:text chosen:int epoch:int value:real? score:real? improved:int question:int",
        "team number",
    ),
    Table.of("record", "entry:int epoch:int time:int team:int value:real", "entry"),
)
"""In the order in which they are dumped."""


def take_rows(view: SqlReading, table: Table, records: RecordWriter) -> None:
    """Write all rows of a book."""
    for row in rows_of(view, table):
        records.put(table.name, row)


def rows_of(view: SqlReading, table: Table) -> Iterator[dict[str, Any]]:
    """Return all rows of a book, a page at a time."""
    keys = ", ".join(table.key)
    start = f"SELECT {', '.join(table.columns)} FROM main.{table.name} WHERE book = ?"  # noqa: S608
    end = f" ORDER BY {keys} LIMIT {_PAGE}"
    after = f" AND ({keys}) > ({', '.join('?' * len(table.key))})"
    last: tuple[Any, ...] = ()
    while True:
        statement = start + (after if last else "") + end
        rows = view.run(statement, (view.number, *last))
        for row in rows:
            yield dict(zip(table.columns, row, strict=True))
        if len(rows) < _PAGE:
            return
        found = dict(zip(table.columns, rows[-1], strict=True))
        last = tuple(found[each] for each in table.key)


def put_rows(
    view: SqlWriting,
    table: Table,
    records: RecordReader,
    change: Callable[[dict[str, Any]], None] | None = None,
) -> None:
    """Insert the rows that come next; ``change`` may alter each."""
    for row in records.section(table.name):
        put_row(view, table, row, change)


def put_row(
    view: SqlWriting,
    table: Table,
    row: dict[str, Any],
    change: Callable[[dict[str, Any]], None] | None = None,
) -> None:
    """Insert a row, or refuse one that is there or that is none."""
    if not isinstance(row, dict) or set(row) != set(table.columns):
        raise BrokenDump(f"The dump holds a {table.name} with other columns than this version's.")
    for column, kind in table.columns.items():
        _check(table.name, column, kind, row[column])
    if change is not None:
        change(row)
    columns = ", ".join(row)
    places = ", ".join("?" * (len(row) + 1))
    statement = (
        f"INSERT INTO main.{table.name} (book, {columns}) VALUES ({places}) "  # noqa: S608
        "ON CONFLICT DO NOTHING"
    )
    if not view.change(statement, (view.number, *row.values())):
        raise Taken(f"A {table.name} of this board is here already; the board cannot be restored.")


def _check(table: str, column: str, kind: str, value: Any) -> None:
    """Refuse what the database would keep otherwise than it was, or not at all."""
    plain = kind.removesuffix("?")
    sound = type(value) is _TYPES[plain] or (value is None and kind != plain)
    if type(value) is int:
        sound = sound and -_WHOLE <= value < _WHOLE
    if type(value) is str:
        sound = sound and "\0" not in value and _is_unicode(value)
    if not sound:
        raise BrokenDump(f"The dump holds a {table} whose {column} cannot be kept.")


def _is_unicode(value: str) -> bool:
    return not any("\ud800" <= each <= "\udfff" for each in value)
