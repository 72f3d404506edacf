"""The names of metrics that people type, what each is made of, and which are refused.

A name is compared in lower case, with ``_`` for hyphens and blanks, without scikit-learn's ``neg_``
and ``_score``. Numbers in a name are settings: map@5, top-3 accuracy, f0.5.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from ladderboard.losses._base import DisplayForm


class MetricRecipe(NamedTuple):
    """The loss of a metric, how its number is displayed, and the loss's settings."""

    loss: str
    form: DisplayForm
    settings: dict[str, Any] = {}  # noqa: RUF012 - never changed
    title: str | None = None


def _averages(loss: str, title: str) -> dict[str, MetricRecipe]:
    """Return the recipes of a ratio of counts for each average."""
    return {
        loss: MetricRecipe(loss, "complement", {}, title),
        **{
            f"{loss}_{average}": MetricRecipe(
                loss, "complement", {"average": average}, f"{average}-{title}"
            )
            for average in ("micro", "macro", "weighted")
        },
    }


_ROC, _BY_ROW = "roc_auc", {"empty": 0.0}
METRICS: dict[str, MetricRecipe] = {
    # Means of losses.
    "accuracy": MetricRecipe("zero_one", "complement"),
    "error_rate": MetricRecipe("zero_one", "loss"),
    "top_k_accuracy": MetricRecipe("top_k", "complement"),
    "top_k_error": MetricRecipe("top_k", "loss"),
    "brier_score": MetricRecipe("brier", "loss"),
    "log_loss": MetricRecipe("log", "scaled"),
    "multilabel_log_loss": MetricRecipe("multilabel_log", "scaled"),
    "mae": MetricRecipe("absolute", "scaled", {}, "MAE"),
    "mse": MetricRecipe("squared", "scaled", {}, "MSE"),
    "rmse": MetricRecipe("squared", "root", {}, "RMSE"),
    "msle": MetricRecipe("squared_log", "scaled", {}, "MSLE"),
    "rmsle": MetricRecipe("squared_log", "root", {}, "RMSLE"),
    "mape": MetricRecipe("percentage", "scaled", {}, "MAPE"),
    "smape": MetricRecipe("symmetric_percentage", "scaled", {}, "sMAPE"),
    "rmspe": MetricRecipe("squared_percentage", "root", {}, "RMSPE"),
    "pinball_loss": MetricRecipe("pinball", "scaled"),
    "hamming_loss": MetricRecipe("hamming", "loss"),
    "hamming_accuracy": MetricRecipe("hamming", "complement"),
    "kl_divergence": MetricRecipe("kl_divergence", "scaled", {}, "KL divergence"),
    "crps": MetricRecipe("crps", "loss", {}, "CRPS"),
    "angular_error": MetricRecipe("angular_error", "scaled"),
    "score": MetricRecipe("shortfall", "complement"),
    # Lists, sets, masks and text, example by example.
    "map_at_k": MetricRecipe("map_at_k", "complement", {}, "MAP@k"),
    "ndcg_at_k": MetricRecipe("ndcg_at_k", "complement", {}, "NDCG@k"),
    "mrr": MetricRecipe("reciprocal_rank", "complement", {}, "MRR"),
    "hit_rate": MetricRecipe("hit_at_k", "complement"),
    "hit_error": MetricRecipe("hit_at_k", "loss"),
    "f1_samples": MetricRecipe("dice", "complement", _BY_ROW, "F1 by row"),
    "jaccard_samples": MetricRecipe("iou", "complement", _BY_ROW, "Jaccard by row"),
    "precision_samples": MetricRecipe("row_precision", "complement", _BY_ROW, "precision by row"),
    "recall_samples": MetricRecipe("row_recall", "complement", _BY_ROW, "recall by row"),
    "dice": MetricRecipe("dice", "complement", {"of": "masks", "empty": 1.0}, "Dice"),
    "iou": MetricRecipe("iou", "complement", {"of": "masks", "empty": 1.0}, "IoU"),
    "iou_thresholds": MetricRecipe("iou_thresholds", "complement", {}, "precision over IoU"),
    "levenshtein": MetricRecipe("levenshtein", "scaled", {}, "Levenshtein distance"),
    "edit_similarity": MetricRecipe("edit_dissimilarity", "complement"),
    "word_jaccard": MetricRecipe("word_jaccard", "complement", {}, "word Jaccard"),
    "rouge1": MetricRecipe("rouge", "complement", {"type": "1"}, "ROUGE-1"),
    "rouge2": MetricRecipe("rouge", "complement", {"type": "2"}, "ROUGE-2"),
    "rougel": MetricRecipe("rouge", "complement", {"type": "l"}, "ROUGE-L"),
    # Statistics.
    "roc_auc": MetricRecipe(_ROC, "complement", {}, "AUC"),
    "roc_auc_weighted": MetricRecipe(_ROC, "complement", {"average": "weighted"}, "weighted AUC"),
    "roc_auc_micro": MetricRecipe(_ROC, "complement", {"average": "micro"}, "micro-AUC"),
    "roc_auc_ovo": MetricRecipe(_ROC, "complement", {"multi_class": "ovo"}, "AUC (pairs)"),
    "roc_auc_ovo_weighted": MetricRecipe(
        _ROC, "complement", {"multi_class": "ovo", "average": "weighted"}, "weighted AUC (pairs)"
    ),
    "gini": MetricRecipe("gini", "complement", {}, "Gini"),
    "average_precision": MetricRecipe("average_precision", "complement"),
    "average_precision_micro": MetricRecipe(
        "average_precision", "complement", {"average": "micro"}, "micro-average precision"
    ),
    "lwlrap": MetricRecipe("label_ranking_average_precision", "complement"),
    "label_ranking_average_precision": MetricRecipe(
        "label_ranking_average_precision", "complement", {"average": "macro"}
    ),
    **_averages("f1", "F1"),
    **_averages("precision", "precision"),
    **_averages("recall", "recall"),
    **_averages("jaccard", "Jaccard"),
    "fbeta": MetricRecipe("f1", "complement", {}, "F-beta"),
    "fbeta_macro": MetricRecipe("f1", "complement", {"average": "macro"}, "macro-F-beta"),
    "fbeta_micro": MetricRecipe("f1", "complement", {"average": "micro"}, "micro-F-beta"),
    "probabilistic_f1": MetricRecipe("probabilistic_f1", "complement", {}, "probabilistic F1"),
    "global_dice": MetricRecipe(
        "f1", "complement", {"of": "masks", "average": "micro"}, "Dice of all pixels"
    ),
    "global_iou": MetricRecipe(
        "jaccard", "complement", {"of": "masks", "average": "micro"}, "IoU of all pixels"
    ),
    "box_f1": MetricRecipe(
        "f1", "complement", {"of": "points", "average": "micro"}, "micro-F1 of boxes"
    ),
    "balanced_accuracy": MetricRecipe("balanced_accuracy", "complement"),
    "mcc": MetricRecipe("mcc", "complement", {}, "MCC"),
    "kappa": MetricRecipe("kappa", "complement"),
    "linear_weighted_kappa": MetricRecipe("kappa", "complement", {"weights": "linear"}),
    "qwk": MetricRecipe("kappa", "complement", {"weights": "quadratic"}, "QWK"),
    "pearson": MetricRecipe("pearson", "complement", {}, "Pearson correlation"),
    "spearman": MetricRecipe("spearman", "complement", {}, "Spearman correlation"),
    "kendall": MetricRecipe("kendall", "complement", {}, "Kendall correlation"),
    "order_correlation": MetricRecipe("order_correlation", "complement"),
    "r2": MetricRecipe("r2", "complement", {}, "R2"),
    "explained_variance": MetricRecipe("explained_variance", "complement"),
    "mcrmse": MetricRecipe("mcrmse", "scaled", {}, "MCRMSE"),
    "mcrmsle": MetricRecipe("mcrmsle", "scaled", {}, "MCRMSLE"),
    "wer": MetricRecipe("wer", "scaled", {}, "WER"),
    "cer": MetricRecipe("cer", "scaled", {}, "CER"),
    "bleu": MetricRecipe("bleu", "percent", {}, "BLEU"),
    "chrf": MetricRecipe("chrf", "percent", {}, "chrF"),
}

ALIASES: dict[str, str] = {
    "acc": "accuracy",
    "exact_match": "accuracy",
    "categorization_accuracy": "accuracy",
    "multiclass_accuracy": "accuracy",
    "error": "error_rate",
    "misclassification": "error_rate",
    "misclassification_error": "error_rate",
    "categorization_error": "error_rate",
    "zero_one_loss": "error_rate",
    "topk_accuracy": "top_k_accuracy",
    "topk_error": "top_k_error",
    "brier_score_loss": "brier_score",
    "brier_loss": "brier_score",
    "logloss": "log_loss",
    "cross_entropy": "log_loss",
    "binary_cross_entropy": "log_loss",
    "multi_class_log_loss": "log_loss",
    "multiclass_log_loss": "log_loss",
    "multi_class_logloss": "log_loss",
    "multiclass_loss": "log_loss",
    "multi_label_log_loss": "multilabel_log_loss",
    "mean_columnwise_log_loss": "multilabel_log_loss",
    "mean_column_wise_log_loss": "multilabel_log_loss",
    "mean_absolute_error": "mae",
    "weighted_mean_absolute_error": "mae",
    "weighted_mae": "mae",
    "wmae": "mae",
    "mean_squared_error": "mse",
    "root_mean_squared_error": "rmse",
    "root_mean_square_error": "rmse",
    "weighted_root_mean_squared_error": "rmse",
    "weighted_rmse": "rmse",
    "wrmse": "rmse",
    "mean_squared_log_error": "msle",
    "mean_squared_logarithmic_error": "msle",
    "root_mean_squared_log_error": "rmsle",
    "root_mean_squared_logarithmic_error": "rmsle",
    "mean_absolute_percentage_error": "mape",
    "symmetric_mean_absolute_percentage_error": "smape",
    "root_mean_square_percentage_error": "rmspe",
    "root_mean_squared_percentage_error": "rmspe",
    "quantile_loss": "pinball_loss",
    "mean_pinball_loss": "pinball_loss",
    "kl": "kl_divergence",
    "kullback_leibler_divergence": "kl_divergence",
    "continuous_ranked_probability": "crps",
    "mean_angular_error": "angular_error",
    "map": "map_at_k",
    "mapk": "map_at_k",
    "mean_average_precision_at_k": "map_at_k",
    "ndcg": "ndcg_at_k",
    "mean_reciprocal_rank": "mrr",
    "hit_rate_at_k": "hit_rate",
    "hits_at_k": "hit_rate",
    "mean_f": "f1_samples",
    "mean_f1": "f1_samples",
    "mean_f_score": "f1_samples",
    "mean_fscore": "f1_samples",
    "samples_f1": "f1_samples",
    "mean_jaccard": "jaccard_samples",
    "mean_dice": "dice",
    "dice_coefficient": "dice",
    "mean_iou": "iou",
    "intersection_over_union": "iou",
    "mean_average_precision_over_iou": "iou_thresholds",
    "mean_levenshtein": "levenshtein",
    "levenshtein_mean": "levenshtein",
    "mean_levenshtein_distance": "levenshtein",
    "levenshtein_distance": "levenshtein",
    "edit_distance": "levenshtein",
    "levenshtein_similarity": "edit_similarity",
    "levenshtein_ratio": "edit_similarity",
    "word_level_jaccard": "word_jaccard",
    "rouge": "rougel",
    "rouge_1": "rouge1",
    "rouge_2": "rouge2",
    "rouge_l": "rougel",
    "auc": "roc_auc",
    "auroc": "roc_auc",
    "roc": "roc_auc",
    "area_under_receiver_operating_characteristic_curve": "roc_auc",
    "area_under_the_roc_curve": "roc_auc",
    "concordance": "roc_auc",
    "roc_auc_ovr": "roc_auc",
    "roc_auc_macro": "roc_auc",
    "roc_auc_ovr_weighted": "roc_auc_weighted",
    "mc_auc": "roc_auc",
    "mean_auc": "roc_auc",
    "mean_roc_auc": "roc_auc",
    "column_mean_auc": "roc_auc",
    "mean_column_wise_auc": "roc_auc",
    "mean_column_wise_roc_auc": "roc_auc",
    "mean_columnwise_auc": "roc_auc",
    "normalized_gini": "gini",
    "normalized_gini_index": "gini",
    "gini_index": "gini",
    "ap": "average_precision",
    "auprc": "average_precision",
    "pr_auc": "average_precision",
    "aucpr": "average_precision",
    "average_precision_macro": "average_precision",
    "label_weighted_label_ranking_average_precision": "lwlrap",
    "lrap": "label_ranking_average_precision",
    "f_score": "f1",
    "fscore": "f1",
    "f1_binary": "f1",
    "f_measure": "f1",
    "macro_f1": "f1_macro",
    "macro_fscore": "f1_macro",
    "macro_f_score": "f1_macro",
    "micro_f1": "f1_micro",
    "weighted_f1": "f1_weighted",
    "f_beta": "fbeta",
    "f_beta_macro": "fbeta_macro",
    "f_beta_micro": "fbeta_micro",
    "macro_precision": "precision_macro",
    "macro_recall": "recall_macro",
    "sensitivity": "recall",
    "pf1": "probabilistic_f1",
    "dice_global": "global_dice",
    "micro_f1_of_boxes": "box_f1",
    "iou_global": "global_iou",
    "f1_pixels": "global_dice",
    "matthews_correlation": "mcc",
    "matthews_correlation_coefficient": "mcc",
    "matthews_corrcoef": "mcc",
    "cohen_kappa": "kappa",
    "cohens_kappa": "kappa",
    "quadratic_weighted_kappa": "qwk",
    "weighted_kappa": "qwk",
    "quadratic_kappa": "qwk",
    "pearsonr": "pearson",
    "pearson_correlation": "pearson",
    "correlation": "pearson",
    "pearson_correlation_coefficient": "pearson",
    "spearmanr": "spearman",
    "spearman_correlation": "spearman",
    "spearman_rank_correlation": "spearman",
    "mean_column_wise_spearman": "spearman",
    "kendalltau": "kendall",
    "kendall_tau": "kendall",
    "kendall_tau_correlation": "order_correlation",
    "r_squared": "r2",
    "r²": "r2",
    "coefficient_of_determination": "r2",
    "mean_columnwise_rmse": "mcrmse",
    "mean_columnwise_root_mean_squared_error": "mcrmse",
    "mean_column_wise_root_mean_squared_error": "mcrmse",
    "mean_columnwise_rmsle": "mcrmsle",
    "mean_column_wise_rmsle": "mcrmsle",
    "word_error_rate": "wer",
    "token_error_rate": "wer",
    "normalized_levenshtein": "wer",
    "character_error_rate": "cer",
    "char_error_rate": "cer",
    "sacrebleu": "bleu",
    "chrf2": "chrf",
}

_PARTITION = "it compares two clusterings, and the names of clusters mean nothing"
_ONE_EXAMPLE = "a single example decides it, so every answer would reveal that example's label"
_UNBOUNDED = "its cost of one example has no upper limit"
_RATIO = "it is a ratio without an upper limit"
_BASELINE = "it compares with a baseline that is made of the hidden labels"

# metric: (why it is refused, the nearest metric that works)
REFUSED_METRICS: dict[str, tuple[str, str]] = {
    "adjusted_mutual_info": (_PARTITION, "accuracy"),
    "adjusted_rand": (_PARTITION, "accuracy"),
    "completeness": (_PARTITION, "accuracy"),
    "fowlkes_mallows": (_PARTITION, "accuracy"),
    "homogeneity": (_PARTITION, "accuracy"),
    "mutual_info": (_PARTITION, "accuracy"),
    "normalized_mutual_info": (_PARTITION, "accuracy"),
    "rand": (_PARTITION, "accuracy"),
    "v_measure": (_PARTITION, "accuracy"),
    "max_error": (_ONE_EXAMPLE, "mae"),
    "median_absolute_error": ("it is a quantile, which a few examples decide", "mae"),
    "mean_gamma_deviance": (_UNBOUNDED, "rmsle"),
    "mean_poisson_deviance": (_UNBOUNDED, "rmsle"),
    "positive_likelihood_ratio": (_RATIO, "balanced_accuracy"),
    "negative_likelihood_ratio": (_RATIO, "balanced_accuracy"),
    "d2_absolute_error": (_BASELINE, "mae"),
    "d2_brier": (_BASELINE, "brier_score"),
    "d2_log_loss": (_BASELINE, "log_loss"),
    "d2_pinball": (_BASELINE, "pinball_loss"),
    "d2_tweedie": (_BASELINE, "rmse"),
    "ece": ("it is computed from bins of predictions and can be 0 for useless ones", "brier_score"),
    "perplexity": ("it is the exponential of a log loss", "log_loss"),
    "meteor": ("it needs a dictionary of synonyms", "chrf"),
    "bertscore": ("it needs a language model", "chrf"),
    "ter": ("its shifts have no fast exact form", "wer"),
    "hinge": (_UNBOUNDED, "accuracy"),
    "object_detection_map": ("boxes are matched across all images", "iou"),
    "mean_average_precision": (
        "of detections it matches boxes across all images; of lists it is map@k",
        "map@5",
    ),
}

_NUMBERED = (
    # (name with a number, metric, setting)
    (r"(?:mean_average_precision|map)_?(?:@|at_)_?(\d+)", "map_at_k", "k"),
    (r"(?:normalized_discounted_cumulative_gain|ndcg)_?(?:@|at_)_?(\d+)", "ndcg_at_k", "k"),
    (r"mrr_?(?:@|at_)_?(\d+)", "mrr", "k"),
    (r"(?:hit|hits|hit_rate|recall)_?(?:@|at_)_?(\d+)", "hit_rate", "k"),
    (r"top_?(\d+)_?acc(?:uracy)?", "top_k_accuracy", "k"),
    (r"top_?(\d+)_?error(?:_rate)?", "top_k_error", "k"),
    (r"f_?(\d*\.?\d+)", "fbeta", "beta"),
    (r"f_?(\d*\.?\d+)_macro", "fbeta_macro", "beta"),
    (r"f_?(\d*\.?\d+)_micro", "fbeta_micro", "beta"),
)


def normalize(name: str) -> str:
    """Return a name as it is compared.

    >>> normalize(" Quadratic Weighted-Kappa "), normalize("ROC_AUC")
    ('quadratic_weighted_kappa', 'roc_auc')
    """
    return re.sub(r"[\s\-_]+", "_", name.strip().lower()).replace("'", "").strip("_")


def spellings(name: str) -> list[str]:
    """Return how a name may be listed: as it is, and without what scikit-learn and people add.

    >>> spellings("neg_mean_squared_error"), spellings("roc_auc_score")
    (['neg_mean_squared_error', 'mean_squared_error'], ['roc_auc_score', 'roc_auc'])
    """
    plain = normalize(name)
    short = plain.removeprefix("neg_")
    return list(dict.fromkeys((plain, short, short.removesuffix("_score"))))


def resolve(name: str) -> tuple[str, MetricRecipe] | None:
    """Return the name and recipe of a metric, with the number in its name as a setting."""
    for key in spellings(name):
        if key in METRICS:
            return key, METRICS[key]
        if key in ALIASES:
            return key, METRICS[ALIASES[key]]
    for key in spellings(name):
        for pattern, metric, setting in _NUMBERED:
            match = re.fullmatch(pattern, key)
            if match:
                number = float(match[1]) if setting == "beta" else int(match[1])
                recipe = METRICS[metric]
                title = (recipe.title or metric).replace("k", match[1]).replace("-beta", match[1])
                settings = {**recipe.settings, setting: number}
                return key, recipe._replace(settings=settings, title=title)
    return None


def refusal(name: str) -> tuple[str, str] | None:
    """Return why a metric is refused and the nearest one, if it is refused."""
    return next((REFUSED_METRICS[key] for key in spellings(name) if key in REFUSED_METRICS), None)
