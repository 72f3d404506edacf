"""A dump: one board with its history and secrets, in one encrypted file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ladderboard.board._dump_bodies import take_bodies
from ladderboard.board._dump_rows import BOARD, TABLES, take_rows
from ladderboard.board._tables import PART, read_board
from ladderboard.errors import BrokenLedger, InvalidSetting, LadderboardError, StorageFailed
from ladderboard.ledger import (
    Entry,
    Head,
    Passphrase,
    PublicKey,
    RecordWriter,
    read_public_key,
    take_book,
    write_vault,
)

if TYPE_CHECKING:
    from ladderboard.board._board import Board
    from ladderboard.board._boards import Boards
    from ladderboard.ledger import SqlReading, SqlWriting, VaultWriter

__all__ = ["FORMAT", "dump_board", "sealed_with"]

FORMAT = 1
_MOVED = "UPDATE main.board SET status = 'moved' WHERE book = ?"


def dump_board(
    boards: Boards,
    slug: str,
    to: Path | str,
    *,
    passphrase: str | None = None,
    public_key: str | PublicKey | None = None,
    move: bool = False,
    of_backup: bool = False,
) -> Head:
    """Write a board into a file, encrypted to a passphrase or a public key; return its head.

    The file is readable by its owner only, appears when it is whole, and never replaces another.
    The board may be in use meanwhile: the dump is of one moment.

    Parameters
    ----------
    move
        Seal the board here first: it takes no more questions, and goes on where the dump is
        restored. One that is sealed already is dumped again as it is. Without it the dump is a
        copy, which stays paused where it is restored until somebody says how many questions may
        have been answered since.
    of_backup
        A board that has moved goes on elsewhere already: it stays moved where this is restored,
        however often. Without it the dump of such a board is the one that it goes on from.
    """
    key = _key(passphrase, public_key)
    board = boards.open(slug)
    path = Path(os.path.abspath(to))  # noqa: PTH100 - links are not followed
    sealed = False
    try:
        with write_vault(path, key) as vault:  # which refuses a bad name before anything is sealed
            if move:
                _seal(board)
                sealed = True
            return _write(boards, board, vault, of_backup=of_backup)
    except LadderboardError as error:
        if not sealed:
            raise
        raise StorageFailed(
            f"{error} The board takes no more questions here, but the dump was not written; mend "
            "what is wrong, and dump it again in the same way."
        ) from error


def _key(passphrase: str | None, public_key: str | PublicKey | None) -> Passphrase | PublicKey:
    if (passphrase is None) == (public_key is None):
        raise InvalidSetting("A dump is encrypted either to a passphrase or to a public key.")
    if public_key is None:
        return Passphrase(cast("str", passphrase))
    return public_key if isinstance(public_key, PublicKey) else read_public_key(public_key)


def _seal(board: Board) -> None:
    """Let the board take no more questions, and say so in its chain."""
    with board.book.turn() as turn:
        view = cast("SqlWriting", turn.view)
        status = read_board(view).status
        if status != "moved":
            turn.note("moved", {"status": status})
            view.change(_MOVED, (view.number,))


def _write(boards: Boards, board: Board, vault: VaultWriter, *, of_backup: bool) -> Head:
    book = board.book
    with board.reading() as view:
        row, at = read_board(view), view.at()
        moved = row.status == "moved" and not of_backup
        records = RecordWriter(vault)
        header: dict[str, Any] = {
            "format": FORMAT,
            "tables": len(PART.steps),
            "book": book.name,
            "slug": row.slug,
            "entries": at.entries,
            "head": at.head,
            "moved": moved,
            "status": _status_before(view) if moved else row.status,
            "time": boards.world.clock(),
        }
        records.put("dump", header)
        take_book(view, book.seal, records)
        for table in (BOARD, *TABLES):
            take_rows(view, table, records)
        take_bodies(view, board.store, records)
        records.end()
    return Head(at.entries, at.head)


def _status_before(view: SqlReading) -> str:
    """Return how a board stood when it was sealed."""
    found = sealed_with(view)
    if found is None:
        raise BrokenLedger("The board has moved, and its ledger does not say so.")
    return found


def sealed_with(view: SqlReading) -> str | None:
    """Return the status in the last entry that seals a board, unless it went on since."""
    for number in reversed(range(view.at().entries)):
        fields = Entry(next(iter(view.entries(number, number + 1)))).read()
        if fields["kind"] == "moved":
            return str(fields["status"])
        if fields["kind"] in {"question", "resumed", "opened"}:
            break
    return None
