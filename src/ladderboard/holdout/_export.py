"""Exports: the public side of a ledger, and the bundle that opens a closed guard."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from ladderboard.errors import BrokenLedger, InvalidSetting, InvalidState, StorageFailed
from ladderboard.holdout._file import SAMPLE
from ladderboard.holdout._sample import decode_sample, describe_sample
from ladderboard.ledger import (
    ChainHead,
    HighWaterMark,
    SecretSide,
    SqliteStorage,
    absolute_path,
    iter_checked_entries,
    write_bundle,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ladderboard.ledger import Book, BundleWriter, Entry, ReadView

_SALT = "salt of the holdout"


def export_entries(path: Path | str, out: Path | str) -> ChainHead:
    """Write every entry of a guard's file to a new one, and return the head.

    An entry is a line: the very bytes that were hashed, and a line feed. The chain is checked on
    the way. Neither a key nor anything of the secret side is read.
    """
    with closing(SqliteStorage(path)) as storage:
        return _export(storage, HighWaterMark(path), Path(out))


def _export(storage: SqliteStorage, water: HighWaterMark, out: Path) -> ChainHead:
    names = storage.books()
    if len(names) != 1:
        raise InvalidState(f"{storage.path} holds {len(names)} books; a guard's file holds one.")
    level = water.read()
    with storage.read_transaction(names[0]) as book:
        at = book.chain_state()
        water.check(level, names[0], at, book)
        try:
            file = out.open("xb")
        except FileExistsError:
            raise InvalidSetting(f"{out} is there already; choose another name.") from None
        except OSError as error:
            raise StorageFailed(f"{out} cannot be written: {error.strerror}.") from None
        try:
            with file:
                for entry, _ in iter_checked_entries(book.entries(), names[0]):
                    file.write(entry.form + b"\n")
        except BaseException as error:
            out.unlink(missing_ok=True)  # half a ledger would look like a whole one
            if isinstance(error, OSError):
                raise StorageFailed(f"{out} cannot be written: {error.strerror}.") from None
            raise
    return ChainHead(at.entries, at.head)


def write_guard_bundle(book: Book, to: Path | str, *, labels: bool) -> ChainHead:
    """Write everything that a closed guard kept secret into a new file, and return the head."""
    path = absolute_path(to)
    with book.storage.read_transaction(book.name) as view:
        if not view.chain_state().closed:
            raise InvalidState("The guard is not closed; opened risks would spend its holdout.")
        with write_bundle(path) as bundle:
            head = write_bundle_opening(bundle, book, view, of="guard", epochs=1 if labels else 0)
            for entry, secret in iter_decrypted_entries(book, view):
                bundle.write_entry(entry.form, secret)
            bundle.finish()
    return head


def write_bundle_opening(
    bundle: BundleWriter,
    book: Book,
    view: ReadView,
    *,
    of: str,
    epochs: int,
    submissions: bool = False,
) -> ChainHead:
    """Write how a bundle begins: what it is of, the noise key, and the labels of so many epochs."""
    at = view.chain_state()
    bundle.write_record(
        "bundle",
        {
            "format": 1,
            "of": of,
            "book": book.name,
            "entries": at.entries,
            "head": at.head,
            "labels": epochs > 0,
            "submissions": submissions,
        },
    )
    bundle.write_record(
        "key", {"key": book.read_encrypted("key"), "salt": book.read_encrypted("salt of the key")}
    )
    for epoch in range(epochs):
        end = f" {epoch}" if epoch else ""
        table = decode_sample(book.read_encrypted(SAMPLE + end))
        fixed = {
            "epoch": epoch,
            "salt": book.read_encrypted(_SALT + end),
            "sample": describe_sample(table),
        }
        bundle.write_record("holdout", fixed)
    return ChainHead(at.entries, at.head)


def iter_decrypted_entries(book: Book, view: ReadView) -> Iterator[tuple[Entry, SecretSide | None]]:
    """Return every entry with its secret side, opened; the chain is checked on the way."""
    for number, (entry, fields) in enumerate(iter_checked_entries(view.entries(), book.name)):
        packed = view.secret_side(number)
        if packed is None and fields["kind"] == "question":
            raise BrokenLedger(f"The secret side of entry {number} of the ledger is missing.")
        place = f"secret {number}"
        yield (
            entry,
            None if packed is None else SecretSide.unpack(book.encryption.decrypt(place, packed)),
        )
