"""Opening the database that boards are kept in, by its address."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from ladderboard.board._boards import Boards
from ladderboard.board._store_database import DatabaseStore
from ladderboard.board._store_mixed import MixedStore
from ladderboard.errors import InvalidSetting
from ladderboard.ledger import SqliteStorage

if TYPE_CHECKING:
    from ladderboard.board._store import Store
    from ladderboard.ledger import PostgresStorage, SqlStorage, World

__all__ = ["has_words", "is_shared", "open_boards", "open_schema", "open_storage"]

_SQLITE = "sqlite:///"
_WORDS = re.compile(r"\bpassword\s*=", re.IGNORECASE)
_POSTGRES = ("postgresql://", "postgresql+psycopg://", "postgres://")


def has_words(address: str) -> bool:
    """Tell whether an address has a password by libpq's words, as in ``host=db password=...``."""
    return "://" not in address and _WORDS.search(address) is not None


def is_shared(url: str) -> bool:
    """Tell whether several processes may serve from a database.

    >>> is_shared("boards.db"), is_shared("postgresql+psycopg://me@there/boards")
    (False, True)
    """
    return url.startswith(_POSTGRES)


def open_boards(
    url: Path | str,
    *,
    create: bool = False,
    key_file: Path | str | None = None,
    store: Store | None = None,
    world: World | None = None,
) -> Boards:
    """Open the boards in a database.

    Parameters
    ----------
    url
        A path or ``sqlite:///path`` for SQLite; ``postgresql+psycopg://user:password@host/name``.
    create
        Make what is not there.
    key_file
        Encrypts everything secret; made if it is not there.
    store
        Where submitted files are kept; by default in the database, and beside an SQLite file in
        ``FILE.submissions`` what is larger than a megabyte.
    world
        Clock and salts, for tests.
    """
    storage = open_storage(url, create=create)
    if store is None:
        store = DatabaseStore(storage)
        if isinstance(storage, SqliteStorage):
            path = storage.path
            store = MixedStore(storage, path.with_name(f"{path.name}.submissions"))
    try:
        return Boards(storage, store, key_file=key_file, world=world)
    except BaseException:
        storage.close()
        raise


def open_storage(url: Path | str, *, create: bool = False) -> SqlStorage:
    """Open the database alone."""
    address = str(url)
    if is_shared(address):
        return open_schema(address, create=create)
    path = _path(address)
    return SqliteStorage(path, create=create and not path.exists())


def open_schema(url: str, schema: str = "ladderboard", *, create: bool = True) -> PostgresStorage:
    """Open a schema of a PostgreSQL database."""
    from ladderboard.ledger import PostgresStorage  # noqa: PLC0415 - not needed for a file

    address = url.replace("postgres://", "postgresql://", 1)
    return PostgresStorage(address, create=create, schema=schema)


def _path(address: str) -> Path:
    if address.startswith(_SQLITE):
        address = address.removeprefix(_SQLITE)
    elif "://" in address:
        scheme = address.partition("://")[0]
        raise InvalidSetting(
            f"database must be a path, sqlite:///path or postgresql+psycopg://...; got {scheme}://..."
        )
    if has_words(address):
        raise InvalidSetting(
            "database must be a path, sqlite:///path or postgresql+psycopg://user@host/name."
        )
    if not address or address == ":memory:":
        raise InvalidSetting("database must be a file: what is in memory is lost with the server.")
    return Path(address)
