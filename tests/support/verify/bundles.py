"""Makes bundles of guards: a book with questions from fixed seeds, closed and opened."""

import hashlib
import itertools
from pathlib import Path

import numpy as np

import ladderboard as lb
from ladderboard.files import HoldoutTable
from ladderboard.holdout import decode_sample, describe_sample, encode_sample, sample_digest
from ladderboard.ledger import (
    Book,
    LedgerEnvironment,
    Opening,
    ScoredQuestion,
    SecretSide,
    SqliteStorage,
    adopt_copy,
    decode,
    digest,
    encode,
    write_array,
    write_bundle,
)

BOOK, KEY = "example", bytes(range(32))
BUDGET, ROWS = 1000, 40
# Every way to draw noise, at least once.
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
    "growing": lb.GrowingLadder(step=0.2, accounts=3, sharing=0.5, sharing_cap=4),
    "growing model": lb.GrowingLadder(step=0.2, accounts=2, sharing=0.5, scale="model"),
    "ladder": lb.Ladder(step=0.05),
    "parameter free": lb.ParameterFreeLadder(),
    "exact": lb.Exact(),
    "rounded": lb.Rounded(digits=2),
    "noisy": lb.Noisy(sd=0.01),
    "thresholdout": lb.Thresholdout(threshold=0.04, noise=0.013, budget=500),
    "bootstrap": lb.BootstrapLadder(test="bayes", replicates=20),
    "one bit": lb.OneBit(step=0.05, grid=0.01),
}


def fixed_environment():
    """Return a `LedgerEnvironment` whose clock ticks at each call, with counted salts."""
    ticks, salts = itertools.count(1_700_000_000), itertools.count(1)
    return LedgerEnvironment(
        clock=lambda: next(ticks),
        salt=lambda: hashlib.sha256(b"salt %d" % next(salts)).digest(),
    )


def uniform_numbers(*address):
    """Return a number in [0, 1) for each row, independent of any library's generator."""
    raw = hashlib.shake_256(repr(address).encode()).digest(ROWS)
    return np.frombuffer(raw, dtype=np.uint8) / 256


def holdout_table(seed=0):
    """Return the holdout for a seed."""
    labels = (uniform_numbers("labels", seed) < 0.5).astype(np.int64)
    return HoldoutTable(np.arange(ROWS), labels, "number")


def play_book(
    folder, mechanism=MECHANISMS["shaky"], *, questions=6, ladders=1, seed=0, restored=False
):
    """Return a book with questions asked on each ladder in turn; ``restored``: restored midway.

    The same arguments give the same book, to the byte.
    """
    table = holdout_table(seed)
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
        holdout=sample_digest(describe_sample(table)),
    )
    storage = SqliteStorage(Path(folder) / "guard.db", create=True)
    environment = fixed_environment()
    keep = {"sample": encode_sample(table)}
    book = Book.create(
        storage, opening, name=BOOK, key=KEY, extra_secrets=keep, environment=environment
    )
    for number in range(questions):
        if restored and number == questions // 2:
            adopt_copy(storage, BOOK, 3, environment=environment)
        wrong = uniform_numbers("wrong", seed, number) < 0.5 - 0.4 * number / questions
        predictions = np.where(wrong, 1 - table.labels, table.labels)
        book.ask(_question(mechanism, table, predictions, number % ladders))
    return book


def _question(mechanism, table, predictions, ladder):
    losses = (predictions != table.labels).astype(float)
    training = 0.1 if mechanism.needs_training else None
    content = {"predictions": write_array(predictions), "training": training}
    return ScoredQuestion(
        digest("predictions", content),
        table.grouping.risk(losses),
        losses if mechanism.needs == "losses" else None,
        training,
        ladder=f"team {ladder}" if ladder else "",
        asker=f"asker {ladder}",
        standard_error=(
            table.grouping.standard_error(losses) if mechanism.needs == "standard_error" else None
        ),
    )


def bundle_book(book, path, *, labels=True):
    """Write a bundle with everything that a book holds; return its path."""
    entries = [fields for _, fields in book.entries()]
    header = {
        "format": 1,
        "of": "board" if "board" in entries[0]["rules"] else "guard",
        "book": book.name,
        "entries": len(entries),
        "head": book.head().hash,
        "labels": labels,
        "submissions": False,
    }
    with write_bundle(path) as out, book.storage.read_transaction(book.name) as view:
        out.write_record("bundle", header)
        out.write_record(
            "key",
            {"key": book.read_encrypted("key"), "salt": book.read_encrypted("salt of the key")},
        )
        for epoch in range(sum("holdout" in fields for fields in entries) if labels else 0):
            suffix = f" {epoch}" if epoch else ""
            table = decode_sample(book.read_encrypted(f"sample{suffix}"))
            salt = book.read_encrypted(f"salt of the holdout{suffix}")
            out.write_record(
                "holdout", {"epoch": epoch, "salt": salt, "sample": describe_sample(table)}
            )
        for number, form in enumerate(view.entries()):
            packed = view.secret_side(number)
            if packed is not None:
                packed = SecretSide.unpack(book.encryption.decrypt(f"secret {number}", packed))
            out.write_entry(form, packed)
        out.finish()
    return path


def make_bundle(folder, mechanism=MECHANISMS["shaky"], *, labels=True, **options):
    """Play and close a book; return the path of its bundle."""
    book = play_book(folder, mechanism, **options)
    try:
        book.close()
        return bundle_book(book, Path(folder) / "bundle.ladderboard", labels=labels)
    finally:
        book.storage.close()


def read_records(path):
    """Return the records of a bundle, without the last, which counts them."""
    content, records = path.read_bytes(), []
    position, end = content.index(b"\n") + 1, len(content) - 32
    while position < end:
        start = position + 8
        position = start + int.from_bytes(content[position:start], "big")
        records.append(decode(content[start:position]))
    return records[:-1]


def copy_records(records):
    """Return a deep copy of records, which may be changed."""
    return decode(encode(records))


def write_records(path, records):
    """Write any records as a bundle with a matching hash; return its path.

    Bundles of boards have format 2, those of guards 1.
    """
    boards = [kind == "bundle" and content.get("of") != "guard" for kind, content in records]
    with write_bundle(path, bundle_format=2 if any(boards) else 1) as out:
        for kind, content in records:
            out.write_record(kind, content)
        out.finish()
    return path
