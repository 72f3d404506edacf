"""Dumps: one board with its history and secrets in one encrypted file."""

from __future__ import annotations

import secrets
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, cast

from ladderboard._atomic_file import absolute_path
from ladderboard.board._model import TABLES
from ladderboard.board._repository import (
    BOARD_SCHEMA,
    iter_dumped_rows,
    iter_stored_places,
    read_board,
    set_missing_place,
    update_board,
)
from ladderboard.errors import (
    BrokenDump,
    BrokenLedger,
    InvalidSetting,
    LadderboardError,
    StorageFailed,
)
from ladderboard.ledger import (
    ChainHead,
    Entry,
    Passphrase,
    PublicKey,
    RecordWriter,
    export_book,
    read_public_key,
    write_vault,
)

if TYPE_CHECKING:
    from typing import BinaryIO

    from ladderboard.board._boards import Board, Boards
    from ladderboard.board._store import SubmissionStore
    from ladderboard.ledger import ReadView, RecordReader, VaultWriter, WriteView

_CHUNK_BYTES = 2**20
FORMAT = 1


def dump_board(
    boards: Boards,
    slug: str,
    to: Path | str,
    *,
    passphrase: str | None = None,
    public_key: str | PublicKey | None = None,
    move: bool = False,
    of_backup: bool = False,
) -> ChainHead:
    """Write a board into a file, encrypted to a passphrase or a public key; return its head.

    The file is readable by its owner only, appears when it is complete, and never replaces
    another. The board may be in use: the dump is consistent.

    Parameters
    ----------
    move
        Mark the board as moved first: it takes no more submissions here, and continues where
        the dump is restored. A moved board can be dumped again. Without ``move`` the dump is a
        copy: restored, it stays paused until the organiser charges the questions that may have been
        answered since.
    of_backup
        Keep a moved board moved wherever this dump is restored. Without it, the dump of a moved
        board is the one that it continues from.
    """
    key = _encryption_key(passphrase, public_key)
    board = boards.open(slug)
    path = absolute_path(to)
    moved = False
    try:
        with write_vault(
            path, key
        ) as vault:  # refuses a bad name before the board is marked as moved
            if move:
                _mark_moved(board)
                moved = True
            return _write_dump(boards, board, vault, of_backup=of_backup)
    except LadderboardError as error:
        if not moved:
            raise
        raise StorageFailed(
            f"{error} The board is marked as moved and takes no more submissions here, but "
            "the dump was not written. Fix the cause and dump it again in the same way."
        ) from error


def _encryption_key(
    passphrase: str | None, public_key: str | PublicKey | None
) -> Passphrase | PublicKey:
    if (passphrase is None) == (public_key is None):
        raise InvalidSetting("A dump is encrypted either to a passphrase or to a public key.")
    if public_key is None:
        return Passphrase(cast("str", passphrase))
    return public_key if isinstance(public_key, PublicKey) else read_public_key(public_key)


def _mark_moved(board: Board) -> None:
    """Seal the board: it takes no more submissions, and its ledger records that."""
    with board.book.transaction() as transaction:
        view = transaction.view
        status = read_board(view).status
        if status != "moved":
            transaction.append_entry("moved", {"status": status})
            update_board(view, status="moved")


def _write_dump(boards: Boards, board: Board, vault: VaultWriter, *, of_backup: bool) -> ChainHead:
    book = board.book
    with board.reading() as view:
        row, state = read_board(view), view.chain_state()
        moved = row.status == "moved" and not of_backup
        records = RecordWriter(vault)
        header: dict[str, Any] = {
            "format": FORMAT,
            "tables": len(BOARD_SCHEMA.migrations),
            "book": book.name,
            "slug": row.slug,
            "entries": state.entries,
            "head": state.head,
            "moved": moved,
            "status": _status_before_move(view) if moved else row.status,
            "time": boards.environment.clock(),
        }
        records.write_record("dump", header)
        export_book(view, book.encryption, records)
        for table in TABLES:
            for columns in iter_dumped_rows(view, table):
                records.write_record(table.name, columns)
        dump_bodies(view, board.store, records)
        records.finish()
    return ChainHead(state.entries, state.head)


def _status_before_move(view: ReadView) -> str:
    """Return the status of a board before it was moved."""
    status = status_when_moved(view)
    if status is None:
        raise BrokenLedger("The board has the status moved, but its ledger has no such entry.")
    return status


def status_when_moved(view: ReadView) -> str | None:
    """Return the status recorded when a board was moved; None if it was not."""
    for number in reversed(range(view.chain_state().entries)):
        fields = Entry(next(iter(view.entries(number, number + 1)))).read()
        if fields["kind"] == "moved":
            return str(fields["status"])
        if fields["kind"] in {"question", "resumed", "opened"}:
            break
    return None


def dump_bodies(view: ReadView, store: SubmissionStore, records: RecordWriter) -> None:
    """Write the stored submissions, each under its id."""
    for submission_id, location in iter_stored_places(view):
        with store.get(location) as file:
            records.write_file(submission_id, file)


class UncommittedFiles:
    """Tracks files that were stored for rows that are not committed yet.

    Their locations are written to a temporary file, because there may be many. Files in the
    database, whose locations have no slash, are rolled back with the transaction.
    """

    def __init__(self, store: SubmissionStore) -> None:
        self.store = store
        self._places = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed at the end

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._places.close()

    def track(self, location: str) -> None:
        """Track a file."""
        if "/" in location:
            self._places.write(f"{location}\n")

    def undo(self) -> None:
        """Remove all tracked files; a later sweep removes those that remain."""
        self._places.seek(0)
        for line in self._places:
            with suppress(LadderboardError):
                self.store.delete(line.rstrip("\n"))


def restore_bodies(view: WriteView, arriving: UncommittedFiles, records: RecordReader) -> None:
    """Store the next files of the dump for their submissions."""
    with tempfile.TemporaryDirectory(prefix="ladderboard-") as folder:
        for submission_id, file in records.read_files():
            body = _read_or_copy(file, Path(folder) / "body")
            # Under a new id: the store may be the one that the dump came from.
            prepared = arriving.store.prepare(secrets.token_hex(16), body)
            arriving.track(prepared.location)
            prepared.commit(view)
            if not set_missing_place(view, submission_id, prepared.location):
                raise BrokenDump("The dump holds a file that belongs to no submission.")


def _read_or_copy(file: BinaryIO, path: Path) -> bytes | Path:
    """Return a small body as bytes, and the path of a large one."""
    start = file.read(_CHUNK_BYTES)
    if len(start) < _CHUNK_BYTES:
        return start
    with path.open("wb") as copy:
        copy.write(start)
        shutil.copyfileobj(file, copy)
    return path
