"""Every format, compressed or not, gives the same result from every kind of source."""

import ast
import gzip
import io
import json
import os
import zipfile

import numpy as np
import pandas as pd
import polars as pl
import pytest

import ladderboard as lb
from ladderboard.errors import InvalidPredictions
from ladderboard.files import Limits, Roster, read_predictions
from ladderboard.files._formats import _open

IDS = ["a", "b", "c", "d"]
ROSTER = Roster.of(IDS, kind="number")
TEXT = Roster.of(IDS, kind="text")
LOSS = lb.loss("zero_one")
FRAME = pl.DataFrame({"id": ["d", "b", "a", "c"], "prediction": [4, 2, 1, 3]})
EXPECTED = [1, 2, 3, 4]


def written(form):
    out = io.BytesIO()
    if form == "csv":
        FRAME.write_csv(out)
    elif form == "tsv":
        FRAME.write_csv(out, separator="\t")
    elif form == "parquet":
        FRAME.write_parquet(out)
    elif form == "arrow":
        FRAME.write_ipc(out)
    elif form == "feather":
        FRAME.write_ipc(out, compression="lz4")
    else:
        out.write("".join(json.dumps(row) + "\n" for row in FRAME.to_dicts()).encode())
    return out.getvalue()


FORMS = ["csv", "tsv", "parquet", "arrow", "feather", "jsonl"]


def zipped(data, name="inner.csv", extra=()):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, data)
        for extra_name in extra:
            archive.writestr(extra_name, b"x")
    return out.getvalue()


@pytest.mark.parametrize("form", FORMS)
def test_every_format_from_every_source(form, tmp_path):
    data = written(form)
    path = tmp_path / f"predictions.{form}"
    path.write_bytes(data)
    packed = tmp_path / f"predictions.{form}.gz"
    packed.write_bytes(gzip.compress(data))
    box = tmp_path / "predictions.zip"
    box.write_bytes(zipped(data, f"inner/predictions.{form}", ["__MACOSX/._predictions"]))
    for source in (path, str(path), packed, box):
        assert read_predictions(source, ROSTER, LOSS).tolist() == EXPECTED
    with path.open("rb") as file:
        assert read_predictions(file, ROSTER, LOSS).tolist() == EXPECTED
    for source in (io.BytesIO(data), data, bytearray(data), memoryview(data), gzip.compress(data)):
        assert read_predictions(source, ROSTER, LOSS, format=form).tolist() == EXPECTED


@pytest.mark.parametrize("form", ["parquet", "arrow", "feather"])
def test_magic_bytes_override_the_suffix(form, tmp_path):
    path = tmp_path / "predictions.csv"
    path.write_bytes(written(form))
    assert read_predictions(path, ROSTER, LOSS).tolist() == EXPECTED


@pytest.mark.parametrize(
    "array",
    [
        np.array([1, 2, 3, 4]),
        np.array([1, 2, 3, 4], dtype=np.uint8),
        np.array([1, 2, 3, 4], dtype=">i4"),
        np.array([1.0, 2.0, 3.0, 4.0], dtype=np.float32),
        np.array([[1], [2], [3], [4]]),
        np.asfortranarray(np.array([[1], [2], [3], [4]])),
        np.array([("d", 4), ("b", 2), ("a", 1), ("c", 3)], dtype=[("id", "U3"), ("y", "i8")]),
    ],
)
def test_npy(array):
    out = io.BytesIO()
    np.save(out, array)
    assert read_predictions(out.getvalue(), ROSTER, LOSS).tolist() == EXPECTED


def test_npy_of_text_and_of_a_matrix():
    out = io.BytesIO()
    np.save(out, np.array(["x", "yy", "z", "é"]))
    assert read_predictions(out.getvalue(), TEXT, LOSS).tolist() == ["x", "yy", "z", "é"]
    out = io.BytesIO()
    p = np.array([[0.25, 0.75]] * 4, order="F")
    np.save(out, p)
    assert read_predictions(out.getvalue(), ROSTER, lb.loss("brier")).tolist() == p.tolist()


IN_MEMORY = [
    [1, 2, 3, 4],
    (1, 2, 3, 4),
    range(1, 5),
    [True, 2, 3.0, np.int8(4)],
    np.array([1, 2, 3, 4]),
    np.array([1, 2, 3, 4], dtype=object),
    np.ma.masked_array([1, 2, 3, 4]),
    [[1], [2], [3], [4]],
    {"prediction": [1, 2, 3, 4]},
    {"id": ["d", "a", "b", "c"], "prediction": [4, 1, 2, 3]},
    {"ID ": np.array(["d", "a", "b", "c"]), "whatever": np.array([4, 1, 2, 3])},
    pd.Series([1, 2, 3, 4]),
    pd.Series([1, 2, 3, 4], dtype="Int64"),
    pd.Series([4, 1, 2, 3], index=pd.Index(["d", "a", "b", "c"], name="id")),
    pd.DataFrame({"y": [1, 2, 3, 4]}),
    pd.DataFrame({"id": ["d", "a", "b", "c"], "y_pred": [4, 1, 2, 3]}),
    pd.DataFrame({"y_pred": [4, 1, 2, 3]}, index=pd.Index(["d", "a", "b", "c"], name="Id")),
    pd.DataFrame({"id": pd.Categorical(["d", "a", "b", "c"]), "y_pred": [4, 1, 2, 3]}),
    pl.Series([1, 2, 3, 4]),
    pl.Series([1, 2, 3, 4], dtype=pl.UInt8),
    FRAME,
    FRAME.with_columns(pl.col("id").cast(pl.Categorical)),
    FRAME.with_columns(pl.col("prediction").cast(pl.Decimal(10, 2))),
    FRAME.with_columns(pl.col("prediction").cast(pl.Float32)),
]


@pytest.mark.parametrize("source", IN_MEMORY, ids=lambda source: type(source).__name__)
def test_objects_in_memory(source):
    assert read_predictions(source, ROSTER, LOSS).tolist() == EXPECTED


@pytest.mark.parametrize(
    "source",
    [None, 3, object(), pd.Series, [[1], [2, 3], [4], [5]], {"id": ["a"], "y": [1, 2]}, iter([1])],
)
def test_unsupported_objects_are_refused(source):
    with pytest.raises(InvalidPredictions) as caught:
        read_predictions(source, ROSTER, LOSS)
    assert caught.value.problems[0].code in {"format", "ragged"}


def code(source, **options):
    with pytest.raises(InvalidPredictions) as caught:
        read_predictions(source, ROSTER, LOSS, **options)
    assert len(caught.value.problems) == 1
    return caught.value.problems[0].code


def test_only_regular_files_are_read(tmp_path):
    assert code(tmp_path) == "not_a_file"
    assert code(tmp_path / "none.csv") == "not_a_file"
    for name in ("s3://bucket/key.csv", "https://example.org/p.csv", "hf://datasets/x", "*.csv"):
        assert code(name) == "not_a_file"
    assert code("a\0b") == "not_a_file"
    os.mkfifo(tmp_path / "pipe")
    assert code(tmp_path / "pipe") == "not_a_file"
    assert code("/dev/zero") == "not_a_file"
    real = tmp_path / "*.csv"  # a name, not a pattern
    real.write_bytes(written("csv"))
    (tmp_path / "link.csv").symlink_to(real)
    for path in (real, tmp_path / "link.csv"):
        assert read_predictions(path, ROSTER, LOSS).tolist() == EXPECTED


def test_refusals_show_only_the_file_name(tmp_path):
    with pytest.raises(InvalidPredictions) as caught:
        read_predictions(tmp_path / "none.csv", ROSTER, LOSS)
    assert str(caught.value) == "There is no file 'none.csv'."


class FailingStream:
    def read(self, size):
        raise RuntimeError("surprise")


class Endless:
    def read(self, size):
        return b"1\n" * 1000


def test_streams_that_fail_or_never_end():
    assert code(FailingStream()) == "not_a_file"
    assert code(Endless(), limits=Limits(bytes=10**6)) == "too_many_bytes"
    assert read_predictions(io.StringIO("1\n2\n3\n4"), ROSTER, LOSS).tolist() == EXPECTED


def test_unsupported_archives_are_refused():
    data = written("csv")
    packed = gzip.compress(data)
    assert code(packed[:-9]) == "damaged"
    assert code(packed[:-5] + b"xxxxx") == "damaged"
    assert code(gzip.compress(packed)) == "packed"
    assert code(zipped(packed)) == "packed"
    assert code(zipped(data, extra=["b.csv"])) == "packed"
    assert code(zipped(data)[:-10]) == "damaged"
    assert code(b"\x28\xb5\x2f\xfd" + data) == "packed"
    assert code(b"BZh91AY&SY") == "packed"
    two = gzip.compress(data[:20]) + gzip.compress(data[20:])
    assert read_predictions(two, ROSTER, LOSS).tolist() == EXPECTED


def test_decompression_bombs_are_refused():
    zeros = b"0" * 10**7
    limits = Limits(bytes=10**6)
    assert code(gzip.compress(zeros), limits=limits) == "too_many_bytes"
    assert code(zipped(zeros), limits=limits) == "too_many_bytes"
    assert code(zeros, limits=limits) == "too_many_bytes"


def test_pickles_are_not_loaded():
    out = io.BytesIO()
    np.save(out, np.array([{}, [], 1, "x"], dtype=object), allow_pickle=True)
    assert code(out.getvalue()) == "wrong_type"


@pytest.mark.parametrize("cut", [0, 4, 10, 60, 100, 125])
def test_damaged_npy_headers_are_refused(cut):
    out = io.BytesIO()
    np.save(out, np.arange(4))
    data = out.getvalue()
    assert code(data[: len(data) - cut - 1], format="npy") in {"damaged", "empty"}
    assert code(data + b"x", format="npy") == "damaged"
    assert code(data.replace(b"(4,)", b"(5,)")) == "damaged"
    assert code(data.replace(b"(4,), ", b"(4L,),")) == "damaged"
    assert code(data.replace(b"(4,), ", b"(-4,),")) == "damaged"
    assert code(data.replace(b"\x01\x00", b"\x09\x00", 1)) == "damaged"
    assert code(data.replace(b"(4,), }   ", b"(999999,)}")) == "too_many_rows"
    assert code(data.replace(b"(4,), }     ", b"(4,1,1,1), }")) == "wrong_shape"


def test_refusals_name_columns_of_unsupported_types():
    for series in (pl.Series([[1]] * 4), pl.Series([{"a": 1}] * 4), pl.Series([b"1"] * 4)):
        frame = FRAME.with_columns(series.alias("prediction"))
        for write in (pl.DataFrame.write_parquet, pl.DataFrame.write_ipc):
            out = io.BytesIO()
            write(frame, out)
            with pytest.raises(InvalidPredictions) as caught:
                read_predictions(out.getvalue(), ROSTER, LOSS)
            assert caught.value.problems[0].code == "wrong_type"
            assert caught.value.problems[0].column == "prediction"
        with pytest.raises(InvalidPredictions, match=r"not a number, such as .*: 4 ids"):
            read_predictions(frame, ROSTER, LOSS)


def test_an_unknown_format_is_an_invalid_setting():
    with pytest.raises(lb.errors.InvalidSetting, match="format must be 'csv'"):
        read_predictions(b"", ROSTER, LOSS, format="xlsx")
    assert read_predictions(b"1\n2\n3\n4", ROSTER, LOSS, format=".CSV").tolist() == EXPECTED


def test_a_system_error_of_the_python_parser_is_retried(monkeypatch):
    """Python 3.11 may raise ``SystemError`` if two threads parse literals at once."""
    read, left = ast.literal_eval, iter(range(3))

    def faulty(text):
        if next(left, None) is not None:
            raise SystemError("AST constructor recursion depth mismatch")
        return read(text)

    monkeypatch.setattr(_open.ast, "literal_eval", faulty)
    file = io.BytesIO()
    np.save(file, np.array(EXPECTED))
    assert read_predictions(file.getvalue(), ROSTER, LOSS).tolist() == EXPECTED
    assert next(left, None) is None
