"""Exporting a ledger: its public side, for whoever wants to check it."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from ladderboard.errors import InvalidSetting, InvalidState, StorageFailed
from ladderboard.ledger import Head, HighWater, SqliteStorage, follow

__all__ = ["export_entries"]


def export_entries(path: Path | str, out: Path | str) -> Head:
    """Write every entry of a guard's file to a new one, and return the head.

    An entry is a line: the very bytes that were hashed, and a line feed. The chain is checked on
    the way. Neither a key nor anything of the secret side is read.
    """
    with closing(SqliteStorage(path)) as storage:
        return _export(storage, HighWater(path), Path(out))


def _export(storage: SqliteStorage, water: HighWater, out: Path) -> Head:
    names = storage.books()
    if len(names) != 1:
        raise InvalidState(f"{storage.path} holds {len(names)} books; a guard's file holds one.")
    level = water.read()
    with storage.reading(names[0]) as book:
        at = book.at()
        water.check(level, names[0], at, book)
        try:
            file = out.open("xb")
        except FileExistsError:
            raise InvalidSetting(f"{out} is there already; choose another name.") from None
        except OSError as error:
            raise StorageFailed(f"{out} cannot be written: {error.strerror}.") from None
        try:
            with file:
                for entry, _ in follow(book.entries(), names[0]):
                    file.write(entry.form + b"\n")
        except BaseException as error:
            out.unlink(missing_ok=True)  # half a ledger would look like a whole one
            if isinstance(error, OSError):
                raise StorageFailed(f"{out} cannot be written: {error.strerror}.") from None
            raise
    return Head(at.entries, at.head)
