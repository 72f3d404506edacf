"""Metrics that are refused by name, why, and what to take instead."""

from __future__ import annotations

from ladderboard.errors import InvalidSetting, NoPerExampleLoss

__all__ = ["NOT_BUILT_IN", "REFUSED", "refuse_metric"]

_RANKING = "it compares every positive with every negative"
_COUNTS = "it is a ratio of counts over the whole set"
_TOGETHER = "it is computed from all predictions together"
_SPREAD = "it divides by the spread of the labels"
_CORPUS = "it is computed over a whole corpus"
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
    "f1_micro": (f"{_COUNTS} (with one label an example it is accuracy)", "zero_one"),
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
    "explained_variance": (_SPREAD, "squared"),
    "pearson": (_TOGETHER, "squared"),
    "correlation": (_TOGETHER, "squared"),
    "spearman": (_TOGETHER, "absolute"),
    "kendall": (_TOGETHER, "absolute"),
    "median_absolute_error": (_TOGETHER, "absolute"),
    "max_error": (_TOGETHER, "absolute"),
    "ece": (_TOGETHER, "brier"),
    "bleu": (_CORPUS, "zero_one"),
    "meteor": (_CORPUS, "zero_one"),
    "chrf": (_CORPUS, "zero_one"),
    "wer": (_CORPUS, "zero_one"),
    "cer": (_CORPUS, "zero_one"),
    "perplexity": (_CORPUS, "log"),
    "mean_average_precision": (_RANKING, "top_k"),
    "mape": (_UNBOUNDED, "absolute"),
    "mean_absolute_percentage_error": (_UNBOUNDED, "absolute"),
    "mean_squared_log_error": (_UNBOUNDED, "squared"),
    "msle": (_UNBOUNDED, "squared"),
    "rmsle": (_UNBOUNDED, "squared"),
    "hinge": (_UNBOUNDED, "zero_one"),
}

# metric: the nearest loss. These are means of bounded scores, with details of their own.
NOT_BUILT_IN: dict[str, str] = {
    "ndcg": "top_k",
    "map": "top_k",
    "mrr": "top_k",
    "rouge": "zero_one",
    "smape": "absolute",
}

_SAID = {
    "auc": "AUC", "roc_auc": "ROC AUC", "auroc": "AUROC", "pr_auc": "PR AUC", "auprc": "AUPRC",
    "f1": "F1", "mcc": "MCC", "r2": "R2", "bleu": "BLEU", "rouge": "ROUGE", "meteor": "METEOR",
    "wer": "WER", "cer": "CER", "ndcg": "NDCG", "map": "MAP", "mrr": "MRR", "mape": "MAPE",
    "smape": "sMAPE", "msle": "MSLE", "rmsle": "RMSLE", "iou": "IoU", "ece": "ECE", "qwk": "QWK",
}  # fmt: skip


def refuse_metric(name: str) -> None:
    """Raise, if this metric is refused by name, with the reason and the nearest loss."""
    said = _SAID.get(name, name)
    if name in NOT_BUILT_IN:
        raise InvalidSetting(
            f"{said} is not built in; pass a function that gives 1 minus its score for every "
            f'example, or take the nearest loss, "{NOT_BUILT_IN[name]}".'
        )
    if name in REFUSED:
        why, nearest = REFUSED[name]
        raise NoPerExampleLoss(
            f"{said} is not a mean of bounded per-example losses: {why}. "
            f'The nearest loss that works is "{nearest}".',
            nearest=nearest,
        )
