"""Read the file to verify: a bundle with secrets opened, or a public ledger."""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ladderboard.errors import BrokenLedger, InvalidState, StorageFailed
from ladderboard.ledger import decode, encode
from ladderboard.verify._chain import has_exact_keys, is_int, same_encoding
from ladderboard.verify._risks import SubmittedFile, sha256_digest

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from typing import BinaryIO

START = b"ladderboard bundle 2\n"
_NAME = START[:-2]
_SQLITE = b"SQLite format 3\0"
_STARTS = {_NAME + b"%d\n" % number: number for number in (1, 2)}
_COUNT = 8  # bytes of a length
_HASH = 32
_BLOCK = 2**20
_PAIR = b"L" + (2).to_bytes(_COUNT, "big")
_ENTRY = _PAIR + encode("entry")
_OPENED = _PAIR + b"B"  # an entry's bytes and its secret side
_NOTHING = b"N"
_HEAD = ("format", "of", "book", "entries", "head", "labels", "submissions")
_FILE = ("id", "format", "size", "sha256", "selected")
_MAX_BODY_IN_MEMORY = 2**24  # bytes of a submission that are held in memory
_LONGEST_LINE = 2**26


class BundleRecords:
    """Reads records; ``kind`` is the kind of the current record, None after the last.

    ``advance`` goes to the next record. The file is read and hashed in blocks.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        start = file.read(len(START))
        if start not in _STARTS:
            newer = start.startswith(_NAME)
            reason = "was written by a newer Ladderboard; install that one" if newer else "does not"
            raise InvalidState(f"A bundle begins with {START[:-1].decode()!r}; this file {reason}.")
        self.format = _STARTS[start]
        self._hash = hashlib.sha256(start)
        self._left = os.fstat(file.fileno()).st_size - len(START) - _HASH
        # The current record is block[start:end]; its content begins at ``content``.
        self._block, self._content, self._end = b"", 0, 0
        self._counts: Counter[str] = Counter()
        self.kind: str | None = None
        self.advance()

    def advance(self) -> None:
        """Go to the next record."""
        start = self._end + _COUNT
        if start > len(self._block):
            if self._end == len(self._block) and not self._left:
                self.kind = None
                return
            self._fill(_COUNT)
            start = self._end + _COUNT
        length = int.from_bytes(self._block[self._end : start], "big")
        if start + length > len(self._block):
            self._fill(_COUNT + length)
            start = self._end + _COUNT
        self._end = start + length
        if self._block.startswith(_ENTRY, start):
            self.kind, self._content = "entry", start + len(_ENTRY)
        else:
            self.kind, self._content = self._read_kind(start)
        self._counts[self.kind] += 1

    def _fill(self, count: int) -> None:
        """Read until the block holds ``count`` bytes after the last record."""
        missing = self._end + count - len(self._block)
        if missing > self._left:
            raise BrokenLedger("The bundle is cut off, or bytes were added or removed.")
        read = self._file.read(min(self._left, max(missing, _BLOCK)))
        if len(read) < missing:
            raise BrokenLedger("The bundle became shorter while it was read.")
        self._hash.update(read)
        self._left -= len(read)
        self._block, self._end = self._block[self._end :] + read, 0

    def _read_kind(self, start: int) -> tuple[str, int]:
        """Return the kind of a record, and where its content begins."""
        block, offset = self._block, start + len(_PAIR) + 1
        size = int.from_bytes(block[offset : offset + _COUNT], "big")
        offset, end = offset + _COUNT, offset + _COUNT + size
        if not block.startswith(_PAIR + b"S", start) or end > self._end or not size:
            raise BrokenLedger("The bundle holds bytes that are not a record.")
        return block[offset:end].decode("ascii", "replace"), end

    def read(self) -> Any:
        """Return the decoded content of the current record, and go to the next."""
        try:
            content = decode(self._block[self._content : self._end])
        except ValueError:
            raise malformed_record(self.kind) from None
        self.advance()
        return content

    def read_entry(self) -> tuple[bytes, bytes | None]:
        """Return the bytes of the current entry and its secret side, and go to the next."""
        block, end = self._block, self._end
        offset = self._content + len(_OPENED)
        start = offset + _COUNT
        middle = start + int.from_bytes(block[offset:start], "big")
        if not block.startswith(_OPENED, self._content) or middle >= end:
            raise malformed_record("entry")
        encoded, secret = block[start:middle], block[middle:end]
        self.advance()
        return encoded, None if secret == _NOTHING else secret

    def read_end(self) -> None:
        """Read the current record as the last, and check the hash at the end of the file."""
        counts = {kind: count for kind, count in self._counts.items() if kind != "end"}
        if not same_encoding(self.read(), counts):
            raise BrokenLedger("The bundle does not hold as many records as it states.")
        if self.kind is not None:
            raise malformed_record(self.kind)
        if self._file.read() != self._hash.digest():
            raise BrokenLedger("The bundle is damaged: its hash at the end is wrong.")


def malformed_record(kind: str | None) -> BrokenLedger:
    """Return the error for a record that is malformed or in the wrong position."""
    if kind is None:
        return BrokenLedger("The bundle ends too early.")
    return BrokenLedger(
        f"The bundle holds a record {kind!r:.20} that is malformed or in the wrong position."
    )


LedgerItem = tuple[bytes, bytes | None, SubmittedFile | None]
"""An entry, its encoded opened secret side, and the submitted file."""


class PublicLedger:
    """A public ledger: one entry per line."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def iter_entries(self) -> Iterator[LedgerItem]:
        """Yield all entries."""
        while line := self._file.readline(_LONGEST_LINE):
            if not line.endswith(b"\n"):
                raise BrokenLedger("The ledger is cut off: its last line is incomplete.")
            yield line[:-1], None, None


class BundleReader:
    """A bundle, read in the order of its records."""

    def __init__(self, file: BinaryIO, folder: Path) -> None:
        self._records = BundleRecords(file)
        self._body = folder / "body"
        self.header: dict[str, Any] = self._read_map("bundle", _HEAD)
        if not _is_valid_header(self.header):
            raise malformed_record("bundle")
        self.format = self._records.format
        if self.header["format"] != self.format or self.header["of"] not in {"board", "guard"}:
            raise InvalidState("The bundle was written by a newer Ladderboard; install that one.")
        if self.header["of"] == "guard" and (self.header["submissions"] or self.format != 1):
            raise malformed_record("bundle")  # a guard stores no files, and has no teams
        self.key: dict[str, bytes] = self._read_map("key", ("key", "salt"))
        self.standings: dict[str, Any] | None = None
        self.finals: str | None = None
        self.names: dict[str, str] | None = None

    def _read_map(self, kind: str, names: Collection[str]) -> Any:
        """Return the current record, which must be a map of this kind with these keys."""
        if self._records.kind != kind:
            raise malformed_record(self._records.kind)
        content = self._records.read()
        if not has_exact_keys(content, names):
            raise malformed_record(kind)
        return content

    def iter_holdouts(self) -> Iterator[dict[str, Any]]:
        """Yield the labels of each epoch, if the bundle holds labels."""
        while self._records.kind == "holdout":
            if not self.header["labels"]:
                raise malformed_record("holdout")
            yield self._read_map("holdout", ("epoch", "salt", "sample"))
        if self._records.kind not in {"entry", "end"}:
            raise malformed_record(self._records.kind)

    def iter_entries(self) -> Iterator[LedgerItem]:
        """Yield all entries."""
        records = self._records
        while records.kind == "entry":
            encoded, secret = records.read_entry()
            yield encoded, secret, self._read_file() if records.kind == "file" else None

    def _read_file(self) -> SubmittedFile:
        record = self._read_map("file", _FILE)
        if not self.header["submissions"]:
            raise malformed_record("file")
        body = self._read_body()
        size = len(body) if isinstance(body, bytes) else body.stat().st_size
        if record["size"] != size or record["sha256"] != sha256_digest(body):
            raise BrokenLedger(f"The file of submission {record['id']!r:.40} is damaged.")
        if type(record["selected"]) is not bool or type(record["id"]) is not str:
            raise malformed_record("file")
        return SubmittedFile(record["id"], record["format"], record["selected"], body)

    def _read_body(self) -> bytes | Path:
        """Return a small body as bytes, and the path of a large one."""
        parts: list[bytes] = []
        size = 0
        while self._records.kind == "part" and size <= _MAX_BODY_IN_MEMORY:
            parts.append(self._records.read())
            size += len(parts[-1])
        if self._records.kind != "part":
            return b"".join(parts)
        with self._body.open("wb") as file:
            file.writelines(parts)
            while self._records.kind == "part":
                file.write(self._records.read())
        return self._body

    def read_rankings(self) -> None:
        """Read the standings, the finals and the teams' names after the entries."""
        if self._records.kind == "standings":
            self.standings = self._read_map("standings", ("salt", "content"))
        if self._records.kind == "finals":
            self.finals = self._records.read()
        if self.format == 2:
            self.names = self._read_names()
        if self._records.kind != "end":
            raise malformed_record(self._records.kind)

    def _read_names(self) -> dict[str, str]:
        if self._records.kind != "teams":
            raise malformed_record(self._records.kind)
        names = self._records.read()
        if type(names) is not dict or not all(type(name) is str for name in names.values()):
            raise malformed_record("teams")
        return names

    def check_end(self) -> None:
        """Refuse a bundle whose record counts or final hash are wrong."""
        self._records.read_end()


def _is_valid_header(head: dict[str, Any]) -> bool:
    """Return whether the fields of a bundle's header have the right types."""
    counts = is_int(head["format"]) and is_int(head["entries"])
    return counts and type(head["book"]) is str and type(head["submissions"]) is bool


@contextmanager
def open_source(path: Path) -> Iterator[BundleReader | PublicLedger]:
    """Open a bundle or a public ledger, told apart by the first byte."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # a pipe has no size, and may never end
            raise StorageFailed(f"{path} cannot be read: it is not a regular file.")
        file = path.open("rb")
    except OSError as error:
        raise StorageFailed(f"{path} cannot be read: {error.strerror}.") from None
    with file, tempfile.TemporaryDirectory(prefix="ladderboard-") as folder:
        start = file.peek(len(_SQLITE))
        if start[:1] == b"{":
            yield PublicLedger(file)
        elif start[:1] == START[:1]:
            yield BundleReader(file, Path(folder))
        elif start.startswith(_SQLITE):
            raise InvalidState(
                f"{path} is a database, neither a bundle nor a public ledger. If it is a guard's "
                f"file: ladderboard guard export {path} --out LEDGER writes its ledger, and "
                f"ladderboard guard status {path} --check checks the file itself."
            )
        else:
            raise InvalidState(
                f"{path} is neither a bundle (written at the close) nor a public ledger (one entry "
                "per line)."
            )
