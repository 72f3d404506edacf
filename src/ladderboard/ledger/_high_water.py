"""The high-water mark: a file beside a database with the length of its chain."""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ladderboard.errors import Conflict, StaleCopy, storage_error
from ladderboard.ledger._chain import Entry

if TYPE_CHECKING:
    from ladderboard.ledger._storage import ChainState, ReadView

try:
    import fcntl
except ImportError:  # Windows: a mark may lag behind when two processes write it
    fcntl = None  # type: ignore[assignment]


# A forked child inherits locks on files and would hold them for as long as it runs. So no mark is
# open while this process forks, and only one thread at a time uses one.
_FORK_LOCK = threading.Lock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_FORK_LOCK.acquire,
        after_in_parent=_FORK_LOCK.release,
        after_in_child=_FORK_LOCK.release,
    )

_FILE_BYTES = 256
_HEADER = "ladderboard mark 1"


class Position(NamedTuple):
    """What a mark records of a book: entries, questions used, and the hash of the last entry."""

    book: str
    entries: int
    questions: int
    head: str

    @classmethod
    def from_state(cls, book: str, chain_state: ChainState) -> Position:
        """Return the position of a book in this state."""
        return cls(
            book,
            chain_state.entries,
            chain_state.asked + chain_state.charged,
            chain_state.head.hex(),
        )


class HighWaterMark:
    """The mark of a database file, in ``FILE.mark`` beside it.

    Parameters
    ----------
    path
        The database file.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(f"{os.fspath(path)}.mark")
        self._name = str(self.path)
        self._cached: tuple[bytes, Position] | None = None  # the last content, parsed

    def read(self, *, write: bool = False) -> Position | None:
        """Return the recorded position, or None if there is no mark.

        With ``write``, refuse a mark that could not be written later.
        """
        with _FORK_LOCK:
            try:
                file = os.open(self._name, os.O_RDWR if write else os.O_RDONLY)
            except FileNotFoundError:
                return None
            except OSError as error:
                verb = "written" if write else "read"
                raise storage_error(error, f"{self.path} cannot be {verb}") from None
            try:
                content = os.pread(file, _FILE_BYTES + 1, 0)
                cached = self._cached
                if cached is not None and cached[0] == content:  # as it was, so not half written
                    return cached[1]
                if fcntl is not None:  # or a half-written position may be read
                    fcntl.flock(file, fcntl.LOCK_SH)
                    content = os.pread(file, _FILE_BYTES + 1, 0)
            except OSError as error:
                raise storage_error(error, f"{self.path} cannot be read") from None
            finally:
                os.close(file)
        return self._parse(content)

    def _parse(self, content: bytes) -> Position:
        cached = self._cached
        if cached is not None and cached[0] == content:
            return cached[1]
        try:
            *header, book, entries, questions, head = content.decode("ascii").split()
            if len(content) != _FILE_BYTES or " ".join(header) != _HEADER:
                raise ValueError
            position = Position(book, int(entries), int(questions), head)
        except ValueError:
            raise StaleCopy(
                f"{self.path.name} is damaged, so the file beside it may not be the newest copy."
            ) from None
        self._cached = (content, position)
        return position

    def read_if_intact(self) -> Position | None:
        """Return the recorded position, or None if the mark is missing or damaged."""
        try:
            return self.read()
        except StaleCopy:
            return None

    def rename_from(self, old_mark: HighWaterMark, book: str) -> None:
        """Rename another mark of the same book to this one, unless this one exists."""
        if self.path.exists() or not old_mark.path.exists():
            return
        position = old_mark.read_if_intact()
        if position is None or position.book != book:
            return
        try:
            old_mark.path.rename(self.path)
        except FileNotFoundError:  # another process has renamed it
            pass
        except OSError as error:
            raise storage_error(error, f"{self.path} cannot be written") from None

    def create(self, position: Position) -> Position | None:
        """Write the mark of a book that is restored here, and return the position it replaces.

        Another book's mark is never replaced.
        """
        replaced = self.read() if self.path.exists() else None
        if replaced is not None and replaced.book != position.book:
            raise Conflict(f"{self.path.name} is the mark of another board; it was left as it is.")
        self.replace(position)
        return replaced

    def advance(self, position: Position) -> None:
        """Write a position, unless the mark is further ahead in the same book."""
        self._change(position, replace=False)

    def replace(self, position: Position) -> None:
        """Overwrite the mark unconditionally, for a new file or a restore.

        This waits for the disk. Later positions are written over this one in a file of the same
        size, so that a power cut leaves one or the other.
        """
        self._change(position, replace=True)

    def _is_passed(self, file: int, position: Position) -> bool:
        """Return whether an open mark is at a position or ahead of it, in the same book."""
        try:
            current = self._parse(os.pread(file, _FILE_BYTES + 1, 0))
        except StaleCopy:  # an empty or damaged mark is replaced
            return False
        return current.book == position.book and current.entries >= position.entries

    def _write(self, file: int, position: Position) -> None:
        text = f"{_HEADER} {position.book} {position.entries} {position.questions} {position.head}"
        content = f"{text:<{_FILE_BYTES - 1}}\n".encode("ascii")
        if (
            os.pwrite(file, content, 0) != _FILE_BYTES
        ):  # a mark that is half written counts as damaged
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._cached = (content, position)

    def _change(self, position: Position, *, replace: bool) -> None:
        """Write a position while the file is exclusively locked."""
        with _FORK_LOCK:
            try:
                file = os.open(self._name, os.O_RDWR | os.O_CREAT, 0o600)
                try:
                    if fcntl is not None:
                        fcntl.flock(file, fcntl.LOCK_EX)
                    if replace:
                        self._write(file, position)
                        os.ftruncate(file, _FILE_BYTES)  # a damaged mark may have been longer
                        os.fsync(file)
                    elif not self._is_passed(file, position):
                        self._write(file, position)
                finally:
                    os.close(file)  # this releases the lock
            except OSError as error:
                raise storage_error(error, f"{self.path} cannot be written") from None

    def check(
        self, position: Position | None, book: str, chain_state: ChainState, view: ReadView
    ) -> None:
        """Refuse a book that is behind its mark.

        Read the position before the book: others may append entries in between.
        """
        if position is None:
            raise StaleCopy(
                f"There is no {self.path.name} beside the file, so it may not be the newest copy."
            )
        if position.book != book:
            raise StaleCopy(f"{self.path.name} belongs to another file than the one beside it.")
        missing = missing_questions(position, chain_state, view)
        if missing is None:
            return
        if chain_state.entries < position.entries:
            raise StaleCopy(
                "This file is behind its mark: an old copy was put back. Questions used since and "
                f"missing from it: at least {missing:,}.",
                missing=missing,
            )
        raise StaleCopy(
            "This file does not match its mark: a copy of it was used elsewhere.",
            missing=missing,
        )


def missing_questions(position: Position, chain_state: ChainState, view: ReadView) -> int | None:
    """Return how many answers are known to be missing from a book; None if it is not behind.

    If two copies were used, the last entry that the mark records is missing, and with it at least
    one answer. How many others are missing cannot be known.
    """
    difference = position.questions - chain_state.asked - chain_state.charged
    if chain_state.entries < position.entries:
        return max(difference, 0)
    if not position.entries:
        return None
    head = chain_state.head
    if chain_state.entries > position.entries:
        head = Entry(next(iter(view.entries(position.entries - 1, position.entries)))).hash
    return None if head.hex() == position.head else max(difference, 1)
