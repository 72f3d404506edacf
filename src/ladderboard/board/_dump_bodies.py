"""Submitted files on their way to another store, in parts, so that memory stays flat."""

from __future__ import annotations

import io
import secrets
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Self

from ladderboard.errors import BrokenDump, LadderboardError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ladderboard.board._store import Store
    from ladderboard.ledger import RecordReader, RecordWriter, SqlReading, SqlWriting

__all__ = ["Arriving", "put_bodies", "take_bodies"]

_PART = 2**20
_PLACES = (
    "SELECT id, place FROM main.submission WHERE book = ? AND id > ? AND place <> '' "
    "ORDER BY id LIMIT 500"
)
_WAITS = "SELECT 1 FROM main.submission WHERE book = ? AND id = ? AND place = ''"
_MOVE = "UPDATE main.submission SET place = ? WHERE book = ? AND id = ?"


def take_bodies(view: SqlReading, store: Store, records: RecordWriter) -> None:
    """Write what was submitted: an id each, and then its parts."""
    last = ""
    while rows := view.run(_PLACES, (view.number, last)):
        for own, place in rows:
            records.put("body", own)
            with store.get(place) as file:
                while part := file.read(_PART):
                    records.put("part", part)
        last = rows[-1][0]


class Arriving:
    """Files that were put into a store for rows that are not committed yet.

    Their places are noted in a file: there may be many. Those in the database, which have no slash
    in them, go with the transaction.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self._noted = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed at the end

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._noted.close()

    def note(self, place: str) -> None:
        """Remember a file."""
        if "/" in place:
            self._noted.write(f"{place}\n")

    def undo(self) -> None:
        """Remove all files; what cannot be removed is swept one day."""
        self._noted.seek(0)
        for line in self._noted:
            with suppress(LadderboardError):
                self.store.delete(line.rstrip("\n"))


def put_bodies(view: SqlWriting, arriving: Arriving, records: RecordReader) -> None:
    """Put what comes next into a store, for submissions that have no place yet."""
    with tempfile.TemporaryDirectory(prefix="ladderboard-") as folder:
        for own in records.section("body"):
            if not view.run(_WAITS, (view.number, own)):
                raise BrokenDump("The dump holds a file that belongs to no submission.")
            body = _gather(records.section("part"), Path(folder) / "body")
            # Under a name of its own: the store may be that of the database it comes from.
            prepared = arriving.store.prepare(secrets.token_hex(16), body)
            arriving.note(prepared.place)
            prepared.commit(view)
            view.change(_MOVE, (prepared.place, view.number, own))


def _gather(parts: Iterator[bytes], path: Path) -> bytes | Path:
    """Return a small body as bytes, and the path of a large one."""
    held = io.BytesIO()
    for part in parts:
        held.write(part)
        if held.tell() > _PART:
            break
    else:
        return held.getvalue()
    with path.open("wb") as file:
        file.write(held.getvalue())
        for part in parts:
            file.write(part)
    return path
