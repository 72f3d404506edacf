"""What a bundle opens of a guard or a board: the noise key, the labels, and every question."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from ladderboard.errors import BrokenLedger, InvalidState
from ladderboard.holdout._sample import read_sample, write_sample
from ladderboard.ledger import Head, Secret, follow, write_bundle

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ladderboard.ledger import Book, BundleWriter, Entry, Reading

__all__ = ["open_entries", "put_opening", "write_guard_bundle"]

_SAMPLE, _SALT = "sample", "salt of the holdout"


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
        table = read_sample(book.kept(_SAMPLE + end))
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
