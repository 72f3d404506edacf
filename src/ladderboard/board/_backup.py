"""A backup: every board of a database in a folder of dumps, with a manifest that names them."""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from pathlib import Path
from typing import Any, NamedTuple

from ladderboard.errors import InvalidSetting, InvalidState

__all__ = [
    "FORMAT",
    "MANIFEST",
    "Backup",
    "Kept",
    "backups_in",
    "digest_of",
    "find_backup",
    "number_of",
    "strange_in",
    "write_manifest",
    "wrong_with",
]

FORMAT = 1
MANIFEST = "manifest.json"
_NAME = re.compile(r"(\d{8}T\d{6}Z)(?:-(\d+))?")
_FILE = re.compile(r"[a-z0-9][a-z0-9-]*\.dump")


class Kept(NamedTuple):
    """A board in a backup: its dump, and where its ledger stood."""

    board: str
    book: str
    file: str
    bytes: int
    sha256: str
    entries: int
    head: str


class Backup(NamedTuple):
    """A backup as its manifest tells it; ``without`` are boards that were left out on purpose."""

    path: Path
    time: int
    ladderboard: str
    boards: tuple[Kept, ...]
    without: tuple[str, ...]


def write_manifest(backup: Backup) -> None:
    """Write the manifest into the backup's folder, readable by its owner only, onto the disk."""
    fields = {"format": FORMAT, **backup._asdict(), "without": list(backup.without)}
    fields["boards"] = [each._asdict() for each in backup.boards]
    del fields["path"]
    handle = os.open(backup.path / MANIFEST, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    with os.fdopen(handle, "w", encoding="ascii") as file:
        file.write(json.dumps(fields, indent=1) + "\n")
        file.flush()
        os.fsync(handle)


def find_backup(folder: Path | str) -> Backup:
    """Return the backup in a folder, or the newest of those in folders inside it."""
    folder = Path(os.path.abspath(folder))  # noqa: PTH100 - links are not followed
    if not folder.is_dir():
        raise InvalidSetting(f"There is no folder {folder}.")
    if (folder / MANIFEST).is_file():
        return _read(folder)
    there = backups_in(folder)
    if not there:
        raise InvalidSetting(
            f"There is no backup in {folder}. One is made with: ladderboard backup create {folder}"
        )
    return _read(there[-1])


def backups_in(folder: Path) -> list[Path]:
    """Return the folders of backups inside a folder, oldest first."""
    found = []
    for each in folder.iterdir():
        name = _NAME.fullmatch(each.name)
        if name and (each / MANIFEST).is_file() and not each.is_symlink():
            found.append((name[1], int(name[2] or 1), each))
    return [each for *_, each in sorted(found)]


def number_of(name: str, time: str) -> int:
    """Return which one a backup is of those with the same time in their names; 0 if it is none.

    >>> number_of("20270115T080000Z-2", "20270115T080000Z")
    2
    """
    found = _NAME.fullmatch(name)
    return int(found[2] or 1) if found and found[1] == time else 0


def _read(path: Path) -> Backup:
    try:
        said = json.loads((path / MANIFEST).read_bytes())
        number = said.pop("format")
        if type(number) is not int or number < 1:
            raise ValueError
        if number > FORMAT:
            raise InvalidState(
                f"{path} was written by a newer Ladderboard ({said.get('ladderboard')!r:.40}), in "
                f"format {number} of backups; this one reads {FORMAT}. Install a newer one."
            )
        boards = tuple(_kept(each) for each in said.pop("boards"))
        without = tuple(str(each) for each in said.pop("without"))
        if len({each.board for each in boards}) < len(boards):
            raise ValueError
        return Backup(path, int(said.pop("time")), str(said["ladderboard"]), boards, without)
    except OSError as error:
        raise InvalidState(f"{path / MANIFEST} cannot be read: {error.strerror}.") from None
    except (
        ArithmeticError,
        AttributeError,
        LookupError,
        RecursionError,
        TypeError,
        ValueError,
    ) as error:
        if isinstance(error, InvalidState):
            raise
        raise InvalidState(f"{path / MANIFEST} is damaged; take another backup.") from None


def _kept(written: dict[str, Any]) -> Kept:
    kept = Kept(**written)
    if tuple(map(type, kept)) != (str, str, str, int, str, int, str):
        raise TypeError
    if not _FILE.fullmatch(kept.file):  # which leads nowhere else
        raise ValueError
    return kept


def digest_of(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def wrong_with(backup: Backup, kept: Kept) -> str | None:
    """Return what is wrong with a dump that a manifest names; None if it is as it was written."""
    path = backup.path / kept.file
    try:
        found = path.stat()
        if not stat.S_ISREG(found.st_mode):  # which might never end
            return f"{kept.file} is no file."
        size = found.st_size
        if size < kept.bytes:
            return f"{kept.file} is cut off: {size:,} of {kept.bytes:,} bytes are left."
        if size > kept.bytes or digest_of(path) != kept.sha256:
            return f"{kept.file} was changed since, or is another file."
    except FileNotFoundError:
        return f"{kept.file} is missing."
    except OSError as error:
        return f"{kept.file} cannot be read: {error.strerror}."
    return None


def strange_in(backup: Backup) -> list[str]:
    """Return the names of what lies in a backup's folder and is none of it."""
    known = {MANIFEST, *(each.file for each in backup.boards)}
    return sorted(each.name for each in backup.path.iterdir() if each.name not in known)
