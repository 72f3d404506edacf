"""Exports: the public side of a ledger, and the bundle that opens a closed guard."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from ladderboard.errors import BrokenLedger, InvalidSetting, InvalidState, StorageFailed
from ladderboard.holdout._file import SAMPLE
from ladderboard.holdout._sample import read_sample, write_sample
from ladderboard.ledger import Head, HighWater, Secret, SqliteStorage, follow, write_bundle

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ladderboard.ledger import Book, BundleWriter, Entry, Reading

_SALT = "salt of the holdout"


def export_entries(path: Path | str, out: Path | str) -> Head:
    """Write every entry of a guard's file to a new one, and return the head.

    An entry is a line: the very bytes that were hashed, and a line feed. The chain is checked on
    the way. Neither a key nor anything of the secret side is read.
    """
    with closing(SqliteStorage(path)) as storage:
        return _export(storage, HighWater(path), Path(out))


def _export(storage: SqliteStorage, water: HighWater, out: Path) -> Head:
    names = storage.books()
    if len(names) != 1:
        raise InvalidState(f"{storage.path} holds {len(names)} books; a guard's file holds one.")
    level = water.read()
    with storage.reading(names[0]) as book:
        at = book.at()
        water.check(level, names[0], at, book)
        try:
            file = out.open("xb")
        except FileExistsError:
            raise InvalidSetting(f"{out} is there already; choose another name.") from None
        except OSError as error:
            raise StorageFailed(f"{out} cannot be written: {error.strerror}.") from None
        try:
            with file:
                for entry, _ in follow(book.entries(), names[0]):
                    file.write(entry.form + b"\n")
        except BaseException as error:
            out.unlink(missing_ok=True)  # half a ledger would look like a whole one
            if isinstance(error, OSError):
                raise StorageFailed(f"{out} cannot be written: {error.strerror}.") from None
            raise
    return Head(at.entries, at.head)


def write_guard_bundle(book: Book, to: Path | str, *, labels: bool) -> Head:
    """Write everything that a closed guard kept secret into a new file, and return the head."""
    path = Path(os.path.abspath(to))  # noqa: PTH100 - links are not followed
    with book.storage.reading(book.name) as view:
        if not view.at().closed:
            raise InvalidState("The guard is not closed; opened risks would spend its holdout.")
        with write_bundle(path) as bundle:
            head = put_opening(bundle, book, view, of="guard", epochs=1 if labels else 0)
            for entry, secret in open_entries(book, view):
                bundle.put_entry(entry.form, secret)
            bundle.end()
    return head


def put_opening(
    bundle: BundleWriter,
    book: Book,
    view: Reading,
    *,
    of: str,
    epochs: int,
    submissions: bool = False,
) -> Head:
    """Write how a bundle begins: what it is of, the noise key, and the labels of so many epochs."""
    at = view.at()
    bundle.put(
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
    bundle.put("key", {"key": book.kept("key"), "salt": book.kept("salt of the key")})
    for epoch in range(epochs):
        end = f" {epoch}" if epoch else ""
        table = read_sample(book.kept(SAMPLE + end))
        fixed = {"epoch": epoch, "salt": book.kept(_SALT + end), "sample": write_sample(table)}
        bundle.put("holdout", fixed)
    return Head(at.entries, at.head)


def open_entries(book: Book, view: Reading) -> Iterator[tuple[Entry, Secret | None]]:
    """Return every entry with its secret side, opened; the chain is checked on the way."""
    for number, (entry, fields) in enumerate(follow(view.entries(), book.name)):
        packed = view.secret(number)
        if packed is None and fields["kind"] == "question":
            raise BrokenLedger(f"The secret side of entry {number} of the ledger is missing.")
        place = f"secret {number}"
        yield entry, None if packed is None else Secret.unpack(book.seal.open(place, packed))
