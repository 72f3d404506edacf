"""What is refused, in which words, and that the words never depend on the labels."""

import pickle
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ladderboard as lb
from ladderboard.errors import (
    InvalidLabels,
    InvalidPredictions,
    InvalidSetting,
    LadderboardError,
)

NAN, INF = float("nan"), float("inf")
GAPS = np.dtypes.StringDType
ENDLESS = 10**5000  # more digits than Python will print


class Hostile:
    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("surprise")


@pytest.mark.parametrize(
    ("name", "params", "predictions"),
    [
        ("zero_one", {}, [1, 2]),
        ("zero_one", {}, [[1], [2], [3]]),
        ("zero_one", {}, 1),
        ("zero_one", {}, None),
        ("zero_one", {}, [1, 2, None]),
        ("zero_one", {}, [1.0, NAN, 2.0]),
        ("zero_one", {}, ["a", "b", INF]),
        ("zero_one", {}, [b"a", b"b", b"c"]),
        ("zero_one", {}, [1j, 2, 3]),
        ("zero_one", {}, np.array(["2020-01-01"] * 3, dtype="M8[D]")),
        ("zero_one", {}, [{}, [], ()]),
        ("zero_one", {}, [[1], [2, 3], [4]]),
        ("zero_one", {}, np.ma.masked_array([1, 2, 3], mask=[0, 1, 0])),
        ("brier", {}, [0.5, 0.5, 1.5]),
        ("brier", {}, [0.5, 0.5, "0.5"]),
        ("brier", {}, [0.5, 0.5, 1.001]),
        ("brier", {"classes": [1, 2]}, [[0.5, 0.52]] * 3),
        ("brier", {}, np.array([0.5 + 3j] * 3, dtype=object)),
        ("brier", {}, [np.complex128(0.5)] * 3),
        ("zero_one", {}, [np.timedelta64(1, "D")] * 3),
        ("zero_one", {}, [Decimal(1)] * 3),
        ("absolute", {"range": (0, 3)}, np.array([1, 2, np.longdouble("1e400")])),
        ("zero_one", {}, Hostile()),
        ("zero_one", {}, np.array(["a", "b", None], dtype=GAPS(na_object=None))),
        ("zero_one", {}, np.array(["a", "b", NAN], dtype=GAPS(na_object=NAN))),
        ("zero_one", {}, pd.Series(["a", "b", None])),
        ("zero_one", {}, pd.Series([1, 2, None], dtype="Int64")),
        ("zero_one", {}, pl.Series(["a", "b", None])),
        ("zero_one", {}, pd.Series),
        ("brier", {"classes": [1, 2, 3]}, [0.5, 0.5, 0.5]),
        ("brier", {"classes": [1, 2, 3]}, [[0.5, 0.5, 0.5]] * 3),
        ("log", {}, [0.5, -0.1, 0.5]),
        ("top_k", {"k": 2}, [[1, 2, 3]] * 3),
        ("top_k", {"k": 1, "classes": [1, 2]}, [["a", "b"]] * 3),
        ("absolute", {"range": (0, 3)}, ["1", "2", "3"]),
        ("score", {}, [0.5, 1.0000001, 0.5]),
        ("score", {}, [0.5, -1e-9, 0.5]),
        ("score", {}, [0, 1, 2]),
        ("score", {}, ["1", "0", "1"]),
        ("score", {}, [[1], [0], [1]]),
        ("absolute", {"range": (0, 3)}, [1, 2, -INF]),
        ("absolute", {"range": (0, 3)}, [1, 2, 10**400]),
    ],
)
def test_predictions_that_cannot_be_scored(name, params, predictions):
    labels = [1, 2, 3]
    if name in ("brier", "log") or "classes" in params:
        labels = [params.get("classes", (0, 1))[0]] * 3
    with pytest.raises(InvalidPredictions):
        lb.loss(name, **params)(labels, predictions)


def test_a_function_is_tried_on_labels():
    labels = [1.0, 5.0]
    for function, message in (
        (lambda truth, guess: abs(truth - guess).mean(), "each of 2 examples, not one for all"),
        (lambda truth, guess: truth + guess, r"must return numbers in \[0, 1\]"),
    ):
        with pytest.raises(lb.errors.BrokenLoss, match=message):
            lb.loss(function).check_on_labels(labels)
    lb.loss(lambda truth, guess: abs(truth - guess) > 1).check_on_labels(labels)
    lb.loss(lambda _truth, guess: guess["box"]).check_on_labels(labels)  # of another form
    lb.loss("squared", range=(0, 9)).check_on_labels(labels)


def test_a_refusal_counts_the_rows_and_names_the_first_ten():
    predictions = np.zeros(100)
    predictions[[5, 7]] = NAN
    with pytest.raises(InvalidPredictions) as caught:
        lb.loss("zero_one")(np.zeros(100), predictions)
    assert str(caught.value) == (
        "predictions must not be None, NaN or infinite; "
        "2 of 100 rows break this rule (at position 5, 7)."
    )
    assert caught.value.positions == (5, 7)
    predictions[:] = NAN
    with pytest.raises(InvalidPredictions, match=r"100 of 100 .* 8, 9, \.\.\.\)") as caught:
        lb.loss("zero_one")(np.zeros(100), predictions)
    assert caught.value.positions == tuple(range(10))


def refusal(loss, labels, predictions):
    try:
        loss(labels, predictions)
    except LadderboardError as error:
        return type(error), str(error), getattr(error, "positions", None)
    return None


anything = st.one_of(
    st.sampled_from([np.bool_(True), np.float64(1), np.int8(3), 2**64, 10**400, np.str_("a")]),
    st.none(),
    st.booleans(),
    st.integers(-3, 12),
    st.floats(),
    st.sampled_from("abcdx"),
)


@given(
    st.lists(anything, min_size=0, max_size=6),
    st.lists(st.sampled_from("abcd"), min_size=4, max_size=4),
    st.lists(st.sampled_from("abcd"), min_size=4, max_size=4),
)
def test_refusals_do_not_depend_on_the_labels(predictions, some, others):
    for loss in (
        lb.loss("zero_one"),
        lb.loss("zero_one", classes=list("abcd")),
        lb.loss("brier", classes=list("abcd")),
        lb.loss("log", classes=list("abcd")),
        lb.loss("top_k", k=2, classes=list("abcd")),
    ):
        assert refusal(loss, some, predictions) == refusal(loss, others, predictions)
        rows = [predictions] * 4
        assert refusal(loss, some, rows) == refusal(loss, others, rows)


@given(st.lists(anything, min_size=3, max_size=3), st.data())
def test_refusals_do_not_depend_on_numbers_or_on_which_classes_occur(predictions, data):
    labels = [
        data.draw(st.lists(st.floats(0, 10), min_size=3, max_size=3)),
        data.draw(st.lists(st.integers(0, 10), min_size=3, max_size=3)),
        data.draw(st.lists(st.sampled_from(["a", "b"]), min_size=3, max_size=3)),
        data.draw(st.lists(st.sampled_from(["a", 1, 2**64, 10**400, 0.5]), min_size=3, max_size=3)),
    ]
    for name in ("absolute", "squared", "pinball"):
        loss = lb.loss(name, range=(0, 10))
        assert refusal(loss, labels[0], predictions) == refusal(loss, labels[1], predictions)
    zero_one = lb.loss("zero_one")
    assert len({refusal(zero_one, label, predictions) for label in labels}) == 1


@pytest.mark.parametrize(
    ("name", "params", "labels"),
    [
        ("zero_one", {}, [1.0, NAN]),
        ("zero_one", {}, [[1, 2]]),
        ("zero_one", {"classes": ["a", "b"]}, ["a", "c"]),
        ("brier", {}, [0, 2]),
        ("absolute", {"range": (0, 1)}, [0.5, 2]),
        ("absolute", {"range": (0, 1)}, ["0.5", "1"]),
        ("hamming", {}, [1, 0]),
        ("zero_one", {}, []),
        ("hamming", {}, [[]]),
        ("operator:ne", {}, []),
    ],
)
def test_the_owner_is_told_about_labels_that_do_not_fit(name, params, labels):
    with pytest.raises(InvalidLabels):
        lb.loss(name, **params).read_labels(labels)


def test_refusals_survive_pickling():
    for ask in (lambda: lb.loss("max_error"), lambda: lb.loss("zero_one")([1], [NAN])):
        with pytest.raises(LadderboardError) as caught:
            ask()
        again = pickle.loads(pickle.dumps(caught.value))
        assert (str(again), vars(again)) == (str(caught.value), vars(caught.value))


@pytest.mark.parametrize(
    ("name", "params", "message"),
    [
        ("acuracy", {}, "did you mean 'accuracy'"),
        ("zzz", {}, "choose from accuracy, angular_error"),
        ("absolute", {}, r"needs a range"),
        ("absolute", {"range": (3, 1)}, "low < high"),
        ("absolute", {"range": "ab"}, "low < high"),
        ("pinball", {"range": (0, 1), "quantile": 1}, "quantile must be a number above 0"),
        ("log", {"clip": 0}, "clip must be a number above 0 and below 1; got 0"),
        ("log", {"cilp": 0.1}, "got an unexpected keyword argument 'cilp'"),
        ("brier", {"classes": None}, "at least two different labels"),
        ("brier", {"classes": [1]}, "at least two different labels"),
        ("brier", {"classes": [1, True]}, "at least two different labels"),
        ("brier", {"classes": [1, NAN]}, "at least two different labels"),
        ("top_k", {"k": 0}, "k must be a whole number of at least 1"),
        ("top_k", {"k": 3, "classes": [1, 2, 3]}, "k must be below the number of classes"),
        ("nowhere:nothing", {}, r"could not be imported .* set PYTHONPATH=\. for every command"),
        ("math:pi", {}, "is not a function"),
        ("math:", {}, "could not be imported"),
        (":f", {}, "could not be imported"),
        (3, {}, "A loss must be a name"),
        (lb.loss("brier"), {"clip": 2}, "an instance already"),
        ("absolute", {"range": (0, 10**400)}, "low < high"),
        ("absolute", {"range": (-1.7e308, 1.7e308)}, "wide; got"),
        ("pinball", {"range": (0, 5e-324)}, "wide; got"),
        ("log", {"name": "x"}, "unexpected keyword argument 'name'"),
        ({"loss": "log", 1: 2}, {}, "needs its name"),
        ("top_k", {"k": -ENDLESS}, "k must be a whole number"),
        ("brier", {"classes": [ENDLESS, ENDLESS]}, "type list that cannot be printed"),
        ({"clip": 1}, {}, 'needs its name under "loss"'),
        ("0.5 roc_auc + 0.5 accuracy", {}, "roc_auc cannot .*; show it beside the sum, live or at"),
        ("0.5 rmse + 0.5 mae", {"range": (0, 1)}, "rmse .* square root .* mse instead of rmse"),
        ("0.5 acuracy + 0.5 brier", {}, "did you mean 'accuracy'"),
        ("0.5 accuracy + 0.5 mae", {}, "needs a range"),
        ("0.5 brier + 0.5 map@5", {}, "brier and map@5 cannot be added: they take different"),
        ("0.5 hamming_loss + 0.5 accuracy", {}, "cannot be added"),
        ("0.5 score + 0.5 brier", {}, "it needs no labels"),
        ("0.5 brier + 0.2 accuracy + 0.5 accuracy", {}, "two different metrics"),
        (
            "0.5 accuracy + 0.5 brier",
            {"range": (0, 1)},
            "No metric of the weighted sum takes range",
        ),
        ({"sum": {"accuracy": 0, "brier": 1}}, {}, "weight of accuracy must be a number above 0"),
        ({"sum": {"accuracy": 1e300, "brier": 1}}, {}, "at most 1e\\+09"),
        ({"sum": {"brier": 1}}, {}, "at least two different metrics"),
        ({"sum": "brier"}, {}, "is metrics with weights"),
        ({"sum": ["brier", "accuracy"]}, {}, "needs its name, weight and settings"),
        ({"sum": {"operator:ne": 1, "brier": 1}}, {}, "can compute the whole sum"),
        ({"sum": {"weighted_sum": 1, "brier": 1}}, {}, "cannot be part of a weighted sum"),
        ("weighted_sum", {}, "at least two different metrics"),
    ],
)
def test_settings_are_refused_in_words(name, params, message):
    with pytest.raises(InvalidSetting, match=message):
        lb.loss(name, **params)


def test_a_number_too_long_to_print_is_refused_too():
    with pytest.raises(InvalidSetting, match="type int that cannot be printed"):
        lb.loss(ENDLESS)


@pytest.mark.parametrize(("name", "shape"), [("rmse", (4,)), ("mcrmse", (2, 2))])
def test_labels_outside_the_range_are_refused_with_their_own(name, shape):
    loss = lb.losses.metric(name, range=(0, 100)).loss
    with pytest.raises(InvalidLabels, match="the smallest is 7, the largest 1,234,567; "):
        loss.read_labels(np.reshape([7.0, 1234567, 30, 200], shape))


@pytest.mark.parametrize("name", ["mae", "rmse", "rmsle", "pinball"])
def test_the_range_and_what_lies_outside_it_are_explained(name):
    loss = lb.losses.metric(name, range=(0, 1234567)).loss
    assert loss.explanation.endswith("predictions outside 0 to 1,234,567 count as the nearer end")
