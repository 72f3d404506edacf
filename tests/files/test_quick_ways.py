"""Quick ways and the general one: the same answer or the same refusal, byte by byte."""

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
from ladderboard.files import Limits, Roster, read_predictions
from ladderboard.files import _predictions as predictions
from ladderboard.files._formats import _columnar as columnar
from ladderboard.files._formats import _csv

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


def with_and_without(switches, *asked, **settings):
    """Return the outcome as it is, and with other things in the places of some."""
    quick = outcome(*asked, **settings)
    with pytest.MonkeyPatch.context() as patch:
        for room, name, other in switches:
            patch.setattr(room, name, other)
        return quick, outcome(*asked, **settings)


NO_SMALL = [(predictions, "_join_small_integers", lambda *_: None)]
NO_VECTOR = [(predictions, "read_vector", lambda *_: None)]


@st.composite
def tables(draw):
    """Ids that are nearly 0..n-1, and whole numbers."""
    n = draw(st.integers(1, 12))
    ids = draw(st.permutations(range(n)))
    for _ in range(draw(st.sampled_from([0, 0, 0, 1, 2]))):
        change = draw(st.sampled_from(["drop", "again", "other"]))
        at = draw(st.integers(0, n - 1))
        if change == "drop" and len(ids) > 1:
            ids = ids[:at] + ids[at + 1 :]
        elif change == "again":
            ids = [*ids, at]
        else:
            others = [-1, -n, n, 2**40, -(2**62), *[draw(st.integers(0, n - 1))] * 5]
            ids = [*ids[:at], draw(st.sampled_from(others)), *ids[at + 1 :]]
    reach = draw(
        st.sampled_from([(0, 1), (0, 1), (0, 9), (-1, 1), (-130, -126), (125, 130), (0, 2**62)])
    )
    values = draw(st.lists(st.integers(*reach), min_size=len(ids), max_size=len(ids)))
    return n, list(ids), values


@settings(max_examples=300)
@given(tables(), st.sampled_from(NUMBERS), st.data())
def test_whole_numbers_of_csv(table, loss, data):
    n, ids, values = table
    pad = data.draw(st.sampled_from(["{}", "{}", "{:03}", "{}.0", "+{}"]))
    rows = [f"{pad.format(at)},{each}" for at, each in zip(ids, values, strict=True)]
    odd = data.draw(st.sampled_from([*[""] * 9, "1", ",", "1,2,3", "x,1", '"1",1', " 1,1", "1,.5"]))
    if odd:
        rows.insert(data.draw(st.integers(0, len(rows))), odd)
    header = data.draw(st.sampled_from(["id,prediction\n", "id,y\n", ""]))
    end = data.draw(st.sampled_from(["\n", ""]))
    source = (header + "\n".join(rows) + end).encode()
    quick, general = with_and_without(NO_SMALL, source, Roster.of(n, kind="number"), loss)
    assert quick == general


WHOLE = [pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt32, pl.UInt64]


@settings(max_examples=300)
@given(tables(), st.sampled_from(NUMBERS), st.sampled_from(["parquet", "arrow"]), st.data())
def test_whole_numbers_of_parquet_and_arrow(table, loss, form, data):
    n, ids, values = table
    columns = {}
    for name, column in (("id", ids), ("prediction", values)):
        kind = data.draw(st.sampled_from([*WHOLE, pl.Int64, pl.Float64]))
        series = pl.Series(name, column, dtype=pl.Int64).cast(kind, strict=False)
        columns[name] = series.fill_null(0) if data.draw(st.booleans()) else series
    out = io.BytesIO()
    if form == "parquet":
        pl.DataFrame(columns).write_parquet(out, row_group_size=data.draw(st.integers(2, 20)))
    else:
        pl.DataFrame(columns).write_ipc(out, record_batch_size=data.draw(st.integers(2, 20)))
    roster = Roster.of(n, kind="number")
    quick, general = with_and_without(NO_SMALL, out.getvalue(), roster, loss)
    assert quick == general


@pytest.mark.parametrize("value", [-300, -129, -128, -127, 127, 128, 129, 300])
def test_what_a_byte_holds(value):
    out = io.BytesIO()
    pl.DataFrame({"id": [1, 0], "prediction": [0, value]}).write_parquet(out)
    read = read_predictions(out.getvalue(), Roster.of(2, kind="number"), ZERO_ONE)
    assert read.tolist() == [value, 0]


@pytest.mark.parametrize("late", ["9" * 18, "9" * 19, "1.5", "x", "", "7,7"])
def test_few_rows_of_which_a_late_one_is_odd(late):
    rows = "".join(f"id{at},1\n" for at in range(1000))  # past what is looked at first
    source = f"id,prediction\n{rows}id1000,{late}\n".encode()
    roster = Roster.of([f"id{at}" for at in range(1001)], kind="number")
    switches = [(_csv, "polars_is_loaded", lambda: False)]
    general, light = with_and_without(switches, source, roster, ZERO_ONE)
    assert light == general


@pytest.mark.parametrize("form", ["csv", "parquet", "arrow"])
@pytest.mark.parametrize("loss", NUMBERS)
def test_the_quick_way_is_taken(form, loss, monkeypatch):
    frame = pl.DataFrame({"id": range(1999, -1, -1), "prediction": [0, 1] * 1000})
    frame = frame.with_columns(prediction=-pl.col("prediction")) if loss == NUMBERS[2] else frame
    if loss == NUMBERS[2]:
        frame = frame.filter(pl.col("prediction") != 0).with_columns(id=pl.arange(0, 1000))
        form = "parquet" if form == "csv" else form  # a minus is no digit
    out = io.BytesIO()
    write = {"csv": frame.write_csv, "parquet": frame.write_parquet, "arrow": frame.write_ipc}
    write[form](out)
    for sheet in (_csv.CsvTable, columnar.ColumnarTable):
        monkeypatch.setattr(sheet, "load_columns", None)
    read = read_predictions(out.getvalue(), Roster.of(len(frame), kind="number"), loss)
    assert read.tolist() == frame.sort("id")["prediction"].to_list()


usual = st.sampled_from(["0", "1", "-2", "1.5", "-0.125", "cat", "a", "9" * 18])
unusual = st.sampled_from(
    ["", " ", " a", "a ", "é", "x y", '"a"', 'x"y', "~", "'", "NA", "nan", "inf", "+3", "007", "2.",
     ".5", "1e3", "1.0", "1_0", "0,5", "9" * 19, "-" + "9" * 19, "1." + "0" * 400, "9" * 320 + ".5",
     "٣", "\x1c", "\x7f", "a;b", "1;2"]
)  # fmt: skip


@settings(max_examples=400)
@given(st.lists(usual, min_size=1, max_size=2), st.integers(1, 6), st.data())
def test_few_rows_without_polars(values, n, data):
    by_number, numbers = data.draw(st.booleans()), data.draw(st.booleans())
    named = [at + 5 for at in range(n)] if by_number else [f"id{at}" for at in range(n)]
    ids = list(map(str, data.draw(st.permutations(named))))
    values = [data.draw(st.sampled_from(values)) for _ in ids]
    odd = data.draw(st.sampled_from(["", "", "id", "value", "every value", "row"]))
    if odd == "id":
        ids[0] = data.draw(st.one_of(usual, unusual, st.sampled_from(ids)))
    elif odd == "value":
        values[data.draw(st.integers(0, n - 1))] = data.draw(unusual)
    elif odd == "every value":
        values = [data.draw(unusual)] * n
    separator = data.draw(st.sampled_from([",", ",", ";", "|", "\t"]))
    lines = [separator.join(each) for each in zip(ids, values, strict=True)]
    if odd == "row":
        row = data.draw(st.sampled_from(["", "id0", separator, f"id0{separator}1{separator}1"]))
        lines.insert(data.draw(st.integers(0, n)), row)
    header = data.draw(st.sampled_from([["id", "prediction"], ["id", "y"], None]))
    head = separator.join(header) + "\n" if header else ""
    source = (head + "\n".join(lines) + data.draw(st.sampled_from(["\n", ""]))).encode()
    loss = data.draw(st.sampled_from(NUMBERS if numbers else WORDS))
    roster = Roster.of(named, kind="number" if numbers else "text")
    switches = [(_csv, "polars_is_loaded", lambda: False)]
    general, light = with_and_without(switches, source, roster, loss)
    assert light == general


def test_a_cold_start_is_light():
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
    "f8",
    "i8",
    "f8",
    "?",
    "i1",
    "i8",
    ">i4",
    "u2",
    "u8",
    "f2",
    "f4",
    "f8",
    ">f8",
    "g",
    "O",
    "M8[s]",
    "c16",
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
        values = [each for each in values if each != "\ud800"]
    kinds = {"text": np.dtypes.StringDType(), "gaps": np.dtypes.StringDType(na_object=None)}
    source = {
        "list": list, "tuple": tuple, "array": np.array, "mixed": lambda each: [*each[:-1], 7],
        "object": lambda each: np.array(each, dtype=object),
    }.get(form, lambda each: np.array(each, dtype=kinds[form]))(values)  # fmt: skip
    roster = Roster.of(data.draw(st.sampled_from([len(values) or 1, 2])), kind="text")
    quick, general = with_and_without(NO_VECTOR, source, roster, loss)
    assert quick == general


def test_a_vector_is_copied():
    for array in (np.array([1, 2]), np.array([1.0, 2.0])):
        read = read_predictions(array, Roster.of(2, kind="number"), ZERO_ONE)
        array[0] = 7
        assert read.tolist() == [1, 2]
