"""A store for one machine: small files in the database, large ones in a folder."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO

from ladderboard.board._store import HOUR, Prepared, Store
from ladderboard.board._store_database import DatabaseStore
from ladderboard.board._store_folder import FolderStore

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ladderboard.ledger import Storage

__all__ = ["MixedStore"]

_SMALL = 2**20


class MixedStore(Store):
    """Files of up to a megabyte go into the transaction of their row, larger ones into a folder.

    To make a small file durable by itself takes longer than everything else about a submission;
    in the database it shares the commit of its row, and of the rows of others.

    Parameters
    ----------
    storage
        The database.
    path
        The folder; it is made if it is not there.
    """

    def __init__(self, storage: Storage, path: Path | str) -> None:
        self._small, self._large = DatabaseStore(storage), FolderStore(path)

    def prepare(self, id: str, body: bytes | Path) -> Prepared:  # noqa: A002 - what it is
        """Do what must be done before the transaction of the row begins."""
        size = len(body) if isinstance(body, bytes) else body.stat().st_size
        return (self._small if size <= _SMALL else self._large).prepare(id, body)

    def get(self, place: str) -> BinaryIO:
        """Open a file; only places in a folder have slashes."""
        return (self._large if "/" in place else self._small).get(place)

    def delete(self, place: str) -> None:
        """Remove a file, if it is there."""
        (self._large if "/" in place else self._small).delete(place)

    def sweep(self, known: Callable[[str], bool], *, older: float = HOUR) -> int:
        """Remove what a crash left in the folder."""
        return self._large.sweep(known, older=older)
