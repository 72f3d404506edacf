"""A look into a database, which changes nothing: no file is made, no table, no lock is kept."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

from ladderboard.board import PART, SERVER
from ladderboard.errors import InvalidState, StorageFailed
from ladderboard.ledger import APPLICATION, NAMES, Address, failed, latest, load_psycopg

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Run = Callable[..., list[tuple[Any, ...]]]

__all__ = ["SCHEMA", "Seen", "is_left", "look_into_file", "look_into_postgres", "see"]

SCHEMA = "ladderboard"
_ENTRIES = 2**40  # places that a book has: see ladderboard.ledger._storage._sql
_LAST = "SELECT time FROM main.entry WHERE place >= ? AND place < ? ORDER BY place DESC LIMIT 1"
_KEY = (
    "SELECT value FROM main.kept JOIN main.book ON main.book.id = main.kept.book "
    "WHERE main.book.name = ? AND main.kept.name = 'signing key'"
)
_PATIENCE = 5  # seconds


class Seen(NamedTuple):
    """What was seen in a database.

    ``behind`` says that an older Ladderboard wrote it, so that it is brought up to date when it is
    opened; ``ahead`` that a newer one did. ``newest`` is the time of the newest entry, and
    ``sealed`` what the key file is tried on.
    """

    version: int
    behind: bool
    ahead: bool
    boards: int = 0
    newest: int | None = None
    sealed: bytes | None = None


def _has_log(path: Path) -> bool:
    log = path.with_name(f"{path.name}-wal")
    return log.exists() and log.stat().st_size > 0


def is_left(path: Path) -> bool:
    """Tell whether a file was left in the middle, as when a machine stops: a log, and no memory."""
    return _has_log(path) and not path.with_name(f"{path.name}-shm").exists()


@contextmanager
def look_into_file(path: Path) -> Iterator[Run]:
    """Give what runs statements on an SQLite file.

    Not for a process that has the file open otherwise: see ``SqliteLink``.
    """
    # Without a log nobody writes, and the file is all there is; SQLite would begin a log even to
    # read. With one, SQLite reads the memory that its users share. Where that is missing it would
    # be made from the log, so what is in the log alone stays unseen.
    shared = _has_log(path) and not is_left(path)
    quiet = "mode=ro&readonly_shm=1" if shared else "immutable=1"
    try:
        uri = f"file:{quote(os.fsencode(path))}?{quiet}"
        with closing(sqlite3.connect(uri, uri=True, timeout=_PATIENCE)) as database:
            if database.execute("PRAGMA application_id").fetchone()[0] != APPLICATION:
                raise InvalidState(f"{path} is not a file of Ladderboard.")
            yield lambda statement, values=(): database.execute(statement, values).fetchall()
    except sqlite3.Error as error:
        raise failed(error, path) from None


@contextmanager
def look_into_postgres(url: str) -> Iterator[tuple[Run, Any]]:
    """Give what runs statements in PostgreSQL, where they may only read, and the connection."""
    driver = load_psycopg()
    address = Address(url.replace("postgres://", "postgresql://", 1))
    with closing(address.connect()) as connection:
        connection.execute("SET default_transaction_read_only = on")
        connection.execute(f"SET statement_timeout = '{_PATIENCE}s'")

        def run(statement: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
            words = statement.replace("main.", f'"{SCHEMA}".').replace("?", "%s")
            try:
                rows: list[tuple[Any, ...]] = connection.execute(words, values or None).fetchall()
            except driver.Error as error:
                raise StorageFailed(f"{address!r} said: {address.clean(error)}.") from None
            return rows

        yield run, connection


def see(run: Run, version: object, tables: set[str], where: str) -> Seen:
    """Return what is in a database of this format, and refuse what is none of ours."""
    if not isinstance(version, int) or version < 1:
        raise InvalidState(f"{where} is damaged: it does not say its format.")
    part = 0
    if f"{PART.name}_format" in tables:
        part = int(run(f"SELECT version FROM main.{PART.name}_format")[0][0])  # noqa: S608
    behind = version < latest() or part < len(PART.steps)
    if version > latest() or part > len(PART.steps):
        return Seen(version, behind=False, ahead=True)
    if not set(NAMES) <= tables:
        raise InvalidState(f"{where} is damaged: its tables are not those of a ledger.")
    boards = run("SELECT count(*) FROM main.board")[0][0] if part else 0
    times = [
        row[0]
        for (book,) in run("SELECT id FROM main.book")
        for row in run(_LAST, (book * _ENTRIES, (book + 1) * _ENTRIES))
    ]
    sealed = run(_KEY, (SERVER,))
    return Seen(
        version,
        behind=behind,
        ahead=False,
        boards=boards,
        newest=max(times, default=None),
        sealed=bytes(sealed[0][0]) if sealed else None,
    )
