"""Every name that people type: it works, or it is refused with the reason and the nearest."""

import pytest
import sklearn.metrics

import ladderboard as lb
from ladderboard.errors import InvalidSetting, NoPerExampleLoss
from ladderboard.losses import ALIASES, LOSSES, METRICS, REFUSED_METRICS


@pytest.mark.parametrize("name", sklearn.metrics.get_scorer_names())
def test_every_scorer_of_scikit_learn_works_or_is_refused_by_name(name):
    if any(word in name for word in REFUSED_METRICS):
        with pytest.raises(NoPerExampleLoss, match=f"{name} cannot be used: it|{name} .* a single"):
            lb.metric(name)
    else:
        direction = "lower" if name.startswith("neg_") else "higher"
        assert lb.metric(name).direction == direction


# What Hugging Face's evaluate and competitions call them.
HUGGING_FACE = [
    "accuracy", "bleu", "brier_score", "cer", "chrf", "exact_match", "f1", "mae", "mape", "mse",
    "matthews_correlation", "pearsonr", "precision", "r_squared", "recall", "roc_auc", "rouge",
    "sacrebleu", "smape", "spearmanr", "wer", "roc_auc_score",
]  # fmt: skip


@pytest.mark.parametrize("name", HUGGING_FACE)
def test_names_of_hugging_face(name):
    assert lb.metric(name).name


@pytest.mark.parametrize(
    ("name", "loss", "settings"),
    [
        ("ROC-AUC", "roc_auc", {}),
        ("Quadratic Weighted Kappa", "kappa", {"weights": "quadratic"}),
        ("  AUC ", "roc_auc", {}),
        ("MAP@12", "map_at_k", {"k": 12}),
        ("map at 5", "map_at_k", {"k": 5}),
        ("NDCG@10", "ndcg_at_k", {"k": 10}),
        ("top-5 accuracy", "top_k", {"k": 5}),
        ("Top 3 Error", "top_k", {"k": 3}),
        ("F0.5", "f1", {"beta": 0.5}),
        ("f2", "f1", {"beta": 2}),
        ("Macro F1", "f1", {"average": "macro"}),
        ("micro-F1", "f1", {"average": "micro"}),
        ("Mean Column-wise ROC AUC", "roc_auc", {}),
        ("R²", "r2", {}),
        ("neg_root_mean_squared_log_error", "squared_log", {}),
        ("Cohen's kappa", "kappa", {"weights": "none"}),
    ],
)
def test_a_name_may_be_written_in_many_ways(name, loss, settings):
    metric_loss = lb.metric(name).loss
    assert metric_loss.name == loss
    assert {key: getattr(metric_loss, key) for key in settings} == settings


@pytest.mark.parametrize("name", sorted(REFUSED_METRICS))
def test_what_is_impossible_is_refused_with_the_reason_and_the_nearest(name):
    with pytest.raises(NoPerExampleLoss) as caught:
        lb.metric(name)
    assert lb.metric(caught.value.nearest)
    assert f'"{caught.value.nearest}"' in str(caught.value)


def test_no_name_means_two_things():
    assert not set(ALIASES) & set(METRICS)
    assert not set(REFUSED_METRICS) & {*METRICS, *ALIASES, *LOSSES}
    assert set(ALIASES.values()) <= set(METRICS)
    assert {recipe.loss for recipe in METRICS.values()} == set(LOSSES) - {"weighted_sum"}


@pytest.mark.parametrize("name", sorted(METRICS))
def test_the_best_risk_is_displayed_as_the_best_value(name):
    metric = lb.metric(name, **({"range": (0, 9)} if needs_range(name) else {}))
    best, worst = metric.display(0.0), metric.display(1.0)
    assert (best > worst) == (metric.direction == "higher")
    assert best == {"complement": 1.0, "percent": 100.0}.get(metric.shown_as, 0.0)
    assert metric.title


def needs_range(name):
    try:
        lb.loss(name)
    except InvalidSetting as error:
        return "needs a range" in str(error)
    return False


@pytest.mark.parametrize("name", ["mae", "mcrmse"])
def test_a_value_needs_no_range_but_a_loss_does(name):
    labels = [1.0, 2.0, 4.0] if name == "mae" else [[1.0, 2.0], [2.0, 2.0]]
    assert lb.metric(name).value(labels, labels) == 0
    if name == "mae":
        with pytest.raises(InvalidSetting, match="needs a range"):
            lb.loss(name)
