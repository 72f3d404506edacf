"""A small disk of the tests' own: a tmpfs that can be filled, and made read-only."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

PAGE = 4096


class Disk:
    """A disk of so many bytes under a folder."""

    def __init__(self, path: Path, size: int) -> None:
        self.path = path
        self._filler = path / "filler"
        path.mkdir()
        said = _mount("-t", "tmpfs", "-o", f"size={size},mode=700", "tmpfs", str(path))
        if said:
            pytest.skip(f"a small disk needs the right to mount one: {said}")

    def fill(self, leave: int = 0) -> None:
        """Take all room but so many bytes."""
        with self._filler.open("ab", buffering=0) as file:
            while True:
                try:
                    file.write(bytes(PAGE))
                except OSError:
                    break
        os.truncate(self._filler, max(self._filler.stat().st_size - leave, 0))

    def free(self) -> None:
        """Give the room back."""
        self._filler.unlink(missing_ok=True)

    def read_only(self) -> None:
        """Let nothing be written; whoever has a file open to write must have closed it."""
        said = _mount("-o", "remount,ro", str(self.path))
        assert not said, said

    def writable(self) -> None:
        """Let it be written again."""
        said = _mount("-o", "remount,rw", str(self.path))
        assert not said, said

    def names(self) -> set[str]:
        """Return what is on it."""
        return {each.name for each in self.path.iterdir()} - {"filler"}

    def unmount(self) -> None:
        """Remove it, whatever is still open there."""
        subprocess.run(["umount", "-l", str(self.path)], check=True)


def _mount(*words: str) -> str:
    """Mount something; return what was said if it could not be done."""
    try:
        done = subprocess.run(["mount", *words], capture_output=True, text=True, check=False)
    except OSError as error:
        return str(error)
    return "" if done.returncode == 0 else done.stderr.strip() or "mount failed"
