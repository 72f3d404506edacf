"""Exports: the public entries of a ledger, and the bundle with the secrets of a closed guard."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from ladderboard._atomic_file import absolute_path, new_file
from ladderboard.errors import BrokenLedger, InvalidState
from ladderboard.holdout._file import SAMPLE
from ladderboard.holdout._sample import decode_sample, describe_sample
from ladderboard.ledger import (
    ChainHead,
    GateSecret,
    HighWaterMark,
    SecretSide,
    SqliteStorage,
    iter_checked_entries,
    write_bundle,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ladderboard.ledger import Book, BundleWriter, Entry, ReadView

_SALT = "salt of the holdout"
_SECRET_TYPES: dict[str, type[SecretSide | GateSecret]] = {
    "question": SecretSide,
    "look": GateSecret,
    "promoted": GateSecret,
}


def export_entries(path: Path | str, out: Path | str) -> ChainHead:
    """Write every entry of a guard's file to a new file, and return the head of the chain.

    Each line is an entry: the exact bytes that were hashed, and a line feed. The chain is verified
    while it is written. Neither a key nor secret data is read.
    """
    with closing(SqliteStorage(path)) as storage:
        return _write_entries(storage, HighWaterMark(path), Path(out))


def _write_entries(storage: SqliteStorage, high_water: HighWaterMark, out: Path) -> ChainHead:
    names = storage.books()
    if len(names) != 1:
        raise InvalidState(f"{storage.path} holds {len(names)} books; a guard's file holds one.")
    position = high_water.read()
    with storage.read_transaction(names[0]) as book:
        chain_state = book.chain_state()
        high_water.check(position, names[0], chain_state, book)
        with new_file(out) as file:
            for entry, _ in iter_checked_entries(book.entries(), names[0]):
                file.write(entry.encoded + b"\n")
    return ChainHead(chain_state.entries, chain_state.head)


def write_guard_bundle(book: Book, to: Path | str, *, labels: bool) -> ChainHead:
    """Write the secrets of a closed guard into a new bundle; return the head of the chain."""
    path = absolute_path(to)
    with book.storage.read_transaction(book.name) as view:
        if not view.chain_state().closed:
            raise InvalidState(
                "The guard is not closed. Close it first, because published scores reveal its "
                "labels."
            )
        with write_bundle(path) as bundle:
            head = write_bundle_opening(bundle, book, view, of="guard", epochs=1 if labels else 0)
            for entry, secret in iter_decrypted_entries(book, view):
                bundle.write_entry(entry.encoded, secret)
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
    """Write the first records of a bundle: its origin, the noise key, and the labels of epochs."""
    chain_state = view.chain_state()
    bundle.write_record(
        "bundle",
        {
            "format": bundle.format,
            "of": of,
            "book": book.name,
            "entries": chain_state.entries,
            "head": chain_state.head,
            "labels": epochs > 0,
            "submissions": submissions,
        },
    )
    bundle.write_record(
        "key", {"key": book.read_encrypted("key"), "salt": book.read_encrypted("salt of the key")}
    )
    for epoch in range(epochs):
        suffix = f" {epoch}" if epoch else ""
        table = decode_sample(book.read_encrypted(SAMPLE + suffix))
        record = {
            "epoch": epoch,
            "salt": book.read_encrypted(_SALT + suffix),
            "sample": describe_sample(table),
        }
        bundle.write_record("holdout", record)
    return ChainHead(chain_state.entries, chain_state.head)


def iter_decrypted_entries(
    book: Book, view: ReadView
) -> Iterator[tuple[Entry, SecretSide | GateSecret | None]]:
    """Yield every entry with its decrypted secret side; verify the chain on the way."""
    for number, (entry, fields) in enumerate(iter_checked_entries(view.entries(), book.name)):
        packed = view.secret_side(number)
        secret_type = _SECRET_TYPES.get(fields["kind"])
        if packed is None and secret_type is not None:
            raise BrokenLedger(f"The secret side of entry {number} of the ledger is missing.")
        opened = None
        if packed is not None and secret_type is not None:
            opened = secret_type.unpack(book.encryption.decrypt(f"secret {number}", packed))
        yield entry, opened
