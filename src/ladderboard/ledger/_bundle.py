"""Writing a bundle: the ledger of a closed board or guard with its secrets, in one file.

docs/reference/ledger.md describes the bytes. The package ``verify`` reads and checks it, and trusts
nothing that is written here.
"""

from __future__ import annotations

import hashlib
import struct
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ladderboard._atomic_file import atomic_create
from ladderboard.ledger._encoding import encode

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import BinaryIO

    from ladderboard.ledger._commitments import SecretSide
    from ladderboard.ledger._gate import GateSecret

_START = "ladderboard bundle {}\n"
_LENGTH = struct.Struct(">Q")


class BundleWriter:
    """Writes records one after the other, then the hash of them all.

    Format 2 is that of boards whose ledger commits to no names of teams.
    """

    def __init__(self, file: BinaryIO, *, bundle_format: int = 1) -> None:
        self._file, self.format = file, bundle_format
        self._hash = hashlib.sha256()
        self._counts: Counter[str] = Counter()
        self._write(_START.format(bundle_format).encode())

    def write_record(self, kind: str, content: Any) -> None:
        """Write a record."""
        encoded = encode([kind, content])
        self._write(_LENGTH.pack(len(encoded)) + encoded)
        self._counts[kind] += 1

    def write_entry(self, encoded: bytes, secret: SecretSide | GateSecret | None) -> None:
        """Write an entry with its secret side in the clear."""
        self.write_record("entry", [encoded, None if secret is None else secret.encode_opened()])

    def finish(self) -> bytes:
        """Write how many records there are of each kind, and return the hash of everything."""
        self.write_record("end", dict(self._counts))
        bundle_hash = self._hash.digest()
        self._file.write(bundle_hash)
        return bundle_hash

    def _write(self, content: bytes) -> None:
        self._hash.update(content)
        self._file.write(content)


@contextmanager
def write_bundle(path: Path, *, bundle_format: int = 1) -> Iterator[BundleWriter]:
    """Create a file, readable by its owner only, that appears once it is complete.

    The caller must call ``finish`` on the writer.
    """
    with atomic_create(path) as draft, draft.open("r+b") as file:
        yield BundleWriter(file, bundle_format=bundle_format)
