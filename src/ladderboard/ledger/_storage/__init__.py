"""Databases that hold books: the contract of a storage, SQLite and PostgreSQL."""

from typing import TYPE_CHECKING, Any

from ladderboard.ledger._storage._base import COPY as COPY
from ladderboard.ledger._storage._base import START as START
from ladderboard.ledger._storage._base import At as At
from ladderboard.ledger._storage._base import Reading as Reading
from ladderboard.ledger._storage._base import Row as Row
from ladderboard.ledger._storage._base import Storage as Storage
from ladderboard.ledger._storage._base import Writing as Writing
from ladderboard.ledger._storage._schema import NAMES as NAMES
from ladderboard.ledger._storage._schema import Part as Part
from ladderboard.ledger._storage._schema import latest as latest
from ladderboard.ledger._storage._sql import SqlReading as SqlReading
from ladderboard.ledger._storage._sql import SqlWriting as SqlWriting
from ladderboard.ledger._storage._sqlite import APPLICATION as APPLICATION
from ladderboard.ledger._storage._sqlite import SqliteStorage as SqliteStorage
from ladderboard.ledger._storage._sqlite import connect as connect
from ladderboard.ledger._storage._sqlite import failed as failed
from ladderboard.ledger._storage._transaction import SqlStorage as SqlStorage

if TYPE_CHECKING:
    from ladderboard.ledger._storage._postgres import Address as Address
    from ladderboard.ledger._storage._postgres import PostgresStorage as PostgresStorage
    from ladderboard.ledger._storage._postgres import load_psycopg as load_psycopg


def __getattr__(name: str) -> Any:
    if name not in {"Address", "PostgresStorage", "load_psycopg"}:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    # Guards in a file do without PostgreSQL.
    from ladderboard.ledger._storage import _postgres  # noqa: PLC0415

    return getattr(_postgres, name)
