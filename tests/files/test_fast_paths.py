"""Fast paths and the general path give the same result or the same refusal, byte by byte."""

import io
import subprocess
import sys

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ladderboard as lb
from ladderboard.errors import InvalidPredictions
from ladderboard.files import Limits, Roster, read_predictions, read_small_classes
from ladderboard.files import _predictions as predictions
from ladderboard.files._formats import _columnar, _csv

ZERO_ONE = lb.loss("zero_one")
NUMBERS = [
    ZERO_ONE, lb.loss("zero_one", classes=[0, 1]), lb.loss("zero_one", classes=[-1, 1.0, 300, 2.5]),
    lb.loss("absolute", range=(0, 1)),
]  # fmt: skip
WORDS = [ZERO_ONE, lb.loss("zero_one", classes=["a", "b", "cat"])]


def outcome(source, roster, loss, **settings):
    try:
        read = read_predictions(source, roster, loss, **settings)
    except InvalidPredictions as error:
        return "refused", str(error), error.problems, error.positions
    return "read", read.dtype, read.tolist()


def with_and_without(replacements, *arguments, **settings):
    """Return the normal outcome, and the outcome with some functions replaced."""
    quick = outcome(*arguments, **settings)
    with pytest.MonkeyPatch.context() as patch:
        for module, name, replacement in replacements:
            patch.setattr(module, name, replacement)
        return quick, outcome(*arguments, **settings)


NO_SMALL = [(predictions, "_join_small_integers", lambda *_: None)]
NO_VECTOR = [(predictions, "read_vector", lambda *_: None)]


@st.composite
def tables(draw):
    """Ids that are nearly 0..n-1, and integers."""
    n = draw(st.integers(1, 12))
    ids = draw(st.permutations(range(n)))
    for _ in range(draw(st.sampled_from([0, 0, 0, 1, 2]))):
        change = draw(st.sampled_from(["drop", "again", "other"]))
        position = draw(st.integers(0, n - 1))
        if change == "drop" and len(ids) > 1:
            ids = ids[:position] + ids[position + 1 :]
        elif change == "again":
            ids = [*ids, position]
        else:
            others = [-1, -n, n, 2**40, -(2**62), *[draw(st.integers(0, n - 1))] * 5]
            ids = [*ids[:position], draw(st.sampled_from(others)), *ids[position + 1 :]]
    reach = draw(
        st.sampled_from([(0, 1), (0, 1), (0, 9), (-1, 1), (-130, -126), (125, 130), (0, 2**62)])
    )
    values = draw(st.lists(st.integers(*reach), min_size=len(ids), max_size=len(ids)))
    return n, list(ids), values


@settings(max_examples=300)
@given(tables(), st.sampled_from(NUMBERS), st.data())
def test_integers_in_csv(table, loss, data):
    n, ids, values = table
    pad = data.draw(st.sampled_from(["{}", "{}", "{:03}", "{}.0", "+{}"]))
    rows = [f"{pad.format(id_)},{value}" for id_, value in zip(ids, values, strict=True)]
    unusual_row = data.draw(
        st.sampled_from([*[""] * 9, "1", ",", "1,2,3", "x,1", '"1",1', " 1,1", "1,.5"])
    )
    if unusual_row:
        rows.insert(data.draw(st.integers(0, len(rows))), unusual_row)
    header = data.draw(st.sampled_from(["id,prediction\n", "id,y\n", ""]))
    end = data.draw(st.sampled_from(["\n", ""]))
    source = (header + "\n".join(rows) + end).encode()
    quick, general = with_and_without(NO_SMALL, source, Roster.of(n, kind="number"), loss)
    assert quick == general


INTEGERS = [pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt32, pl.UInt64]


@settings(max_examples=300)
@given(tables(), st.sampled_from(NUMBERS), st.sampled_from(["parquet", "arrow"]), st.data())
def test_integers_in_parquet_and_arrow(table, loss, file_format, data):
    n, ids, values = table
    columns = {}
    for name, column in (("id", ids), ("prediction", values)):
        kind = data.draw(st.sampled_from([*INTEGERS, pl.Int64, pl.Float64]))
        series = pl.Series(name, column, dtype=pl.Int64).cast(kind, strict=False)
        columns[name] = series.fill_null(0) if data.draw(st.booleans()) else series
    out, size = io.BytesIO(), data.draw(st.integers(2, 20))
    if file_format == "parquet":
        pl.DataFrame(columns).write_parquet(out, row_group_size=size)
    else:
        pl.DataFrame(columns).write_ipc(out, record_batch_size=size)
    roster = Roster.of(n, kind="number")
    quick, general = with_and_without(NO_SMALL, out.getvalue(), roster, loss)
    assert quick == general


@pytest.mark.parametrize("file_format", ["parquet", "arrow"])
def test_blocks_of_integers_are_joined_as_they_are(file_format, monkeypatch):
    frame = pl.DataFrame({"id": range(1999, -1, -1), "prediction": [0, 1] * 1000})
    out = io.BytesIO()
    (frame.write_parquet if file_format == "parquet" else frame.write_ipc)(out)
    monkeypatch.setattr(_columnar.ColumnarTable, "load_columns", None)
    read = read_predictions(out.getvalue(), Roster.of(2000, kind="number"), ZERO_ONE)
    assert read.tolist() == [1, 0] * 1000


@pytest.mark.parametrize("value", [-300, -129, -128, -127, 127, 128, 129, 300])
def test_integers_at_the_limits_of_a_byte(value):
    source = f"id,prediction\n1,0\n0,{value}\n".encode()
    read = read_predictions(source, Roster.of(2, kind="number"), ZERO_ONE)
    assert read.tolist() == [value, 0]


@pytest.mark.parametrize("late", ["9" * 18, "9" * 19, "1.5", "x", "", "7,7"])
def test_small_files_with_an_unusual_late_row(late):
    rows = "".join(f"id{number},1\n" for number in range(1000))  # beyond the sniffed bytes
    source = f"id,prediction\n{rows}id1000,{late}\n".encode()
    roster = Roster.of([f"id{number}" for number in range(1001)], kind="number")
    replacements = [(_csv, "polars_is_loaded", lambda: False)]
    general, light = with_and_without(replacements, source, roster, ZERO_ONE)
    assert light == general


@pytest.mark.parametrize("loss", NUMBERS[:2])
def test_the_fast_path_is_used(loss, monkeypatch):
    source = "id,prediction\n" + "".join(f"{id_},{id_ % 2}\n" for id_ in range(1999, -1, -1))
    monkeypatch.setattr(_csv.CsvTable, "load_columns", None)
    read = read_predictions(source.encode(), Roster.of(2000, kind="number"), loss)
    assert read.tolist() == [0, 1] * 1000


usual = st.sampled_from(["0", "1", "-2", "1.5", "-0.125", "cat", "a", "9" * 18])
unusual = st.sampled_from(
    ["", " ", " a", "a ", "é", "x y", '"a"', 'x"y', "~", "'", "NA", "nan", "inf", "+3", "007", "2.",
     ".5", "1e3", "1.0", "1_0", "0,5", "9" * 19, "-" + "9" * 19, "1." + "0" * 400, "9" * 320 + ".5",
     "٣", "\x1c", "\x7f", "a;b", "1;2"]
)  # fmt: skip


@settings(max_examples=400)
@given(st.lists(usual, min_size=1, max_size=2), st.integers(1, 6), st.data())
def test_small_files_without_polars(values, n, data):
    by_number, numbers = data.draw(st.booleans()), data.draw(st.booleans())
    named = (
        [number + 5 for number in range(n)] if by_number else [f"id{number}" for number in range(n)]
    )
    ids = list(map(str, data.draw(st.permutations(named))))
    values = [data.draw(st.sampled_from(values)) for _ in ids]
    unusual_part = data.draw(st.sampled_from(["", "", "id", "value", "every value", "row"]))
    if unusual_part == "id":
        ids[0] = data.draw(st.one_of(usual, unusual, st.sampled_from(ids)))
    elif unusual_part == "value":
        values[data.draw(st.integers(0, n - 1))] = data.draw(unusual)
    elif unusual_part == "every value":
        values = [data.draw(unusual)] * n
    separator = data.draw(st.sampled_from([",", ",", ";", "|", "\t"]))
    lines = [separator.join(fields) for fields in zip(ids, values, strict=True)]
    if unusual_part == "row":
        row = data.draw(st.sampled_from(["", "id0", separator, f"id0{separator}1{separator}1"]))
        lines.insert(data.draw(st.integers(0, n)), row)
    header = data.draw(st.sampled_from([["id", "prediction"], ["id", "y"], None]))
    head = separator.join(header) + "\n" if header else ""
    source = (head + "\n".join(lines) + data.draw(st.sampled_from(["\n", ""]))).encode()
    loss = data.draw(st.sampled_from(NUMBERS if numbers else WORDS))
    roster = Roster.of(named, kind="number" if numbers else "text")
    replacements = [(_csv, "polars_is_loaded", lambda: False)]
    general, light = with_and_without(replacements, source, roster, loss)
    assert light == general


def test_small_files_need_no_heavy_imports():
    code = """
import sys
import ladderboard as lb
from ladderboard.files import Roster, read_predictions
loss = lb.loss("zero_one")
for ids in (["a", "b"], [5, 7], [0, 1]):
    roster = Roster.of(ids, kind="number")
    for form in ("{0},{1}", "{0},{1}.5"):
        rows = "".join(form.format(at, k) + chr(10) for k, at in enumerate(reversed(ids)))
        print(read_predictions(b"id,prediction\\n" + rows.encode(), roster, loss).tolist())
heavy = {"polars", "pandas", "scipy", "zipfile", "ladderboard.mechanisms", "ladderboard.bounds"}
print(sorted(heavy & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[1, 0]\n[1.5, 0.5]\n" * 3 + "[]\n"


KINDS = [
    *("f8", "i8", "f8", "?", "i1", "i8", ">i4", "u2", "u8"),
    *("f2", "f4", "f8", ">f8", "g", "O", "M8[s]", "c16"),
]
real = st.one_of(st.integers(0, 1), st.sampled_from([-1, 2, 2.5, 300, np.nan, np.inf, -np.inf]))


@settings(max_examples=400)
@given(st.lists(real, max_size=8), st.sampled_from(KINDS), st.sampled_from(NUMBERS), st.data())
def test_vectors_of_numbers(values, kind, loss, data):
    with np.errstate(all="ignore"):
        array = np.array(values, dtype=np.float64 if kind != "O" else object)
        array = np.nan_to_num(array) if kind[0] in "iuM" or kind == ">i4" else array
        array = array.astype(kind)
    if data.draw(st.booleans()):
        array = array[::-1]
    if data.draw(st.integers(0, 5)) == 0:
        array = array.reshape(-1, 1)
    if data.draw(st.integers(0, 5)) == 0 and array.dtype.kind == "f":
        array = np.ma.masked_invalid(array)
    n = data.draw(st.sampled_from([*[len(array) or 1] * 4, 3]))
    for roster in (Roster.of(n, kind="number"), Roster.of(list("abcdefgh"[:n]), kind="number")):
        for limits in (Limits(), Limits(rows=2)):
            quick, general = with_and_without(NO_VECTOR, array, roster, loss, limits=limits)
            assert quick == general


texts = st.sampled_from(["a", "b", "cat", "", "\0", "a\0b", "\ud800", "\U0001f600", "é", "1"])


@given(st.lists(texts, max_size=6), st.sampled_from(WORDS), st.data())
def test_vectors_of_text(values, loss, data):
    form = data.draw(st.sampled_from(["list", "array", "object", "text", "gaps", "mixed", "tuple"]))
    if form in {"text", "gaps"}:
        values = [value for value in values if value != "\ud800"]
    kinds = {"text": np.dtypes.StringDType(), "gaps": np.dtypes.StringDType(na_object=None)}
    source = {
        "list": list, "tuple": tuple, "array": np.array, "mixed": lambda texts: [*texts[:-1], 7],
        "object": lambda texts: np.array(texts, dtype=object),
    }.get(form, lambda texts: np.array(texts, dtype=kinds[form]))(values)  # fmt: skip
    roster = Roster.of(data.draw(st.sampled_from([len(values) or 1, 2])), kind="text")
    quick, general = with_and_without(NO_VECTOR, source, roster, loss)
    assert quick == general


def test_a_vector_is_copied():
    for array in (np.array([1, 2]), np.array([1.0, 2.0])):
        read = read_predictions(array, Roster.of(2, kind="number"), ZERO_ONE)
        array[0] = 7
        assert read.tolist() == [1, 2]


@pytest.mark.parametrize("dtype", ["i1", "i2", "<i4", "i8"])
def test_small_classes_are_the_predictions_as_bytes(dtype):
    loss, roster = lb.loss("zero_one", classes=[0, 1, 2]), Roster.of(3, kind="number")
    source = np.array([2, 0, 1], dtype=dtype)
    read = read_small_classes(source, roster, loss)
    assert read.dtype == np.int8
    assert read.tolist() == read_predictions(source, roster, loss).tolist()
    source[:] = 0
    assert read.tolist() == [2, 0, 1]


@pytest.mark.parametrize(
    "source",
    [
        np.array([0, 1, 3]), np.array([0, 1, -1]), np.array([0, 256, 1]), np.array([0, 1]),
        np.array([0.0, 1.0, 2.0]), np.array([0, 1, 2], dtype=">i8"), np.array([[0, 1, 2]]),
        np.ma.array([0, 1, 2], mask=[0, 0, 1]), [0, 1, 2], b"0\n1\n2\n",
    ],
    ids=str,
)  # fmt: skip
def test_all_else_is_not_read_as_bytes(source):
    loss, roster = lb.loss("zero_one", classes=[0, 1, 2]), Roster.of(3, kind="number")
    assert read_small_classes(source, roster, loss) is None
