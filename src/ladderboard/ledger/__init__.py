"""The record and its storage.

Append-only: the commitment made at the start, the chain of entries, and the databases that keep
them. A :class:`Book` answers a question in one transaction, in which everything that decides it is
read and everything that follows from it is written.
"""

from typing import TYPE_CHECKING, Any

from ladderboard.ledger._arrays import read_array, write_array
from ladderboard.ledger._asked import Asked, Outcome
from ladderboard.ledger._book import Book
from ladderboard.ledger._canonical import decode, digest, encode
from ladderboard.ledger._chain import Head, follow
from ladderboard.ledger._commitment import Commitment
from ladderboard.ledger._entry import Entry
from ladderboard.ledger._opening import Opening
from ladderboard.ledger._padding import pad, unpad
from ladderboard.ledger._restore import restore
from ladderboard.ledger._seal import KEY_BYTES, Cipher, NoSeal, Seal
from ladderboard.ledger._secret import Secret
from ladderboard.ledger._sqlite import SqliteStorage
from ladderboard.ledger._storage import At, Reading, Row, Storage, Writing
from ladderboard.ledger._water import HighWater, Level
from ladderboard.ledger._world import World

if TYPE_CHECKING:
    from ladderboard.ledger._postgres import PostgresStorage

__all__ = [
    "KEY_BYTES",
    "Asked",
    "At",
    "Book",
    "Cipher",
    "Commitment",
    "Entry",
    "Head",
    "HighWater",
    "Level",
    "NoSeal",
    "Opening",
    "Outcome",
    "PostgresStorage",
    "Reading",
    "Row",
    "Seal",
    "Secret",
    "SqliteStorage",
    "Storage",
    "World",
    "Writing",
    "decode",
    "digest",
    "encode",
    "follow",
    "pad",
    "read_array",
    "restore",
    "unpad",
    "write_array",
]


def __getattr__(name: str) -> Any:
    if name != "PostgresStorage":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    # Not needed for a file.
    from ladderboard.ledger._postgres import PostgresStorage  # noqa: PLC0415

    return PostgresStorage
