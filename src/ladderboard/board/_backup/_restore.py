"""Restores a board from a dump in one transaction."""

from __future__ import annotations

import json
import re
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from ladderboard._atomic_file import absolute_path
from ladderboard.board._backup._dump import (
    FORMAT,
    UncommittedFiles,
    restore_bodies,
    status_when_moved,
)
from ladderboard.board._model import BOARD, DATA_FILE, SUBMISSION, TABLES
from ladderboard.board._repository import (
    BOARD_SCHEMA,
    count_without_place,
    find_book,
    insert_dumped_row,
    read_board,
)
from ladderboard.board._rules import Rules
from ladderboard.errors import (
    BrokenDump,
    BrokenLedger,
    Conflict,
    InvalidSetting,
    InvalidState,
    LadderboardError,
    StorageFailed,
)
from ladderboard.holdout import decode_sample, describe_sample, sample_digest
from ladderboard.ledger import (
    EMPTY_CHAIN,
    Commitment,
    Entry,
    NoEncryption,
    Passphrase,
    Position,
    RecordReader,
    SecretKey,
    append_restored_entry,
    check_book,
    import_book,
    read_secret_key,
    read_vault,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ladderboard.board._boards import Boards
    from ladderboard.ledger import ChainState, Encryption, WriteView

_STATUSES = {"open", "paused", "restored", "closing", "closed", "moved"}
_BOOK_NAME = re.compile("[0-9a-f]{32}")  # safe as part of a file name


class DumpHeader(NamedTuple):
    """The first record of a dump."""

    format: int
    tables: int
    book: str
    slug: str
    entries: int
    head: bytes
    moved: bool
    status: str
    time: int


def restore_board(
    boards: Boards,
    source: Path | str,
    *,
    passphrase: str | None = None,
    secret_key: str | SecretKey | None = None,
) -> str:
    """Restore the board of a dump into the database, and return its slug.

    Every release is recomputed before the commit. A moved board continues at once. Any other dump
    is a copy: questions may have been answered since, so the board stays paused until the organiser
    charges them. A moved board in a backup continues elsewhere, so it stays moved.
    """
    with _open_dump(source, passphrase, secret_key) as (header, records):
        _refuse_taken(boards, header)
        _restore_in_transaction(boards, header, records, _status_after_restore(header))
    return header.slug


def read_header(
    source: Path | str, *, passphrase: str | None = None, secret_key: str | SecretKey | None = None
) -> DumpHeader:
    """Return the header of a dump."""
    with _open_dump(source, passphrase, secret_key) as (header, _):
        return header


@contextmanager
def _open_dump(
    source: Path | str, passphrase: str | None, secret_key: str | SecretKey | None
) -> Iterator[tuple[DumpHeader, RecordReader]]:
    key = _decryption_key(passphrase, secret_key)
    path = absolute_path(source)
    with read_vault(path, key) as vault, _refuse_malformed():
        records = RecordReader(vault)
        yield _parse_header(records.read_record("dump")), records


def _status_after_restore(header: DumpHeader) -> str:
    """Return the status of the restored board."""
    # A closed or moved board cannot have answered questions since; after an interrupted close it
    # can.
    is_over = header.moved or header.status in {"closed", "moved"}
    return header.status if is_over else "restored"


def _restore_in_transaction(
    boards: Boards, header: DumpHeader, records: RecordReader, status: str
) -> None:
    """Restore the board in one transaction; a failure leaves nothing behind."""
    mark, state = boards.high_water_mark(header.book), EMPTY_CHAIN
    mark_before: Position | None = None
    if mark is not None:  # before the book exists, as for a new one
        mark_before = mark.create(Position.from_state(header.book, EMPTY_CHAIN))
    with UncommittedFiles(boards.store) as files:
        try:
            with boards.storage.add_book(header.book) as view:
                state = _insert_everything(boards, view, header, records, files, status=status)
        except BaseException as error:
            uncertain = isinstance(error, StorageFailed) and error.uncertain
            if not uncertain or header.book not in boards.storage.books():
                files.undo()
                if mark is not None:
                    with suppress(OSError, StorageFailed):
                        mark.path.unlink() if mark_before is None else mark.replace(mark_before)
                raise
    if mark is not None:
        mark.advance(Position.from_state(header.book, state))


def _decryption_key(
    passphrase: str | None, secret_key: str | SecretKey | None
) -> Passphrase | SecretKey:
    if (passphrase is None) == (secret_key is None):
        raise InvalidSetting("A dump is opened either with a passphrase or with a secret key.")
    if secret_key is None:
        return Passphrase(cast("str", passphrase))
    return secret_key if isinstance(secret_key, SecretKey) else read_secret_key(secret_key)


@contextmanager
def _refuse_malformed() -> Iterator[None]:
    """Turn errors from malformed content into ``BrokenDump``."""
    try:
        yield
    except LadderboardError:
        raise
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):
        raise BrokenDump("The dump has content that Ladderboard does not write.") from None


def _parse_header(fields: dict[str, Any]) -> DumpHeader:
    for name, known, subject in (
        ("format", FORMAT, "dumps"),
        ("tables", len(BOARD_SCHEMA.migrations), "boards"),
    ):
        if fields[name] > known:
            raise InvalidState(
                f"The dump was written by a newer Ladderboard, in format {fields[name]} of "
                f"{subject}; this one knows {known}. Install a newer one to restore it."
            )
    header = DumpHeader(**fields)
    kinds = tuple(type(field) for field in header)
    if kinds != (int, int, str, str, int, bytes, bool, str, int) or not _BOOK_NAME.fullmatch(
        header.book
    ):
        raise BrokenDump("The dump has content that Ladderboard does not write.")
    if header.status not in _STATUSES or (header.moved and header.status == "moved"):
        raise BrokenDump("The dump has an impossible status for its board.")
    return header


def _refuse_taken(boards: Boards, header: DumpHeader) -> None:
    if header.book in boards.storage.books():
        raise Conflict(f"This database already has, or had, the board {header.slug!r:.80}.")
    if header.slug in boards.list():
        raise Conflict(
            f"There is a board {header.slug!r:.80} here already. Restore into another database."
        )


def _insert_everything(
    boards: Boards,
    view: WriteView,
    header: DumpHeader,
    records: RecordReader,
    files: UncommittedFiles,
    *,
    status: str,
) -> ChainState:
    """Insert and check everything, and record the restore in the ledger."""
    cipher = boards.cipher(header.book) or NoEncryption()
    state = import_book(view, header.book, cipher, records)
    if (state.entries, state.head) != (header.entries, header.head):
        raise BrokenDump("The ledger in the dump does not match the dump's header.")
    board = records.read_record(BOARD.name)
    rules = Rules.from_description(
        json.loads(board["rules"])
    )  # a custom loss must be registered here
    if {board["slug"], rules.slug} != {header.slug}:
        raise BrokenDump("The dump's board does not match its header.")
    if find_book(view, header.slug) is not None:
        raise Conflict(f"There is a board {header.slug!r:.80} here already.")
    insert_dumped_row(view, BOARD, {**board, "status": status}, header.tables)
    without = 0
    for table in TABLES[1:]:
        for row in records.read_section(table.name):
            if table in {SUBMISSION, DATA_FILE}:  # the files follow, and get new places
                without += not row["place"]
                row["place"] = ""
            insert_dumped_row(view, table, row, header.tables)
    restore_bodies(view, files, records)
    if count_without_place(view) != without:
        raise BrokenDump("The dump lacks files that were submitted.")
    records.expect_end()
    _check_restored(view, header, cipher)
    if header.moved or header.status == "moved":
        return state
    return append_restored_entry(view, header.book, state, boards.environment)


def _check_restored(view: WriteView, header: DumpHeader, cipher: Encryption) -> None:
    """Recompute every release, and check all labels against their commitments."""
    check_book(view, header.book, cipher)
    status_before = (
        status_when_moved(view) if header.moved or header.status == "moved" else header.status
    )
    if status_before is None or (header.moved and status_before != header.status):
        raise BrokenDump(
            "The dump's header says that the board has moved, but the ledger does not."
        )
    epoch = 0
    for encoded in view.entries():
        holdout = Entry(encoded).read().get("holdout")
        if holdout is not None:
            end = f" {epoch}" if epoch else ""
            sample = decode_sample(_read_kept(view, cipher, f"sample{end}"))
            salt = _read_kept(view, cipher, f"salt of the holdout{end}")
            commitment = Commitment("holdout", sample_digest(describe_sample(sample)), salt)
            if commitment.hash.hex() != holdout:
                raise BrokenLedger("The labels do not match their commitment.")
            epoch += 1
    if read_board(view).epoch != epoch - 1:
        raise BrokenDump("The epoch of the dump's board does not match its ledger.")


def _read_kept(view: WriteView, cipher: Encryption, name: str) -> bytes:
    encrypted = view.get_value(name)
    if encrypted is None:
        raise BrokenDump("The dump lacks labels that were committed to.")
    return cipher.decrypt(f"kept {name}", encrypted)
