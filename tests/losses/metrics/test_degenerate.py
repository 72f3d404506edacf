"""Submissions that mean nothing are refused, whatever the labels are, or scored as a number.

The same submission is read against two orders of the labels: a refusal must not differ.
"""

import numpy as np
import pytest
import scipy.stats
import sklearn.metrics as reference

import ladderboard as lb
from ladderboard.errors import InvalidPredictions

N = 60
RNG = np.random.default_rng(0)
BINARY = (np.arange(N) % 3 == 0).astype(int)
FOUR = np.arange(N) % 4
SEVERAL = np.c_[BINARY, FOUR == 1, FOUR == 2].astype(int)
NUMBERS = RNG.gamma(2.0, size=N)
COLUMNS = RNG.random((N, 3))
TEXTS = np.array([" ".join(RNG.choice(["a", "b", "c"], size=5)) for _ in range(N)])
HUGE = 1e308

REFUSED, SCORED, EITHER = "refused", "scored", "either"


def numbers(width=None, *, constant=SCORED, huge=SCORED):
    shape = (N,) if width is None else (N, width)
    ramp = np.arange(1.0, N + 1).reshape((N,) + (1,) * (width is not None))
    return {
        "constant": (np.ones(shape), constant),
        "zeros": (np.zeros(shape), constant),
        "NaN": (np.full(shape, np.nan), REFUSED),
        "one NaN": (np.where(np.broadcast_to(ramp, shape) == 1, np.nan, 0.5), REFUSED),
        "infinite": (np.full(shape, np.inf), REFUSED),
        "huge": (RNG.choice([-HUGE, HUGE], size=shape), huge),
        "one huge": (np.where(np.broadcast_to(ramp, shape) == 1, HUGE, ramp), huge),
        "subnormal": (np.full(shape, 5e-324) * ramp, SCORED),
        "nearly constant": (np.ones(shape) + 1e-15 * ramp, SCORED),
        "empty": (np.array([]), REFUSED),
        "too short": (np.ones((3, *shape[1:])), REFUSED),
        "text": (np.array(["x"] * N), REFUSED),
        "None": ([None] * N, REFUSED),
    }


def classes():
    return {
        "one class": (np.zeros(N, int), SCORED),
        "the other": (np.ones(N, int), SCORED),
        "no class": (np.full(N, 9), REFUSED),
        "between classes": (np.full(N, 0.5), REFUSED),
        "NaN": (np.full(N, np.nan), REFUSED),
        "text": (np.array(["x"] * N), REFUSED),
    }


def texts():
    return {
        "empty": ([""] * N, SCORED),
        "blank": ([" "] * N, SCORED),
        "equal": (["a"] * N, SCORED),
        "long": (["a " * 500] * N, SCORED),
        "None": ([None] * N, EITHER),  # an empty answer where a list or a set may be empty
        "numbers": (list(range(N)), EITHER),
    }


CASES = {
    **dict.fromkeys(("roc_auc", "gini", "average_precision"), (BINARY, numbers(), (0, 1))),
    **dict.fromkeys(
        ("f1", "f0.5", "precision", "recall", "jaccard", "mcc", "kappa", "balanced_accuracy"),
        (BINARY, classes(), (0, 1)),
    ),
    **dict.fromkeys(
        ("f1_macro", "f1_weighted", "f1_micro", "qwk", "linear_weighted_kappa"),
        (FOUR, classes(), (0, 1, 2, 3)),
    ),
    **dict.fromkeys(("roc_auc_ovr", "roc_auc_ovo"), (FOUR, numbers(4), (0, 1, 2, 3))),
    **dict.fromkeys(("mean_auc", "roc_auc_micro", "lwlrap"), (SEVERAL, numbers(3), None)),
    **dict.fromkeys(
        ("pearson", "spearman", "kendall"), (NUMBERS, numbers(constant=REFUSED), None)
    ),
    **dict.fromkeys(("r2", "explained_variance"), (NUMBERS, numbers(huge=REFUSED), None)),
    **dict.fromkeys(("rmse", "mae", "rmsle"), (NUMBERS, numbers(huge=EITHER), "range")),
    **dict.fromkeys(("mape", "smape", "rmspe"), (NUMBERS, numbers(), None)),
    "mcrmse": (COLUMNS, numbers(3), "range"),
    **dict.fromkeys(
        ("wer", "cer", "bleu", "chrf", "edit_similarity", "word Jaccard", "rougeL", "MAP@5",
         "ndcg@5", "MRR"),
        (TEXTS, texts(), None),
    ),
}  # fmt: skip


def outcome(metric, labels, predictions):
    loss = metric.loss
    try:
        losses, risk = loss.evaluate(loss.read_labels(labels), predictions)
    except InvalidPredictions as error:
        return REFUSED, str(error)
    risk = losses.mean() if risk is None else risk
    assert 0 <= risk <= 1
    assert np.isfinite(losses).all()
    return SCORED, ""


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", CASES)
def test_a_degenerate_submission_is_refused_or_scored_whatever_the_labels_are(name):
    labels, submissions, settings = CASES[name]
    given = {"range": (0, 20)} if settings == "range" else {"classes": settings}
    metric = lb.metric(name, **(given if settings else {}))
    shuffled = labels[np.random.default_rng(1).permutation(N)]
    for what, (predictions, expected) in submissions.items():
        first = outcome(metric, labels, predictions)
        assert first == outcome(metric, shuffled, predictions), what
        assert expected in (EITHER, first[0]), (what, first)


def value(name, labels, predictions, **settings):
    return lb.metric(name, **settings).value(labels, predictions)


@pytest.mark.parametrize("predicted", [0, 1, 2, 3])
def test_one_predicted_class_has_the_value_of_the_reference(predicted):
    guess = np.full(N, predicted)
    for average in ("macro", "weighted", "micro"):
        for name in ("f1", "precision", "recall", "jaccard"):
            compute = getattr(reference, f"{name}_score")
            expected = compute(FOUR, guess, average=average, zero_division=0)
            assert value(f"{name}_{average}", FOUR, guess) == pytest.approx(expected, abs=1e-9)
    for name, weights in (
        ("kappa", None),
        ("qwk", "quadratic"),
        ("linear_weighted_kappa", "linear"),
    ):
        expected = reference.cohen_kappa_score(FOUR, guess, weights=weights)
        assert value(name, FOUR, guess) == pytest.approx(expected, abs=1e-9)
    assert value("mcc", FOUR, guess) == reference.matthews_corrcoef(FOUR, guess) == 0
    expected = reference.balanced_accuracy_score(FOUR, guess)
    assert value("balanced_accuracy", FOUR, guess) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    "scores",
    [np.zeros(N), BINARY, -BINARY, np.where(BINARY, HUGE / 4, -HUGE / 4), np.arange(N) // 30],
)
def test_ties_and_huge_scores_have_the_value_of_the_reference(scores):
    expected = reference.roc_auc_score(BINARY, scores)
    assert value("roc_auc", BINARY, scores) == pytest.approx(expected, abs=1e-9)
    expected = reference.average_precision_score(BINARY, scores)
    assert value("average_precision", BINARY, scores) == pytest.approx(expected, abs=1e-9)
    columns = np.column_stack([scores] * 3)
    expected = reference.roc_auc_score(SEVERAL, columns)
    assert value("mean_auc", SEVERAL, columns) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("scale", [1e-150, 1.0, 1e150, 1e300])
def test_correlations_of_any_scale_have_the_value_of_the_reference(scale):
    predictions = scale * np.round(NUMBERS)
    for name, compute in (("pearson", scipy.stats.pearsonr), ("spearman", scipy.stats.spearmanr),
                          ("kendall", scipy.stats.kendalltau)):  # fmt: skip
        expected = compute(NUMBERS, predictions / scale).statistic
        assert value(name, NUMBERS, predictions) == pytest.approx(expected, abs=1e-9)


def test_errors_of_constant_and_perfect_predictions_have_the_value_of_the_reference():
    for predictions in (np.zeros(N), np.full(N, NUMBERS.mean()), NUMBERS):
        pair = NUMBERS, predictions
        for name, compute in {
            "rmse": reference.root_mean_squared_error,
            "mae": reference.mean_absolute_error,
            "rmsle": reference.root_mean_squared_log_error,
            "mape": reference.mean_absolute_percentage_error,
            "r2": reference.r2_score,
            "explained_variance": reference.explained_variance_score,
        }.items():
            assert value(name, *pair) == pytest.approx(compute(*pair), abs=1e-9), name
