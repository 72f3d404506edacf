"""Databases that store books: the interface of a storage, SQLite and PostgreSQL."""

from typing import TYPE_CHECKING

from ladderboard._lazy_exports import lazy_exports
from ladderboard.ledger._storage._schema import TABLE_NAMES as TABLE_NAMES
from ladderboard.ledger._storage._schema import SchemaModule as SchemaModule
from ladderboard.ledger._storage._schema import latest_format as latest_format
from ladderboard.ledger._storage._schema import select_from as select_from
from ladderboard.ledger._storage._sql import COPY as COPY
from ladderboard.ledger._storage._sql import EMPTY_CHAIN as EMPTY_CHAIN
from ladderboard.ledger._storage._sql import STATE_COLUMNS as STATE_COLUMNS
from ladderboard.ledger._storage._sql import STATE_ENTRIES as STATE_ENTRIES
from ladderboard.ledger._storage._sql import STATE_JOIN as STATE_JOIN
from ladderboard.ledger._storage._sql import ChainState as ChainState
from ladderboard.ledger._storage._sql import EntryRow as EntryRow
from ladderboard.ledger._storage._sql import ReadView as ReadView
from ladderboard.ledger._storage._sql import Storage as Storage
from ladderboard.ledger._storage._sql import TableView as TableView
from ladderboard.ledger._storage._sql import WriteView as WriteView
from ladderboard.ledger._storage._sql import question_statements as question_statements
from ladderboard.ledger._storage._sql import state_statement as state_statement
from ladderboard.ledger._storage._sqlite import SQLITE_APPLICATION_ID as SQLITE_APPLICATION_ID
from ladderboard.ledger._storage._sqlite import SqliteStorage as SqliteStorage
from ladderboard.ledger._storage._sqlite import connect_sqlite as connect_sqlite
from ladderboard.ledger._storage._sqlite import translate_sqlite_error as translate_sqlite_error

if TYPE_CHECKING:
    from ladderboard.ledger._storage._pool import Prefetch as Prefetch
    from ladderboard.ledger._storage._postgres import PostgresAddress as PostgresAddress
    from ladderboard.ledger._storage._postgres import PostgresStorage as PostgresStorage
    from ladderboard.ledger._storage._postgres import load_psycopg as load_psycopg

# Guards in a file do not need PostgreSQL.
__getattr__, __dir__ = lazy_exports(
    __name__, {"_postgres": ("PostgresAddress", "PostgresStorage", "load_psycopg")}
)
