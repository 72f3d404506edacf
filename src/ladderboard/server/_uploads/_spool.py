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

_IN_MEMORY = 2**20  # bytes that stay in memory
_WRITE_BYTES = 2**18
_DISK_CHECK_BYTES = 2**24  # bytes after which the disk is looked at again
_PREFIX = "body-"
_HOUR = 3600.0


class Spool:
    """A folder that only its owner can look into.

    Parameters
    ----------
    path
        The folder; it is made if it is not there.
    max_bytes
        How many bytes all bodies in it may have at a time.
    min_free
        How many bytes of the disk must be left.
    """

    def __init__(self, path: Path | str, *, max_bytes: int = 2**33, min_free: int = 2**29) -> None:
        self.path = Path(path)
        self._available = _settings.integer("max_bytes", max_bytes, at_least=0)
        self._min_free = _settings.integer("min_free", min_free, at_least=0)
        self.threads = ThreadPoolExecutor(2, "spool")
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise storage_error(error, f"The folder {path} cannot be made") from None

    def remove_stale(self, *, older_than: float = _HOUR) -> int:
        """Remove what a crash has left, if it is that many seconds old; return how much."""
        count = 0
        for path in self.path.glob(f"{_PREFIX}*"):
            with suppress(OSError):
                if time.time() - path.stat().st_mtime >= older_than:
                    path.unlink()
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
        if count > self._available:
            raise RequestRefused(
                503,
                "busy",
                "Too many predictions come in at once; send them again.",
                {"Retry-After": "5", "Connection": "close"},
            )
        self._available -= count

    def release(self, count: int) -> None:
        """Make room again."""
        self._available += count

    def check_disk(self, count: int) -> None:
        """Refuse what would fill the disk."""
        try:
            free = shutil.disk_usage(self.path).free
        except OSError as error:
            raise storage_error(error, f"The folder {self.path} cannot be used") from None
        if free < self._min_free + count:
            raise DiskFull(
                f"The disk of {self.path} has {free} bytes left, which is too few: "
                f"{self._min_free + count} are needed."
            )


class SpooledBody:
    """A body that grows: in memory while it is small, in a file when it is not."""

    def __init__(self, spool: Spool) -> None:
        self.size = 0
        self._spool = spool
        self._buffer = bytearray()
        self._path: Path | None = None
        self._file = -1
        self._reserved = 0
        self._checked_size = 0
        self._writing: Future[None] | None = None

    async def write(self, data: bytes) -> None:
        """Add some bytes."""
        self._buffer += data
        self.size += len(data)
        if self.size > _IN_MEMORY and len(self._buffer) >= _WRITE_BYTES:
            await self._flush()

    async def finish(self) -> bytes | Path:
        """Return the bytes, or the file that holds them."""
        if self._path is None and self.size <= _IN_MEMORY:
            return bytes(self._buffer)
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
        self._spool.release(self._reserved)
        self._reserved = 0
        file, self._file = self._file, -1
        if file < 0:
            return
        if self._writing is not None:  # a thread may be at it
            self._writing.add_done_callback(lambda _: os.close(file))
        else:
            os.close(file)

    async def _flush(self) -> Path:
        """Write what is held, in a thread: a disk may let one wait. Return the file's path."""
        chunk, self._buffer = self._buffer, bytearray()
        path = self._path
        if self.size - self._checked_size >= _DISK_CHECK_BYTES or path is None:
            self._spool.check_disk(len(chunk))
            self._checked_size = self.size
        self._spool.reserve(len(chunk))
        self._reserved += len(chunk)
        if path is None:
            path = self._open()
        self._writing = self._spool.threads.submit(_write_all, self._file, chunk)
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
