"""Appends to a ledger's file, against bare commits of one row on the same disk."""

from __future__ import annotations

import hashlib
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from _timing import min_seconds, report_ratio
from ladderboard.ledger import ChainState, EntryRow, SqliteStorage

if TYPE_CHECKING:
    from collections.abc import Callable

COMMITS = 50


def commit_bare_rows(database: sqlite3.Connection) -> Callable[[], None]:
    """Commit one row at a time, with the settings that a ledger needs."""
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = FULL")
    database.execute("CREATE TABLE t (a)")

    def run() -> None:
        for _ in range(COMMITS):
            database.execute("INSERT INTO t VALUES (?)", (bytes(300),))

    return run


def append_entries(storage: SqliteStorage) -> Callable[[], None]:
    """Do what a question does: look for its mark, read where things stand, write it all."""
    with storage.add_book("b") as book:
        start = ChainState(1, bytes(32), 0, 0, 0, 1, 0, 0, closed=False)
        book.append(EntryRow(0, "opened", bytes(600), bytes(32)), start)
        book.add_ladder(0, "", bytes(256))

    def run() -> None:
        for _ in range(COMMITS):
            with storage.write_transaction("b") as book:
                state = book.chain_state()
                mark = hashlib.sha256(b"%d" % state.entries).digest()
                book.find_by_dedupe_key(mark)
                book.ladder_state(0)
                row = EntryRow(
                    state.entries, "question", bytes(500), mark, 0, state.entries, "asker"
                )
                now = state._replace(entries=state.entries + 1, head=mark, asked=state.asked + 1)
                book.append(row, now, bytes(512))
                book.add_dedupe_key(mark, state.entries)
                book.set_ladder_state(0, mark * 8)

    return run


def main() -> None:
    """Print how many appends there are to a bare commit."""
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as name:
        folder = Path(name)
        with (
            closing(sqlite3.connect(folder / "bare.db", isolation_level=None)) as database,
            SqliteStorage(folder / "guard.db", create=True) as storage,
        ):
            bare_seconds, append_seconds = min_seconds(
                commit_bare_rows(database), append_entries(storage), rounds=60
            )
    detail = f"{COMMITS / append_seconds:,.0f} a second; bare commits {COMMITS / bare_seconds:,.0f}"
    report_ratio(
        "storage: appends to bare commits, SQLite",
        bare_seconds / append_seconds,
        ">= 0.7",
        detail=detail,
    )


if __name__ == "__main__":
    main()
