"""What is promised of each statistic holds: one label is changed, and the values are compared.

A promise takes some facts of the labels as known, such as how many are positive. With these as
constants the statistic is a sum over examples; docs/explanation/metrics.md has its form, which is
``surrogate`` here. Two things are checked for all labels at a small n: where the facts are true,
the surrogate is the statistic up to a constant; and the sum of the squares of the largest changes
of one label is at most 1 / effective_n.
"""

import itertools
import math

import numpy as np
import pytest

import ladderboard as lb

BINARY = [np.array(labels) for labels in itertools.product((0, 1), repeat=6)]
TERNARY = [np.array(labels) for labels in itertools.product((0, 1, 2), repeat=4)]


def auc(labels, scores, counts):
    ranks = np.array([(scores < s).sum() + (scores == s).sum() / 2 for s in scores])
    return labels @ (ranks - ranks.mean()) / (counts[0] * counts[1])


def hits(labels, predictions):
    """Return the right predictions of class 1, centred: what a known number of labels allows."""
    return labels @ (predictions - predictions.mean())


def fscore(beta):
    def surrogate(labels, predictions, counts):
        square = beta**2
        return (1 + square) * hits(labels, predictions) / (square * counts[1] + predictions.sum())

    return surrogate


def recall(labels, predictions, counts):
    return hits(labels, predictions) / counts[1]


def balanced(labels, predictions, counts):
    if len(counts) == 2:
        return hits(labels, predictions) * (1 / counts[0] + 1 / counts[1]) / 2
    right = labels == predictions
    return sum(right[predictions == k].sum() / c for k, c in enumerate(counts) if c) / np.sum(
        np.array(counts) > 0
    )


def jaccard_of(fscore):
    """Return F / (2 - F): where the facts are not true, F may leave [0, 1] and is cut."""
    fscore = np.clip(fscore, 0, 1)
    return fscore / (2 - fscore)


def jaccard(labels, predictions, counts):
    known = 2 * predictions.mean() * counts[1] / (counts[1] + predictions.sum())
    return jaccard_of(fscore(1)(labels, predictions, counts) + known)


def by_class(weigh, beta=1, then=np.asarray):
    def surrogate(labels, predictions, counts):
        guesses = np.bincount(predictions, minlength=len(counts))
        right = np.bincount(predictions[labels == predictions], minlength=len(counts))
        totals = beta**2 * np.array(counts) + guesses
        scores = np.where(totals == 0, 0, (1 + beta**2) * right / np.maximum(totals, 1))
        return weigh(np.array(counts), guesses) @ then(scores)

    return surrogate


def macro(counts, guesses):
    present = counts + guesses > 0
    return present / present.sum()


def weighted(counts, guesses):
    return counts / counts.sum()


def mcc(labels, predictions, counts):
    spread = counts[0] * counts[1] * predictions.sum() * (len(labels) - predictions.sum())
    return len(labels) * hits(labels, predictions) / math.sqrt(spread) if spread else 0.0


def kappa(weights):
    power = {"linear": 1, "quadratic": 2}

    def surrogate(labels, predictions, counts):
        places = np.arange(len(counts))
        distance = np.abs(places[:, None] - places)
        cost = (distance > 0) if weights == "none" else distance ** power[weights]
        expected = (
            np.array(counts) @ cost @ np.bincount(predictions, minlength=len(counts)) / len(labels)
        )
        if not expected:
            return 0.0
        if weights == "quadratic":
            return 2 * labels @ (predictions - predictions.mean()) / expected
        return -cost[labels, predictions].sum() / expected

    return surrogate


CASES = {
    "roc_auc": (auc, BINARY),
    "gini": (lambda *given: 2 * auc(*given), BINARY),
    "f1": (fscore(1), BINARY),
    "f2": (fscore(2), BINARY),
    "recall": (recall, BINARY),
    "jaccard": (jaccard, BINARY),
    "balanced_accuracy": (balanced, BINARY),
    "mcc": (mcc, BINARY),
    "kappa": (kappa("none"), BINARY),
    "f1_macro": (by_class(macro), TERNARY),
    "f1_weighted": (by_class(weighted), TERNARY),
    "f2_macro": (by_class(macro, beta=2), TERNARY),
    "jaccard_macro": (by_class(macro, then=jaccard_of), TERNARY),
    "jaccard_weighted": (by_class(weighted, then=jaccard_of), TERNARY),
    "recall_macro": (balanced, TERNARY),
    "qwk": (kappa("quadratic"), TERNARY),
    "linear_weighted_kappa": (kappa("linear"), TERNARY),
    "kappa of three": (kappa("none"), TERNARY),
    "balanced_accuracy of three": (balanced, TERNARY),
}


def predictions_for(classes, n):
    rng = np.random.default_rng(0)
    random_classes = [rng.integers(classes, size=n) for _ in range(6)]
    return [*random_classes, np.arange(n) % classes, np.r_[np.zeros(n - 1, int), classes - 1]]


@pytest.mark.parametrize("name", CASES)
def test_changing_one_label_changes_no_more_than_is_promised(name):
    surrogate, all_labels = CASES[name]
    classes = 2 if all_labels is BINARY else 3
    statistic = lb.metric(name.partition(" of ")[0], classes=range(classes)).loss
    every = np.array(all_labels)
    n = every.shape[1]
    for predictions in predictions_for(classes, n):
        for counts in itertools.product(range(n + 1), repeat=classes):
            if sum(counts) != n or min(counts) == 0:
                continue
            values = np.array([surrogate(labels, predictions, counts) for labels in every])
            true = [tuple(np.bincount(labels, minlength=classes)) == counts for labels in every]
            check_agreement(statistic, every[true], predictions, values[true])
            promise = statistic.promise(every[true][0])
            assert promise.published == {"counts": list(counts)}
            assert promise.nats >= (classes - 1) * math.log(n + 1) - 1e-9
            changes = largest_changes(values, classes, n) / statistic.unit
            assert (changes**2).sum() <= 1 / promise.effective_n * (1 + 1e-9)


def check_agreement(statistic, all_labels, predictions, surrogates):
    """Check that the surrogate differs from the statistic by a constant."""
    values = [
        statistic.estimate(
            statistic.read_labels(labels), statistic.read_predictions(predictions, labels.shape)
        ).value
        for labels in all_labels
    ]
    differences = np.array(values) - surrogates
    assert np.ptp(differences) < 1e-9


def largest_changes(values, classes, n):
    """Return, for each example, the largest change of the value by changing its label alone."""
    table = values.reshape((classes,) * n)
    return np.array([np.ptp(table, axis=axis).max() for axis in range(n)])


def test_nothing_is_promised_where_nothing_is_proved():
    labels = np.array([0, 1, 1, 0, 1, 0])
    for name in ("average_precision", "precision", "pearson", "spearman", "kendall", "r2", "wer"):
        loss = lb.metric(name).loss
        read = loss.read_labels(labels if name != "wer" else ["a"] * 6)
        assert loss.promise(read) is None


def test_a_mean_of_losses_promises_all_its_examples():
    loss = lb.loss("zero_one")
    assert loss.promise(loss.read_labels([1, 0, 1])).effective_n == 3


def test_the_effective_number_of_examples_at_a_tenth_of_positives():
    labels = np.arange(5_000) % 10 == 0
    expected = {"roc_auc": 12 * 0.09**2, "f1": 0.1 * 1.1, "recall": 4 * 0.1**2,
                "mcc": 4 * 0.09, "balanced_accuracy": 16 * 0.09**2}  # fmt: skip
    for name, share in expected.items():
        statistic = lb.metric(name, classes=(0, 1)).loss
        promise = statistic.promise(statistic.read_labels(labels.astype(int)))
        assert promise.effective_n == pytest.approx(5_000 * share, rel=1e-6)


def test_the_mean_of_columns_promises_the_least_of_them_for_all():
    labels = np.column_stack([np.arange(60) % 2, np.arange(60) % 3 == 0]).astype(int)
    mean = lb.metric("mean_auc").loss
    promise = mean.promise(mean.read_labels(labels))
    single = lb.metric("roc_auc", classes=(0, 1)).loss
    columns = [single.promise(single.read_labels(column)) for column in labels.T]
    assert promise.effective_n == min(column.effective_n for column in columns)
    assert promise.nats == pytest.approx(sum(column.nats for column in columns) + math.log(2))
    for name in ("f1_micro", "recall_weighted", "recall_micro"):  # with one label an example
        loss = lb.metric(name, classes=(0, 1, 2)).loss
        assert loss.promise(loss.read_labels(np.arange(60) % 3)).effective_n == 60


N = 40


def texts(rng):
    return np.array([" ".join(rng.choice(list("abcdef"), size=5)) for _ in range(N)])


def masks(rng):
    return np.array([f"{rng.integers(1, 9)} {rng.integers(1, 9)}" for _ in range(N)])


def distributions(rng):
    return rng.dirichlet(np.ones(3), size=N)


def steps(rng):
    return (np.arange(8) >= rng.integers(8, size=N)[:, None]).astype(float)


def chances(rng):
    return rng.random(N)


def positive(rng):
    return rng.random(N) * 9 + 1


def bits(rng):
    return rng.integers(2, size=(N, 4))


def choose(count):
    return lambda rng: rng.integers(count, size=N)


RANGE = {"range": (0, 10)}
MEANS = {
    "accuracy": (choose(3), choose(3), {"classes": (0, 1, 2)}),
    **dict.fromkeys(("rmse", "mae", "mse", "rmsle", "msle"), (positive, positive, RANGE)),
    **dict.fromkeys(("mape", "smape", "rmspe"), (positive, positive, {})),
    "pinball_loss": (positive, positive, {**RANGE, "quantile": 0.3}),
    **dict.fromkeys(("log_loss", "brier_score"), (choose(2), chances, {"classes": (0, 1)})),
    "multi-class log loss": (choose(3), distributions, {"classes": (0, 1, 2)}),
    "top-2 accuracy": (choose(3), distributions, {"classes": (0, 1, 2)}),
    **dict.fromkeys(("hamming_loss", "f1_samples", "jaccard_samples"), (bits, bits, {})),
    **dict.fromkeys(("MAP@3", "ndcg@3", "MRR", "hit@3", "edit_similarity", "word Jaccard",
                     "rouge1", "rougeL", "levenshtein"), (texts, texts, {})),
    **dict.fromkeys(("Dice", "IoU"), (masks, masks, {})),
    "crps": (steps, lambda rng: np.sort(rng.random((N, 8)), axis=1), {}),
    "kl_divergence": (distributions, distributions, {}),
    "angular_error": (lambda rng: 3 * rng.random((N, 2)), lambda rng: 3 * rng.random((N, 2)), {}),
}  # fmt: skip


@pytest.mark.parametrize("name", MEANS)
def test_changing_one_label_moves_a_mean_by_one_example(name):
    make_labels, make_predictions, settings = MEANS[name]
    rng = np.random.default_rng(7)
    labels, others = make_labels(rng), make_labels(rng)
    predictions = make_predictions(rng)
    loss = lb.metric(name, **settings).loss
    assert loss.is_mean
    assert loss.promise(loss.read_labels(labels)).effective_n == N

    def risk(changed):
        return loss.evaluate(loss.read_labels(changed), predictions)[0].mean()

    usual, moves = risk(labels), []
    for row in range(N):
        changed = labels.copy()
        changed[row] = others[row]
        moves.append(abs(risk(changed) - usual))
    assert max(moves) <= 1 / N + 1e-12
    assert max(moves) > 0
