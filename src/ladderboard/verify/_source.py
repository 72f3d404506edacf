"""Where a ledger comes from: a bundle with everything opened, or the public side alone."""

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
from ladderboard.verify._risks import File, sha256_of
from ladderboard.verify._strict import has, is_whole, same

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from typing import BinaryIO

START = b"ladderboard bundle 1\n"
_NAME = START[:-2]
_COUNT = 8  # bytes of a length
_HASH = 32
_BLOCK = 2**20
_PAIR = b"L" + (2).to_bytes(_COUNT, "big")
_ENTRY = _PAIR + encode("entry")
_OPENED = _PAIR + b"B"  # an entry's bytes and its secret side
_NOTHING = b"N"
_HEAD = ("format", "of", "book", "entries", "head", "labels", "submissions")
_FILE = ("id", "format", "size", "sha256", "selected")
_SMALL = 2**24  # bytes of a submission that are held in memory
_LONGEST_LINE = 2**26


class Records:
    """Reads records; ``kind`` is that of the one at hand, None after the last.

    It stays at hand until ``next`` is called. The file is read and hashed in blocks.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        start = file.read(len(START))
        if start != START:
            newer = start.startswith(_NAME)
            said = "was written by a newer Ladderboard; install that one" if newer else "is none"
            raise InvalidState(f"A bundle begins with {START[:-1].decode()!r}; this file {said}.")
        self._hash = hashlib.sha256(start)
        self._left = os.fstat(file.fileno()).st_size - len(START) - _HASH
        # The record at hand is block[start:end]; its content begins at ``content``.
        self._block, self._content, self._end = b"", 0, 0
        self._counts: Counter[str] = Counter()
        self.kind: str | None = None
        self.next()

    def next(self) -> None:
        """Go to the next record."""
        start = self._end + _COUNT
        if start > len(self._block):
            if self._end == len(self._block) and not self._left:
                self.kind = None
                return
            self._need(_COUNT)
            start = self._end + _COUNT
        length = int.from_bytes(self._block[self._end : start], "big")
        if start + length > len(self._block):
            self._need(_COUNT + length)
            start = self._end + _COUNT
        self._end = start + length
        if self._block.startswith(_ENTRY, start):
            self.kind, self._content = "entry", start + len(_ENTRY)
        else:
            self.kind, self._content = self._look(start)
        self._counts[self.kind] += 1

    def _need(self, count: int) -> None:
        """Read until so many bytes are at hand after the last record."""
        lacks = self._end + count - len(self._block)
        if lacks > self._left:
            raise BrokenLedger("The bundle is cut off, or something was put in or taken out.")
        read = self._file.read(min(self._left, max(lacks, _BLOCK)))
        if len(read) < lacks:
            raise BrokenLedger("The bundle became shorter while it was read.")
        self._hash.update(read)
        self._left -= len(read)
        self._block, self._end = self._block[self._end :] + read, 0

    def _look(self, start: int) -> tuple[str, int]:
        """Return the kind of a record, and where its content begins."""
        block, at = self._block, start + len(_PAIR) + 1
        size = int.from_bytes(block[at : at + _COUNT], "big")
        at, end = at + _COUNT, at + _COUNT + size
        if not block.startswith(_PAIR + b"S", start) or end > self._end or not size:
            raise BrokenLedger("The bundle holds something that is no record.")
        return block[at:end].decode("ascii", "replace"), end

    def read(self) -> Any:
        """Return the content of the record at hand, decoded, and go to the next."""
        try:
            content = decode(self._block[self._content : self._end])
        except ValueError:
            raise strange(self.kind) from None
        self.next()
        return content

    def entry(self) -> tuple[bytes, bytes | None]:
        """Return the bytes of the entry at hand and its secret side, and go to the next."""
        block, end = self._block, self._end
        at = self._content + len(_OPENED)
        start = at + _COUNT
        middle = start + int.from_bytes(block[at:start], "big")
        if not block.startswith(_OPENED, self._content) or middle >= end:
            raise strange("entry")
        form, secret = block[start:middle], block[middle:end]
        self.next()
        return form, None if secret == _NOTHING else secret

    def end(self) -> None:
        """Read the record at hand as the last, and compare the hash at the end with all of it."""
        counts = {kind: count for kind, count in self._counts.items() if kind != "end"}
        if not same(self.read(), counts):
            raise BrokenLedger("The bundle does not hold as many records as it says.")
        if self.kind is not None:
            raise strange(self.kind)
        if self._file.read() != self._hash.digest():
            raise BrokenLedger("The bundle is damaged: it does not end with the hash of the rest.")


def strange(kind: str | None) -> BrokenLedger:
    """Return the refusal of a record that is not as we write it, or not where it belongs."""
    if kind is None:
        return BrokenLedger("The bundle ends too early.")
    return BrokenLedger(
        f"The bundle holds a record {kind!r:.20} that is not as we write it, or not in its place."
    )


Item = tuple[bytes, bytes | None, File | None]
"""An entry, its opened secret side in canonical form, and the file that it was about."""


class Lines:
    """The public side: an entry a line."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def items(self) -> Iterator[Item]:
        """Return all entries."""
        while line := self._file.readline(_LONGEST_LINE):
            if not line.endswith(b"\n"):
                raise BrokenLedger("The ledger is cut off: its last line has no end.")
            yield line[:-1], None, None


class Bundle:
    """A bundle, read in the order of its records."""

    def __init__(self, file: BinaryIO, folder: Path) -> None:
        self._records = Records(file)
        self._body = folder / "body"
        self.head: dict[str, Any] = self._map("bundle", _HEAD)
        if not _is_sound(self.head):
            raise strange("bundle")
        if self.head["format"] != 1 or self.head["of"] not in {"board", "guard"}:
            raise InvalidState("The bundle was written by a newer Ladderboard; install that one.")
        if self.head["of"] == "guard" and self.head["submissions"]:
            raise strange("bundle")  # a guard keeps no file
        self.key: dict[str, bytes] = self._map("key", ("key", "salt"))
        self.standings: dict[str, Any] | None = None
        self.finals: str | None = None

    def _map(self, kind: str, names: Collection[str]) -> Any:
        """Return the record at hand: of this kind, a map of these names."""
        if self._records.kind != kind:
            raise strange(self._records.kind)
        content = self._records.read()
        if not has(content, names):
            raise strange(kind)
        return content

    def holdouts(self) -> Iterator[dict[str, Any]]:
        """Return the labels of each epoch, where they are in it."""
        while self._records.kind == "holdout":
            if not self.head["labels"]:
                raise strange("holdout")
            yield self._map("holdout", ("epoch", "salt", "sample"))
        if self._records.kind not in {"entry", "end"}:
            raise strange(self._records.kind)

    def items(self) -> Iterator[Item]:
        """Return all entries."""
        records = self._records
        while records.kind == "entry":
            form, secret = records.entry()
            yield form, secret, self._file() if records.kind == "file" else None

    def _file(self) -> File:
        told = self._map("file", _FILE)
        if not self.head["submissions"]:
            raise strange("file")
        body = self._gather()
        size = len(body) if isinstance(body, bytes) else body.stat().st_size
        if told["size"] != size or told["sha256"] != sha256_of(body):
            raise BrokenLedger(f"The file of submission {told['id']!r:.40} is damaged.")
        if type(told["selected"]) is not bool or type(told["id"]) is not str:
            raise strange("file")
        return File(told["id"], told["format"], told["selected"], body)

    def _gather(self) -> bytes | Path:
        """Return a small body as bytes, and the path of a large one."""
        parts: list[bytes] = []
        held = 0
        while self._records.kind == "part" and held <= _SMALL:
            parts.append(self._records.read())
            held += len(parts[-1])
        if self._records.kind != "part":
            return b"".join(parts)
        with self._body.open("wb") as file:
            file.writelines(parts)
            while self._records.kind == "part":
                file.write(self._records.read())
        return self._body

    def end(self) -> None:
        """Read what comes after the entries, and see that nothing else does."""
        if self._records.kind == "standings":
            self.standings = self._map("standings", ("salt", "content"))
        if self._records.kind == "finals":
            self.finals = self._records.read()
        if self._records.kind != "end":
            raise strange(self._records.kind)

    def whole(self) -> None:
        """Refuse a bundle that is not whole."""
        self._records.end()


def _is_sound(head: dict[str, Any]) -> bool:
    """Return whether what a bundle says of itself is of the types that we write."""
    whole = is_whole(head["format"]) and is_whole(head["entries"])
    return whole and type(head["book"]) is str and type(head["submissions"]) is bool


@contextmanager
def open_source(path: Path) -> Iterator[Bundle | Lines]:
    """Open a file: what it begins with tells what it is."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # a pipe has no size, and may never end
            raise StorageFailed(f"{path} cannot be read: it is no regular file.")
        file = path.open("rb")
    except OSError as error:
        raise StorageFailed(f"{path} cannot be read: {error.strerror}.") from None
    with file, tempfile.TemporaryDirectory(prefix="ladderboard-") as folder:
        if file.peek(1)[:1] == b"{":
            yield Lines(file)
        elif file.peek(1)[:1] == START[:1]:
            yield Bundle(file, Path(folder))
        else:
            raise InvalidState(
                f"{path} is neither a bundle nor a ledger: a bundle is written at the close, a "
                "ledger has an entry a line."
            )
