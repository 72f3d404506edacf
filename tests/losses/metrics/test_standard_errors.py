"""Standard errors from influence values agree with those of a bootstrap."""

import numpy as np
import pytest

import ladderboard as lb
from ladderboard.mechanisms._fixed_point import exact_standard_error

RESAMPLES = 800
# The bootstrap's own standard error is 2.5% (1 / sqrt(2 RESAMPLES)), so 10% is four of them; seeds
# are fixed.
TOLERANCE = 0.10


# Three data sets: the number of examples, the share of positives, how good the model is, and the
# shares of four classes.
DATA_SETS = {
    1: (400, 0.25, 1.2, (0.4, 0.3, 0.2, 0.1)),
    2: (1_000, 0.1, 0.8, (0.25, 0.25, 0.25, 0.25)),
    3: (700, 0.5, 2.0, (0.15, 0.35, 0.35, 0.15)),
}


def data_set_of(n):
    return next((row for row in DATA_SETS.values() if row[0] == n), DATA_SETS[1])


def two_classes(rng, n):
    _, share, distance, _ = data_set_of(n)
    labels = (rng.random(n) < share).astype(int)
    scores = rng.normal(size=n) + distance * labels
    return labels, scores, (scores > 0.7).astype(int)


def several_classes(rng, n):
    labels = rng.choice(4, size=n, p=data_set_of(n)[3])
    near = np.clip(labels + rng.integers(-1, 2, size=n), 0, 3)
    scores = rng.dirichlet(np.ones(4), size=n) + 0.4 * np.eye(4)[labels]
    return labels, np.where(rng.random(n) < 0.6, labels, near), scores


def several_labels(rng, n):
    labels = (rng.random((n, 3)) < (0.5, 0.3, 0.2)).astype(int)
    scores = rng.normal(size=(n, 3)) + labels
    return labels, scores, (scores > 0.6).astype(int)


def numbers(rng, n):
    labels = rng.gamma(2.0, size=n)
    return labels, labels + rng.normal(size=n)


def ties(rng, n):
    labels = rng.integers(5, size=n).astype(float)
    return labels, np.round(labels + rng.normal(size=n))


def texts(rng, n):
    words = np.array(
        ["the", "cat", "sat", "on", "a", "mat", "and", "saw", "two", "dogs", "run", "by"]
    )
    labels = [list(rng.choice(words, size=rng.integers(6, 15))) for _ in range(n)]
    guesses = [[word for word in label if rng.random() < 0.8] for label in labels]
    return [" ".join(label) for label in labels], [" ".join(words) for words in guesses]


def sets(rng, n):
    labels, _, decisions = several_labels(rng, n)
    return tuple([" ".join(map(str, np.flatnonzero(row))) for row in part]
                 for part in (labels, decisions))  # fmt: skip


def chances(rng, n):
    labels, scores, _ = two_classes(rng, n)
    return labels, 1 / (1 + np.exp(-scores))


def masks(rng, n):
    runs = [f"{start} {length}" for start, length in rng.integers(1, 9, size=(2 * n, 2))]
    return runs[:n], runs[n:]


def lists(rng, n):
    labels = rng.integers(6, size=n)
    guesses = [[label, *rng.permutation(6)] if rng.random() < 0.3 else rng.permutation(6)
               for label in labels]  # fmt: skip
    return labels.astype(str).tolist(), [" ".join(map(str, guess)) for guess in guesses]


def columns(rng, n):
    labels = rng.random((n, 3)) * (1, 2, 5)
    return labels, np.abs(labels + rng.normal(size=(n, 3)))


def with_part(make, part):
    def parts(rng, n):
        arrays = make(rng, n)
        return arrays[0], arrays[part]

    return parts


CASES = {
    **dict.fromkeys(("roc_auc", "gini", "average_precision"), with_part(two_classes, 1)),
    **dict.fromkeys(
        ("f1", "precision", "recall", "jaccard", "f0.5", "mcc", "kappa", "balanced_accuracy"),
        with_part(two_classes, 2),
    ),
    **dict.fromkeys(
        ("f1_macro", "f1_weighted", "precision_macro", "recall_weighted", "jaccard_macro", "qwk",
         "linear_weighted_kappa", "f1_micro"),
        with_part(several_classes, 1),
    ),
    **dict.fromkeys(
        ("roc_auc_ovr", "roc_auc_ovr_weighted", "roc_auc_ovo", "roc_auc_ovo_weighted"),
        with_part(several_classes, 2),
    ),
    **dict.fromkeys(("mean_auc", "roc_auc_micro", "lwlrap", "lrap"), with_part(several_labels, 1)),
    **dict.fromkeys(("pearson", "spearman", "kendall", "r2", "explained_variance"), numbers),
    **dict.fromkeys(("mcrmse", "mcrmsle"), columns),
    "pF1": chances,
    "global Dice": masks,
    **dict.fromkeys(("wer", "cer", "bleu", "chrf"), texts),
}  # fmt: skip
SLOW = {
    "global Dice",
    "kendall",
    "wer",
    "cer",
    "bleu",
    "chrf",
    "roc_auc_ovo",
    "roc_auc_ovo_weighted",
    "lwlrap",
}


def compare_with_bootstrap(name, make, seed, n=400, resamples=RESAMPLES):
    rng = np.random.default_rng(seed)
    labels, predictions = make(rng, n)
    statistic = lb.metric(name).loss.for_labels(labels)
    labels = statistic.read_labels(labels)
    predictions = statistic.read_predictions(predictions, labels.shape)
    estimate = statistic.estimate(labels, predictions)
    assert abs(estimate.influence.mean()) < 1e-9 * max(1, np.abs(estimate.influence).max())
    values = []
    for _ in range(resamples):
        rows = rng.integers(n, size=n)
        values.append(statistic.estimate(labels[rows], predictions[rows]).value)
    assert estimate.standard_error == pytest.approx(np.std(values), rel=TOLERANCE)


@pytest.mark.parametrize("name", sorted(set(CASES) - SLOW))
def test_standard_error_is_that_of_a_bootstrap(name):
    compare_with_bootstrap(name, CASES[name], seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", DATA_SETS)
@pytest.mark.parametrize("name", sorted(CASES))
def test_standard_error_is_that_of_a_bootstrap_on_three_data_sets(name, seed):
    compare_with_bootstrap(name, CASES[name], seed, n=400 if name in SLOW else DATA_SETS[seed][0])


def several_numbers(rng, n):
    labels, predictions = numbers(rng, n)
    return np.clip(labels, 0, 20), np.clip(predictions, 0, 20)


RANGE = {"range": (0, 20)}
MEANS = {
    **dict.fromkeys(("rmse", "mae", "rmsle"), (several_numbers, RANGE)),
    **dict.fromkeys(("log_loss", "brier_score"), (chances, {"classes": (0, 1)})),
    "accuracy": (with_part(two_classes, 2), {"classes": (0, 1)}),
    **dict.fromkeys(("MAP@3", "MRR"), (lists, {})),
    **dict.fromkeys(("edit_similarity", "rougeL"), (texts, {})),
    "Dice": (masks, {}),
    "f1_samples": (with_part(several_labels, 2), {}),
}


@pytest.mark.parametrize("seed", DATA_SETS)
@pytest.mark.parametrize("name", MEANS)
def test_standard_error_of_a_mean_is_that_of_a_bootstrap(name, seed):
    """The mechanism's own function, which is exact for losses; 800 resamples err by 2.5%."""
    make, settings = MEANS[name]
    rng, n = np.random.default_rng(seed), DATA_SETS[seed][0]
    labels, predictions = make(rng, n)
    loss = lb.metric(name, **settings).loss
    losses = loss.score(loss.read_labels(labels), predictions)
    values = losses[rng.integers(n, size=(RESAMPLES, n))].mean(axis=1)
    assert exact_standard_error(losses) == pytest.approx(np.std(values), rel=TOLERANCE)


@pytest.mark.parametrize("name", ["spearman", "pearson"])
def test_standard_error_with_many_ties(name):
    compare_with_bootstrap(name, ties, seed=4)


@pytest.mark.parametrize("name", ["f1_micro", "f1_macro"])
def test_standard_error_of_sets(name):
    rng = np.random.default_rng(5)
    labels, predictions = sets(rng, 300)
    statistic = lb.metric(name, of="sets").loss
    labels = statistic.read_labels(labels)
    predictions = statistic.read_predictions(predictions, labels.shape)
    estimate = statistic.estimate(labels, predictions)
    draws = rng.integers(300, size=(400, 300))
    values = [statistic.estimate(labels[rows], predictions[rows]).value for rows in draws]
    assert estimate.standard_error == pytest.approx(np.std(values), rel=0.15)


def test_linearised_costs_have_the_risk_as_mean_and_its_standard_error():
    labels, scores, _ = two_classes(np.random.default_rng(6), 500)
    auc = lb.metric("roc_auc").loss
    read = auc.read_labels(labels)
    costs = auc.score(read, scores)
    assert costs.mean() == pytest.approx(auc.risk(read, scores), abs=1e-12)
    estimate = auc.estimate(read, scores)
    assert costs.std() / np.sqrt(500) == pytest.approx(estimate.standard_error)


@pytest.mark.parametrize("name", sorted(CASES))
def test_a_plausible_model_has_a_good_score_and_a_standard_error(name):
    labels, _ = CASES[name](np.random.default_rng(5), 400)
    settings = RANGE if name.startswith("mcrms") else {}
    statistic = lb.metric(name, **settings).loss.for_labels(labels)
    read = statistic.read_labels(labels)
    costs, risk = statistic.plausible_evaluation(read)
    assert 0 < risk < 0.5
    assert len(costs) == 400
    assert 0.001 < costs.std() / 20 < 0.2
    assert np.array_equal(statistic.plausible_evaluation(read).costs, costs)  # no chance in it


@pytest.mark.parametrize("positives", [60, 300])
def test_the_plausible_standard_error_of_auc_is_that_of_models_of_its_kind(positives):
    labels = (np.arange(600) < positives).astype(int)
    statistic = lb.metric("roc_auc").loss
    costs, risk = statistic.plausible_evaluation(labels)
    rng, shift = np.random.default_rng(6), 1.1902  # an AUC of 0.8
    values = [
        statistic.estimate(labels, rng.normal(size=600) + shift * labels).value
        for _ in range(RESAMPLES)
    ]
    assert 1 - risk == pytest.approx(0.8, abs=0.001)
    assert costs.std() / np.sqrt(600) == pytest.approx(np.std(values), rel=TOLERANCE)
    assert statistic.class_sizes(labels) == {0: 600 - positives, 1: positives}
