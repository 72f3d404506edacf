"""What an agent gives to a tool: its arguments, and files from the one folder it may name."""

from __future__ import annotations

import contextlib
import io
import json
import os
import stat
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, BinaryIO

from ladderboard import _settings
from ladderboard.errors import InvalidPredictions, InvalidSetting
from ladderboard.files import refuse

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_VALUES = 1_000_000
"""How many values may come in a call; more go into a file."""

_LONGEST_NAME = 500  # what a board takes for a message
MAX_BYTES = 256 * 2**20  # what a served guard takes

_PLAIN = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)
# Without O_PATH a folder must be readable to be walked through; with it, it need not.
_STEP = _PLAIN | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_PATH", os.O_RDONLY)
# A pipe that nobody writes to would else keep us waiting before it can be looked at.
_LAST = _PLAIN | os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)


class NamedBytes(io.BytesIO):
    """The bytes of a file, with its name, by which its format may be told."""

    def __init__(self, name: str, data: bytes) -> None:
        super().__init__(data)
        self.name = name


class Folder:
    """Reads regular files below a folder, and nothing else.

    Whoever asks may be somebody who may read less than we may. So every step is taken from the
    folder before it and follows no link, and what may be swapped meanwhile does not matter: the
    folder's own place is resolved once, when its owner names it.

    Parameters
    ----------
    root
        The folder.
    max_bytes
        How large a file may be.
    """

    def __init__(self, root: str | Path, *, max_bytes: int = MAX_BYTES) -> None:
        if os.open not in os.supports_dir_fd or not hasattr(os, "O_NOFOLLOW"):
            raise InvalidSetting("This system cannot keep to a folder; leave --folder out.")
        self._given = Path(root).absolute()
        self.root = self._given.resolve()
        if not self.root.is_dir():
            raise InvalidSetting(f"There is no folder {_settings.safe_repr(str(root))}.")
        self._max_bytes = max_bytes

    def read(self, path: str) -> NamedBytes:
        """Return what is in a file; its path may be relative to the folder, or begin with it."""
        parts, file = self._below(path), None
        with contextlib.suppress(OSError, UnicodeError):  # a name that is no text is no file's
            file = self._open([*self.root.parts[1:], *parts]) if parts else None
        if file is None:
            refuse(
                InvalidPredictions,
                "not_a_file",
                f"A path must lead to a regular file in {self.root}, over no link and no ..; "
                f"{_settings.safe_repr(path)} does not.",
            )
        with file:
            size = os.fstat(file.fileno()).st_size
            data = b"" if size > self._max_bytes else file.read(self._max_bytes + 1)
        if max(size, len(data)) > self._max_bytes:  # it may have grown meanwhile
            shown = _settings.safe_repr(path)
            said = f"A file may have at most {self._max_bytes:,} bytes; {shown} has more."
            refuse(InvalidPredictions, "too_many_bytes", said)
        return NamedBytes(parts[-1], data)

    def _below(self, path: str) -> Sequence[str]:
        """Return the steps from the folder to a file, as written; none if they lead elsewhere."""
        asked = PurePath(path)
        for start in (self._given, self.root):
            if asked.is_absolute() and asked.is_relative_to(start):
                asked = asked.relative_to(start)
        if asked.is_absolute() or ".." in asked.parts or not asked.parts or "\0" in path:
            return ()
        return asked.parts

    def _open(self, steps: Sequence[str]) -> BinaryIO:
        """Return a regular file, opened; OSError for whatever else is there, or is not."""
        place = os.open(self.root.anchor, _STEP)
        try:
            for step in steps[:-1]:
                below = os.open(step, _STEP, dir_fd=place)
                os.close(place)
                place = below
            file = os.open(steps[-1], _LAST, dir_fd=place)
        finally:
            os.close(place)
        if not stat.S_ISREG(os.fstat(file).st_mode):
            os.close(file)
            raise OSError
        return os.fdopen(file, "rb")


def text_argument(arguments: dict[str, Any], name: str) -> str:
    """Return an agent's own words, for itself to read again; empty if there are none."""
    text = arguments.get(name)
    if text is None:
        return ""
    if not isinstance(text, str) or len(text) > _LONGEST_NAME:
        raise InvalidSetting(
            f"{name} must be a text of at most {_LONGEST_NAME} characters; "
            f"got {_settings.safe_repr(text)}."
        )
    return "".join(each if each.isprintable() else " " for each in text).strip()


def predictions_argument(arguments: dict[str, Any], folder: Folder | None) -> Any:
    """Return predictions as a guard takes them, from a list, columns, or a file in the folder."""
    values, path = arguments.get("predictions"), arguments.get("path")
    if path is not None and folder is None:
        raise InvalidSetting(
            "No folder was named to read files from; give the values themselves as predictions. "
            "Whoever starts ladderboard mcp can name one with --folder."
        )
    if (values is None) == (path is None):
        either = "predictions" if folder is None else "predictions or path, and one of them only"
        raise InvalidSetting(f"Give {either}.")
    if path is not None and folder is not None:
        if not isinstance(path, str):
            raise InvalidSetting(f"path must be a text; got {_settings.safe_repr(path)}.")
        return folder.read(path)
    values = _unwrapped(values)
    _check_values(values)
    return values


def _unwrapped(values: Any) -> Any:
    """Return a list that came as text, as agents like to write one."""
    if isinstance(values, str):
        try:
            return json.loads(values)
        except (ValueError, RecursionError):
            pass
    return values


def _check_values(values: Any) -> None:
    """Refuse what is too much for a call, and what is no list: a text would be read as a path."""
    columns = list(values.values()) if isinstance(values, dict) else [values]
    if not all(isinstance(column, list) for column in columns):
        refuse(
            InvalidPredictions,
            "format",
            "predictions must be a list with a value for each example, or an object of such lists "
            f"by column, such as id and prediction; got {_settings.safe_repr(values)}.",
        )
    count = sum(len(row) if isinstance(row, list) else 1 for column in columns for row in column)
    if count > MAX_VALUES:
        refuse(
            InvalidPredictions,
            "too_many_rows",
            f"predictions in a call may have at most {MAX_VALUES:,} values; got {count:,}.",
        )
