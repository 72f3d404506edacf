"""A store in the database: a file is written by the same transaction as its row."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

from ladderboard.board._store import HOUR, Prepared, Store, Tables, checked
from ladderboard.errors import InvalidState, StorageFailed

if TYPE_CHECKING:
    from collections.abc import Callable

    from ladderboard.ledger import Storage

__all__ = ["DatabaseStore"]

_PUT = "INSERT INTO main.upload (id, body) VALUES (?, ?)"
_GET = "SELECT body FROM main.upload WHERE id = ?"
_DELETE = "DELETE FROM main.upload WHERE id = ?"


class DatabaseStore(Store):
    """Files in the table ``upload`` of a database that holds boards; a place is an id.

    Parameters
    ----------
    storage
        The database; it must be one that speaks SQL.
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def prepare(self, id: str, body: bytes | Path) -> Prepared:  # noqa: A002 - what it is
        """Take a file into memory: nothing is written before the transaction."""
        if isinstance(body, Path):
            try:
                body = body.read_bytes()
            except OSError as error:
                raise StorageFailed(f"A file cannot be read: {error.strerror}.") from None
        return _Held(checked(id), body)

    def get(self, place: str) -> BinaryIO:
        """Read a file."""
        checked(place)
        # Files belong to the database, a view to a book: any of them will do.
        for book in self._storage.books()[:1]:
            with self._storage.reading(book) as view:
                rows = cast("Tables", view).run(_GET, (place,))
            if rows:
                return io.BytesIO(bytes(rows[0][0]))
        raise InvalidState(f"There is no file {place!r:.80} in the store.")

    def delete(self, place: str) -> None:
        """Remove a file, if it is there."""
        checked(place)
        for book in self._storage.books()[:1]:
            with self._storage.writing(book) as view:
                cast("Tables", view).change(_DELETE, (place,))

    def sweep(self, known: Callable[[str], bool], *, older: float = HOUR) -> int:
        """Nothing can be left: a file is there if its row is."""
        return 0


class _Held(Prepared):
    """A file in memory."""

    def __init__(self, id: str, body: bytes) -> None:  # noqa: A002 - what it is
        self.place = id
        self._body = body

    def commit(self, view: Tables) -> None:
        """Write the file."""
        view.change(_PUT, (self.place, self._body))

    def abandon(self) -> None:
        """Nothing was written."""
