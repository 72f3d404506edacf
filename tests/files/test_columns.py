"""The columns that a loss accepts: their names and their order."""

import numpy as np
import pytest

import ladderboard as lb
from ladderboard.errors import InvalidLabels, InvalidPredictions, InvalidSetting
from ladderboard.files import Roster, read_holdout, read_predictions

IDS = ["a", "b"]
ROSTER = Roster.of(IDS, kind="number")
TEXT = Roster.of(IDS, kind="text")
BRIER2 = lb.loss("brier", classes=["no", "yes"])
BRIER3 = lb.loss("brier", classes=["cat", "dog", "Bird"])
DIGITS = lb.loss("log", classes=[0, 1, 2])
TOP = lb.loss("top_k", k=1, classes=["cat", "dog", "Bird"])
ROWS = [[0.5, 0.25, 0.25], [0.0, 0.25, 0.75]]


@pytest.mark.parametrize(
    ("loss", "text", "expected"),
    [
        (BRIER3, "id,p_cat,p_dog,p_Bird\nb,0,.25,.75\na,.5,.25,.25\n", ROWS),
        (BRIER3, "p_Bird,p_dog,id,p_cat\n.75,.25,b,0\n.25,.25,a,.5\n", ROWS),
        (BRIER3, "id,P_CAT,p_dog,p_bird\nb,0,.25,.75\na,.5,.25,.25\n", ROWS),
        (BRIER3, "cat,dog,Bird\n.5,.25,.25\n0,.25,.75\n", ROWS),
        (BRIER3, "id,prob_cat,prob_dog,prob_Bird\nb,0,.25,.75\na,.5,.25,.25\n", ROWS),
        (BRIER3, "a,.5,.25,.25\nb,0,.25,.75\n", ROWS),
        (BRIER3, ".5,.25,.25\n0,.25,.75\n", ROWS),
        (TOP, "id,score_cat,score_dog,score_Bird\nb,0,.25,.75\na,.5,.25,.25\n", ROWS),
        (DIGITS, "id,p_0,p_1,p_2\nb,0,.25,.75\na,.5,.25,.25\n", ROWS),
        (DIGITS, "id;p_0.0;p_1.0;p_2.0\nb;0;0,25;0,75\na;0,5;0,25;0,25\n", ROWS),
        (BRIER2, "id,p_yes\nb,0.25\na,.5\n", [0.5, 0.25]),
        (BRIER2, "id,prediction\nb,0.25\na,.5\n", [0.5, 0.25]),
        (BRIER2, "id,p\nb,0.25\na,.5\n", [0.5, 0.25]),
        (BRIER2, "id,p_yes,p_no\nb,0.25,.75\na,.5,.5\n", [[0.5, 0.5], [0.75, 0.25]]),
        (lb.loss("brier"), "0.5\n0.25\n", [0.5, 0.25]),
        (lb.loss("top_k", k=2), "id,guess_2,guess_1\nb,1,2\na,3,4\n", [[4, 3], [2, 1]]),
        (lb.loss("top_k", k=2), "id,first,second\nb,1,2\na,3,4\n", [[3, 4], [1, 2]]),
        (lb.loss("operator:ne"), "id,y\nb,1\na,2\n", [2, 1]),
        (lb.loss("operator:ne"), "id,y10,y9\nb,1,2\na,3,4\n", [[4, 3], [2, 1]]),
    ],
)
def test_columns(loss, text, expected):
    assert read_predictions(text.encode(), ROSTER, loss).tolist() == expected


def test_several_labels_per_example():
    table = read_holdout(b"id,label_1,label_2,label_10\na,1,0,1\nb,0,0,1\n")
    assert table.labels.tolist() == [[1, 0, 1], [0, 0, 1]]
    roster, loss = Roster.of(table), lb.loss("hamming")
    predictions = read_predictions(b"id,y_10,y_2,y_1\nb,1,0,0\na,1,0,0\n", roster, loss)
    assert loss(table.labels, predictions).tolist() == [1 / 3, 0]
    assert read_predictions([[1, 0, 1], [0, 0, 1]], roster, loss).tolist() == [[1, 0, 1], [0, 0, 1]]
    with pytest.raises(
        InvalidPredictions,
        match=r"3 columns of .*, such as 'label_1', 'label_2', 'label_3'; there are 2",
    ):
        read_predictions(b"id,y_1,y_2\na,1,0\nb,1,0\n", roster, loss)
    with pytest.raises(InvalidPredictions, match="need 3 values per row; got 2 columns"):
        read_predictions(np.zeros((2, 2)), roster, loss)


def test_messages_name_the_columns_of_several_labels():
    with pytest.raises(InvalidLabels, match="nor label_1, label_2 and so on"):
        read_holdout(b"id,tag_a,tag_b\na,1,0\n")
    with pytest.raises(InvalidLabels, match="in a file label_1, label_2 and so on"):
        lb.loss("hamming").read_labels([1, 0])
    with pytest.raises(InvalidPredictions, match="such as 'guess_1', 'guess_2'; there are 1: 'y'"):
        read_predictions(b"id,y\na,1\nb,2\n", ROSTER, lb.loss("top_k", k=2))


@pytest.mark.parametrize(
    ("loss", "text", "code", "words"),
    [
        (
            BRIER3,
            "id,p_cat,p_dog\na,1,0\nb,1,0\n",
            "missing_column",
            "1 of 3 are missing: 'p_Bird'",
        ),
        (BRIER3, "id,prediction\na,cat\nb,dog\n", "missing_column", "'p_cat', 'p_dog', 'p_Bird'"),
        (BRIER2, "id,p_no\na,1\nb,0\n", "missing_column", "1 of 2 are missing: 'p_yes'"),
        (BRIER2, "id,p_yes,p_maybe\na,1,0\nb,0,0\n", "missing_column", "'p_no'"),
        (lb.loss("zero_one"), "id,p_0,p_1\na,1,0\nb,0,1\n", "missing_column", "'id', 'p_0', 'p_1'"),
        (
            BRIER2,
            "id,p_yes\na,1.5\nb,0\n",
            "loss",
            r"Probabilities must lie in \[0, 1\]: 1 id \(a\)",
        ),
        (BRIER3, "id,p_cat,p_dog,p_Bird\nb,0,0,.5\na,1,0,0\n", "loss", "sum to 1: 1 id .b."),
    ],
)
def test_columns_that_are_refused(loss, text, code, words):
    with pytest.raises(InvalidPredictions, match=words) as caught:
        read_predictions(text.encode(), ROSTER, loss)
    assert [problem.code for problem in caught.value.problems] == [code]


def test_values_outside_declared_classes_are_refused():
    loss = lb.loss("zero_one", classes=["cat", "dog"])
    assert read_predictions(b"a,dog\nb,cat\n", ROSTER, loss).tolist() == ["dog", "cat"]
    with pytest.raises(InvalidPredictions) as caught:
        read_predictions(b"id,y\na,Dog\nb,\n", ROSTER, loss)
    assert [problem.code for problem in caught.value.problems] == ["missing_value", "unknown_class"]
    assert "got 'Dog' (did you mean 'dog'?)" in str(caught.value)
    loss = lb.loss("zero_one", classes=[0, 1])
    assert read_predictions(b"id,y\na,1.0\nb,0\n", TEXT, loss).tolist() == [1, 0]
    with pytest.raises(InvalidPredictions, match=r"one of the classes 0, 1; got 0.5: 1 id"):
        read_predictions(b"id,y\na,1.0\nb,0.5\n", ROSTER, loss)


def test_losses_that_compare_labels_need_a_declared_kind():
    bare = Roster.of(IDS)
    assert read_predictions(b"id,y\na,0.5\nb,0\n", bare, lb.loss("brier")).tolist() == [0.5, 0]
    for name in ("zero_one", "hamming", "operator:ne"):
        with pytest.raises(InvalidSetting, match="must be declared"):
            read_predictions(b"id,y\na,0.5\nb,0\n", bare, lb.loss(name))
    with pytest.raises(InvalidSetting, match="all numbers or all text"):
        read_predictions(b"id,y\na,0\nb,0\n", bare, lb.loss("zero_one", classes=[0, "b"]))
    with pytest.raises(InvalidSetting, match="kind must be 'number' or 'text'"):
        Roster.of(IDS, kind="float")
    with pytest.raises(InvalidSetting, match="for a Roster and a loss"):
        read_predictions(b"", IDS, lb.loss("brier"))


def test_text_and_numbers_do_not_mix_in_typed_sources():
    loss = lb.loss("zero_one")
    assert read_predictions([1, 2], TEXT, loss).tolist() == ["1", "2"]
    assert read_predictions(["1", 2], TEXT, loss).tolist() == ["1", "2"]
    for source, code in (
        ([1.5, 2.0], "not_text"),
        ([True, "x"], "not_text"),
        (["", "x"], "missing_value"),
    ):
        with pytest.raises(InvalidPredictions) as caught:
            read_predictions(source, TEXT, loss)
        assert [problem.code for problem in caught.value.problems] == [code]
    for source in (["1", "2"], {"id": ["a", "b"], "y": ["1", "2"]}):
        with pytest.raises(InvalidPredictions, match="is not a number, such as '1', '2': 2"):
            read_predictions(source, ROSTER, loss)
    with pytest.raises(InvalidPredictions, match="infinite"):
        read_predictions([10**400, 1], ROSTER, loss)


@pytest.mark.parametrize("low", [0, -5, 10**12, -(2**63), 2**63 - 300])
@pytest.mark.parametrize("span", [1, 254, 255, 256, 299])
def test_integers_within_and_beyond_one_byte(low, span):
    values = [low, low + span, *([low] * 300)]
    roster = Roster.of(len(values), kind="number")
    order = list(range(len(values)))[::-1]
    source = {"id": order, "y": np.array(values, dtype=np.int64)[order]}
    assert read_predictions(source, roster, lb.loss("zero_one")).tolist() == values
    source["id"][0] = 5
    with pytest.raises(InvalidPredictions) as caught:
        read_predictions(source, roster, lb.loss("zero_one"))
    assert [problem.code for problem in caught.value.problems] == ["duplicate_id", "missing_id"]
