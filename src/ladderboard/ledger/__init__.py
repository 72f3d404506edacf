"""The record and its storage.

Append-only: the commitment made at the start, the chain of entries, and the databases that keep
them. A :class:`Book` answers a question in one transaction, in which everything that decides it is
read and everything that follows from it is written.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ladderboard.ledger._book import Book, World
from ladderboard.ledger._book_transaction import Asked, Outcome, Turn
from ladderboard.ledger._bundle import BundleWriter, write_bundle
from ladderboard.ledger._chain import Entry, Head, differs, follow, read_json
from ladderboard.ledger._commitments import Commitment, Opening, Secret
from ladderboard.ledger._encoding import decode, digest, encode, pad, read_array, unpad, write_array
from ladderboard.ledger._encryption import KEY_BYTES, Cipher, NoSeal, Seal
from ladderboard.ledger._high_water import HighWater, Level
from ladderboard.ledger._receipt import Receipt
from ladderboard.ledger._restore import check_book, note_restored, put_book, restore, take_book
from ladderboard.ledger._storage import APPLICATION as APPLICATION
from ladderboard.ledger._storage import NAMES as NAMES
from ladderboard.ledger._storage import (
    START,
    At,
    Part,
    Reading,
    Row,
    SqliteStorage,
    SqlReading,
    SqlStorage,
    SqlWriting,
    Storage,
    Writing,
)
from ladderboard.ledger._storage import connect as connect
from ladderboard.ledger._storage import failed as failed
from ladderboard.ledger._storage import latest as latest

if TYPE_CHECKING:
    from ladderboard.ledger._storage import Address as Address
    from ladderboard.ledger._storage import PostgresStorage
    from ladderboard.ledger._storage import load_psycopg as load_psycopg
    from ladderboard.ledger._vault import (
        Passphrase,
        PublicKey,
        RecordReader,
        RecordWriter,
        SecretKey,
        VaultReader,
        VaultWriter,
        make_secret_key,
        read_public_key,
        read_secret_key,
        read_vault,
        write_public_key,
        write_vault,
    )

__all__ = [
    "KEY_BYTES",
    "START",
    "Asked",
    "At",
    "Book",
    "BundleWriter",
    "Cipher",
    "Commitment",
    "Entry",
    "Head",
    "HighWater",
    "Level",
    "NoSeal",
    "Opening",
    "Outcome",
    "Part",
    "Passphrase",
    "PostgresStorage",
    "PublicKey",
    "Reading",
    "Receipt",
    "RecordReader",
    "RecordWriter",
    "Row",
    "Seal",
    "Secret",
    "SecretKey",
    "SqlReading",
    "SqlStorage",
    "SqlWriting",
    "SqliteStorage",
    "Storage",
    "Turn",
    "VaultReader",
    "VaultWriter",
    "World",
    "Writing",
    "check_book",
    "decode",
    "differs",
    "digest",
    "encode",
    "follow",
    "make_secret_key",
    "note_restored",
    "pad",
    "put_book",
    "read_array",
    "read_json",
    "read_public_key",
    "read_secret_key",
    "read_vault",
    "restore",
    "take_book",
    "unpad",
    "write_array",
    "write_bundle",
    "write_public_key",
    "write_vault",
]


# Loaded when they are used: not needed for a guard in a file, and not installed everywhere.
_LAZY = {
    "Address": "_storage",
    "PostgresStorage": "_storage",
    "load_psycopg": "_storage",
    "Passphrase": "_vault",
    "PublicKey": "_vault",
    "RecordReader": "_vault",
    "RecordWriter": "_vault",
    "SecretKey": "_vault",
    "VaultReader": "_vault",
    "VaultWriter": "_vault",
    "make_secret_key": "_vault",
    "read_public_key": "_vault",
    "read_secret_key": "_vault",
    "read_vault": "_vault",
    "write_public_key": "_vault",
    "write_vault": "_vault",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_LAZY[name]}"), name)
