"""Losses and metrics by name, and the metrics that are refused."""

from __future__ import annotations

import difflib
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from ladderboard import _settings
from ladderboard.errors import InvalidSetting, NoPerExampleLoss
from ladderboard.losses._base import Loss
from ladderboard.losses._classification import Brier, Hamming, Log, TopK, ZeroOne
from ladderboard.losses._custom import Custom, Shortfall
from ladderboard.losses._regression import Absolute, Pinball, Squared

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

DisplayForm = Literal["loss", "complement", "scaled", "root"]

# metric: (its loss, how its number is displayed)
METRICS: dict[str, tuple[str, DisplayForm]] = {
    "accuracy": ("zero_one", "complement"),
    "acc": ("zero_one", "complement"),
    "exact_match": ("zero_one", "complement"),
    "error": ("zero_one", "loss"),
    "error_rate": ("zero_one", "loss"),
    "misclassification": ("zero_one", "loss"),
    "zero_one_loss": ("zero_one", "loss"),
    "top_k_accuracy": ("top_k", "complement"),
    "top_k_error": ("top_k", "loss"),
    "brier_score": ("brier", "loss"),
    "log_loss": ("log", "scaled"),
    "logloss": ("log", "scaled"),
    "cross_entropy": ("log", "scaled"),
    "mae": ("absolute", "scaled"),
    "mean_absolute_error": ("absolute", "scaled"),
    "mse": ("squared", "scaled"),
    "mean_squared_error": ("squared", "scaled"),
    "rmse": ("squared", "root"),
    "root_mean_squared_error": ("squared", "root"),
    "pinball_loss": ("pinball", "scaled"),
    "quantile_loss": ("pinball", "scaled"),
    "hamming_loss": ("hamming", "loss"),
    "hamming_accuracy": ("hamming", "complement"),
    "score": ("shortfall", "complement"),
}

_RANKING = "it compares every positive with every negative"
_COUNTS = "it is a ratio of counts over the whole set"
_TOGETHER = "it is computed from all predictions together"
_SPREAD = "it divides by the spread of the labels"
_CORPUS = "it is computed over a whole corpus"
_UNBOUNDED = "its cost of one example has no upper limit"
_CLASS_SHARES = "it weighs examples by how often their class occurs among the hidden labels"

# metric: (why it has no bounded per-example loss, the nearest loss that works)
REFUSED_METRICS: dict[str, tuple[str, str]] = {
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

# metric: the nearest loss. These are means of bounded scores, in several variants.
MISSING_METRICS: dict[str, str] = {
    "ndcg": "top_k",
    "map": "top_k",
    "mrr": "top_k",
    "rouge": "zero_one",
    "smape": "absolute",
}

_DISPLAY_NAMES = {
    "auc": "AUC", "roc_auc": "ROC AUC", "auroc": "AUROC", "pr_auc": "PR AUC", "auprc": "AUPRC",
    "f1": "F1", "mcc": "MCC", "r2": "R2", "bleu": "BLEU", "rouge": "ROUGE", "meteor": "METEOR",
    "wer": "WER", "cer": "CER", "ndcg": "NDCG", "map": "MAP", "mrr": "MRR", "mape": "MAPE",
    "smape": "sMAPE", "msle": "MSLE", "rmsle": "RMSLE", "iou": "IoU", "ece": "ECE", "qwk": "QWK",
}  # fmt: skip

LOSSES: dict[str, type[Loss]] = {
    loss_class.name: loss_class
    for loss_class in (ZeroOne, TopK, Brier, Log, Absolute, Squared, Pinball, Hamming, Shortfall)
}


@dataclass(frozen=True)
class Metric:
    """A loss under the name people use, with the direction and unit in which it is shown.

    All computation uses the loss; ``display`` converts it for people.

    Examples
    --------
    >>> import ladderboard as lb
    >>> accuracy = lb.metric("accuracy")
    >>> accuracy.loss.name, accuracy.direction, accuracy.display(0.25)
    ('zero_one', 'higher', 0.75)
    >>> round(lb.metric("rmse", range=(0, 10)).display(0.04), 12)
    2.0
    """

    name: str
    loss: Loss
    shown_as: DisplayForm = "loss"

    @property
    def direction(self) -> Literal["higher", "lower"]:
        """Whether a higher or a lower displayed value is better."""
        return "higher" if self.shown_as == "complement" else "lower"

    def display(self, risk: float) -> float:
        """Return the metric for a mean loss in [0, 1]."""
        if self.shown_as == "complement":
            return 1 - risk
        if self.shown_as == "scaled":
            return risk * self.loss.unit
        if self.shown_as == "root":
            return math.sqrt(max(risk, 0) * self.loss.unit)
        return risk


def raise_if_refused(name: str) -> None:
    """Raise with the reason and the nearest loss if the metric cannot be used."""
    display_name = _DISPLAY_NAMES.get(name, name)
    if name in MISSING_METRICS:
        raise InvalidSetting(
            f"{display_name} is not built in; pass a function that returns 1 minus its score for "
            f'every example, or take the nearest loss, "{MISSING_METRICS[name]}".'
        )
    if name in REFUSED_METRICS:
        why, nearest = REFUSED_METRICS[name]
        raise NoPerExampleLoss(
            f"{display_name} is not a mean of bounded per-example losses: {why}. "
            f'The nearest loss that works is "{nearest}".',
            nearest=nearest,
        )


def uses_labels(name: str) -> bool:
    """Return whether a loss or metric of this name needs labels; unknown ones do.

    >>> uses_labels("accuracy"), uses_labels("score")
    (True, False)
    """
    known = LOSSES.get(METRICS.get(name, (name,))[0])
    return known is None or known.uses_labels


def made_from_description(described: Loss) -> bool:
    """Return whether ``loss`` makes this loss from its description; not for a user's own class."""
    return type(described) in {Custom, *LOSSES.values()}


def metric(name: str | Loss | Mapping[str, Any] | Callable[..., Any], /, **params: Any) -> Metric:
    """Return a metric: a loss, and how its number is displayed.

    >>> metric("mae", range=(0, 100)).display(0.05)
    5.0
    """
    if not isinstance(name, str):
        built = loss(name, **params)
        return Metric(built.name, built)
    if ":" in name:
        return Metric(name, _create_loss(Custom, "custom", {"function": name, **params}))
    if name == Custom.name:
        return Metric(name, _create_loss(Custom, name, params))
    plain = name.strip().lower().replace("-", "_").replace(" ", "_")
    # scikit-learn's names: accuracy_score, neg_log_loss.
    for key in (plain, plain.removesuffix("_score"), plain.removeprefix("neg_")):
        if key in LOSSES:
            return Metric(key, _create_loss(LOSSES[key], key, params))
        if key in METRICS:
            loss_name, shown_as = METRICS[key]
            return Metric(key, _create_loss(LOSSES[loss_name], key, params), shown_as)
        raise_if_refused(key)
    known = sorted({*LOSSES, *METRICS})
    close = difflib.get_close_matches(plain, known, n=1, cutoff=0.75)
    hint = f"did you mean {close[0]!r}?" if close else f"choose from {', '.join(known)}."
    raise InvalidSetting(f"There is no loss named {_settings.safe_repr(name)}; {hint}")


def loss(name: str | Loss | Mapping[str, Any] | Callable[..., Any], /, **params: Any) -> Loss:
    """Return a loss.

    Parameters
    ----------
    name
        A name (``"zero_one"``, ``"brier"``, ``"log"`` ...), a metric's name (``"accuracy"``,
        ``"mae"`` ...), ``"module:function"``, a function of (labels, predictions), or what
        ``describe`` returned.
    params
        The loss's parameters, such as ``classes=``, ``range=``, ``clip=``, ``k=``.

    Examples
    --------
    >>> loss("zero_one")(["a", "b"], ["a", "c"]).tolist()
    [0.0, 1.0]
    >>> loss("auc")
    Traceback (most recent call last):
    ...
    ladderboard.errors.NoPerExampleLoss: AUC is not a mean of bounded per-example losses: it
    compares every positive with every negative. The nearest loss that works is "brier".
    """
    if isinstance(name, Loss):
        if params:
            raise InvalidSetting(
                "This loss is an instance already; pass parameters when creating it."
            )
        return name
    if isinstance(name, str):
        return metric(name, **params).loss
    if callable(name):
        return _create_loss(Custom, "custom", {"function": name, **params})
    try:
        settings = {**name, **params}
    except TypeError:
        raise InvalidSetting(
            f"A loss must be a name, a function or a description; got {_settings.safe_repr(name)}."
        ) from None
    key = settings.pop("loss", None)
    if not isinstance(key, str) or not all(isinstance(setting, str) for setting in settings):
        raise InvalidSetting('A description of a loss needs its name under "loss".')
    return loss(key, **settings)


def _create_loss(kind: type[Loss], name: str, params: dict[str, Any]) -> Loss:
    try:
        return kind(**params)
    except TypeError as error:
        reason = str(error).removeprefix(f"{kind.__name__}.__init__() ")
        raise InvalidSetting(f"The loss {name!r} {reason}.") from None
