"""Losses and metrics by name, and the metrics that are refused."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from ladderboard import _settings
from ladderboard.errors import InvalidSetting, NoPerExampleLoss
from ladderboard.losses._base import HIGHER_FORMS, DisplayForm, Loss, display_risk
from ladderboard.losses._classification import Brier, Hamming, Log, TopK, ZeroOne
from ladderboard.losses._custom import Custom, Shortfall, WholeSample
from ladderboard.losses._names import ALIASES, METRICS, normalize, refusal, resolve
from ladderboard.losses._overlap import (
    Dice,
    IntersectionOverUnion,
    IouThresholds,
    RowPrecision,
    RowRecall,
)
from ladderboard.losses._regression import (
    Absolute,
    Percentage,
    Pinball,
    Squared,
    SquaredLog,
    SquaredPercentage,
    SymmetricPercentage,
)
from ladderboard.losses._retrieval import AveragePrecisionAtK, GainAtK, HitAtK, ReciprocalRank
from ladderboard.losses._sequences import EditDissimilarity, Levenshtein, Rouge, WordJaccard
from ladderboard.losses._statistics import (
    R2,
    AveragePrecision,
    BalancedAccuracy,
    Bleu,
    CharacterErrorRate,
    Chrf,
    ExplainedVariance,
    FBeta,
    Gini,
    Jaccard,
    Kappa,
    Kendall,
    LabelRanking,
    Matthews,
    MeanColumnRmse,
    MeanColumnRmsle,
    OrderCorrelation,
    Pearson,
    Precision,
    ProbabilisticF1,
    Recall,
    RocAuc,
    Spearman,
    WordErrorRate,
)
from ladderboard.losses._vectors import AngularError, Crps, KlDivergence, MultiLabelLog

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

LOSSES: dict[str, type[Loss]] = {
    loss_class.name: loss_class
    for loss_class in (
        ZeroOne, TopK, Brier, Log, Absolute, Squared, Pinball, Hamming, Shortfall,
        SquaredLog, Percentage, SymmetricPercentage, SquaredPercentage,
        MultiLabelLog, KlDivergence, Crps, AngularError,
        AveragePrecisionAtK, GainAtK, ReciprocalRank, HitAtK,
        Dice, IntersectionOverUnion, RowPrecision, RowRecall, IouThresholds,
        Levenshtein, EditDissimilarity, WordJaccard, Rouge,
        RocAuc, Gini, AveragePrecision, LabelRanking,
        FBeta, Jaccard, Precision, Recall, BalancedAccuracy, ProbabilisticF1, Matthews, Kappa,
        Pearson, Spearman, Kendall, R2, ExplainedVariance, MeanColumnRmse, MeanColumnRmsle,
        WordErrorRate, CharacterErrorRate, Bleu, Chrf, OrderCorrelation,
    )
}  # fmt: skip


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
        return "higher" if self.shown_as in HIGHER_FORMS else "lower"

    @property
    def title(self) -> str:
        """The name in front of a number: "AUC" in "AUC 0.913"."""
        found = resolve(self.name)
        return (found[1].title if found else None) or self.name.replace("_", " ")

    @property
    def is_named(self) -> bool:
        """Whether it has a name of its own, such as accuracy, and is not just a loss."""
        return self.shown_as != "loss" or self.title != self.loss.name.replace("_", " ")

    def describe(self) -> dict[str, Any]:
        """Return what is needed to show a risk in this metric, JSON-able."""
        unit = self.loss.display_unit(self.shown_as)
        return {"title": self.title, "as": self.shown_as, "unit": unit}

    def display(self, risk: float) -> float:
        """Return the metric for a risk in [0, 1]."""
        return display_risk(self.shown_as, risk, self.loss.display_unit(self.shown_as))

    def value(self, labels: Any, predictions: Any) -> float:
        """Return the metric of predictions, as other libraries compute it. For the owner.

        No range, clip or cap applies, so it may differ from what ``display`` shows of a risk where
        one of these does.

        >>> metric("roc_auc").value([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
        0.75
        """
        return display_risk(self.shown_as, self.loss.exact(labels, predictions))


def uses_labels(name: str) -> bool:
    """Return whether a loss or metric of this name needs labels; unknown ones do.

    >>> uses_labels("accuracy"), uses_labels("score")
    (True, False)
    """
    found = resolve(name)
    known = LOSSES.get(found[1].loss if found else name)
    return known is None or known.uses_labels


def made_from_description(described: Loss) -> bool:
    """Return whether ``loss`` makes this loss from its description; not for a user's own class."""
    return type(described) in {Custom, *LOSSES.values()}


def metric(
    name: str | Metric | Loss | Mapping[str, Any] | Callable[..., Any], /, **params: Any
) -> Metric:
    """Return a metric: a loss, and how its number is displayed.

    >>> metric("mae", range=(0, 100)).display(0.05)
    5.0
    """
    if isinstance(name, Metric) and not params:
        return name
    if not isinstance(name, str):
        built = loss(name, **params)  # type: ignore[arg-type]
        return Metric(built.name, built)
    if ":" in name or name in {Custom.name, WholeSample.name}:
        return _custom_metric(name, params)
    key = normalize(name)
    if key in LOSSES and key not in METRICS:
        return Metric(key, _create_loss(LOSSES[key], key, params))
    found = resolve(name)
    if found is not None:
        key, recipe = found
        built = _create_loss(LOSSES[recipe.loss], key, {**recipe.settings, **params})
        return Metric(key, built, recipe.form)
    refused = refusal(name)
    if refused is not None:
        why, nearest = refused
        raise NoPerExampleLoss(
            f'{name} cannot be used: {why}. The nearest metric that works is "{nearest}".',
            nearest=nearest,
        )
    known = sorted({*LOSSES, *METRICS, *ALIASES})
    close = difflib.get_close_matches(key, known, n=1, cutoff=0.75)
    listed = ", ".join(sorted(METRICS))
    hint = f"did you mean {close[0]!r}?" if close else f"choose from {listed}."
    raise InvalidSetting(f"There is no loss named {_settings.safe_repr(name)}; {hint}")


def _custom_metric(name: str, params: dict[str, Any]) -> Metric:
    """Return a metric of a user's function: of each example, or with ``whole`` of all of them."""
    if ":" in name:
        whole = params.pop("whole", False)
        params = {"function": name, **params}
    else:
        whole = name == WholeSample.name
    if not whole:
        return Metric(name, _create_loss(Custom, "custom", params))
    made = _create_loss(WholeSample, WholeSample.name, params)
    title = str(params.get("function")).rpartition(":")[2]
    higher = params.get("direction", "higher") == "higher"
    return Metric(title, made, "complement" if higher else "scaled")


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
    >>> loss("max_error")
    Traceback (most recent call last):
    ...
    ladderboard.errors.NoPerExampleLoss: max_error cannot be used: a single example decides it, so
    every answer would reveal that example's label. The nearest metric that works is "mae".
    """
    if isinstance(name, Loss):
        if params:
            raise InvalidSetting(
                "This loss is an instance already; pass parameters when creating it."
            )
        return name
    if isinstance(name, str):
        built = metric(name, **params).loss
        built.check_settings()
        return built
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
