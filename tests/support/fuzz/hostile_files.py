"""Hostile files: bombs, false sizes and endless lines, each with the code of its refusal."""

import gzip
import io
import struct
import zipfile

import numpy as np
import polars as pl

_ZSTD = b"\x28\xb5\x2f\xfd"  # the start of a frame


def make_zip(data):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("predictions.csv", data)
    return out.getvalue()


def write_frame(frame, write, **options):
    """Return a table as the file that a method of it writes."""
    out = io.BytesIO()
    write(frame, out, **options)
    return out.getvalue()


FRAME = pl.DataFrame({"id": range(1000), "prediction": [0] * 1000})
LONG_IDS = FRAME.with_columns(pl.format("identifier number {}", "id").alias("id"))
parquet, arrow = pl.DataFrame.write_parquet, pl.DataFrame.write_ipc


def arrow_with_false_size(size):
    """Return an Arrow file whose compressed buffers declare this many bytes each."""
    data = bytearray(write_frame(LONG_IDS, arrow, compression="zstd"))
    start = data.find(_ZSTD)
    assert start > 0
    while start > 0:
        data[start - 8 : start] = struct.pack("<q", size)
        start = data.find(_ZSTD, start + 4)
    return bytes(data)


def parquet_with_false_size(rows):
    """Return a Parquet file whose footer declares this many rows instead of a thousand."""
    data = write_frame(FRAME, parquet, compression="uncompressed")
    start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    footer = data[start:-8].replace(varint(1000), varint(rows))
    assert footer != data[start:-8]
    return data[:start] + footer + len(footer).to_bytes(4, "little") + b"PAR1"


def varint(number):
    """Return a number as Thrift's zigzag varint."""
    number *= 2
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


HOSTILE_FILES = {
    "a gzip bomb": (lambda: gzip.compress(b"0\n" * 2**26, 1), "too_many_bytes"),
    "a zip bomb": (lambda: make_zip(b"0\n" * 2**26), "too_many_bytes"),
    "an open quote": (lambda: b'id,prediction\n0,"' + b"1\n" * 10**6, "too_many_rows"),
    "an open quote and one line": (lambda: b'id,prediction\n0,"' + b"1" * 2**25, "line_too_long"),
    "quotes only": (lambda: b'"' * 2**22, "quotes"),
    "quotes on every line": (lambda: b"id,prediction\n" + b'"0"",1\n' * 2000, "quotes"),
    "a hundred thousand columns": (lambda: b"a," * 10**5 + b"\n1\n", "too_many_columns"),
    "a long line": (lambda: b"1" * 2**25, "line_too_long"),
    "a long second line": (lambda: b"id,prediction\n" + b"1" * 2**25, "line_too_long"),
    "a long number": (lambda: b"id,prediction\n1," + b"1" * 2**25, "line_too_long"),
    "commas only": (lambda: b"id,prediction\n" + b"," * 2**25, "line_too_long"),
    "line feeds only": (lambda: b"id,prediction\n" + b"\n" * 2**25 + b"1", "too_many_rows"),
    "deep JSON": (lambda: b"[" * 10**6, "ragged"),
    "a long JSON number": (lambda: b'{"id": 1, "y": ' + b"1" * 10**6 + b"}", "ragged"),
    "rows of one value": (
        lambda: write_frame(pl.select(prediction=pl.repeat(0, 10**7)), parquet),
        "too_many_rows",
    ),
    "batches of one value": (
        lambda: write_frame(pl.select(prediction=pl.repeat(0, 10**7)), arrow, compression="zstd"),
        "too_many_rows",
    ),
    "pages that unpack to much": (
        lambda: write_frame(
            FRAME[:100].with_columns(id=pl.lit("x" * 10**6) + pl.col("id").cast(pl.String)),
            parquet,
        ),
        "too_many_bytes",
    ),
    "a dictionary that writes out to much": (
        lambda: write_frame(
            FRAME.with_columns(id=pl.lit("x" * 10**6)), parquet
        ),
        "too_many_bytes",
    ),
    "buffers that promise a terabyte": (lambda: arrow_with_false_size(10**12), "too_many_bytes"),
    "buffers that promise all there is": (lambda: arrow_with_false_size(2**62), "too_many_bytes"),
    "buffers that promise less than nothing": (lambda: arrow_with_false_size(-(2**62)), "damaged"),
    "buffers that promise too little": (lambda: arrow_with_false_size(8), "damaged"),
    "a footer that promises more rows": (lambda: parquet_with_false_size(2**60), "damaged"),
    "a footer that promises fewer rows": (lambda: parquet_with_false_size(9), "damaged"),
    "NaN with something in it": (
        lambda: write_frame(
            FRAME.with_columns(
                pl.Series("prediction", np.full(1000, 0x7FF8DEADBEEF0001).view(np.float64))
            ),
            parquet,
        ),
        "missing_value",
    ),
}  # fmt: skip
