"""The spool: a folder for bodies that are too large for memory, as long as they are needed."""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
import time
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from ladderboard import _settings
from ladderboard.errors import DiskFull, storage_error
from ladderboard.server._problems import RequestRefused

_SMALL = 2**20  # bytes that stay in memory
_STEP = 2**18
_LOOK = 2**24  # bytes after which the disk is looked at again
_PREFIX = "body-"
_HOUR = 3600.0


class Spool:
    """A folder that only its owner can look into.

    Parameters
    ----------
    path
        The folder; it is made if it is not there.
    most
        How many bytes all bodies in it may have at a time.
    free
        How many bytes of the disk must be left.
    """

    def __init__(self, path: Path | str, *, most: int = 2**33, free: int = 2**29) -> None:
        self.path = Path(path)
        self._left = _settings.integer("most", most, at_least=0)
        self._free = _settings.integer("free", free, at_least=0)
        self.threads = ThreadPoolExecutor(2, "spool")
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise storage_error(error, f"The folder {path} cannot be made") from None

    def remove_stale(self, *, older: float = _HOUR) -> int:
        """Remove what a crash has left, if it is that many seconds old; return how much."""
        count = 0
        for each in self.path.glob(f"{_PREFIX}*"):
            with suppress(OSError):
                if time.time() - each.stat().st_mtime >= older:
                    each.unlink()
                    count += 1
        return count

    def close(self) -> None:
        """Let go of the threads."""
        self.threads.shutdown()

    def new_body(self) -> SpooledBody:
        """Return a body that is empty yet."""
        return SpooledBody(self)

    def reserve(self, count: int) -> None:
        """Take some room, or refuse."""
        if count > self._left:
            raise RequestRefused(
                503,
                "busy",
                "Too many predictions come in at once; send them again.",
                {"Retry-After": "5", "Connection": "close"},
            )
        self._left -= count

    def release(self, count: int) -> None:
        """Make room again."""
        self._left += count

    def check_disk(self, count: int) -> None:
        """Refuse what would fill the disk."""
        try:
            left = shutil.disk_usage(self.path).free
        except OSError as error:
            raise storage_error(error, f"The folder {self.path} cannot be used") from None
        if left < self._free + count:
            raise DiskFull(
                f"The disk of {self.path} has {left} bytes left, which is too few: "
                f"{self._free + count} are needed."
            )


class SpooledBody:
    """A body that grows: in memory while it is small, in a file when it is not."""

    def __init__(self, spool: Spool) -> None:
        self.size = 0
        self._spool = spool
        self._held = bytearray()
        self._path: Path | None = None
        self._file = -1
        self._taken = 0
        self._looked = 0
        self._writing: Future[None] | None = None

    async def write(self, data: bytes) -> None:
        """Add some bytes."""
        self._held += data
        self.size += len(data)
        if self.size > _SMALL and len(self._held) >= _STEP:
            await self._flush()

    async def finish(self) -> bytes | Path:
        """Return the bytes, or the file that holds them."""
        if self._path is None and self.size <= _SMALL:
            return bytes(self._held)
        path = await self._flush()
        os.close(self._file)
        self._file = -1
        return path

    def discard(self) -> None:
        """Remove the file, if there is one, and make room; more than once is no harm."""
        if self._path is not None:
            with suppress(OSError):
                self._path.unlink()
            self._path = None
        self._spool.release(self._taken)
        self._taken = 0
        file, self._file = self._file, -1
        if file < 0:
            return
        if self._writing is not None:  # a thread may be at it
            self._writing.add_done_callback(lambda _: os.close(file))
        else:
            os.close(file)

    async def _flush(self) -> Path:
        """Write what is held, in a thread: a disk may let one wait. Return the file's path."""
        held, self._held = self._held, bytearray()
        path = self._path
        if self.size - self._looked >= _LOOK or path is None:
            self._spool.check_disk(len(held))
            self._looked = self.size
        self._spool.reserve(len(held))
        self._taken += len(held)
        if path is None:
            path = self._open()
        self._writing = self._spool.threads.submit(_write_all, self._file, held)
        try:
            await asyncio.wrap_future(self._writing)
        except OSError as error:
            raise storage_error(error, f"{path} cannot be written") from None
        return path

    def _open(self) -> Path:
        path = self._spool.path / f"{_PREFIX}{secrets.token_hex(16)}"
        try:
            self._file = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        except OSError as error:
            raise storage_error(error, f"{path} cannot be made") from None
        self._path = path
        return path


def _write_all(file: int, data: bytearray) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]
