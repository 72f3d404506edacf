"""The record and its storage.

Append-only: the commitment made at the start, the chain of entries, and the databases that keep
them. A :class:`Book` answers a question in one transaction, in which everything that decides it is
read and everything that follows from it is written.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ladderboard.ledger._arrays import read_array, write_array
from ladderboard.ledger._asked import Asked, Outcome
from ladderboard.ledger._block import SqlStorage
from ladderboard.ledger._book import Book
from ladderboard.ledger._bundle import BundleWriter, write_bundle
from ladderboard.ledger._canonical import decode, digest, encode
from ladderboard.ledger._chain import Head, differs, follow
from ladderboard.ledger._commitment import Commitment
from ladderboard.ledger._entry import Entry, read_json
from ladderboard.ledger._migrate import latest as latest
from ladderboard.ledger._opening import Opening
from ladderboard.ledger._padding import pad, unpad
from ladderboard.ledger._parts import Part
from ladderboard.ledger._postgres_address import Address as Address
from ladderboard.ledger._postgres_address import load_psycopg as load_psycopg
from ladderboard.ledger._receipt import Receipt
from ladderboard.ledger._records import RecordReader, RecordWriter
from ladderboard.ledger._restore import restore
from ladderboard.ledger._seal import KEY_BYTES, Cipher, NoSeal, Seal
from ladderboard.ledger._secret import Secret
from ladderboard.ledger._sql import NAMES as NAMES
from ladderboard.ledger._sql import SqlReading, SqlWriting
from ladderboard.ledger._sqlite import SqliteStorage
from ladderboard.ledger._sqlite_link import APPLICATION as APPLICATION
from ladderboard.ledger._sqlite_link import connect as connect
from ladderboard.ledger._sqlite_link import failed as failed
from ladderboard.ledger._storage import START, At, Reading, Row, Storage, Writing
from ladderboard.ledger._transfer import check_book, note_restored, put_book, take_book
from ladderboard.ledger._turn import Turn
from ladderboard.ledger._water import HighWater, Level
from ladderboard.ledger._world import World

if TYPE_CHECKING:
    from ladderboard.ledger._postgres import PostgresStorage
    from ladderboard.ledger._vault import VaultReader, VaultWriter, read_vault, write_vault
    from ladderboard.ledger._vault_key import Passphrase, PublicKey, SecretKey
    from ladderboard.ledger._vault_text import (
        make_secret_key,
        read_public_key,
        read_secret_key,
        write_public_key,
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


# Not needed for a file, and not installed everywhere.
_ELSEWHERE = {
    "PostgresStorage": "_postgres",
    "VaultReader": "_vault",
    "VaultWriter": "_vault",
    "read_vault": "_vault",
    "write_vault": "_vault",
    "Passphrase": "_vault_key",
    "PublicKey": "_vault_key",
    "SecretKey": "_vault_key",
    "make_secret_key": "_vault_text",
    "read_public_key": "_vault_text",
    "read_secret_key": "_vault_text",
    "write_public_key": "_vault_text",
}


def __getattr__(name: str) -> Any:
    if name not in _ELSEWHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_ELSEWHERE[name]}"), name)
