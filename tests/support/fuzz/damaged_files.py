"""Makes damaged files, and reads them one after the other with little memory and time:

    python -m support.fuzz.damaged_files SEED COUNT

Prints how often each refusal came. Fails at the first file that is neither read nor refused as
documented, takes more than 30 seconds, needs more than 3 GiB, or changes the roster.
"""

import collections
import gzip
import io
import json
import pickle
import re
import resource
import signal
import sys
import zipfile
from pathlib import Path

import numpy as np
import polars as pl

import ladderboard as lb
from ladderboard.errors import InvalidPredictions
from ladderboard.files import Limits, Roster, read_predictions
from support.randomness import seeded_random

ROWS = 120
MEMORY = 3 * 2**30
SECONDS = 30
CODES = set(
    re.findall(
        r"`(\w+)`",
        (Path(__file__).parents[3] / "docs/reference/files.md")
        .read_text()
        .split("| code |")[1]
        .split("\n\n")[0],
    )
)
NUMBERS = [b"\xff\xff\xff\x7f", b"\xff" * 4, b"\0" * 4, b"\0\0\0\x40", b"\xff" * 7 + b"\x7f"]
TOKENS = [
    b'"', b"'", b",", b";", b"\t", b"\n", b"\r", b"\r\n", b"\0", b"\xff", b"\xef\xbb\xbf", b"nan",
    b"inf", b"1e999", b"-", b"", b"id", b"prediction", b"p_0", b"\x1b[2J", b'""', b'","', b"{",
    b"}",
    b"[[[[", b"null", b"\xe2\x80\xae", b"9" * 400, b"a" * 200_000, b"sep=;\n", b"\xff\xfe",
]  # fmt: skip


def make_table(rng):
    """Return a random table of predictions."""
    ids = list(range(ROWS)) if rng.random() < 0.5 else [f"id_{row}" for row in range(ROWS)]
    values = [
        [rng.randrange(3) for _ in ids],
        [rng.random() for _ in ids],
        [rng.choice(["cat", "dog", "a,b", 'q"q', "é"]) for _ in ids],
    ]
    extra = rng.choice([[], [], [], ["weird"]])
    frame = pl.DataFrame({"id": ids, "prediction": rng.choice(values)})
    for name in extra:
        column = rng.choice([[[1, 2]] * ROWS, [{"a": 1}] * ROWS, [None] * ROWS, [b"x"] * ROWS])
        frame = frame.with_columns(pl.Series(name, column))
    return frame


def write_table(rng, form, frame):
    """Return a table as a file of a format, with random options."""
    out = io.BytesIO()
    flat = frame.select("id", "prediction")
    if form in {"csv", "tsv"}:
        style = rng.choice(["necessary", "always", "never"])
        flat.write_csv(out, separator="\t" if form == "tsv" else ",", quote_style=style)
    elif form == "parquet":
        compression = rng.choice(["zstd", "snappy", "gzip", "lz4", "brotli", "uncompressed"])
        size = rng.choice([50, ROWS])
        frame.write_parquet(out, compression=compression, row_group_size=size, statistics=False)
    elif form == "arrow":
        level = rng.choice([None, pl.CompatLevel.oldest()])
        compression = rng.choice(["lz4", "zstd", "uncompressed"])
        frame.select(pl.exclude("weird") if level else pl.all()).write_ipc(
            out, compression=compression, compat_level=level
        )
    elif form == "jsonl":
        out.write("\n".join(json.dumps(row) for row in flat.to_dicts()).encode())
    else:
        array = np.array(flat["prediction"].to_list())
        np.save(out, array.astype("U3") if rng.random() < 0.3 else array)
    return out.getvalue()


def damage(rng, data):
    """Return a file with a few random changes."""
    data = bytearray(data)
    for _ in range(rng.choice([1, 1, 1, 1, 2, 4])):
        if not data:
            break
        start = rng.randrange(len(data))
        if rng.random() < 0.3:  # the footer, where formats have their metadata
            start = max(0, len(data) - 1 - rng.randrange(min(600, len(data))))
        byte, other = rng.randrange(256), rng.randrange(len(data))
        length, new = rng.choice(
            [
                (1, bytes([rng.choice([0, 1, 0x7F, 0x80, 0xFF, byte])])),
                (1, bytes([data[start] ^ 1 << byte % 8])),
                (4, rng.choice(NUMBERS)),
                (8, rng.choice(NUMBERS)),
                (1 + byte % 40, b""),
                (0, rng.choice(TOKENS)),
                (len(data), b""),
                (0, data[:byte]),
                (30, data[other : other + 30]),
            ]
        )
        data[start : start + length] = new
    return bytes(data)


def compress(rng, data):
    """Return a file as it is, or in a gzip or zip archive."""
    kind = rng.randrange(6)
    if kind == 0:
        return gzip.compress(data)
    if kind == 1:
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("predictions", data)
        return out.getvalue()
    return data


LOSSES = [
    lb.loss("zero_one"), lb.loss("zero_one", classes=["cat", "dog"]), lb.loss("brier"),
    lb.loss("absolute", range=(0, 1)), lb.loss("top_k", k=2), lb.loss("operator:ne"),
]  # fmt: skip
FORMS = ["csv", "tsv", "parquet", "arrow", "jsonl", "npy"]


def read_damaged(seed, rosters, limits):
    """Make a damaged file and read it; return "read" or the code of the refusal."""
    rng = seeded_random(seed)
    form = rng.choice(FORMS)
    data = write_table(rng, form, make_table(rng))
    data = (
        damage(rng, compress(rng, data)) if rng.random() < 0.5 else compress(rng, damage(rng, data))
    )
    declared = form if rng.random() < 0.9 else rng.choice([None, *FORMS])
    roster, loss = rng.choice(rosters), rng.choice([*LOSSES, *LOSSES[:1] * 6])
    signal.alarm(SECONDS)
    try:
        read_predictions(data, roster, loss, format=declared, limits=limits)
    except InvalidPredictions as error:
        if not error.problems or not {problem.code for problem in error.problems} <= CODES:
            raise AssertionError(error) from None
        if len(str(error)) > 20_000 or "\x1b" in str(error):
            raise AssertionError("an unsuitable message") from None
        return error.problems[0].code
    finally:
        signal.alarm(0)
    return "read"


def describe(rosters):
    """Return the content of rosters as bytes."""
    return [
        pickle.dumps((roster.n, roster.kind, list(roster.names_of(np.arange(ROWS)))))
        for roster in rosters
    ]


def main(seed, count):
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    ids = [f"id_{row}" for row in range(ROWS)]
    rosters = [
        Roster.of(source, kind=kind) for source in (ids, ROWS) for kind in ("number", "text")
    ]
    before = describe(rosters)
    limits = Limits(bytes=2**24)
    outcomes = collections.Counter()
    for number in range(seed, seed + count):
        try:
            outcomes[read_damaged(number, rosters, limits)] += 1
        except BaseException:
            sys.stderr.write(f"seed {number}\n")
            raise
    if describe(rosters) != before:
        raise AssertionError("a roster has changed")
    sys.stdout.write(json.dumps(outcomes) + "\n")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
