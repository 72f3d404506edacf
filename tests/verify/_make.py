"""Bundles to check: a book is played with fixed seeds, and opened."""

import hashlib
import itertools
from pathlib import Path

import numpy as np

import ladderboard as lb
from ladderboard.files import HoldoutTable
from ladderboard.holdout import keep_sample, read_sample, sample_digest, write_sample
from ladderboard.ledger import (
    Asked,
    Book,
    Opening,
    Secret,
    SqliteStorage,
    World,
    decode,
    digest,
    encode,
    restore,
    write_array,
    write_bundle,
)

__all__ = ["BOOK", "KEY", "MECHANISMS", "bundle", "copy", "make", "play", "records", "remake"]

BOOK, KEY = "example", bytes(range(32))
BUDGET, ROWS = 1000, 40
# Each way in which laws are made, at least once.
MECHANISMS = {
    "calibrated": lb.ShakyLadder.calibrated(n=ROWS, questions=BUDGET),
    "shaky": lb.ShakyLadder(step=0.02, compare_noise=0.01, release_noise=0.005, grid=0.01),
    "shaky without a grid": lb.ShakyLadder(step=0.02, compare_noise=0.01, release_noise=0.005),
    "shaky laplace": lb.ShakyLadder(
        step=0.02, compare_noise=0.013, release_noise=0, grid=0.01, law="laplace"
    ),
    "paper": lb.ShakyLadder(
        step=0.02, compare_noise=0.011, release_noise=0.007, law="laplace", standing_noise=0.003
    ),
    "ladder": lb.Ladder(step=0.05),
    "parameter free": lb.ParameterFreeLadder(),
    "exact": lb.Exact(),
    "rounded": lb.Rounded(digits=2),
    "noisy": lb.Noisy(sd=0.01),
    "thresholdout": lb.Thresholdout(threshold=0.04, noise=0.013, budget=500),
    "bootstrap": lb.BootstrapLadder(test="bayes", replicates=20),
    "one bit": lb.OneBit(step=0.05, grid=0.01),
}


def world():
    """Return a world in which every second something happens, and salts are counted."""
    ticks, salts = itertools.count(1_700_000_000), itertools.count(1)
    return World(
        clock=lambda: next(ticks),
        salt=lambda: hashlib.sha256(b"salt %d" % next(salts)).digest(),
    )


def noise(*address):
    """Return a number in [0, 1) for each row: the same with every version of every library."""
    raw = hashlib.shake_256(repr(address).encode()).digest(ROWS)
    return np.frombuffer(raw, dtype=np.uint8) / 256


def sample(seed=0):
    """Return the holdout of a seed."""
    labels = (noise("labels", seed) < 0.5).astype(np.int64)
    return HoldoutTable(np.arange(ROWS), labels, "number")


def play(folder, mechanism=MECHANISMS["shaky"], *, questions=6, ladders=1, seed=0, again=False):
    """Return a book in which questions were asked, on each ladder in turn; restored if ``again``.

    The same arguments give the same book, to the byte.
    """
    table = sample(seed)
    opening = Opening(
        n=ROWS,
        loss=lb.loss("zero_one").describe(),
        mechanism=mechanism.describe(),
        rules={
            "questions": BUDGET,
            "beta": 0.05,
            "rows": ROWS,
            "kind": table.kind,
            "worth": float(ROWS),
            "weighted": False,
        },
        holdout=sample_digest(write_sample(table)),
    )
    storage = SqliteStorage(Path(folder) / "guard.db", create=True)
    own = world()
    keep = {"sample": keep_sample(table)}
    book = Book.create(storage, opening, name=BOOK, key=KEY, keep=keep, world=own)
    for at in range(questions):
        if again and at == questions // 2:
            restore(storage, BOOK, 3, world=own)
        wrong = noise("wrong", seed, at) < 0.5 - 0.4 * at / questions
        predictions = np.where(wrong, 1 - table.labels, table.labels)
        book.ask(_asked(mechanism, table, predictions, at % ladders))
    return book


def _asked(mechanism, table, predictions, ladder):
    losses = (predictions != table.labels).astype(float)
    training = 0.1 if mechanism.needs_training else None
    written = {"predictions": write_array(predictions), "training": training}
    return Asked(
        digest("predictions", written),
        table.grouping.risk(losses),
        losses if mechanism.needs == "losses" else None,
        training,
        ladder=f"team {ladder}" if ladder else "",
        asker=f"asker {ladder}",
    )


def bundle(book, path, *, labels=True):
    """Write everything that a book holds, and return where it is."""
    entries = [fields for _, fields in book.entries()]
    told = {
        "format": 1,
        "of": "board" if "board" in entries[0]["rules"] else "guard",
        "book": book.name,
        "entries": len(entries),
        "head": book.head().hash,
        "labels": labels,
        "submissions": False,
    }
    with write_bundle(path) as out, book.storage.reading(book.name) as view:
        out.put("bundle", told)
        out.put("key", {"key": book.kept("key"), "salt": book.kept("salt of the key")})
        for epoch in range(sum("holdout" in fields for fields in entries) if labels else 0):
            which = f" {epoch}" if epoch else ""
            table = read_sample(book.kept(f"sample{which}"))
            salt = book.kept(f"salt of the holdout{which}")
            out.put("holdout", {"epoch": epoch, "salt": salt, "sample": write_sample(table)})
        for number, form in enumerate(view.entries()):
            packed = view.secret(number)
            if packed is not None:
                packed = Secret.unpack(book.seal.open(f"secret {number}", packed))
            out.put_entry(form, packed)
        out.end()
    return path


def make(folder, mechanism=MECHANISMS["shaky"], *, labels=True, **more):
    """Play, close and open a book; return the bundle."""
    book = play(folder, mechanism, **more)
    try:
        book.close()
        return bundle(book, Path(folder) / "bundle.ladderboard", labels=labels)
    finally:
        book.storage.close()


def records(path):
    """Return the records of a bundle, without the last, which counts them."""
    content, found = path.read_bytes(), []
    at, end = content.index(b"\n") + 1, len(content) - 32
    while at < end:
        start = at + 8
        at = start + int.from_bytes(content[at:start], "big")
        found.append(decode(content[start:at]))
    return found[:-1]


def copy(of):
    """Return records that may be changed."""
    return decode(encode(of))


def remake(path, records):
    """Write records, whatever they are, with the hash that belongs to them."""
    with write_bundle(path) as out:
        for kind, content in records:
            out.put(kind, content)
        out.end()
    return path
