"""Tokens: a word that everybody must say who asks, in a file that only its owner can read."""

from __future__ import annotations

import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path

from ladderboard.errors import InvalidSetting, disk_failed

__all__ = ["take_token"]

_LEAST, _MOST = 16, 1000


def take_token(path: Path | str) -> str:
    """Return the token in a file, which is made if it is not there. It is never shown."""
    path = Path(path)
    token = secrets.token_urlsafe(32)
    try:
        file = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    except FileExistsError:
        return _read(path)
    except OSError as error:
        raise disk_failed(error, f"The token file {path} cannot be made") from None
    try:
        with os.fdopen(file, "w", encoding="ascii") as opened:
            opened.write(token + "\n")
    except OSError as error:
        with suppress(OSError):
            path.unlink()  # half a token is nobody's
        raise disk_failed(error, f"The token file {path} cannot be made") from None
    return token


def _private(found: os.stat_result) -> bool:
    if os.name != "posix":
        return True
    return not found.st_mode & 0o077 and found.st_uid in {0, os.geteuid()}


def _read(path: Path) -> str:
    try:
        file = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        with os.fdopen(file, "rb") as opened:
            found = os.fstat(file)
            if not stat.S_ISREG(found.st_mode) or not _private(found):
                raise InvalidSetting(
                    f"The token file {path} must be a file of yours that only you can read: "
                    f"chmod 600 {path}"
                )
            token = opened.read(_MOST + 1).decode("ascii", "replace").strip()
    except OSError as error:
        raise InvalidSetting(f"The token file {path} cannot be read: {error.strerror}.") from None
    word = token.isascii() and token.isprintable() and " " not in token
    if not word or not _LEAST <= len(token) < _MOST:
        raise InvalidSetting(
            f"{path} is no token file: it must hold one word of {_LEAST} characters or more."
        )
    return token
