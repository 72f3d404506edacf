"""A store of results: one JSON line each, appended as they arrive."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self

from ladderboard.arena._task import key_of
from ladderboard.errors import InvalidSetting

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

    from ladderboard.arena._task import Task

__all__ = ["Store"]

_BEGINS = b'{"key": '


class Store:
    """Results by key, in a file that survives being killed.

    A line counts when it is whole; a torn last line is cut off and its task is done again. Keys
    hold the version and every setting, so results of another run never pass for those of this one.
    Doubles are written so that they come back bit for bit.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.results: dict[str, dict[str, Any]] = {}
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("a+b")
        except OSError as error:
            raise _cannot_write(path, error) from None
        try:
            _lock(self._file.fileno(), path)
            self._read()
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with suppress(OSError):  # every result was flushed, or its failure was told of
            self._file.close()

    def _read(self) -> None:
        self._file.seek(0)
        whole = 0
        for line in self._file:
            if not line.endswith(b"\n"):
                # Cut off by a kill, unless it never was ours.
                if not (line.startswith(_BEGINS) or _BEGINS.startswith(line)):
                    raise InvalidSetting(
                        f"{self.path} holds something else than results; choose another directory."
                    )
                break
            whole += len(line)
            with suppress(ValueError, KeyError, TypeError, RecursionError):
                found = json.loads(line)
                self.results[found["key"]] = found["result"]
        self._file.truncate(whole)

    def add(self, task: Task, result: dict[str, Any]) -> None:
        """Append one result; it is with the operating system when this returns."""
        key = key_of(task)
        # The task is for people who read the file; the key is what counts.
        entry = {"key": key, "task": task.describe(), "result": result}
        try:
            self._file.write(json.dumps(entry, default=str).encode() + b"\n")
            self._file.flush()
        except OSError as error:
            raise _cannot_write(self.path, error) from None
        self.results[key] = result


def _cannot_write(path: Path, error: OSError) -> InvalidSetting:
    return InvalidSetting(f"Results cannot be written to {path}: {error.strerror}.")


def _lock(descriptor: int, path: Path) -> None:
    """Let one run at a time write here, where the system knows locks."""
    if os.name != "posix":
        return
    import fcntl  # noqa: PLC0415 - not everywhere

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise InvalidSetting(
            f"Another run is writing to {path.parent}; wait for it, or choose another directory."
        ) from None
