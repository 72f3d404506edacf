"""A column of the holdout's ids is never read as a prediction, whatever its name is."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import ladderboard as lb
from ladderboard.errors import InvalidPredictions
from ladderboard.files import Roster, read_predictions

FUNCTION = lb.loss("operator:ne")
ZERO_ONE = lb.loss("zero_one")
BRIER2 = lb.loss("brier", classes=["no", "yes"])
TEXT_IDS = ["img_1", "img_2", "img_3"]
TEXT = Roster.of(TEXT_IDS, kind="text")
NUMBER = Roster.of(TEXT_IDS, kind="number")
ROWS = "img_3,c\nimg_1,a\nimg_2,b\n"
COUNT = 40
COUNTED = Roster.of(list(range(COUNT)), kind="number")
"""Ids 0 to 39, which predictions may look like."""
SHUFFLED = [(7 * number) % COUNT for number in range(COUNT)]
BARE = Roster.of(COUNT, kind="number")


def csv(header, *columns):
    rows = [",".join(map(str, row)) for row in zip(*columns, strict=True)]
    return ("\n".join([header, *rows] if header else rows) + "\n").encode()


def refused(source, roster, loss, words):
    with pytest.raises(InvalidPredictions, match=words) as caught:
        read_predictions(source, roster, loss)
    return [(problem.code, problem.column) for problem in caught.value.problems]


@pytest.mark.parametrize("loss", [FUNCTION, ZERO_ONE])
@pytest.mark.parametrize(
    "header",
    ["image_id,InChI", "ImageId,InChI", "name,prediction", "label,InChI", "file,label", ""],
)
def test_ids_under_another_name_are_joined(loss, header):
    source = f"{header}\n{ROWS}" if header else ROWS
    assert read_predictions(source.encode(), TEXT, loss).tolist() == ["a", "b", "c"]


def test_every_format_is_joined_by_the_column_that_holds_the_ids(tmp_path):
    columns = {"image_id": ["img_3", "img_1", "img_2"], "InChI": ["c", "a", "b"]}
    pl.DataFrame(columns).write_parquet(tmp_path / "x.parquet")
    lines = [
        f'{{"InChI": "{y}", "image_id": "{x}"}}' for x, y in zip(*columns.values(), strict=True)
    ]
    (tmp_path / "x.jsonl").write_text("\n".join(lines))
    frame = pd.DataFrame(columns)
    sources = [tmp_path / "x.parquet", tmp_path / "x.jsonl", columns, frame]
    sources += [frame.set_index("image_id"), frame.set_index("image_id")["InChI"]]
    sources += [[["c", "img_3"], ["a", "img_1"], ["b", "img_2"]]]
    for source in sources:
        assert read_predictions(source, TEXT, FUNCTION).tolist() == ["a", "b", "c"]


@pytest.mark.parametrize("loss", [FUNCTION, ZERO_ONE])
def test_ids_that_differ_are_listed(loss):
    for rows in ("img_3,c\nimg_1,a\nimg_9,b\n", "img_3,c\nimg_1,a\n"):
        problems = refused(f"image_id,InChI\n{rows}".encode(), TEXT, loss, "1 missing id: img_2")
        assert problems[-1] == ("missing_id", "image_id")
    other = b"image_id,InChI\nx1,c\nx2,a\nx3,b\n"
    assert ("unknown_id", "image_id") in refused(other, TEXT, loss, "such as 'img_1'")


@pytest.mark.parametrize("loss", [FUNCTION, ZERO_ONE])
def test_ids_without_predictions_are_refused(loss):
    for source in (b"image_id\nimg_2\nimg_1\nimg_3\n", b"img_1\nimg_2\nimg_3\n"):
        assert refused(source, TEXT, loss, "holds the holdout's ids")[0][0] == "missing_column"
    assert refused(TEXT_IDS, TEXT, loss, "holds the holdout's ids")[0][0] == "missing_column"
    assert refused(np.array(TEXT_IDS), TEXT, loss, "only column")[0][0] == "missing_column"
    ids = [10, 20, 30]
    roster = Roster.of(ids, kind="number")
    assert refused(np.array(ids), roster, loss, "only column")[0][0] == "missing_column"


def test_two_columns_of_ids_are_refused():
    source = csv("image_id,other_id,InChI", TEXT_IDS, TEXT_IDS[::-1], "abc")
    for loss in (FUNCTION, ZERO_ONE):
        problems = refused(source, TEXT, loss, "'image_id', 'other_id'; name the right one id")
        assert problems == [("unclear_column", "image_id")]


def test_one_probability_next_to_ids_without_a_header():
    assert read_predictions(b"img_2,0.5\nimg_1,0.25\nimg_3,1\n", NUMBER, BRIER2).tolist() == [
        0.25, 0.5, 1,
    ]  # fmt: skip


def test_consecutive_integers_may_be_predictions():
    """Ranks 0 to n - 1 are predictions if the name or the shape implies it."""
    for name in ("prediction", "rank"):
        read = read_predictions(csv(name, SHUFFLED), COUNTED, lb.loss("absolute", range=(0, 100)))
        assert read.tolist() == SHUFFLED
    for loss in (FUNCTION, ZERO_ONE):
        assert read_predictions(np.array(SHUFFLED), COUNTED, loss).tolist() == SHUFFLED
        assert read_predictions(csv("", SHUFFLED), COUNTED, loss).tolist() == SHUFFLED
    ages = [number // 2 for number in range(COUNT)]
    pair = read_predictions(csv("low,high", ages, ages), COUNTED, FUNCTION)
    assert pair.tolist() == [[age, age] for age in ages]


def test_consecutive_ids_under_another_name():
    values = [10 * number for number in SHUFFLED]
    expected = [10 * number for number in range(COUNT)]
    source = csv("image_id,label", SHUFFLED, values)
    for loss in (FUNCTION, ZERO_ONE):
        assert read_predictions(source, COUNTED, loss).tolist() == expected
    source = csv("number,label", SHUFFLED, values)
    assert read_predictions(source, COUNTED, ZERO_ONE).tolist() == expected
    problems = refused(
        source, COUNTED, FUNCTION, "'number' .* name it id if .* otherwise add a column named id"
    )
    assert problems == [("unclear_column", "number")]
    for matrix in (np.array([SHUFFLED, values]).T, csv("", SHUFFLED, values)):
        problems = refused(matrix, COUNTED, FUNCTION, "Column 1 holds .*name it id")
        assert problems[0][0] == "unclear_column"
    broken = csv("image_id,label", [5, *SHUFFLED[1:]], values)
    assert refused(broken, COUNTED, FUNCTION, "1 duplicate id")[0] == ("duplicate_id", "image_id")


def test_an_index_written_into_the_file():
    values = [10 * number for number in SHUFFLED]
    expected = [10 * number for number in range(COUNT)]
    assert read_predictions(csv(",label", SHUFFLED, values), COUNTED, ZERO_ONE).tolist() == expected
    in_order = csv(",label", range(COUNT), values)
    for roster in (COUNTED, BARE, Roster.of(list(range(1, COUNT + 1)), kind="number")):
        assert read_predictions(in_order, roster, ZERO_ONE).tolist() == values
    mixed = Roster.of(SHUFFLED, kind="number")
    problems = refused(in_order, mixed, ZERO_ONE, "name it id .* remove it")
    assert problems == [("unclear_column", "")]
    problems = refused(csv(",label", SHUFFLED, values), BARE, ZERO_ONE, "name it id .* remove it")
    assert problems == [("unclear_column", "")]
    both = csv(",image_id,label", range(COUNT), SHUFFLED, values)
    assert read_predictions(both, COUNTED, ZERO_ONE).tolist() == expected


def test_an_extra_column_is_refused():
    source = csv("prediction,comment", "abc", "xyz")
    with pytest.raises(InvalidPredictions) as caught:
        read_predictions(source, TEXT, ZERO_ONE)
    assert str(caught.value) == "1 unexpected column: 'comment'. Remove it."
