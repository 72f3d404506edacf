"""A board's bundle: everything that is opened after the close, in one file for anybody to check."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ladderboard.board._finals import STANDINGS, read_entrants
from ladderboard.board._tables import find_team, read_board
from ladderboard.errors import NotOpen
from ladderboard.holdout import open_entries, put_opening
from ladderboard.ledger import Asked, decode, write_bundle

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ladderboard.board._board import Board
    from ladderboard.board._tables import BoardRow
    from ladderboard.ledger import BundleWriter, Entry, Head, Secret, SqlReading

__all__ = ["write_board_bundle"]

_PART = 2**20
_PAGE = 500
_FILES = (
    "SELECT entry, id, format, place FROM main.submission WHERE book = ? AND entry > ? "
    "ORDER BY entry LIMIT ?"
)
_FILE = "SELECT entry, id, format, place FROM main.submission WHERE book = ? AND entry = ?"


class _File(NamedTuple):
    """A submission, and the last entry that it was scored for."""

    entry: int
    id: str
    format: str | None
    place: str


def write_board_bundle(
    board: Board, to: Path | str, *, labels: bool = False, submissions: bool = False
) -> Head:
    """Write everything that a closed board kept secret into a new file, and return its head.

    The file is readable by its owner only, appears when it is whole, and never replaces another. It
    holds the noise key, every risk and every draw, so a board that is not closed is refused.

    Parameters
    ----------
    labels
        Open the labels, too; otherwise they stay as hidden as before.
    submissions
        Put in what teams submitted.
    """
    path = Path(os.path.abspath(to))  # noqa: PTH100 - links are not followed
    with board.reading() as view:
        row = read_board(view)
        if not view.at().closed:
            raise NotOpen(
                f"{board.slug} is {row.status}; its bundle can be written when it is closed, "
                "because opened risks spend the holdout."
            )
        epochs = row.epoch + 1 if labels else 0
        with write_bundle(path) as bundle:
            head = put_opening(
                bundle, board.book, view, of="board", epochs=epochs, submissions=submissions
            )
            if submissions:
                _put_with_files(bundle, board, view, row)
            else:
                for entry, secret in open_entries(board.book, view):
                    bundle.put_entry(entry.form, secret)
            if view.kept(STANDINGS) is not None:  # older boards did not commit to them
                bundle.put("standings", decode(board.book.kept(STANDINGS)))
            if row.final is not None:
                bundle.put("finals", row.final)
            bundle.end()
    return head


def _put_with_files(bundle: BundleWriter, board: Board, view: SqlReading, row: BoardRow) -> None:
    """Write each entry, and after it the file that it was scored for."""
    chosen = set()
    if row.final is not None:
        chosen = {each.submission for each in read_entrants(view, board.rules_of(row))}
    files = _files(view)
    held = next(files, None)
    for number, (entry, secret) in enumerate(open_entries(board.book, view)):
        bundle.put_entry(entry.form, secret)
        if held is not None and held.entry == number:
            _put_file(bundle, board, held, selected=held.id in chosen)
            held = next(files, None)
        elif secret is not None and row.epoch:
            later = _asked_again(board, view, row, entry, secret)
            if later is not None:
                _put_file(bundle, board, later, selected=False)


def _files(view: SqlReading) -> Iterator[_File]:
    """Return what was submitted in the order of entries, a page at a time."""
    last = -1
    while rows := view.run(_FILES, (view.number, last, _PAGE)):
        yield from (_File(*row) for row in rows)
        last = rows[-1][0]


def _asked_again(
    board: Board, view: SqlReading, row: BoardRow, entry: Entry, secret: Secret
) -> _File | None:
    """Return what an entry was scored for that was asked again after labels were corrected.

    Its row names the entry of that time. It was asked on the ladder of a later epoch, which the
    mark of that entry tells.
    """
    team = find_team(view, entry.read()["asker"])
    for epoch in range(1, row.epoch + 1):
        ladder = board.ladder_of(row._replace(epoch=epoch), team)
        asked = Asked(secret.submission, 0, ladder=ladder, asker=team.id)
        number = view.find(board.book.mark_of(asked))
        rows = [] if number is None else view.run(_FILE, (view.number, number))
        if rows:
            return _File(*rows[0])
    return None


def _put_file(bundle: BundleWriter, board: Board, file: _File, *, selected: bool) -> None:
    if not file.place:  # it was lost before the board came here
        return
    with board.store.get(file.place) as body:
        own, size = hashlib.sha256(), 0
        while part := body.read(_PART):
            own.update(part)
            size += len(part)
        body.seek(0)
        told = {"id": file.id, "format": file.format, "size": size, "sha256": own.digest()}
        bundle.put("file", {**told, "selected": selected})
        while part := body.read(_PART):
            bundle.put("part", part)
