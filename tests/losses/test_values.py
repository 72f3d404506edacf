"""Hand-worked losses."""

import functools
import math
import tracemalloc

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ladderboard as lb
from ladderboard.errors import BrokenLoss


@pytest.mark.parametrize(
    ("name", "params", "labels", "predictions", "expected"),
    [
        ("zero_one", {}, ["a", "b", "c"], ["a", "c", "x"], [0, 1, 1]),
        ("zero_one", {}, [0, 1, 2], [0.0, 1.5, 2.0], [0, 1, 0]),
        ("zero_one", {}, [True, False], [1, 1], [0, 1]),
        ("zero_one", {}, [1, 2], ["1", "2"], [1, 1]),
        ("zero_one", {}, [1.5, "b"], [1.5, "b"], [0, 0]),
        ("zero_one", {"classes": ["a", "b"]}, ["a", "b"], ["b", "b"], [1, 0]),
        ("zero_one", {"classes": "any"}, ["a", "b"], ["zebra", "b"], [1, 0]),
        ("top_k", {"k": 2}, [3, 4], [[1, 3], [1, 2]], [0, 1]),
        ("top_k", {"k": 1, "classes": [7, 8, 9]}, [9, 7], [[1, 2, 3], [2, 2, 1]], [0, 1]),
        ("brier", {}, [0, 1, 1], [0.0, 0.0, 0.5], [0, 1, 0.25]),
        ("brier", {"classes": ["no", "yes"]}, ["yes", "no"], [0.75, 0.5], [0.0625, 0.25]),
        ("brier", {"classes": [0, 1, 2]}, [0, 1], [[0, 0, 1], [0.25, 0.5, 0.25]], [1, 0.1875]),
        ("log", {"clip": 0.01}, [1, 0, 1], [0.1, 0.9, 0.0], [0.5, 0.5, 1]),
        ("log", {"classes": "abc", "clip": 0.5}, [], [], None),
        ("absolute", {"range": (0, 4)}, [0, 1, 4], [2, 1, -5], [0.5, 0, 1]),
        ("squared", {"range": (-1, 1)}, [0, -1], [1, 1], [0.25, 1]),
        ("pinball", {"range": (0, 1), "quantile": 0.9}, [1, 0], [0, 1], [1, 1 / 9]),
        ("score", {}, ["x", "y", "z"], [1, 0, 0.25], [0, 1, 0.75]),
        ("shortfall", {}, [0, 0], [True, False], [0, 1]),
        ("hamming", {}, [[1, 0], ["x", "y"]], [[1, 1], ["x", "y"]], [0.5, 0]),
    ],
)
def test_hand_worked(name, params, labels, predictions, expected):
    if expected is None:
        with pytest.raises(lb.errors.InvalidSetting, match="classes must be a list"):
            lb.loss(name, **params)
        return
    values = lb.loss(name, **params)(labels, predictions)
    assert values.dtype == np.float64
    np.testing.assert_allclose(values, expected, atol=1e-12)


def test_two_columns_are_the_same_as_one():
    labels, p = [0, 1, 1], np.array([0.2, 0.7, 0.4])
    for name in ("brier", "log"):
        one = lb.loss(name)(labels, p)
        two = lb.loss(name)(labels, np.column_stack((1 - p, p)))
        np.testing.assert_allclose(one, two, atol=1e-12)


def test_printed_probabilities_may_miss_one_by_rounding():
    loss = lb.loss("brier", classes=["a", "b", "c"])
    np.testing.assert_allclose(
        loss(["a"], [[0.333, 0.333, 0.333]]), loss(["a"], [[1 / 3] * 3]), atol=1e-12
    )


def test_the_clip_is_part_of_the_identity():
    assert lb.loss("log", clip=0.01) != lb.loss("log", clip=0.02)
    assert lb.loss("log", clip=0.01) == lb.loss("log")
    assert lb.loss("log").describe() == {"loss": "log", "classes": [0, 1], "clip": 0.01}


def test_whole_numbers_past_what_a_double_holds_are_compared_exactly():
    big = 2**53
    assert lb.loss("zero_one")([big, big + 1], [float(big), float(big)]).tolist() == [0, 1]
    assert lb.loss("zero_one")([2**70], [2**70]).tolist() == [0]
    assert lb.loss("zero_one")([1.0], [10**400]).tolist() == [1]


def test_equal_scores_for_all_classes_are_no_way_to_be_right():
    loss = lb.loss("top_k", k=2, classes=["a", "b", "c"])
    assert loss(["a", "b", "c"], np.zeros((3, 3))).tolist() == [1, 1, 1]


def test_custom_loss_from_a_function_and_by_name():
    def third(labels, predictions):
        return np.minimum(np.abs(labels - predictions) / 3, 1)

    assert lb.loss(third)([0, 0], [0, 30]).tolist() == [0, 1]
    by_name = lb.loss("operator:ne")
    assert by_name([1, 2], [1, 3]).tolist() == [0, 1]
    assert by_name.describe() == {"loss": "custom", "function": "operator:ne"}
    assert lb.loss(by_name.describe()) == by_name


@pytest.mark.parametrize(
    "function",
    [
        lambda labels, predictions: labels - 10,
        lambda labels, predictions: labels * math.nan,
        lambda labels, predictions: labels * 0 + 1.001,
        lambda labels, predictions: labels * 0 - 1e-9,
        lambda labels, predictions: labels[:-1] * 0,
        lambda labels, predictions: 0.5,
        lambda labels, predictions: "half",
    ],
)
def test_a_custom_loss_is_checked_and_its_numbers_are_not_printed(function):
    with pytest.raises(BrokenLoss) as caught:
        lb.loss(function)([7.0, 7.0], [1, 2])
    assert "7" not in str(caught.value)
    assert "-3" not in str(caught.value)


def test_a_custom_loss_that_fails_does_not_repeat_what_it_saw():
    def picky(labels, predictions):
        raise ValueError(f"odd label {labels[0]}")

    with pytest.raises(BrokenLoss, match="failed with ValueError") as caught:
        lb.loss(picky)(["secret", "b"], [1, 2])
    assert "secret" not in str(caught.value)


def test_a_custom_loss_without_a_name_works_but_cannot_be_described():
    half = functools.partial(np.full_like, fill_value=0.5)
    nameless = lb.loss(lambda labels, predictions: half(predictions, dtype=float))
    assert nameless([1, 2], [3, 4]).tolist() == [0.5, 0.5]
    for loss in (nameless, lb.loss(half)):
        with pytest.raises(lb.errors.InvalidSetting, match="imported by name"):
            loss.describe()


def test_a_custom_loss_cannot_change_the_labels():
    def vandal(labels, predictions):
        labels[:] = predictions[:] = 0
        return np.zeros(len(labels))

    labels, predictions = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    lb.loss(vandal)(labels, predictions)
    assert labels.tolist() == [1, 2]
    copied = lb.loss(vandal).read_labels(labels)
    lb.loss(vandal).score(copied, predictions)
    assert copied.tolist() == [1, 2]
    assert predictions.tolist() == [3, 4]


@pytest.mark.parametrize("make", [pd.Series, pl.Series, np.array, list, tuple])
def test_labels_and_predictions_in_many_forms(make):
    loss = lb.loss("zero_one")
    assert loss(make(["a", "b", "c"]), make(["a", "x", "c"])).tolist() == [0, 1, 0]
    assert loss(make([1, 2, 3]), make([1.0, 2.5, 3.0])).tolist() == [0, 1, 0]
    assert loss(make([True, False, True]), make([1, 1, 1])).tolist() == [0, 1, 0]
    for gap in (None, float("nan")):
        with pytest.raises(lb.errors.InvalidPredictions, match="1 of 3 rows break this rule"):
            loss(
                ["a", "b", "c"], make([1.0, gap, 2.0]) if make is not np.array else [1.0, gap, 2.0]
            )


def test_tables_and_new_strings():
    frame = pd.DataFrame({"p_a": [0.25, 0.5], "p_b": [0.75, 0.5]})
    for table in (frame, pl.from_pandas(frame), frame.to_numpy().tolist()):
        assert lb.loss("brier", classes=["a", "b"])(["a", "b"], table).tolist() == [0.5625, 0.25]
    text = np.array(["a", "b"], dtype=np.dtypes.StringDType())
    assert lb.loss("zero_one")(text, ["a", "a"]).tolist() == [0, 1]
    categories = pd.Series(["a", "b"], dtype="category")
    assert lb.loss("zero_one")(categories, ["a", "a"]).tolist() == [0, 1]


def test_a_number_is_its_value_in_any_container():
    """Alone, in a list, an array or among text, as NumPy's scalar or Python's."""
    zero_one = lb.loss("zero_one")
    big = 2**53
    for other in ([], ["text"]):
        assert zero_one([np.float32(0.1), *other], [0.1, *other])[0] == 1
        assert zero_one([np.int64(big + 1), *other], [float(big), *other])[0] == 1
        assert zero_one([np.bool_(True), *other], [1.0, *other])[0] == 0
    assert zero_one([big + 1, 0.5], [big, 0.5]).tolist() == [1, 0]
    assert zero_one([2**63, -1], [2**63 + 1, -1]).tolist() == [1, 0]
    assert zero_one([2**63], [2.0**63]).tolist() == [0]
    assert zero_one(np.array([2**63], dtype=np.uint64), np.array([2.0**63])).tolist() == [0]
    assert zero_one(np.array([1], dtype=np.uint8), np.array([1])).tolist() == [0]


def test_nobodys_code_runs_when_values_are_compared():
    class Sly(str):
        __slots__ = ()

        def __ne__(self, other):
            raise AssertionError(other)

        __eq__ = __ne__
        __hash__ = str.__hash__

    sly = np.array([Sly("x"), Sly("b")], dtype=object)
    assert lb.loss("zero_one")(["a", "b"], sly).tolist() == [1, 0]
    mixed = np.array([Sly("x"), 2], dtype=object)
    assert lb.loss("zero_one")(["a", 2], mixed).tolist() == [1, 0]


def test_one_long_text_does_not_widen_the_others():
    tracemalloc.start()
    lb.loss("zero_one")(["a"] * 2_000, ["a"] * 1_999 + ["b" * 300_000])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 50e6


def test_labels_once_read_are_the_owners_no_more():
    for name, labels in (("zero_one", np.array([1, 2])), ("hamming", np.array([[1, 2]]))):
        read = lb.loss(name).read_labels(labels)
        labels[:] = 9
        assert read.ravel().tolist() == [1, 2]


def test_closing_nuls_count():
    assert lb.loss("zero_one")(["a"], ["a\0"]).tolist() == [1]


def test_labels_are_read_once_and_scored_often():
    loss = lb.loss("log", classes=["x", "y"])
    labels = loss.read_labels(["x", "y"])
    assert loss.score(labels, [0.0, 1.0]).tolist() == [0, 0]
    assert loss.score(labels, [1.0, 0.0]).tolist() == [1, 1]


@pytest.mark.parametrize(
    ("name", "params", "loss", "direction", "risk", "shown"),
    [
        ("accuracy", {}, "zero_one", "higher", 0.25, 0.75),
        ("Error rate", {}, "zero_one", "lower", 0.25, 0.25),
        ("top-k-accuracy", {"k": 3}, "top_k", "higher", 0.5, 0.5),
        ("mae", {"range": (0, 20)}, "absolute", "lower", 0.25, 5),
        ("rmse", {"range": (0, 20)}, "squared", "lower", 0.25, 10),
        ("log_loss", {"clip": 0.1}, "log", "lower", 1, -math.log(0.1)),
        ("brier", {}, "brier", "lower", 0.125, 0.125),
        ("accuracy_score", {}, "zero_one", "higher", 0.25, 0.75),
        ("neg_mean_squared_error", {"range": (0, 2)}, "squared", "lower", 0.25, 1),
    ],
)
def test_friendly_names(name, params, loss, direction, risk, shown):
    metric = lb.metric(name, **params)
    assert metric.loss.name == loss
    assert metric.direction == direction
    assert metric.display(risk) == pytest.approx(shown)
    assert lb.loss(name, **params) == metric.loss


def test_a_metric_from_a_loss_or_a_function_shows_the_loss():
    assert lb.metric(lb.loss("brier")).display(0.2) == 0.2
    assert lb.metric("operator:ne").direction == "lower"
    assert lb.metric({"loss": "zero_one"}).loss == lb.loss("zero_one")


plain = st.lists(
    st.sampled_from([0, 1, 2, 2.5, -1, 2**53 + 1, np.nan, np.inf]), min_size=3, max_size=3
)


@given(
    plain, st.sampled_from(["?", "i1", "i8", "u1", "u8", "f2", "f4", "f8", ">f8", "g"]), st.data()
)
def test_plain_arrays_are_compared_as_they_are(values, kind, data):
    labels = data.draw(
        st.sampled_from([[0, 1, 2], [0.0, 2.5, 2.0**53], [True, False, True], "abc"])
    )
    with np.errstate(all="ignore"):
        if kind[-2:-1] in {"i", "u"}:
            values = np.abs(np.nan_to_num(values, posinf=1)) % 100
        array = np.array(values).astype(kind)
    loss = lb.loss("zero_one")
    read = loss.read_labels(list(labels))

    def outcome(score):
        try:
            scores = score(read, array)
        except lb.errors.InvalidPredictions as error:
            return str(error), error.positions, error.problems
        return scores.dtype, scores.tolist()

    assert outcome(loss.score) == outcome(functools.partial(lb.Loss.score, loss))


LABELS, CHANCES = np.array([0, 1, 1, 0, 1]), np.array([0.1, 0.9, 0.4, 0.5, 0.8])


@pytest.mark.parametrize(
    ("spec", "title", "direction", "value"),
    [
        # Right but for the third: accuracy 0.8, Brier (.01 + .01 + .36 + .25 + .04) / 5 = 0.134.
        (
            {"sum": {"accuracy": 0.7, "brier": 0.3}},
            "0.7 (1 - accuracy) + 0.3 brier",
            "lower",
            0.7 * 0.2 + 0.3 * 0.134,
        ),
        ("3 brier + 1*error_rate", "0.75 brier + 0.25 error rate", "lower", 0.75 * 0.134 + 0.05),
        (
            {"sum": [{"name": "log_loss", "weight": 4}, {"name": "brier", "weight": 4}]},
            "0.5 log loss + 0.5 brier",
            "lower",
            0.067 - np.log([0.9, 0.9, 0.4, 0.5, 0.8]).mean() / 2,
        ),
    ],
)  # fmt: skip
def test_a_weighted_sum_is_what_people_compute(spec, title, direction, value):
    metric = lb.metric(spec)
    assert (metric.title, metric.direction) == (title, direction)
    assert metric.value(LABELS, CHANCES) == pytest.approx(value, abs=1e-12)
    assert metric.display(metric.loss(LABELS, CHANCES).mean()) == pytest.approx(value, abs=1e-12)
    assert metric.value(LABELS, np.column_stack((1 - CHANCES, CHANCES))) == pytest.approx(value)
    assert lb.metric(metric.loss.describe()) == metric


def test_a_weighted_sum_of_metrics_of_which_higher_is_better_is_shown_as_they_are():
    metric = lb.metric("0.5 accuracy + 0.5 top-2 accuracy", classes=["a", "b", "c"])
    scores = [[0.5, 0.3, 0.2], [0.6, 0.3, 0.1], [0.5, 0.4, 0.1], [0.1, 0.2, 0.7]]
    assert metric.direction == "higher"
    assert metric.value(list("abcc"), scores) == (0.5 + 0.75) / 2
    assert metric.display(metric.loss(list("abcc"), scores).mean()) == (0.5 + 0.75) / 2


def test_masks_of_a_weighted_sum_are_read_by_each_metric():
    labels, masks = ["1 3", "5 2", ""], ["1 4", "5 2", "9 1"]
    parts = [lb.metric(name).value(labels, masks) for name in ("dice", "iou")]
    both = lb.metric("1 dice + 1 iou")
    assert both.value(labels, masks) == pytest.approx(sum(parts) / 2)
    assert both.title == "0.5 Dice + 0.5 IoU"


def test_classes_of_any_kind_are_those_of_the_probabilities():
    parts = [{"name": "accuracy", "classes": "any", "weight": 1}, {"name": "brier", "weight": 1}]
    assert lb.metric({"sum": parts}).value(LABELS, CHANCES) == pytest.approx((0.2 + 0.134) / 2)


def test_the_value_of_a_weighted_sum_takes_the_classes_from_the_labels():
    chances = np.array([[0.5, 0.3, 0.2], [0.2, 0.7, 0.1], [0.1, 0.1, 0.8]])
    whole = lb.metric("1 brier + 1 log_loss").value([0, 1, 2], chances)
    parts = [lb.metric(name).value([0, 1, 2], chances) for name in ("brier", "log_loss")]
    assert whole == pytest.approx(sum(parts) / 2)
