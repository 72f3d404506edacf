"""Metrics that are refused by name, why, and what to take instead."""

from __future__ import annotations

from ladderboard.errors import NoPerExampleLoss

__all__ = ["REFUSED", "refuse_metric"]

_RANKING = "it compares every positive with every negative"
_COUNTS = "it is a ratio of counts over the whole set"
_RANKS = "it is computed from all predictions together"
_SPREAD = "it divides by the spread of the labels"
_CORPUS = "it is computed over a whole corpus"
_LISTS = "it scores ranked lists, whose length and weights are its own"
_UNBOUNDED = "its cost of one example has no upper limit"
_CLASS_SHARES = "it weighs examples by how often their class occurs among the hidden labels"

# metric: (why it has no bounded per-example loss, the nearest loss that works)
REFUSED: dict[str, tuple[str, str]] = {
    "auc": (_RANKING, "brier"),
    "roc_auc": (_RANKING, "brier"),
    "auroc": (_RANKING, "brier"),
    "gini": (_RANKING, "brier"),
    "concordance": (_RANKING, "brier"),
    "pr_auc": (_COUNTS, "brier"),
    "auprc": (_COUNTS, "brier"),
    "average_precision": (_COUNTS, "brier"),
    "f1": (_COUNTS, "zero_one"),
    "f1_macro": (_COUNTS, "zero_one"),
    "f1_micro": (_COUNTS, "hamming"),
    "f1_weighted": (_COUNTS, "zero_one"),
    "fbeta": (_COUNTS, "zero_one"),
    "precision": (_COUNTS, "zero_one"),
    "recall": (_COUNTS, "zero_one"),
    "jaccard": (_COUNTS, "zero_one"),
    "iou": (_COUNTS, "zero_one"),
    "dice": (_COUNTS, "zero_one"),
    "balanced_accuracy": (_CLASS_SHARES, "zero_one"),
    "mcc": (_COUNTS, "zero_one"),
    "matthews_corrcoef": (_COUNTS, "zero_one"),
    "cohen_kappa": (_COUNTS, "zero_one"),
    "kappa": (_COUNTS, "zero_one"),
    "quadratic_weighted_kappa": (_COUNTS, "squared"),
    "qwk": (_COUNTS, "squared"),
    "r2": (_SPREAD, "squared"),
    "r2_score": (_SPREAD, "squared"),
    "explained_variance": (_SPREAD, "squared"),
    "pearson": (_RANKS, "squared"),
    "correlation": (_RANKS, "squared"),
    "spearman": (_RANKS, "absolute"),
    "kendall": (_RANKS, "absolute"),
    "median_absolute_error": (_RANKS, "absolute"),
    "max_error": (_RANKS, "absolute"),
    "ece": (_RANKS, "brier"),
    "bleu": (_CORPUS, "zero_one"),
    "rouge": (_CORPUS, "zero_one"),
    "meteor": (_CORPUS, "zero_one"),
    "chrf": (_CORPUS, "zero_one"),
    "wer": (_CORPUS, "zero_one"),
    "cer": (_CORPUS, "zero_one"),
    "perplexity": (_CORPUS, "log"),
    "ndcg": (_LISTS, "top_k"),
    "map": (_LISTS, "top_k"),
    "mrr": (_LISTS, "top_k"),
    "mean_average_precision": (_LISTS, "top_k"),
    "mape": (_UNBOUNDED, "absolute"),
    "smape": (_UNBOUNDED, "absolute"),
    "msle": (_UNBOUNDED, "squared"),
    "rmsle": (_UNBOUNDED, "squared"),
    "hinge": (_UNBOUNDED, "zero_one"),
}

_SAID = {
    "auc": "AUC", "roc_auc": "ROC AUC", "auroc": "AUROC", "pr_auc": "PR AUC", "auprc": "AUPRC",
    "f1": "F1", "mcc": "MCC", "r2": "R2", "bleu": "BLEU", "rouge": "ROUGE", "meteor": "METEOR",
    "wer": "WER", "cer": "CER", "ndcg": "NDCG", "map": "MAP", "mrr": "MRR", "mape": "MAPE",
    "smape": "SMAPE", "msle": "MSLE", "rmsle": "RMSLE", "iou": "IoU", "ece": "ECE", "qwk": "QWK",
}  # fmt: skip


def refuse_metric(name: str) -> None:
    """Raise, if this metric has no per-example loss, with the reason and the nearest loss."""
    if name not in REFUSED:
        return
    why, nearest = REFUSED[name]
    raise NoPerExampleLoss(
        f"{_SAID.get(name, name)} is not a mean of bounded per-example losses: {why}. "
        f'The nearest loss that works is "{nearest}".',
        nearest=nearest,
    )
