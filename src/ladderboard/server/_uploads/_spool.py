"""The spool: a folder for bodies that are too large for memory."""

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

_IN_MEMORY = 2**20  # bytes; larger bodies go to a file
_WRITE_BYTES = 2**18
_DISK_CHECK_BYTES = 2**24  # bytes between two checks of free disk space
_PREFIX = "body-"
_HOUR = 3600.0


class Spool:
    """A private folder for bodies.

    Parameters
    ----------
    path
        The folder; created if missing.
    max_bytes
        The total size limit of all bodies in it.
    min_free
        How many bytes of the disk must stay free.
    """

    def __init__(self, path: Path | str, *, max_bytes: int = 2**33, min_free: int = 2**29) -> None:
        self.path = Path(path)
        self._available = _settings.integer("max_bytes", max_bytes, at_least=0)
        self._min_free = _settings.integer("min_free", min_free, at_least=0)
        self.threads = ThreadPoolExecutor(2, "spool")
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise storage_error(error, f"The folder {path} cannot be created") from None

    def remove_stale(self, *, older_than: float = _HOUR) -> int:
        """Remove files left by a crash that are this many seconds old; return how many."""
        count = 0
        for path in self.path.glob(f"{_PREFIX}*"):
            with suppress(OSError):
                if time.time() - path.stat().st_mtime >= older_than:
                    path.unlink()
                    count += 1
        return count

    def close(self) -> None:
        """Stop the threads."""
        self.threads.shutdown()

    def new_body(self) -> SpooledBody:
        """Return an empty body."""
        return SpooledBody(self)

    def reserve(self, count: int) -> None:
        """Reserve space, or refuse."""
        if count > self._available:
            raise RequestRefused(
                503,
                "busy",
                "Too many uploads at once; send the predictions again.",
                {"Retry-After": "5", "Connection": "close"},
            )
        self._available -= count

    def release(self, count: int) -> None:
        """Free reserved space."""
        self._available += count

    def check_disk(self, count: int) -> None:
        """Refuse bytes that would fill the disk."""
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
    """A growing body: in memory while it is small, then in a file."""

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
        """Remove the file and free its space; may be called repeatedly."""
        if self._path is not None:
            with suppress(OSError):
                self._path.unlink()
            self._path = None
        self._spool.release(self._reserved)
        self._reserved = 0
        file, self._file = self._file, -1
        if file < 0:
            return
        if self._writing is not None:  # a thread may be writing
            self._writing.add_done_callback(lambda _: os.close(file))
        else:
            os.close(file)

    async def _flush(self) -> Path:
        """Write the buffer in a thread, since a disk may be slow; return the file's path."""
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
            raise storage_error(error, f"{path} cannot be created") from None
        self._path = path
        return path


def _write_all(file: int, data: bytearray) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]
