"""Notes: what the processes of a search have to know of each other."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from pathlib import Path
from typing import Any

__all__ = ["Notes"]

_LONGEST = 200


class Notes:
    """Short texts under names, in a folder: who writes one first has written it for everybody.

    Parameters
    ----------
    folder
        Where; a temporary one if not given, which goes when this object does. Copies of it, in
        other processes too, look at the same folder.
    """

    def __init__(self, folder: Path | str | None = None) -> None:
        if folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="ladderboard-"))
            weakref.finalize(self, _remove, self._folder, os.getpid())
        else:
            self._folder = Path(folder).absolute()
            self._folder.mkdir(parents=True, exist_ok=True)

    def claim(self, name: str, text: str) -> bool:
        """Write a note if there is none; return whether it says this text."""
        handle, draft = tempfile.mkstemp(dir=self._folder, prefix="draft-")
        try:
            with os.fdopen(handle, "w") as file:
                file.write(text)
            # A link appears with all of its text, and fails where there is one already.
            os.link(draft, self._folder / name)
        except FileExistsError:
            return self.read(name) == text
        finally:
            Path(draft).unlink()
        return True

    def read(self, name: str) -> str | None:
        """Return a note's text; None where there is no such note."""
        try:
            with (self._folder / name).open(errors="replace") as file:
                return file.read(_LONGEST)
        except FileNotFoundError:
            return None

    def __reduce__(self) -> tuple[Any, ...]:
        return Notes, (self._folder,)


def _remove(folder: Path, owner: int) -> None:
    if os.getpid() == owner:  # not at the end of a process that was forked
        shutil.rmtree(folder, ignore_errors=True)
