"""Read damaged files, one after the other, in a process of its own with little room and time.

    python _fuzz.py SEED COUNT

Prints how often each refusal came. Ends with an error at the first file that is neither read nor
refused as documented, takes more than 30 seconds, needs more than 3 GiB, or changes the roster.
"""

import collections
import gzip
import io
import json
import pickle
import random
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

ROWS = 120
ROOM = 3 * 2**30
SECONDS = 30
CODES = set(
    re.findall(
        r"`(\w+)`",
        (Path(__file__).parents[2] / "docs/reference/files.md")
        .read_text()
        .split("| code |")[1]
        .split("```")[0],
    )
)
NUMBERS = [b"\xff\xff\xff\x7f", b"\xff" * 4, b"\0" * 4, b"\0\0\0\x40", b"\xff" * 7 + b"\x7f"]
TOKENS = [
    b'"', b"'", b",", b";", b"\t", b"\n", b"\r", b"\r\n", b"\0", b"\xff", b"\xef\xbb\xbf", b"nan",
    b"inf", b"1e999", b"-", b"", b"id", b"prediction", b"p_0", b"\x1b[2J", b'""', b'","', b"{",
    b"}",
    b"[[[[", b"null", b"\xe2\x80\xae", b"9" * 400, b"a" * 200_000, b"sep=;\n", b"\xff\xfe",
]  # fmt: skip


def table(rng):
    ids = list(range(ROWS)) if rng.random() < 0.5 else [f"id_{at}" for at in range(ROWS)]
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


def written(rng, form, frame):
    out = io.BytesIO()
    flat = frame.select("id", "prediction")
    if form in {"csv", "tsv"}:
        style = rng.choice(["necessary", "always", "never"])
        flat.write_csv(out, separator="\t" if form == "tsv" else ",", quote_style=style)
    elif form == "parquet":
        packer = rng.choice(["zstd", "snappy", "gzip", "lz4", "brotli", "uncompressed"])
        size = rng.choice([50, ROWS])
        frame.write_parquet(out, compression=packer, row_group_size=size, statistics=False)
    elif form == "arrow":
        level = rng.choice([None, pl.CompatLevel.oldest()])
        packer = rng.choice(["lz4", "zstd", "uncompressed"])
        frame.select(pl.exclude("weird") if level else pl.all()).write_ipc(
            out, compression=packer, compat_level=level
        )
    elif form == "jsonl":
        out.write("\n".join(json.dumps(row) for row in flat.to_dicts()).encode())
    else:
        array = np.array(flat["prediction"].to_list())
        np.save(out, array.astype("U3") if rng.random() < 0.3 else array)
    return out.getvalue()


def damaged(rng, data):
    data = bytearray(data)
    for _ in range(rng.choice([1, 1, 1, 1, 2, 4])):
        if not data:
            break
        at = rng.randrange(len(data))
        if rng.random() < 0.3:  # the footer, where formats keep their accounts
            at = max(0, len(data) - 1 - rng.randrange(min(600, len(data))))
        here, there = rng.randrange(256), rng.randrange(len(data))
        length, new = rng.choice(
            [
                (1, bytes([rng.choice([0, 1, 0x7F, 0x80, 0xFF, here])])),
                (1, bytes([data[at] ^ 1 << here % 8])),
                (4, rng.choice(NUMBERS)),
                (8, rng.choice(NUMBERS)),
                (1 + here % 40, b""),
                (0, rng.choice(TOKENS)),
                (len(data), b""),
                (0, data[:here]),
                (30, data[there : there + 30]),
            ]
        )
        data[at : at + length] = new
    return bytes(data)


def packed(rng, data):
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


def one(seed, rosters, limits):
    """Make one damaged file and read it; return what became of it."""
    rng = random.Random(seed)  # noqa: S311 - no secret
    form = rng.choice(FORMS)
    data = written(rng, form, table(rng))
    data = (
        damaged(rng, packed(rng, data)) if rng.random() < 0.5 else packed(rng, damaged(rng, data))
    )
    told = form if rng.random() < 0.9 else rng.choice([None, *FORMS])
    roster, loss = rng.choice(rosters), rng.choice([*LOSSES, *LOSSES[:1] * 6])
    signal.alarm(SECONDS)
    try:
        read_predictions(data, roster, loss, format=told, limits=limits)
    except InvalidPredictions as error:
        if not error.problems or not {each.code for each in error.problems} <= CODES:
            raise AssertionError(error) from None
        if len(str(error)) > 20_000 or "\x1b" in str(error):
            raise AssertionError("an unfit message") from None
        return error.problems[0].code
    finally:
        signal.alarm(0)
    return "read"


def state(rosters):
    return [pickle.dumps((each.n, each.kind, each.name(np.arange(ROWS)))) for each in rosters]


def main(seed, count):
    resource.setrlimit(resource.RLIMIT_AS, (ROOM, ROOM))
    ids = [f"id_{at}" for at in range(ROWS)]
    rosters = [
        Roster.of(source, kind=kind) for source in (ids, ROWS) for kind in ("number", "text")
    ]
    before = [
        pickle.dumps((each.n, each.kind, list(each.name(np.arange(ROWS))))) for each in rosters
    ]
    limits = Limits(bytes=2**24)
    found = collections.Counter()
    for each in range(seed, seed + count):
        try:
            found[one(each, rosters, limits)] += 1
        except BaseException:
            sys.stderr.write(f"seed {each}\n")
            raise
    after = [
        pickle.dumps((each.n, each.kind, list(each.name(np.arange(ROWS))))) for each in rosters
    ]
    if before != after:
        raise AssertionError("a roster has changed")
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
