"""A store in a folder."""

from __future__ import annotations

import os
import re
import secrets
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from ladderboard.board._store import HOUR, Prepared, Store, Tables, checked
from ladderboard.board._store_sync import Together
from ladderboard.errors import InvalidState, StorageFailed, disk_failed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["FolderStore"]

_INCOMING = "incoming"
_PLACE = re.compile("([0-9a-f]{2})/([0-9a-f]{2})/([0-9a-f]{8,128})")
_STEP = 2**20


class FolderStore(Store):
    """Files in folders by the first digits of their ids, all for the owner's eyes only.

    A file is written beside the others, made durable, and then gets its name, which is made durable
    too: under its name there is all of it or nothing.

    Parameters
    ----------
    path
        The folder; it is made if it is not there. Several machines may share it.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> store = FolderStore(f"{folder.name}/submissions")
    >>> place = store.prepare("00c0ffee", b"id,prediction").place
    >>> place
    '00/c0/00c0ffee'
    >>> with store.get(place) as file:
    ...     file.read()
    b'id,prediction'
    >>> folder.cleanup()
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(os.path.abspath(path))  # noqa: PTH100 - links are not followed
        self._incoming = self.path / _INCOMING
        self._together = Together()
        self._made: set[Path] = set()
        with _told():
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._folder(self._incoming)

    def prepare(self, id: str, body: bytes | Path) -> Prepared:  # noqa: A002 - what it is
        """Keep a file; it is durable when this returns."""
        place = f"{checked(id)[:2]}/{id[2:4]}/{id}"
        target = self.path / place
        draft = self._incoming / f"{id}-{secrets.token_hex(8)}"
        try:
            with _told():
                _write(draft, body)
                self._folder(target.parent.parent)
                self._folder(target.parent)
                draft.rename(target)
                self._together.sync(target.parent)
        except BaseException:
            with suppress(OSError):
                draft.unlink()
            raise
        return _Kept(self, place)

    def get(self, place: str) -> BinaryIO:
        """Open a file."""
        try:
            return self._at(place).open("rb")
        except FileNotFoundError:
            raise InvalidState(f"There is no file {place!r:.80} in the store.") from None
        except OSError as error:
            raise StorageFailed(f"The store cannot be read: {error.strerror}.") from None

    def delete(self, place: str) -> None:
        """Remove a file, if it is there."""
        with _told():
            self._at(place).unlink(missing_ok=True)

    def sweep(self, known: Callable[[str], bool], *, older: float = HOUR) -> int:
        """Remove drafts, and files that no row names."""
        before = time.time() - older
        count = 0
        with _told():
            for each in self._incoming.iterdir():
                count += _remove(each, before)
            for each in self.path.glob("[0-9a-f][0-9a-f]/[0-9a-f][0-9a-f]/*"):
                place = each.relative_to(self.path).as_posix()
                if _PLACE.fullmatch(place) and each.stat().st_mtime <= before:
                    count += not known(place) and _remove(each, before)
        return count

    def _at(self, place: str) -> Path:
        found = _PLACE.fullmatch(place)
        if found is None or not found[3].startswith(found[1] + found[2]):
            raise InvalidState(f"{place!r:.80} is no place in this store.")
        return self.path / place

    def _folder(self, path: Path) -> None:
        """Make a folder durably, if it is not there.

        Another process may have made it and not come to the rest: so once in every process.
        """
        if path in self._made:
            return
        with suppress(FileExistsError):
            path.mkdir(mode=0o700)
        self._together.sync(path.parent)
        self._made.add(path)


class _Kept(Prepared):
    """A file that is in its place."""

    def __init__(self, store: FolderStore, place: str) -> None:
        self._store = store
        self.place = place

    def commit(self, view: Tables) -> None:
        """Nothing is left to do."""

    def abandon(self) -> None:
        """Remove the file; if this fails it is swept one day."""
        with suppress(StorageFailed):
            self._store.delete(self.place)


def _write(draft: Path, body: bytes | Path) -> None:
    """Write a file that nobody else can read, and make it durable."""
    handle = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    with open(handle, "wb", buffering=0) as file:  # noqa: PTH123 - it is open already
        os.fchmod(handle, 0o600)  # the umask may have taken even the owner's bits
        if isinstance(body, Path):
            with body.open("rb", buffering=0) as source:
                while part := source.read(_STEP):
                    _all(handle, part)
        else:
            _all(handle, body)
        file.flush()
        os.fsync(handle)


def _all(handle: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]


def _remove(path: Path, before: float) -> bool:
    """Remove a file that is old enough; tell whether it was."""
    with suppress(FileNotFoundError):
        if path.stat().st_mtime <= before:
            path.unlink()
            return True
    return False


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise disk_failed(error, f"{error.filename or 'The store'} cannot be used") from None
