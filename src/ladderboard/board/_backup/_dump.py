"""Dumps: one board with its history and secrets in one encrypted file."""

from __future__ import annotations

import secrets
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self, cast

from ladderboard._atomic_file import absolute_path
from ladderboard.board._tables import BOARD_SCHEMA, read_board
from ladderboard.errors import (
    BrokenDump,
    BrokenLedger,
    Conflict,
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
    select_from,
    write_vault,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import BinaryIO

    from ladderboard.board._board import Board
    from ladderboard.board._boards import Boards
    from ladderboard.board._store import SubmissionStore
    from ladderboard.ledger import ReadView, RecordReader, VaultWriter, WriteView

_PAGE_ROWS = 500
_PYTHON_TYPES = {"int": int, "real": float, "text": str, "bytes": bytes}
_INT_LIMIT = 2**63
_CHUNK_BYTES = 2**20
_STORED_FILES = (
    "SELECT id, place FROM main.submission WHERE book = ? AND id > ? AND place <> '' "
    "ORDER BY id LIMIT 500"
)
_AWAITS_FILE = "SELECT 1 FROM main.submission WHERE book = ? AND id = ? AND place = ''"
_SET_PLACE = "UPDATE main.submission SET place = ? WHERE book = ? AND id = ?"
FORMAT = 1
_SET_MOVED = "UPDATE main.board SET status = 'moved' WHERE book = ?"


class DumpedTable(NamedTuple):
    """A table whose rows belong to a book.

    ``columns`` maps each column but the book's to its type, with a ``?`` if it may be null; rows
    are dumped in the order of ``key``.
    """

    name: str
    columns: Mapping[str, str]
    key: tuple[str, ...]

    @classmethod
    def from_words(cls, name: str, columns: str, key: str) -> DumpedTable:
        """Return a table from ``name:type`` words."""
        pairs = (part.split(":") for part in columns.split())
        return cls(name, dict(pairs), tuple(key.split()))


BOARD = DumpedTable.from_words(
    "board",
    "slug:text rules:text status:text visibility:text horizon:int seen_epoch:int epoch:int "
    "amended:int teams:int pooled:int replayed:int stored:int best:real? final:text? made:int",
    "slug",
)


TABLES = (
    DumpedTable.from_words(
        "team",
        "number:int id:text name:text folded:text kind:text disqualified:int made:int used:int "
        "last:int? released:real? since:int? seen_used:int? seen_last:int? seen_released:real? "
        "seen_since:int?",
        "number",
    ),
    DumpedTable.from_words(
        "credential", "hash:bytes role:text team:int? made:int expires:int? ended:int?", "hash"
    ),
    DumpedTable.from_words(
        "submission",
        "team:int number:int id:text entry:int time:int message:text format:text? size:int "
        "place:text chosen:int epoch:int value:real? score:real? improved:int question:int",
        "team number",
    ),
    DumpedTable.from_words("record", "entry:int epoch:int time:int team:int value:real", "entry"),
)
"""The tables in the order in which they are dumped."""


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
            view.execute(_SET_MOVED, (view.book_id,))


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
        for table in (BOARD, *TABLES):
            dump_rows(view, table, records)
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


def dump_rows(view: ReadView, table: DumpedTable, records: RecordWriter) -> None:
    """Write all rows of a book in a table."""
    for row in iter_rows(view, table):
        records.write_record(table.name, row)


def iter_rows(view: ReadView, table: DumpedTable) -> Iterator[dict[str, Any]]:
    """Yield all rows of a book in a table, read a page at a time."""
    keys = ", ".join(table.key)
    start = select_from(table.name, ", ".join(table.columns), "WHERE book = ?")
    end = f" ORDER BY {keys} LIMIT {_PAGE_ROWS}"
    after_key = f" AND ({keys}) > ({', '.join('?' * len(table.key))})"
    last: tuple[Any, ...] = ()
    while True:
        statement = start + (after_key if last else "") + end
        rows = view.query(statement, (view.book_id, *last))
        for row in rows:
            yield dict(zip(table.columns, row, strict=True))
        if len(rows) < _PAGE_ROWS:
            return
        last_row = dict(zip(table.columns, rows[-1], strict=True))
        last = tuple(last_row[column] for column in table.key)


def restore_rows(
    view: WriteView,
    table: DumpedTable,
    records: RecordReader,
    change: Callable[[dict[str, Any]], None] | None = None,
) -> None:
    """Insert the next rows of the dump; ``change`` may alter each."""
    for row in records.read_section(table.name):
        restore_row(view, table, row, change)


def restore_row(
    view: WriteView,
    table: DumpedTable,
    row: dict[str, Any],
    change: Callable[[dict[str, Any]], None] | None = None,
) -> None:
    """Insert a row; refuse a duplicate or malformed one."""
    if not isinstance(row, dict) or set(row) != set(table.columns):
        raise BrokenDump(f"The dump holds a {table.name} with other columns than this version's.")
    for column, kind in table.columns.items():
        _check_value(table.name, column, kind, row[column])
    if change is not None:
        change(row)
    columns = ", ".join(row)
    places = ", ".join("?" * (len(row) + 1))
    statement = (
        f"INSERT INTO main.{table.name} (book, {columns}) VALUES ({places}) "  # noqa: S608
        "ON CONFLICT DO NOTHING"
    )
    if not view.execute(statement, (view.book_id, *row.values())):
        raise Conflict(
            f"This database already has this {table.name} row; the board cannot be restored."
        )


def _check_value(table: str, column: str, kind: str, value: Any) -> None:
    """Refuse a value that the database could not store unchanged."""
    base_kind = kind.removesuffix("?")
    sound = type(value) is _PYTHON_TYPES[base_kind] or (value is None and kind != base_kind)
    if type(value) is int:
        sound = sound and -_INT_LIMIT <= value < _INT_LIMIT
    if type(value) is str:
        sound = sound and "\0" not in value and _is_unicode(value)
    if not sound:
        raise BrokenDump(f"The dump holds a {table} whose {column} cannot be stored.")


def _is_unicode(value: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in value)


def dump_bodies(view: ReadView, store: SubmissionStore, records: RecordWriter) -> None:
    """Write the stored submissions, each under its id."""
    last = ""
    while rows := view.query(_STORED_FILES, (view.book_id, last)):
        for submission_id, location in rows:
            with store.get(location) as file:
                records.write_file(submission_id, file)
        last = rows[-1][0]


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
            if not view.query(_AWAITS_FILE, (view.book_id, submission_id)):
                raise BrokenDump("The dump holds a file that belongs to no submission.")
            body = _read_or_copy(file, Path(folder) / "body")
            # Under a new id: the store may be the one that the dump came from.
            prepared = arriving.store.prepare(secrets.token_hex(16), body)
            arriving.track(prepared.location)
            prepared.commit(view)
            view.execute(_SET_PLACE, (prepared.location, view.book_id, submission_id))


def _read_or_copy(file: BinaryIO, path: Path) -> bytes | Path:
    """Return a small body as bytes, and the path of a large one."""
    start = file.read(_CHUNK_BYTES)
    if len(start) < _CHUNK_BYTES:
        return start
    with path.open("wb") as copy:
        copy.write(start)
        shutil.copyfileobj(file, copy)
    return path
