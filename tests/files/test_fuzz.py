"""Damaged and hostile files: refused as documented, in bounded time and memory, without output.

Each runs in a process of its own with 3 GiB of address space, so that an abort, a panic's report
or a file that eats memory fails the test and nothing else.
"""

import json
import subprocess
import sys

import polars as pl
import pytest

from ladderboard.files._formats._columnar_metadata import (
    MalformedMetadata,
    arrow_size,
    parquet_size,
)
from support.fuzz.hostile_files import FRAME, HOSTILE_FILES, LONG_IDS, arrow, parquet, write_frame
from support.processes import run_module

ONE = """
import resource, signal, sys
import ladderboard as lb
from ladderboard.files import Limits, Roster, read_predictions
room = 3 * 2**30
resource.setrlimit(resource.RLIMIT_AS, (room, room))
signal.alarm(120)
roster = Roster.of(1000, kind="number")
try:
    print(read_predictions(sys.argv[1], roster, lb.loss("zero_one"), limits=Limits(bytes=2**26)))
except lb.errors.InvalidPredictions as error:
    print(error.problems[0].code)
"""


def fuzz(seed, count):
    done = run_module("support.fuzz.damaged_files", seed, count)
    assert done.stderr == ""
    assert done.returncode == 0
    return json.loads(done.stdout)


def test_three_hundred_damaged_files():
    outcomes = fuzz(0, 300)
    assert sum(outcomes.values()) == 300
    assert len(outcomes) > 10  # many different outcomes


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 11_000, 1000))
def test_ten_thousand_damaged_files(seed):
    assert sum(fuzz(seed, 1000).values()) == 1000


def outcome(data, path):
    path.write_bytes(data)
    done = subprocess.run(
        [sys.executable, "-c", ONE, str(path)], capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    assert done.returncode == 0
    return done.stdout.strip()


@pytest.mark.parametrize("name", HOSTILE_FILES)
def test_hostile_files_are_refused(name, tmp_path):
    make, expected = HOSTILE_FILES[name]
    form = "jsonl" if "JSON" in name else "csv"
    assert outcome(make(), tmp_path / f"predictions.{form}") == expected


@pytest.mark.slow
def test_a_line_of_a_gigabyte(tmp_path):
    for start in (b"", b"id,prediction\n1,"):
        path = tmp_path / "long.csv"
        with path.open("wb") as file:
            file.write(start)
            for _ in range(1024):
                file.write(b"1" * 2**20)
        code = ONE.replace("Limits(bytes=2**26)", "Limits(bytes=2**31)")
        done = subprocess.run(
            [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=False
        )
        assert (done.stdout.strip(), done.stderr) == ("line_too_long", "")


@pytest.mark.parametrize("packer", ["zstd", "snappy", "gzip", "lz4", "brotli", "uncompressed"])
def test_parquet_size_is_read_from_metadata(packer):
    frame = pl.concat([LONG_IDS] * 30)
    data = write_frame(frame, parquet, compression=packer, row_group_size=7000, data_page_size=1000)
    rows, size = parquet_size(data)
    assert rows == 30_000
    assert 1000 < size < 2 * frame.estimated_size()
    for cut in range(1, len(data), 997):
        with pytest.raises(MalformedMetadata):
            parquet_size(data[:-cut])


@pytest.mark.parametrize("nested", [b"\x19", b"\x1c", b"\x1c\x19"])
def test_deeply_nested_parquet_footers_are_refused(nested):
    footer = nested * 10_000
    data = b"PAR1" + footer + len(footer).to_bytes(4, "little") + b"PAR1"
    with pytest.raises(MalformedMetadata):
        parquet_size(data)


def test_random_parquet_footers_are_refused():
    """A footer with values of every type; each byte is changed, one at a time."""
    data = write_frame(FRAME, parquet, compression="uncompressed", statistics=False)
    start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    outcomes = set()
    for position in range(start, len(data) - 4):
        for byte in (0, 1, 0x15, 0x19, 0x1C, 0x2C, 0x4C, 0x7F, 0x80, 0xFF):
            changed = bytearray(data)
            changed[position] = byte
            try:
                outcomes.add(parquet_size(bytes(changed)))
            except MalformedMetadata:
                outcomes.add(None)
    assert {None, parquet_size(data)} <= outcomes


@pytest.mark.parametrize("packer", ["zstd", "lz4", "uncompressed"])
@pytest.mark.parametrize("level", [pl.CompatLevel.oldest(), pl.CompatLevel.newest()])
def test_arrow_size_is_read_from_metadata(packer, level):
    frame = pl.concat([LONG_IDS] * 30).with_columns(pl.col("id").cast(pl.Categorical).alias("c"))
    data = write_frame(frame, arrow, compression=packer, compat_level=level, record_batch_size=7000)
    rows, size = arrow_size(data)
    assert rows == 30_000
    assert frame.estimated_size() / 2 < size < 3 * frame.estimated_size()
    for cut in range(1, len(data), 9973):
        with pytest.raises(MalformedMetadata):
            arrow_size(data[:-cut])


def test_only_panic_output_is_suppressed():
    code = """
import os, sys
from ladderboard.errors import InvalidPredictions
from ladderboard.files._columns import refuse_polars_errors
from ladderboard.files._formats._columnar import suppress_panic_output
import polars as pl
with suppress_panic_output():
    os.write(2, b"first\\n")
try:
    with refuse_polars_errors(InvalidPredictions, "Parquet"), suppress_panic_output():
        os.write(2, b"second\\n")
        os.write(2, b"\\nthread 'x' (1) panicked at y.rs:1:\\noh no\\n")
        raise pl.exceptions.PanicException("oh no")
except InvalidPredictions as error:
    print(error)
sys.stderr.write("third\\n")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "The file could not be read as Parquet (PanicException).\n"
    assert done.stderr == "first\nsecond\nthird\n"
