"""The owner's table."""

import numpy as np
import pandas as pd
import pytest

from ladderboard.errors import InvalidLabels
from ladderboard.files import DeclaredColumns, Roster, read_holdout


def test_all_columns_are_read():
    table = read_holdout(
        b"id,label,split,group,weight\nx1,3,public,p,1\nx2,4.5,private,q,2\nx3,5,ignored,p,1\n"
    )
    assert list(table.ids) == ["x1", "x2", "x3"]
    assert table.labels.tolist() == [3, 4.5, 5]
    assert table.split.tolist() == ["public", "private", "ignored"]
    assert table.group.tolist() == ["p", "q", "p"]
    assert table.weight.tolist() == [1, 2, 1]
    assert len(table) == 3
    assert repr(table) == "HoldoutTable(3 rows, kind='number')"


def test_usage_is_another_name_of_split():
    table = read_holdout(b"id,label,Usage\n1,1,Public\n2,0,Private\n")
    assert table.split.tolist() == ["Public", "Private"]
    with pytest.raises(InvalidLabels, match=r"1 unexpected column: 'usage'"):
        read_holdout(b"id,label,split,usage\n1,1,public,Public\n")


@pytest.mark.parametrize(
    ("labels", "kind", "expected"),
    [
        ("1 2 1", "number", [1, 2, 1]),
        ("1 2.5 1e3", "number", [1, 2.5, 1000]),
        ("True False True", "number", [1, 0, 1]),
        ("cat 1 dog", "text", ["cat", "1", "dog"]),
        ("007 1 2", "text", ["007", "1", "2"]),
    ],
)
def test_the_kind_is_detected(labels, kind, expected):
    table = read_holdout(("label\n" + labels.replace(" ", "\n")).encode())
    assert (table.kind, table.labels.tolist()) == (kind, expected)
    assert table.ids is None
    assert Roster.of(table).kind == kind


def test_the_kind_may_be_declared():
    assert read_holdout(b"label\n1\n2\n", kind="text").labels.tolist() == ["1", "2"]
    assert Roster.of(read_holdout(b"label\n1\n2\n"), kind="text").kind == "text"
    with pytest.raises(
        InvalidLabels, match=r"The value of 'label' is not a number: 1 row \(row 2\)"
    ):
        read_holdout(b"label\n1\nx\n", kind="number")


def test_a_holdout_in_memory():
    for frame in ({"id": [1, 2], "y": [0, 1]}, pd.DataFrame({"id": [1, 2], "label": [0, 1]})):
        table = read_holdout(frame)
        assert (table.ids.tolist(), table.labels.tolist()) == ([1, 2], [0, 1])
    table = read_holdout({"label": np.array(["a", "b"]), "group": [1, 2]})
    assert (table.kind, table.group.tolist()) == ("text", ["1", "2"])


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"id,prediction\n1,2\n", "missing_column"),
        (b"id,label,comment\n1,2,3\n", "extra_column"),
        (b"id,label,label\n1,2,3\n", "duplicate_column"),
        (b"id,label\n", "empty"),
        (b"", "empty"),
        (b"label\n1\n\n2\n", "missing_value"),
        (b"label\n1\ninf\n2\n", "not_finite"),
        (b"id,label,weight\n1,1,0\n2,1,1\n", "bad_weight"),
        (b"id,label,weight\n1,1,-1\n2,1,1\n", "bad_weight"),
        (b"id,label,weight\n1,1,x\n2,1,1\n", "not_a_number"),
        (b"id,label,weight\n1,1,\n2,1,1\n", "missing_value"),
        (b"id,label,group\n1,1,\n2,1,1\n", "missing_value"),
        (b"id,label,group,weight\n1,1,g,1\n2,1,g,2\n", "bad_weight"),
        (np.array([1, 2]), "header"),
    ],
)
def test_invalid_holdouts_are_refused(data, code):
    with pytest.raises(InvalidLabels) as caught:
        read_holdout(data)
    assert [problem.code for problem in caught.value.problems] == [code]


def test_duplicate_ids_are_refused():
    with pytest.raises(InvalidLabels, match="Duplicate ids in the holdout: 'a'"):
        read_holdout(b"id,label\na,1\na,2\n")


@pytest.mark.parametrize("ids", ["abc", "123"])
def test_some_rows_of_a_table(ids):
    rows = "".join(f"{id_},{row},{'xyx'[row]}\n" for row, id_ in enumerate(ids))
    table = read_holdout(f"id,label,split\n{rows}".encode())
    part = table.select_rows(table.split == "x")
    assert [str(id_) for id_ in part.ids] == [ids[0], ids[2]]
    assert part.labels.tolist() == [0, 2]


IMAGE = "'image_id' may be the id: rename it to id, or declare columns: "


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"image_id,target,age,sex\n1,1,3,4\n", f"{IMAGE}{{id: image_id, prediction: target}} "),
        (b"id,outcome\n1,1\n", "rename it to label, or declare columns: {prediction: outcome}"),
        (b"image_id,comment,answer\n1,x,1\n", "columns: {id: image_id, prediction: answer} (in "),
        (b"id,outcome\n1,1\n", "for a guard --columns prediction=outcome)."),
        (b"house,price\n1,1\n", "columns: {id: house, prediction: price} (in board.yaml"),
        (b"answer,scan\n1,1\n", "columns: {id: scan, prediction: answer} (in board.yaml"),
        (b"Image Id,label\n1,1\n", "for a guard --columns 'id=Image Id,prediction=label')."),
    ],
)
def test_a_column_that_may_be_the_id_or_the_label_is_named(data, message):
    with pytest.raises(InvalidLabels) as refused:
        read_holdout(data)
    assert message in str(refused.value)
    assert "Remove" not in str(refused.value)


def test_a_bad_value_is_named_by_column_id_and_line():
    declared = DeclaredColumns(("image",), (), ("truth",))
    with pytest.raises(InvalidLabels) as refused:
        read_holdout(b"image,truth,split\nx1,1,public\nx2,,\n", columns=declared)
    messages = [problem.message for problem in refused.value.problems]
    assert messages == [
        "The value of 'truth' is missing: 1 row (x2 in line 3).",
        "The value of 'split' is missing: 1 row (x2 in line 3).",
    ]
    with pytest.raises(InvalidLabels, match=r"1 row \(7 in row 2\)"):  # it may span lines
        read_holdout(b'id,label\n3,1\n7,"x"\n', kind="number")
    with pytest.raises(InvalidLabels, match=r"1 row \(7 in row 2\)"):
        read_holdout({"id": [3, 7], "label": [1.0, float("nan")]})


def test_all_missing_columns_are_reported_at_once():
    declared = DeclaredColumns(("image_id",), ("target",), ("truth",))
    with pytest.raises(InvalidLabels) as refused:
        read_holdout(b"Image,Score\n1,2\n", columns=declared)
    assert [problem.column for problem in refused.value.problems] == ["image_id", "truth"]


def test_a_declared_id_is_enough_if_evaluators_score():
    table = read_holdout(b"task\na\nb\n", labelled=False, columns=DeclaredColumns(("task",)))
    assert list(table.ids) == ["a", "b"]
