"""A small disk for tests: a tmpfs that can be filled or made read-only."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

PAGE = 4096


class SmallDisk:
    """A tmpfs of ``size`` bytes, mounted at ``path``."""

    def __init__(self, path: Path, size: int) -> None:
        self.path = path
        self._filler = path / "filler"
        path.mkdir()
        error = _mount("-t", "tmpfs", "-o", f"size={size},mode=700", "tmpfs", str(path))
        if error:
            pytest.skip(f"mounting a tmpfs is not permitted here: {error}")

    def fill(self, leave: int = 0) -> None:
        """Fill the disk; leave ``leave`` bytes free."""
        with self._filler.open("ab", buffering=0) as file:
            while True:
                try:
                    file.write(bytes(PAGE))
                except OSError:
                    break
        os.truncate(self._filler, max(self._filler.stat().st_size - leave, 0))

    def free(self) -> None:
        """Free the space that ``fill`` took."""
        self._filler.unlink(missing_ok=True)

    def read_only(self) -> None:
        """Remount read-only; no file may be open for writing."""
        error = _mount("-o", "remount,ro", str(self.path))
        assert not error, error

    def writable(self) -> None:
        """Remount read-write."""
        error = _mount("-o", "remount,rw", str(self.path))
        assert not error, error

    def names(self) -> set[str]:
        """Return the names of the files on the disk."""
        return {path.name for path in self.path.iterdir()} - {"filler"}

    def unmount(self) -> None:
        """Unmount the disk, even if files are still open."""
        subprocess.run(["umount", "-l", str(self.path)], check=True)


def _mount(*arguments: str) -> str:
    """Run mount; return its error message, empty on success."""
    try:
        result = subprocess.run(["mount", *arguments], capture_output=True, text=True, check=False)
    except OSError as error:
        return str(error)
    return "" if result.returncode == 0 else result.stderr.strip() or "mount failed"
