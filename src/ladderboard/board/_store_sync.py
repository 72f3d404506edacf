"""Making folders durable, together: those who wait for the same one share a call."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Together", "sync_folder"]


def sync_folder(path: Path) -> None:
    """Make durable which names a folder holds."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


class _Turn:
    """One call, and those who wait for it."""

    def __init__(self, before: threading.Event | None) -> None:
        self.before = before
        self.done = threading.Event()
        self.error: OSError | None = None


class Together:
    """Syncs folders; a call serves everybody who came before it began."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._next: dict[Path, _Turn] = {}
        self._running: dict[Path, _Turn] = {}

    def sync(self, path: Path) -> None:
        """Return when a call that began after this one has ended."""
        with self._lock:
            turn = self._next.get(path)
            first = turn is None
            if turn is None:
                running = self._running.get(path)
                turn = self._next[path] = _Turn(None if running is None else running.done)
        if first:
            self._run(path, turn)
        else:
            turn.done.wait()
        if turn.error is not None:
            raise turn.error

    def _run(self, path: Path, turn: _Turn) -> None:
        """Wait for the call that is under way; who comes meanwhile takes part in this one."""
        if turn.before is not None:
            turn.before.wait()
        with self._lock:
            del self._next[path]
            self._running[path] = turn
        try:
            sync_folder(path)
        except OSError as error:
            turn.error = error
        finally:
            with self._lock:
                if self._running.get(path) is turn:
                    del self._running[path]
            turn.done.set()
