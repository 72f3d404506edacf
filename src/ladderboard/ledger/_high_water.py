"""The high-water mark: how far a book had come, kept beside its file."""

from __future__ import annotations

import errno
import os
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ladderboard.errors import Conflict, StaleCopy, storage_error
from ladderboard.ledger._chain import Entry

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ladderboard.ledger._storage import ChainState, ReadView

try:
    import fcntl
except ImportError:  # Windows: marks of two processes may then lag behind each other
    fcntl = None  # type: ignore[assignment]


# A lock on a file is inherited by a forked child, who would keep it for as long as it lives. So no
# mark is open while this process forks, and threads come one by one.
_MINE = threading.Lock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_MINE.acquire, after_in_parent=_MINE.release, after_in_child=_MINE.release
    )

_SIZE = 256
_WORDS = "ladderboard mark 1"


class Position(NamedTuple):
    """How far a book had come: entries, questions spent, and the hash of the last entry."""

    book: str
    entries: int
    questions: int
    head: str

    @classmethod
    def from_state(cls, book: str, at: ChainState) -> Position:
        """Return where a book stands."""
        return cls(book, at.entries, at.asked + at.charged, at.head.hex())


class HighWaterMark:
    """A mark beside a file, ``FILE.mark``.

    Parameters
    ----------
    path
        The file whose mark it is.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(f"{os.fspath(path)}.mark")
        self._name = str(self.path)
        self._last: tuple[bytes, Position] | None = None  # what was written or read last

    def read(self, *, write: bool = False) -> Position | None:
        """Return the level, or None where there is no mark.

        With ``write`` one that cannot be written is refused, before there is anything to write.
        """
        with _MINE:
            try:
                file = os.open(self._name, os.O_RDWR if write else os.O_RDONLY)
            except FileNotFoundError:
                return None
            except OSError as error:
                what = "written" if write else "read"
                raise storage_error(error, f"{self.path} cannot be {what}") from None
            try:
                if fcntl is not None:  # or half of a level may be read while another is written
                    fcntl.flock(file, fcntl.LOCK_SH)
                written = os.pread(file, _SIZE + 1, 0)
            except OSError as error:
                raise storage_error(error, f"{self.path} cannot be read") from None
            finally:
                os.close(file)
        return self._level(written)

    def _level(self, written: bytes) -> Position:
        last = self._last
        if last is not None and last[0] == written:
            return last[1]
        try:
            *words, book, entries, questions, head = written.decode("ascii").split()
            if len(written) != _SIZE or " ".join(words) != _WORDS:
                raise ValueError
            level = Position(book, int(entries), int(questions), head)
        except ValueError:
            raise StaleCopy(
                f"{self.path.name} is damaged, so nobody can tell whether the file beside it is "
                "the newest copy."
            ) from None
        self._last = (written, level)
        return level

    def read_if_intact(self) -> Position | None:
        """Return the level, or None where the mark is missing or damaged."""
        try:
            return self.read()
        except StaleCopy:
            return None

    def rename_from(self, other: HighWaterMark, book: str) -> None:
        """Rename another mark of the same book to this one, unless this one exists."""
        if self.path.exists() or not other.path.exists():
            return
        level = other.read_if_intact()
        if level is None or level.book != book:
            return
        try:
            other.path.rename(self.path)
        except FileNotFoundError:  # another process was faster
            pass
        except OSError as error:
            raise storage_error(error, f"{self.path} cannot be written") from None

    def create(self, level: Position) -> Position | None:
        """Write the mark of a book that is restored here, and return the one it replaces.

        Another book's mark is never replaced.
        """
        held = self.read() if self.path.exists() else None
        if held is not None and held.book != level.book:
            raise Conflict(f"{self.path.name} is the mark of another board; it was left as it is.")
        self.replace(level)
        return held

    def advance(self, level: Position) -> None:
        """Write a level, unless a higher one of the same book is written."""
        with self._alone() as file:
            try:
                held = self._level(os.pread(file, _SIZE + 1, 0))
            except StaleCopy:  # what is not there yet, or damaged, is replaced
                held = None
            if held is None or held.book != level.book or held.entries < level.entries:
                self._put(file, level)

    def replace(self, level: Position) -> None:
        """Write a level, whatever was written before: the file is new, or the owner says so.

        Here the disk is waited for: later levels are written over this one, and the file keeps its
        size, so that a power cut leaves one or the other.
        """
        with self._alone() as file:
            self._put(file, level)
            os.ftruncate(file, _SIZE)  # a damaged one may have been longer
            os.fsync(file)

    def _put(self, file: int, level: Position) -> None:
        text = f"{_WORDS} {level.book} {level.entries} {level.questions} {level.head}"
        written = text.ljust(_SIZE - 1).encode("ascii") + b"\n"
        if os.pwrite(file, written, 0) != _SIZE:  # half a mark is as good as a damaged one
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._last = (written, level)

    @contextmanager
    def _alone(self) -> Iterator[int]:
        """Give the file, open and to ourselves until the block ends."""
        with _MINE:
            try:
                file = os.open(self._name, os.O_RDWR | os.O_CREAT, 0o600)
                try:
                    if fcntl is not None:
                        fcntl.flock(file, fcntl.LOCK_EX)
                    yield file
                finally:
                    os.close(file)  # and with it the lock
            except OSError as error:
                raise storage_error(error, f"{self.path} cannot be written") from None

    def check(self, level: Position | None, book: str, at: ChainState, entries: ReadView) -> None:
        """Refuse a book that is behind its mark.

        The level must have been read before the book was: others may have gone on since.
        """
        if level is None:
            raise StaleCopy(
                f"There is no {self.path.name} beside the file, so nobody can tell whether it is "
                "the newest copy."
            )
        if level.book != book:
            raise StaleCopy(f"{self.path.name} belongs to another file than the one beside it.")
        missing = missing_questions(level, at, entries)
        if missing is None:
            return
        if at.entries < level.entries:
            raise StaleCopy(
                "This file is behind its mark: an old copy was put back. Questions used since and "
                f"missing from it: at least {missing}.",
                missing=missing,
            )
        raise StaleCopy(
            "This file and its mark tell different stories: a copy of it was used elsewhere.",
            missing=missing,
        )


def missing_questions(level: Position, at: ChainState, entries: ReadView) -> int | None:
    """Return how many answers are known to be missing from a book; None if it is not behind.

    Where two copies were used, the last entry that the mark knows is missing, and with it one
    answer at least. How many came before it since they parted, nobody can tell.
    """
    fewer = level.questions - at.asked - at.charged
    if at.entries < level.entries:
        return max(fewer, 0)
    if not level.entries:
        return None
    head = at.head
    if at.entries > level.entries:
        head = Entry(next(iter(entries.entries(level.entries - 1, level.entries)))).hash
    return None if head.hex() == level.head else max(fewer, 1)
