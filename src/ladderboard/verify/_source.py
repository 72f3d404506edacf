"""Where a ledger comes from: a bundle with everything opened, or the public side alone."""

from __future__ import annotations

import stat
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ladderboard.errors import BrokenLedger, InvalidState, StorageFailed
from ladderboard.verify._records import START, Records, strange
from ladderboard.verify._risks import File, sha256_of
from ladderboard.verify._strict import has, is_whole

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from typing import BinaryIO

__all__ = ["Bundle", "Item", "Lines", "open_source"]

_HEAD = ("format", "of", "book", "entries", "head", "labels", "submissions")
_FILE = ("id", "format", "size", "sha256", "selected")
_SMALL = 2**24  # bytes of a submission that are held in memory
_LONGEST_LINE = 2**26


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
