"""Every metric has the value that scikit-learn, scipy, rapidfuzz, sacrebleu and others compute."""

import math

import jiwer
import numpy as np
import pytest
import sacrebleu
import scipy.stats
import sklearn.metrics as reference
from rapidfuzz.distance import Levenshtein
from rouge_score.rouge_scorer import RougeScorer

import ladderboard as lb

SEEDS = range(5)
TOLERANCE = 1e-9


def value(name, labels, predictions, **settings):
    return lb.metric(name, **settings).value(labels, predictions)


def near(expected):
    return pytest.approx(expected, rel=TOLERANCE, abs=TOLERANCE)


def binary(seed):
    """Return labels, scores with ties, and decisions; the last seed has a perfect model."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(20, 300))
    labels = (rng.random(n) < 0.3).astype(int)
    labels[:2] = 0, 1
    scores = np.round(rng.normal(size=n) + labels, 1 if seed % 2 else 9)
    if seed == SEEDS[-1]:
        scores = labels.astype(float)
    return labels, scores, (scores > 0.5).astype(int)


def classes(seed, count=4):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(30, 300))
    labels = rng.integers(count, size=n)
    labels[:count] = np.arange(count)
    predictions = np.where(rng.random(n) < 0.5, labels, rng.integers(count, size=n))
    probabilities = rng.dirichlet(np.ones(count), size=n) + 0.3 * np.eye(count)[labels]
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    return labels, predictions, probabilities


def indicators(seed, width=5):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(20, 100))
    labels = (rng.random((n, width)) < 0.4).astype(int)
    labels[0], labels[1] = 1, 0
    scores = np.round(rng.random((n, width)) + 0.4 * labels, 2)
    return labels, (scores > 0.6).astype(int), scores


def numbers(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(10, 300))
    labels = np.round(rng.normal(3, 2, size=n), 1 if seed % 2 else 9)
    return labels, np.round(labels + rng.normal(size=n), 1)


@pytest.mark.parametrize("seed", SEEDS)
def test_scores_of_two_classes(seed):
    labels, scores, _ = binary(seed)
    auc = reference.roc_auc_score(labels, scores)
    assert value("roc_auc", labels, scores) == near(auc)
    assert value("gini", labels, scores) == near(2 * auc - 1)
    expected = reference.average_precision_score(labels, scores)
    assert value("average_precision", labels, scores) == near(expected)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", ["f1", "precision", "recall", "jaccard"])
def test_decisions_of_two_classes(name, seed):
    labels, _, decisions = binary(seed)
    expected = getattr(reference, f"{name}_score")(labels, decisions, zero_division=0)
    assert value(name, labels, decisions) == near(expected)


@pytest.mark.parametrize("seed", SEEDS)
def test_other_statistics_of_two_classes(seed):
    labels, scores, decisions = binary(seed)
    assert value("mcc", labels, decisions) == near(reference.matthews_corrcoef(labels, decisions))
    expected = reference.balanced_accuracy_score(labels, decisions)
    assert value("balanced_accuracy", labels, decisions) == near(expected)
    expected = reference.fbeta_score(labels, decisions, beta=0.5)
    assert value("f0.5", labels, decisions) == near(expected)
    assert value("f2", labels, decisions) == near(reference.fbeta_score(labels, decisions, beta=2))
    p = 1 / (1 + np.exp(-scores))
    assert value("log_loss", labels, p) == near(reference.log_loss(labels, p))
    assert value("brier_score", labels, p) == near(reference.brier_score_loss(labels, p))
    soft = 2 * (p @ labels) / (p.sum() + labels.sum())
    assert value("pF1", labels, p) == near(soft)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("average", ["micro", "macro", "weighted"])
@pytest.mark.parametrize("name", ["f1", "precision", "recall", "jaccard"])
def test_decisions_of_several_classes_and_labels(name, average, seed):
    compute = getattr(reference, f"{name}_score")
    for labels, predictions in (classes(seed)[:2], indicators(seed)[:2]):
        expected = compute(labels, predictions, average=average, zero_division=0)
        assert value(f"{name}_{average}", labels, predictions) == near(expected)
    text = np.array(["cat", "dog", "eel", "fox"])
    labels, predictions = (text[values] for values in classes(seed)[:2])
    expected = compute(labels, predictions, average=average, zero_division=0)
    assert value(f"{name}_{average}", labels, predictions) == near(expected)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", ["f1", "precision", "recall", "jaccard"])
def test_decisions_by_row(name, seed):
    labels, decisions, _ = indicators(seed)
    compute = getattr(reference, f"{name}_score")
    expected = compute(labels, decisions, average="samples", zero_division=0)
    assert value(f"{name}_samples", labels, decisions) == near(expected)
    sets = [[" ".join(map(str, np.flatnonzero(row))) for row in part]
            for part in (labels, decisions)]  # fmt: skip
    assert value(f"{name}_samples", *sets) == near(expected)
    for average in ("micro", "macro"):
        expected = compute(labels, decisions, average=average, zero_division=0)
        assert value(f"{name}_{average}", *sets, of="sets") == near(expected)


@pytest.mark.parametrize("seed", SEEDS)
def test_agreement_of_several_classes(seed):
    labels, predictions, probabilities = classes(seed)
    assert value("MCC", labels, predictions) == near(
        reference.matthews_corrcoef(labels, predictions)
    )
    for name, weights in (("kappa", None), ("linear_weighted_kappa", "linear"),
                          ("qwk", "quadratic")):  # fmt: skip
        expected = reference.cohen_kappa_score(labels, predictions, weights=weights)
        assert value(name, labels, predictions) == near(expected)
    for name, settings in {
        "roc_auc_ovr": {"multi_class": "ovr"},
        "roc_auc_ovo": {"multi_class": "ovo"},
        "roc_auc_ovr_weighted": {"multi_class": "ovr", "average": "weighted"},
        "roc_auc_ovo_weighted": {"multi_class": "ovo", "average": "weighted"},
    }.items():
        expected = reference.roc_auc_score(labels, probabilities, **settings)
        assert value(name, labels, probabilities) == near(expected)
    expected = reference.log_loss(labels, probabilities)
    assert value("multi-class log loss", labels, probabilities) == near(expected)
    expected = reference.top_k_accuracy_score(labels, probabilities, k=2)
    assert value("top-2 accuracy", labels, probabilities) == near(expected)
    expected = reference.balanced_accuracy_score(labels, predictions)
    assert value("balanced_accuracy", labels, predictions) == near(expected)
    expected = reference.average_precision_score(labels, probabilities)
    assert value("average_precision", labels, probabilities) == near(expected)


@pytest.mark.parametrize("seed", SEEDS)
def test_scores_of_several_labels(seed):
    labels, decisions, scores = indicators(seed)
    for average in ("macro", "weighted", "micro"):
        expected = reference.roc_auc_score(labels, scores, average=average)
        name = "roc_auc" if average == "macro" else f"roc_auc_{average}"
        assert value(name, labels, scores) == near(expected)
    for name, average in (("average_precision", "macro"), ("average_precision_micro", "micro")):
        expected = reference.average_precision_score(labels, scores, average=average)
        assert value(name, labels, scores) == near(expected)
    expected = reference.label_ranking_average_precision_score(labels, scores)
    assert value("lrap", labels, scores) == near(expected)
    expected = reference.label_ranking_average_precision_score(
        labels, scores, sample_weight=labels.sum(axis=1)
    )
    assert value("lwlrap", labels, scores) == near(expected)
    assert value("hamming_loss", labels, decisions) == near(
        reference.hamming_loss(labels, decisions)
    )
    p = np.clip(scores / 1.5, 0, 1)
    expected = np.mean([reference.log_loss(y, q, labels=[0, 1])
                        for y, q in zip(labels.T, p.T, strict=True)])  # fmt: skip
    assert value("multi-label log loss", labels, p) == near(expected)


@pytest.mark.parametrize("seed", SEEDS)
def test_numbers(seed):
    labels, predictions = numbers(seed)
    assert value("pearson", labels, predictions) == near(
        scipy.stats.pearsonr(labels, predictions).statistic
    )
    assert value("spearman", labels, predictions) == near(
        scipy.stats.spearmanr(labels, predictions).statistic
    )
    assert value("kendall", labels, predictions) == near(
        scipy.stats.kendalltau(labels, predictions).statistic
    )
    assert value("r2", labels, predictions) == near(reference.r2_score(labels, predictions))
    expected = reference.explained_variance_score(labels, predictions)
    assert value("explained_variance", labels, predictions) == near(expected)
    assert value("rmse", labels, predictions) == near(
        reference.root_mean_squared_error(labels, predictions)
    )
    assert value("mae", labels, predictions) == near(
        reference.mean_absolute_error(labels, predictions)
    )
    assert value("neg_mean_squared_error", labels, predictions) == near(
        reference.mean_squared_error(labels, predictions)
    )
    expected = reference.mean_pinball_loss(labels, predictions, alpha=0.3)
    assert value("pinball_loss", labels, predictions, quantile=0.3) == near(expected)
    expected = reference.mean_absolute_percentage_error(labels, predictions)
    assert value("mape", labels, predictions) == near(expected)
    up, guess = np.abs(labels), np.abs(predictions)
    assert value("rmsle", up, guess) == near(reference.root_mean_squared_log_error(up, guess))
    assert value("msle", up, guess) == near(reference.mean_squared_log_error(up, guess))
    size = np.abs(labels) + np.abs(predictions)
    parts = np.abs(labels - predictions)[size > 0] / size[size > 0]
    assert value("smape", labels, predictions) == near(2 * parts.sum() / len(labels))
    inside = labels != 0
    part = ((labels - predictions)[inside] / labels[inside]) ** 2
    assert value("rmspe", labels, predictions) == near(math.sqrt(part.sum() / len(labels)))


@pytest.mark.parametrize("seed", SEEDS)
def test_several_columns_of_numbers(seed):
    rng = np.random.default_rng(seed)
    labels, noise = rng.random((50, 3)), rng.normal(size=(50, 3))
    predictions = np.abs(labels + 0.3 * noise)
    pairs = list(zip(labels.T, predictions.T, strict=True))
    expected = np.mean([reference.root_mean_squared_error(*pair) for pair in pairs])
    assert value("mcrmse", labels, predictions) == near(expected)
    expected = np.mean([reference.root_mean_squared_log_error(*pair) for pair in pairs])
    assert value("mcrmsle", labels, predictions) == near(expected)
    expected = np.mean([scipy.stats.spearmanr(*pair).statistic for pair in pairs])
    assert value("spearman", labels, predictions) == near(expected)
    assert value("r2", labels, predictions) == near(reference.r2_score(labels, predictions))
    y, p = (part / part.sum(axis=1, keepdims=True) for part in (labels, predictions))
    assert value("kl_divergence", y, p) == near(scipy.stats.entropy(y.T, p.T).mean())
    steps = (np.arange(10) >= rng.integers(10, size=50)[:, None]).astype(float)
    guess = np.sort(rng.random((50, 10)), axis=1)
    assert value("crps", steps, guess) == near(((steps - guess) ** 2).mean())
    angles = rng.random((2, 50, 2)) * math.pi
    vectors = [np.column_stack((np.cos(a) * np.sin(z), np.sin(a) * np.sin(z), np.cos(z)))
               for a, z in (part.T for part in angles)]  # fmt: skip
    expected = np.arccos((vectors[0] * vectors[1]).sum(axis=1)).mean()
    assert value("angular_error", *angles) == near(expected)


WORDS = [
    "the",
    "cat",
    "sat",
    "on",
    "a",
    "mat,",
    "and",
    "it's",
    "1,000.5",
    "times",
    "(or",
    "2-3)",
    "better.",
    "Then",
    "&amp;",
    "now!",
    "naïve",
]


def texts(seed):
    rng = np.random.default_rng(seed)
    labels = [" ".join(rng.choice(WORDS, size=rng.integers(1, 15))) for _ in range(20)]
    predictions = [
        " ".join(word for word in label.split() if rng.random() < 0.8)
        + (" " + rng.choice(WORDS) if rng.random() < 0.5 else "")
        for label in labels
    ]
    return labels, predictions


@pytest.mark.parametrize("seed", SEEDS)
def test_text(seed):
    labels, predictions = texts(seed)
    pairs = list(zip(labels, predictions, strict=True))
    distances = [Levenshtein.distance(*pair) for pair in pairs]
    assert value("levenshtein", labels, predictions) == near(np.mean(distances))
    expected = np.mean([Levenshtein.normalized_similarity(*pair) for pair in pairs])
    assert value("edit_similarity", labels, predictions) == near(expected)
    assert value("wer", labels, predictions) == near(jiwer.wer(labels, predictions))
    expected = sum(distances) / sum(map(len, labels))
    assert value("cer", labels, predictions) == near(expected)
    scorer = RougeScorer(["rouge1", "rouge2", "rougeL"])
    for name in ("rouge1", "rouge2", "rougeL"):
        expected = np.mean([scorer.score(*pair)[name].fmeasure for pair in pairs])
        assert value(name, labels, predictions) == near(expected)
    assert value("bleu", labels, predictions) == near(
        sacrebleu.corpus_bleu(predictions, [labels]).score
    )
    assert value("chrf", labels, predictions) == near(
        sacrebleu.corpus_chrf(predictions, [labels]).score
    )
    sets = [[set(text.lower().split()) for text in part] for part in (labels, predictions)]
    expected = np.mean([len(a & b) / len(a | b) for a, b in zip(*sets, strict=True)])
    assert value("word Jaccard", labels, predictions) == near(expected)


def test_text_without_any_match_or_without_words():
    assert value("bleu", ["a b c d e"], ["v w x y z"]) == 0
    assert value("chrf", ["abc"], ["xyz"]) == 0
    for predictions in (["the cat sat on the mat today"], ["the mat"], [""]):
        labels = ["the dog sat on one mat today"]
        expected = sacrebleu.corpus_bleu(predictions, [labels]).score
        assert value("bleu", labels, predictions) == near(expected)
        expected = sacrebleu.corpus_chrf(predictions, [labels]).score
        assert value("chrf", labels, predictions) == near(expected)
    assert value("edit_similarity", [""], [""]) == 1
    assert value("wer", ["a", ""], ["", ""]) == 1


def average_precision_at(k, relevant, guesses):
    """Return average precision at k by its definition."""
    hits, total = 0, 0.0
    for place, guess in enumerate(guesses[:k], start=1):
        if guess in relevant and guess not in guesses[: place - 1]:
            hits += 1
            total += hits / place
    return total / min(len(relevant), k) if relevant else 0.0


@pytest.mark.parametrize("seed", SEEDS)
def test_ranked_lists(seed):
    rng = np.random.default_rng(seed)
    labels = [list(map(str, rng.choice(20, size=rng.integers(1, 5), replace=False)))
              for _ in range(40)]  # fmt: skip
    guesses = [list(map(str, rng.permutation(20)[: rng.integers(0, 12)])) for _ in range(40)]
    pairs = list(zip(labels, guesses, strict=True))
    expected = np.mean([average_precision_at(5, *pair) for pair in pairs])
    assert value("MAP@5", labels, guesses) == near(expected)
    cells = [[" ".join(items) for items in part] for part in (labels, guesses)]
    assert value("map_at_k", *cells, k=5) == near(expected)
    relevance = np.zeros((40, 20))
    scores = np.full((40, 20), -1.0)
    for row, (label, guess) in enumerate(pairs):
        relevance[row, list(map(int, label))] = 1
        scores[row, list(map(int, guess))] = np.arange(len(guess), 0, -1)
    full = [len(guess) >= 5 for guess in guesses]
    expected = reference.ndcg_score(relevance[full], scores[full], k=5)
    chosen = [[item for item, keep in zip(part, full, strict=True) if keep] for part in cells]
    assert value("ndcg@5", *chosen) == near(expected)
    ranks = [next((1 / place for place, guess in enumerate(guessed, 1) if guess in label), 0)
             for label, guessed in pairs]  # fmt: skip
    assert value("MRR", *cells) == near(np.mean(ranks))
    assert value("hit@3", *cells) == near(np.mean([rank >= 1 / 3 for rank in ranks]))


@pytest.mark.parametrize("seed", SEEDS)
def test_masks(seed):
    rng = np.random.default_rng(seed)
    images = [rng.random((2, 60)) < (0.0 if row == 0 else 0.5) for row in range(10)]
    cells = [[encode_mask(image[side]) for image in images] for side in (0, 1)]
    shared = np.array([[(a & b).sum(), a.sum(), b.sum()] for a, b in images])
    both, label, guess = shared.T
    dice = np.where(label + guess == 0, 1, 2 * both / np.maximum(label + guess, 1))
    assert value("Dice", *cells) == near(dice.mean())
    iou = np.where(label + guess == 0, 1, both / np.maximum(label + guess - both, 1))
    assert value("IoU", *cells) == near(iou.mean())
    assert value("global Dice", *cells) == near(2 * both.sum() / (label.sum() + guess.sum()))
    expected = 1.25 * both.sum() / (0.25 * label.sum() + guess.sum())
    assert value("f0.5", *cells, of="masks", average="micro") == near(expected)
    thresholds = np.arange(50, 100, 5) / 100
    expected = np.where(label + guess == 0, 1, (iou[:, None] > thresholds).mean(axis=1))
    assert value("iou_thresholds", *cells) == near(expected.mean())


def encode_mask(pixels):
    """Return start and length of each run, pixels numbered from 1."""
    edges = np.flatnonzero(np.diff(np.concatenate(([0], pixels.astype(int), [0]))))
    return " ".join(f"{start + 1} {end - start}" for start, end in edges.reshape(-1, 2))


def test_order_of_items():
    labels, guesses = ["a b c d", "x y"], ["b a c d", "x y"]
    assert value("order_correlation", labels, guesses) == near(1 - 4 * 1 / (12 + 2))
    assert value("order_correlation", labels, ["d c b a", "y z"]) == -1


def test_degenerate_predictions_have_the_value_of_the_reference():
    labels = np.array([0, 1, 1, 0, 1])
    zeros = np.zeros(5, int)
    assert value("roc_auc", labels, zeros) == 0.5
    assert value("f1", labels, zeros) == 0
    assert value("precision", labels, zeros) == 0
    assert value("mcc", labels, zeros) == 0
    assert value("kappa", labels, zeros) == 0
    assert value("average_precision", labels, zeros) == near(0.6)
    assert value("f1_macro", labels, zeros) == near(
        reference.f1_score(labels, zeros, average="macro", zero_division=0)
    )
    assert value("qwk", labels, labels) == 1
    assert value("r2", [1.0, 2.0, 3.0], [2.0, 2.0, 2.0]) == 0
