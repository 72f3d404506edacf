"""Refusals: itemised, short, safe to print, and the same whatever the labels are."""

import inspect
import io
import re
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ladderboard as lb
from ladderboard.errors import InvalidPredictions
from ladderboard.files import Problem, Roster, read_holdout, read_predictions

ROOT = Path(__file__).parents[2]
LOSS = lb.loss("zero_one")


def test_one_refusal_lists_everything():
    roster = Roster.of([f"id{number}" for number in range(30)], kind="number")
    rows = [f"id{number},{number}" for number in range(12)] + [
        "id3,1",
        "zebra,2",
        "id20,",
        "id21,x",
    ]
    with pytest.raises(InvalidPredictions) as caught:
        read_predictions(("id,prediction\n" + "\n".join(rows)).encode(), roster, LOSS)
    assert str(caught.value).split("\n") == [
        "5 problems were found:",
        "- 1 unknown id: zebra.",
        "- 1 duplicate id: id3.",
        ("- 16 missing ids: id12, id13, id14, id15, id16, id17, id18, id19, id22, id23, ..."),
        "- The value of 'prediction' is missing: 1 id (id20).",
        "- The value of 'prediction' is not a number, such as 'x': 1 id (id21).",
    ]
    missing = caught.value.problems[2]
    assert isinstance(missing, Problem)
    assert (missing.code, missing.column, missing.count) == ("missing_id", "id", 16)
    assert missing.ids == tuple(f"id{number}" for number in (*range(12, 20), 22, 23))


def test_refusals_contain_no_control_characters():
    evil = "\x1b]0;owned\x07\x1b[2J\u202e" + "x" * 10_000
    roster = Roster.of(["a", "b"], kind="number")
    texts = [
        f"id,prediction\n{evil},1\na,2\n",
        f"id,{evil},other\na,1,2\n",
        f"{evil}\n1\n2\n3\n",
        f"id,prediction,{evil}\na,1,2\nb,1,2\n",
        f"{evil},y,p\n1,2,3\n",
        "id," + ",".join(f"{evil}{number}" for number in range(100)) + "\n",
        f"id,prediction\na,{evil}\nb,1\n",
    ]
    for text in texts:
        with pytest.raises(InvalidPredictions) as caught:
            read_predictions(text.encode(), roster, LOSS)
        assert len(str(caught.value)) < 2000
        assert re.search(r"[\x00-\x09\x0b-\x1f\x7f\u202e]", str(caught.value)) is None
        for problem in caught.value.problems:
            assert len(problem.column or "") < 100
            assert all(len(id_) < 100 for id_ in problem.ids)


def test_many_wrong_columns_make_a_short_refusal():
    loss = lb.loss("brier", classes=list(range(300)))
    text = "id," + ",".join(f"p_{number}" for number in range(300)) + "\na," + ",".join(["x"] * 300)
    with pytest.raises(InvalidPredictions, match="300 problems were found") as caught:
        read_predictions(text.encode(), Roster.of(["a"]), loss)
    assert str(caught.value).endswith("- And 280 more.")
    assert len(caught.value.problems) == 100


def test_modules_that_read_predictions_never_use_labels():
    """A roster holds only ids, the declared kind and the shape of a table."""
    assert list(inspect.signature(read_predictions).parameters) == [
        "source", "roster", "loss", "format", "limits", "notes",
    ]  # fmt: skip
    table = read_holdout(b"id,label\na,1\nb,2\n")
    other_table = read_holdout(b"id,label\na,5\nb,7\n")
    contents = [
        {
            key: getattr(value, "to_list", lambda value=value: value)()
            for key, value in vars(roster).items()
        }
        for roster in (Roster.of(table), Roster.of(other_table))
    ]
    assert contents[0] == contents[1]


LOSSES = {
    "number": [
        LOSS, lb.loss("zero_one", classes=[0, 1, 2]), lb.loss("absolute", range=(0, 2)),
        lb.loss("top_k", k=2), lb.loss("brier", classes=[0, 1, 2]), lb.loss("operator:ne"),
    ],
    "text": [LOSS, lb.loss("zero_one", classes=["0", "1", "2"]), lb.loss("top_k", k=2)],
}  # fmt: skip
cell = st.sampled_from(["0", "1", "2", "3", "x", "", "nan", "0.5", "inf", "a", "b", "c", '"', "é"])
files = st.builds(
    lambda header, rows: "\n".join([header, *(",".join(row) for row in rows)]).encode(),
    st.sampled_from(["id,prediction", "id,p_0,p_1,p_2", "id,y_1,y_2", "a,1", "y", "x,y", ""]),
    st.lists(st.lists(cell, min_size=1, max_size=4), max_size=5),
)


def outcome(source, roster, loss):
    try:
        read = read_predictions(source, roster, loss)
    except InvalidPredictions as error:
        return str(error), error.problems, error.positions
    return read.dtype, read.tolist()


@given(files, st.sampled_from(["number", "text"]), st.data())
def test_refusals_are_the_same_for_different_labels(source, kind, data):
    """Refusals are the same, byte by byte, for other labels, classes, splits and groups."""
    worlds = []
    for _ in range(2):
        label, split = st.sampled_from("012"), st.sampled_from(["public", "private", "ignored"])
        rows = [
            f"{id_},{data.draw(label)},{data.draw(split)},{data.draw(label)},{data.draw(label)}1"
            for id_ in "abc"
        ]
        weighed = data.draw(st.booleans())
        header = "id,label,split,group,weight"
        if not weighed:
            header, rows = "id,label,split", [",".join(row.split(",")[:3]) for row in rows]
        try:
            table = read_holdout("\n".join([header, *rows]).encode(), kind=kind)
        except lb.errors.InvalidLabels:  # weights that differ within a group
            table = read_holdout({"id": list("abc"), "label": ["0", "1", "1"]}, kind="text")
        worlds.append(Roster.of(table, kind=kind))
    for loss in LOSSES[kind]:
        assert outcome(source, worlds[0], loss) == outcome(source, worlds[1], loss)


def test_the_codes_are_documented():
    page = (ROOT / "docs/reference/files.md").read_text()
    modules = (ROOT / "src/ladderboard/files").rglob("*.py")
    source = "\n".join(path.read_text() for path in modules)
    codes = set(re.findall(r'(?:refuse\([^"]*|problems\.add(?:_rows)?\(\s*|mark\()"(\w+)"', source))
    assert len(codes) > 25
    assert {code for code in codes if f"`{code}`" not in page} == set()


def test_predictions_do_not_share_memory_with_the_source():
    given_array = np.array([1.0, 2.0])
    read = read_predictions(given_array, Roster.of(2, kind="number"), LOSS)
    given_array[0] = 9
    assert read.tolist() == [1, 2]


@pytest.mark.parametrize("ids", [["d", "b", "c", "a"], [7, 5, 6, 4]])
def test_ids_are_listed_in_their_own_order_and_not_in_that_of_the_holdout(ids):
    """A holdout may be sorted by class."""
    roster = Roster.of(read_holdout({"id": ids, "label": [0, 0, 1, 1]}))
    table = {"id": [ids[2], ids[2]], "prediction": [0, 1]}
    with pytest.raises(InvalidPredictions) as caught:
        read_predictions(table, roster, lb.loss("zero_one"))
    missing = next(problem for problem in caught.value.problems if problem.code == "missing_id")
    assert missing.ids == tuple(sorted(str(id_) for id_ in ids if id_ != ids[2]))
    strangers = {"id": ["x", "y", "z", "w"], "prediction": [0, 1, 0, 1]}
    with pytest.raises(InvalidPredictions) as caught:
        read_predictions(strangers, roster, lb.loss("zero_one"))
    first, second = (repr(id_) for id_ in sorted(ids)[:2])
    assert f"such as {first}, {second}" in str(caught.value)


def test_words_in_place_of_classes_are_named_with_the_classes():
    loss, roster = lb.loss("f1", classes=(0, 1)), Roster.of(["a", "b", "c"], kind="number")
    with pytest.raises(InvalidPredictions) as caught:
        read_predictions(b"id,churned\na,yes\nb,no\nc,yes\n", roster, loss)
    assert "is not a number, such as 'yes', 'no'; choose from 0, 1: 3 ids" in str(caught.value)


def test_an_excel_workbook_is_named():
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for name in ("[Content_Types].xml", "xl/workbook.xml", "xl/worksheets/sheet1.xml"):
            archive.writestr(name, "<x/>")
    with pytest.raises(InvalidPredictions, match="This is an Excel workbook; save it as CSV"):
        read_predictions(data.getvalue(), Roster.of(["a"], kind="number"), LOSS)
