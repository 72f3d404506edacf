"""The record and its storage.

Append-only: the commitment made at the start, the chain of entries, and the databases that store
them. A :class:`Book` answers a question in one transaction, which reads everything that decides the
answer and writes everything that follows from it.
"""

from typing import TYPE_CHECKING

from ladderboard._lazy_exports import lazy_exports
from ladderboard.ledger._book import Book
from ladderboard.ledger._book_transaction import (
    BookTransaction,
    LedgerEnvironment,
    Moment,
    RecordedAnswer,
    RecordTest,
    ScoredQuestion,
)
from ladderboard.ledger._bundle import BundleWriter, write_bundle
from ladderboard.ledger._chain import (
    ChainHead,
    Entry,
    Receipt,
    broken_entry,
    iter_checked_entries,
    parse_strict_json,
)
from ladderboard.ledger._chain import examples_in_sessions as examples_in_sessions
from ladderboard.ledger._chain import release_from_entry as release_from_entry
from ladderboard.ledger._chain import state_changes as state_changes
from ladderboard.ledger._commitments import (
    KEY_BYTES,
    Cipher,
    Commitment,
    Encryption,
    NoEncryption,
    Opening,
    SecretSide,
)
from ladderboard.ledger._encoding import decode, digest, encode, pad, read_array, unpad, write_array
from ladderboard.ledger._encoding import decode_predictions as decode_predictions
from ladderboard.ledger._encoding import digest_predictions as digest_predictions
from ladderboard.ledger._gate import (
    GATE_STATE,
    GateSecret,
    GateState,
    LookDecision,
    RecordedLook,
    ScoredLook,
)
from ladderboard.ledger._high_water import HighWaterMark, Position
from ladderboard.ledger._restore import (
    adopt_copy,
    append_restored_entry,
    check_book,
    export_book,
    import_book,
)
from ladderboard.ledger._storage import (
    EMPTY_CHAIN,
    ChainState,
    EntryRow,
    ReadView,
    SchemaModule,
    SqliteStorage,
    Storage,
    TableView,
    WriteView,
)
from ladderboard.ledger._storage import SQLITE_APPLICATION_ID as SQLITE_APPLICATION_ID
from ladderboard.ledger._storage import STATE_COLUMNS as STATE_COLUMNS
from ladderboard.ledger._storage import STATE_ENTRIES as STATE_ENTRIES
from ladderboard.ledger._storage import STATE_JOIN as STATE_JOIN
from ladderboard.ledger._storage import TABLE_NAMES as TABLE_NAMES
from ladderboard.ledger._storage import connect_sqlite as connect_sqlite
from ladderboard.ledger._storage import latest_format as latest_format
from ladderboard.ledger._storage import select_from as select_from
from ladderboard.ledger._storage import state_statement as state_statement
from ladderboard.ledger._storage import translate_sqlite_error as translate_sqlite_error

if TYPE_CHECKING:
    from ladderboard.ledger._storage import PostgresAddress as PostgresAddress
    from ladderboard.ledger._storage import PostgresStorage
    from ladderboard.ledger._storage import Prefetch as Prefetch
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
    from ladderboard.ledger._vault import is_encrypted_to_key as is_encrypted_to_key

__all__ = [
    "EMPTY_CHAIN",
    "GATE_STATE",
    "KEY_BYTES",
    "Book",
    "BookTransaction",
    "BundleWriter",
    "ChainHead",
    "ChainState",
    "Cipher",
    "Commitment",
    "Encryption",
    "Entry",
    "EntryRow",
    "GateSecret",
    "GateState",
    "HighWaterMark",
    "LedgerEnvironment",
    "LookDecision",
    "Moment",
    "NoEncryption",
    "Opening",
    "Passphrase",
    "Position",
    "PostgresStorage",
    "PublicKey",
    "ReadView",
    "Receipt",
    "RecordReader",
    "RecordTest",
    "RecordWriter",
    "RecordedAnswer",
    "RecordedLook",
    "SchemaModule",
    "ScoredLook",
    "ScoredQuestion",
    "SecretKey",
    "SecretSide",
    "SqliteStorage",
    "Storage",
    "TableView",
    "VaultReader",
    "VaultWriter",
    "WriteView",
    "adopt_copy",
    "append_restored_entry",
    "broken_entry",
    "check_book",
    "decode",
    "digest",
    "encode",
    "export_book",
    "import_book",
    "iter_checked_entries",
    "make_secret_key",
    "pad",
    "parse_strict_json",
    "read_array",
    "read_public_key",
    "read_secret_key",
    "read_vault",
    "unpad",
    "write_array",
    "write_bundle",
    "write_public_key",
    "write_vault",
]

# Imported on first use: a guard in a file does not need them, and their packages are optional.
__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "_storage": ("PostgresAddress", "PostgresStorage", "load_psycopg"),
        "_vault": (
            "Passphrase",
            "PublicKey",
            "RecordReader",
            "RecordWriter",
            "SecretKey",
            "VaultReader",
            "VaultWriter",
            "is_encrypted_to_key",
            "make_secret_key",
            "read_public_key",
            "read_secret_key",
            "read_vault",
            "write_public_key",
            "write_vault",
        ),
    },
)
