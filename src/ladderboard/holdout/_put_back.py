"""Putting a copy back in the place of a guard's file, without what the old one left beside it."""

from __future__ import annotations

import os
import secrets
import sqlite3
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from ladderboard.errors import InvalidSetting, InvalidState
from ladderboard.ledger import SqliteStorage

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["in_place_of", "refuse_strange_log"]

_BESIDE = ("-wal", "-shm", "-journal")
_FLAGGED = "SELECT count(*) FROM kept WHERE name = 'copy' AND length(value) > 0"


def refuse_strange_log(path: Path) -> None:
    """Refuse a copy beside which another file's log lies: SQLite would write that log into it.

    A copy that was never opened has no log. Where there is one, the file is looked at without it.
    """
    left = [f"{path}{end}" for end in ("-wal", "-journal") if _size(f"{path}{end}")]
    if not left:
        return
    uri = f"file:{quote(os.fsencode(path))}?mode=ro&immutable=1"
    try:
        with closing(sqlite3.connect(uri, uri=True)) as database:
            flagged = database.execute(_FLAGGED).fetchone()[0]
    except sqlite3.Error:
        return  # no copy of ours by itself; opening it will say what is wrong
    if flagged:
        raise InvalidState(
            f"{path} is a copy, and {' and '.join(left)} beside it is another file's, or of a "
            f"restore that was cut short; SQLite would mix them. Move it and {path}-shm away "
            "first, and restore again. Nothing was changed."
        )


@contextmanager
def in_place_of(path: Path, copy: Path) -> Iterator[None]:
    """Put a copy in the place of a file, which is kept as ``FILE.replaced-N``.

    Files are moved, never opened but by SQLite; whoever still has the old one open is refused its
    next question. If the block fails, all is as it was.
    """
    if copy == path:
        raise InvalidSetting("The copy is the file itself; leave --from out.")
    refuse_strange_log(copy)
    draft = path.with_name(f"{path.name}.restoring-{secrets.token_hex(4)}")
    with closing(SqliteStorage(copy)) as storage:
        storage.backup(draft)
    old = _unused(path)
    put = False
    try:
        _move(path, old)
        draft.rename(path)
        put = True
        yield
    except BaseException:
        draft.unlink(missing_ok=True)
        if put:
            for end in ("", *_BESIDE):
                Path(f"{path}{end}").unlink(missing_ok=True)
        _move(old, path)
        raise


def _move(path: Path, to: Path) -> None:
    for end in ("", *_BESIDE):
        if os.path.lexists(f"{path}{end}"):
            Path(f"{path}{end}").rename(f"{to}{end}")


def _unused(path: Path) -> Path:
    count = 1
    while os.path.lexists(f"{path}.replaced-{count}"):
        count += 1
    return path.with_name(f"{path.name}.replaced-{count}")


def _size(path: str) -> int:
    try:
        return Path(path).stat().st_size
    except OSError:
        return 0
