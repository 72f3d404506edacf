"""Key files: thirty-two secret bytes in hex, readable by their owner only."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from pathlib import Path

from ladderboard.errors import InvalidSetting, disk_failed
from ladderboard.ledger import KEY_BYTES

__all__ = ["make_key_file", "read_key_file"]


def make_key_file(path: Path | str) -> bytes:
    """Return the key in a file, which is made if it is not there."""
    path = Path(path)
    key = secrets.token_bytes(KEY_BYTES)
    try:
        file = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    except FileExistsError:
        return read_key_file(path)
    except OSError as error:
        raise disk_failed(error, f"The key file {path} cannot be made") from None
    try:
        with os.fdopen(file, "w", encoding="ascii") as opened:
            opened.write(key.hex() + "\n")
            opened.flush()
            os.fsync(opened.fileno())
    except OSError as error:
        with suppress(OSError):
            path.unlink()  # half a key opens nothing, and would be refused next time
        raise disk_failed(error, f"The key file {path} cannot be made") from None
    return key


def read_key_file(path: Path | str) -> bytes:
    """Return the key in a file, or refuse. What the file holds is never shown."""
    try:
        with Path(path).open("rb") as file:
            key = bytes.fromhex(file.read(4 * KEY_BYTES).decode("ascii").strip())
    except OSError as error:
        raise InvalidSetting(f"The key file {path} cannot be read: {error.strerror}.") from None
    except ValueError:
        key = b""
    if len(key) != KEY_BYTES:
        raise InvalidSetting(f"{path} is not a key file: it must hold {2 * KEY_BYTES} hex digits.")
    return key
