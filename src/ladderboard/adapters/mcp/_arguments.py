"""The arguments of a tool call, and files from the one folder that an agent may read."""

from __future__ import annotations

import contextlib
import json
import os
import stat
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, BinaryIO

from ladderboard import _settings
from ladderboard.errors import InvalidPredictions, InvalidSetting
from ladderboard.files import NamedBytes, refuse

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_VALUES = 1_000_000
"""The most values in one call; more than that need a file."""

_MAX_TEXT_LENGTH = 500  # a board's limit for a message
MAX_BYTES = 256 * 2**20  # a served guard's limit for a file

_NO_LINKS = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)
# With O_PATH a folder on the way need not be readable.
_FOLDER_FLAGS = _NO_LINKS | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_PATH", os.O_RDONLY)
# Without O_NONBLOCK, opening a pipe without a writer would block.
_FILE_FLAGS = _NO_LINKS | os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)


class Folder:
    """Reads regular files below a folder, and nothing else.

    The agent may have fewer rights than this process. So each part of a path is opened relative to
    the open folder before it, without following links, and swapping folders meanwhile gains
    nothing. The path of the folder itself is resolved once, at the start.

    Parameters
    ----------
    root
        The folder.
    max_bytes
        The largest file that is read.
    """

    def __init__(self, root: str | Path, *, max_bytes: int = MAX_BYTES) -> None:
        if os.open not in os.supports_dir_fd or not hasattr(os, "O_NOFOLLOW"):
            raise InvalidSetting(
                "This system cannot restrict reading to a folder; leave --folder out."
            )
        self._unresolved_root = Path(root).absolute()
        self.root = self._unresolved_root.resolve()
        if not self.root.is_dir():
            raise InvalidSetting(f"There is no folder {_settings.safe_repr(str(root))}.")
        self._max_bytes = max_bytes

    def read(self, path: str) -> NamedBytes:
        """Return a file's bytes; its path is relative to the folder, or begins with it."""
        parts, file = self._relative_parts(path), None
        with contextlib.suppress(OSError, UnicodeError):  # a name that cannot be encoded
            file = self._open([*self.root.parts[1:], *parts]) if parts else None
        if file is None:
            refuse(
                InvalidPredictions,
                "not_a_file",
                f"A path must lead to a regular file in {self.root}, without links and without ..; "
                f"{_settings.safe_repr(path)} does not.",
            )
        with file:
            size = os.fstat(file.fileno()).st_size
            data = b"" if size > self._max_bytes else file.read(self._max_bytes + 1)
        if max(size, len(data)) > self._max_bytes:  # it may have grown meanwhile
            message = (
                f"A file may have at most {self._max_bytes:,} bytes; "
                f"{_settings.safe_repr(path)} has more."
            )
            refuse(InvalidPredictions, "too_many_bytes", message)
        return NamedBytes(parts[-1], data)

    def _relative_parts(self, path: str) -> Sequence[str]:
        """Return the parts of a path below the folder; none if it leads elsewhere."""
        pure_path = PurePath(path)
        for root in (self._unresolved_root, self.root):
            if pure_path.is_absolute() and pure_path.is_relative_to(root):
                pure_path = pure_path.relative_to(root)
        if pure_path.is_absolute() or ".." in pure_path.parts or "\0" in path:
            return ()
        return pure_path.parts

    def _open(self, parts: Sequence[str]) -> BinaryIO:
        """Open a regular file; raise OSError if it is anything else, or missing."""
        folder = os.open(self.root.anchor, _FOLDER_FLAGS)
        try:
            for part in parts[:-1]:
                subfolder = os.open(part, _FOLDER_FLAGS, dir_fd=folder)
                os.close(folder)
                folder = subfolder
            file = os.open(parts[-1], _FILE_FLAGS, dir_fd=folder)
        finally:
            os.close(folder)
        if not stat.S_ISREG(os.fstat(file).st_mode):
            os.close(file)
            raise OSError
        return os.fdopen(file, "rb")


def text_argument(arguments: dict[str, Any], name: str) -> str:
    """Return a short text argument; empty if it is missing."""
    text = arguments.get(name)
    if text is None:
        return ""
    if not isinstance(text, str) or len(text) > _MAX_TEXT_LENGTH:
        raise InvalidSetting(
            f"{name} must be a text of at most {_MAX_TEXT_LENGTH} characters; "
            f"got {_settings.safe_repr(text)}."
        )
    return "".join(char if char.isprintable() else " " for char in text).strip()


def predictions_argument(arguments: dict[str, Any], folder: Folder | None) -> Any:
    """Return predictions as a guard takes them, from a list, columns, or a file in the folder."""
    values, path = arguments.get("predictions"), arguments.get("path")
    if path is not None and folder is None:
        raise InvalidSetting(
            "There is no folder to read files from; give the values themselves as predictions. "
            "ladderboard mcp --folder FOLDER would allow files."
        )
    if (values is None) == (path is None):
        expected = "predictions" if folder is None else "predictions or path, not both"
        raise InvalidSetting(f"Give {expected}.")
    if path is not None and folder is not None:
        if not isinstance(path, str):
            raise InvalidSetting(f"path must be a text; got {_settings.safe_repr(path)}.")
        return folder.read(path)
    values = _decode_json_text(values)
    _check_values(values)
    return values


def _decode_json_text(values: Any) -> Any:
    """Return the list or object of a JSON text, which some agents send; other values as given."""
    if isinstance(values, str):
        try:
            return json.loads(values)
        except (ValueError, RecursionError):
            pass
    return values


def _check_values(values: Any) -> None:
    """Refuse too many values, and anything but lists: a text would be read as a path."""
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
