"""Write a small file in the present format: python tests/ledger/formats/make.py FILE.

Files of released formats are kept beside this script and never written again; a test opens each.
"""

from __future__ import annotations

import sqlite3
import sys
from contextlib import closing
from typing import Any

from ladderboard.ledger import ChainState, EntryRow, SqliteStorage, WriteView

__all__ = ["CONTENT", "write", "write_book"]

# Of each book: its entries with where they left it and their secret sides, its ladders
# with their changes, its marks and what is kept.
CONTENT = {
    "first": {
        "entries": [
            (
                EntryRow(0, "opened", b"opened", b"\x10" * 32),
                ChainState(1, b"\x10" * 32, 1_700_000_000, 0, 0, 1, 0, 0, closed=False),
                None,
            ),
            (
                EntryRow(1, "question", bytes(range(256)), b"\x11" * 32, 0, 1, "asker"),
                ChainState(2, b"\x11" * 32, 1_700_000_001, 1, 1, 1, 0, 0, closed=False),
                b"secret",
            ),
            (
                EntryRow(2, "question", b"second", b"\x12" * 32, 1, 1, None),
                ChainState(3, b"\x12" * 32, 1_700_000_001, 2, 1, 2, 1, 5, closed=False),
                b"",
            ),
        ],
        "ladders": [("", b"state 0", 1), ("étude", b"\x00\xff", 0)],
        "marks": [(b"mark of 1", 1), (b"\x00", 2)],
        "kept": {"key": b"k" * 32, "": b"", "雪": b"snow"},
    },
    "empty": {"entries": [], "ladders": [], "marks": [], "kept": {}},
    "closed": {
        "entries": [
            (
                EntryRow(0, "closed", b"closed", b"\x20" * 32),
                ChainState(1, b"\x20" * 32, 2**62, 0, 0, 0, 0, 0, closed=True),
                None,
            )
        ],
        "ladders": [],
        "marks": [],
        "kept": {},
    },
}


def write_book(book: WriteView, content: dict[str, Any]) -> None:
    """Write the content of one book."""
    for row, at, secret in content["entries"]:
        book.append(row, at, secret)
    for number, (ladder, state, changes) in enumerate(content["ladders"]):
        book.add_ladder(number, ladder, state, changes=changes)
    for mark, number in content["marks"]:
        book.add_dedupe_key(mark, number)
    for key, value in content["kept"].items():
        book.set_value(key, value)


def write(path: str) -> None:
    """Write the content through the contract, and leave nothing beside the file."""
    with SqliteStorage(path, create=True) as storage:
        for name, content in CONTENT.items():
            with storage.add_book(name) as book:
                write_book(book, content)
    with closing(sqlite3.connect(path)) as database:
        database.execute("VACUUM")


if __name__ == "__main__":
    write(sys.argv[1])
