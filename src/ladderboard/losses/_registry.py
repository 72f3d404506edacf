"""Losses and metrics by name, and the metrics that are refused."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from ladderboard import _settings
from ladderboard.errors import (
    InvalidInput,
    InvalidLabels,
    InvalidPredictions,
    InvalidSetting,
    NoPerExampleLoss,
)
from ladderboard.losses._arrays import (
    ExpectedColumns,
    LabelKind,
    predictions_converter,
    read_values,
)
from ladderboard.losses._base import HIGHER_FORMS, DisplayForm, Loss, display_risk
from ladderboard.losses._cells import object_array, read_cells
from ladderboard.losses._custom import Custom, WholeSample
from ladderboard.losses._names import ALIASES, METRICS, normalize, refusal, resolve

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    Converter = Callable[[NDArray[Any]], NDArray[Any]]

# Every loss: module, name and class. A loss is imported when it is first asked for.
_CLASSES = {
    "_classification": {
        "zero_one": "ZeroOne", "top_k": "TopK", "brier": "Brier", "log": "Log",
        "hamming": "Hamming",
    },
    "_regression": {
        "absolute": "Absolute", "squared": "Squared", "pinball": "Pinball",
        "squared_log": "SquaredLog", "percentage": "Percentage",
        "symmetric_percentage": "SymmetricPercentage",
        "squared_percentage": "SquaredPercentage",
    },
    "_custom": {"shortfall": "Shortfall"},
    "_registry": {"weighted_sum": "WeightedSum"},
    "_vectors": {
        "multilabel_log": "MultiLabelLog", "kl_divergence": "KlDivergence", "crps": "Crps",
        "angular_error": "AngularError",
    },
    "_retrieval": {
        "map_at_k": "AveragePrecisionAtK", "ndcg_at_k": "GainAtK",
        "reciprocal_rank": "ReciprocalRank", "hit_at_k": "HitAtK",
    },
    "_overlap": {
        "dice": "Dice", "iou": "IntersectionOverUnion", "row_precision": "RowPrecision",
        "row_recall": "RowRecall", "iou_thresholds": "IouThresholds",
    },
    "_sequences": {
        "levenshtein": "Levenshtein", "edit_dissimilarity": "EditDissimilarity",
        "word_jaccard": "WordJaccard", "rouge": "Rouge",
    },
    "_statistics._ranking": {
        "roc_auc": "RocAuc", "gini": "Gini", "average_precision": "AveragePrecision",
        "label_ranking_average_precision": "LabelRanking",
    },
    "_statistics._counts": {
        "f1": "FBeta", "jaccard": "Jaccard", "precision": "Precision", "recall": "Recall",
        "balanced_accuracy": "BalancedAccuracy", "probabilistic_f1": "ProbabilisticF1",
    },
    "_statistics._agreement": {"mcc": "Matthews", "kappa": "Kappa"},
    "_statistics._correlation": {
        "pearson": "Pearson", "spearman": "Spearman", "kendall": "Kendall", "r2": "R2",
        "explained_variance": "ExplainedVariance", "mcrmse": "MeanColumnRmse",
        "mcrmsle": "MeanColumnRmsle",
    },
    "_statistics._text": {
        "wer": "WordErrorRate", "cer": "CharacterErrorRate", "bleu": "Bleu", "chrf": "Chrf",
        "order_correlation": "OrderCorrelation",
    },
}  # fmt: skip


class _LossClasses(Mapping[str, type[Loss]]):
    """The class of each loss by name."""

    def __init__(self) -> None:
        self._places = {
            name: (module, class_name)
            for module, names in _CLASSES.items()
            for name, class_name in names.items()
        }

    def __getitem__(self, name: str) -> type[Loss]:
        module, class_name = self._places[name]
        loss_class: type[Loss] = getattr(import_module(f"ladderboard.losses.{module}"), class_name)
        return loss_class

    def __contains__(self, name: object) -> bool:
        return name in self._places

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


LOSSES: Mapping[str, type[Loss]] = _LossClasses()


def loss_label(name: str) -> str:
    """Return the name of a loss as text that says what it is.

    >>> loss_label("zero_one"), loss_label("scoring:weighted_error"), loss_label("hinge_loss")
    ('zero-one loss', 'weighted-error loss', 'hinge loss')
    """
    words = name.rpartition(":")[2].removesuffix("_loss")
    return f"{words.replace('_', '-')} loss"


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
        resolved = resolve(self.name)
        return (resolved[1].title if resolved else None) or self.name.replace("_", " ")

    @property
    def is_named(self) -> bool:
        """Whether it has a name of its own, such as accuracy, and is not just a loss."""
        return self.shown_as != "loss" or self.title != self.loss.name.replace("_", " ")

    @property
    def label(self) -> str:
        """The title, or the name of the loss as one: "zero-one loss".

        >>> import ladderboard as lb
        >>> [lb.metric(name).label for name in ("accuracy", "log_loss", "zero_one")]
        ['accuracy', 'log loss', 'zero-one loss']
        """
        return self.title if self.is_named else loss_label(self.name)

    def describe(self) -> dict[str, Any]:
        """Return what is needed to show a risk in this metric, JSON-able."""
        unit = self.loss.display_unit(self.shown_as)
        return {"title": self.title, "as": self.shown_as, "unit": unit}

    def check_settings(self) -> None:
        """Raise if a setting is missing without which nothing can be scored; it names the metric.

        >>> metric("rmse").check_settings()
        Traceback (most recent call last):
        ...
        ladderboard.errors.InvalidSetting: rmse needs a range, the declared interval of the labels;
        try lb.metric("rmse", range=(0, 100)).
        """
        try:
            self.loss.check_settings()
        except InvalidSetting as error:
            if not self.is_named:
                raise
            message = re.sub(rf"\b{re.escape(self.loss.name)}\b", self.name, str(error))
            raise InvalidSetting(message.replace("lb.loss(", "lb.metric(")) from None

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


_MAX_FORMULA = 40
_TERM = re.compile(r"\s*(\d+\.?\d*|\.\d+)\s*\*?\s*([^\d\s].*?)\s*")


@dataclass(frozen=True)
class WeightedSum(Loss):
    """A weighted sum of metrics that are means of losses, of the same predictions.

    Parameters
    ----------
    parts
        The metrics with their weights: ``{"accuracy": 0.7, "brier": 0.3}``, or a list of mappings
        with ``name``, ``weight`` and the settings of each. Weights are divided by their sum.

    The risk is the weighted sum of the metrics, of which higher is better as 1 minus their value,
    divided by ``unit``, which is the most that it can be.

    Examples
    --------
    >>> both = WeightedSum({"accuracy": 0.7, "brier": 0.3})
    >>> both([0, 1, 1], [0.5, 1.0, 0.2]).round(3).tolist()
    [0.075, 0.0, 0.892]
    >>> metric(both).title
    '0.7 (1 - accuracy) + 0.3 brier'
    """

    name: ClassVar[str] = "weighted_sum"

    parts: tuple[tuple[Metric, float], ...]

    def __post_init__(self) -> None:
        is_read = isinstance(self.parts, tuple) and all(
            isinstance(item, tuple) for item in self.parts
        )
        parts = list(self.parts if is_read else _read_parts(self.parts))
        if len(parts) < 2 or len({part for part, _ in parts}) < len(parts):
            raise InvalidSetting(
                "A weighted sum needs at least two different metrics; "
                'try {"accuracy": 0.7, "brier": 0.3}.'
            )
        total = sum(weight for _, weight in parts)
        if abs(total - 1) > _ROUNDING:  # a description has weights that were divided already
            parts = [(part, weight / total) for part, weight in parts]
        _settings.set_frozen(self, parts=_with_common_classes(parts))
        _find_reader(self.parts)  # raises if they take different predictions

    @property
    def _reader(self) -> Loss:
        return _find_reader(self.parts)[0]

    @property
    def shown_as(self) -> DisplayForm:
        """As the metrics are if higher is better for all of them, otherwise as a cost."""
        higher = all(part.direction == "higher" for part, _ in self.parts)
        return "complement" if higher else "scaled"

    @property
    def formula(self) -> str:
        """The sum as text, which says what its number is."""
        turned = "{:.6g} {}" if self.shown_as == "complement" else "{:.6g} (1 - {})"
        terms = [
            (turned if part.direction == "higher" else "{:.6g} {}").format(weight, part.title)
            for part, weight in self.parts
        ]
        return " + ".join(terms)

    @property
    def explanation(self) -> str:
        """The formula."""
        divided = "" if self.unit == 1 else f", divided by {self.unit:.6g}"
        cost = self.formula if self.shown_as == "scaled" else f"1 - ({self.formula})"
        return f"a prediction costs {cost}{divided}"

    @property
    def unit(self) -> float:
        """The largest value of the weighted sum of costs."""
        return sum(weight * _unit(part) for part, weight in self.parts)

    @property
    def params(self) -> dict[str, Any]:
        """The metrics with their weights and settings."""
        return {
            "parts": [
                {"name": part.name, "weight": weight, **part.loss.params}
                for part, weight in self.parts
            ]
        }

    @property
    def label_kind(self) -> LabelKind | None:
        """The kind of labels that a part needs."""
        kinds = [part.loss.label_kind for part, _ in self.parts]
        return next((kind for kind in kinds if kind is not None), None)

    @property
    def takes_empty(self) -> bool:
        """Whether an empty value means something to every part."""
        return all(part.loss.takes_empty for part, _ in self.parts)

    @property
    def allowed(self) -> tuple[Any, ...] | None:
        """The values that a single-valued prediction may have."""
        return self._reader.allowed

    @property
    def accepts_any(self) -> bool:
        """Whether predictions may be values that cannot be labels."""
        return self._reader.accepts_any

    def columns(self, *, kind: str | None, width: int | None) -> ExpectedColumns:
        """The columns of the part from whose predictions those of the others follow."""
        # The others may refuse what that part takes, so every value is checked.
        return replace(self._reader.columns(kind=kind, width=width), complete=False, strict=True)

    def with_inferred_classes(
        self, labels: NDArray[Any], also: NDArray[Any] | None = None
    ) -> WeightedSum:
        """Return the sum with classes inferred for the parts that have none."""
        return self._with_losses(
            [part.loss.with_inferred_classes(labels, also) for part, _ in self.parts]
        )

    def for_labels(self, labels: Any) -> WeightedSum:
        """Return the sum with the classes of these labels, if a part needs them."""
        losses = [part.loss.for_labels(labels) for part, _ in self.parts]
        changed = [
            loss for loss, (part, _) in zip(losses, self.parts, strict=True) if loss != part.loss
        ]
        if changed:
            classes = getattr(changed[0], "classes", None)
            losses = [
                replace(loss, classes=classes) if "classes" in _setting_names(loss) else loss  # type: ignore[call-arg]
                for loss in losses
            ]
        return self._with_losses(losses)

    def _with_losses(self, losses: list[Loss]) -> WeightedSum:
        if losses == [part.loss for part, _ in self.parts]:
            return self
        pairs = zip(self.parts, losses, strict=True)
        parts = tuple((replace(part, loss=loss), weight) for (part, weight), loss in pairs)
        return WeightedSum(parts)

    def read_labels(self, labels: Any) -> NDArray[Any]:
        """Check labels with every part; each reads them again, because they differ in how."""
        plain = self._read_plain(labels, "labels", InvalidLabels)
        for part, _ in self.parts:
            if part.loss.read_labels(plain).shape != plain.shape:
                raise InvalidLabels(f"{part.name} reads labels in a way that no other metric does.")
        return plain

    def read_predictions(self, predictions: Any, shape: tuple[int, ...]) -> NDArray[Any]:
        """Check predictions with every part; each reads them again, as labels."""
        plain = self._read_plain(predictions, "predictions", InvalidPredictions)
        self._reader.read_predictions(plain, shape)
        for _ in self._predictions_of_parts(plain, shape):
            pass  # each has checked its own
        return plain

    def _read_plain(self, values: Any, name: str, error_class: type[InvalidInput]) -> NDArray[Any]:
        if self.takes_empty:
            return object_array(read_cells(values, name, error_class))
        return read_values(values, name, error_class)

    def _predictions_of_parts(
        self, plain: NDArray[Any], shape: tuple[int, ...]
    ) -> Iterator[NDArray[Any]]:
        for (part, _), convert in zip(self.parts, _find_reader(self.parts)[1], strict=True):
            yield part.loss.read_predictions(convert(plain), shape)

    def per_example(self, labels: NDArray[Any], predictions: NDArray[Any]) -> NDArray[Any]:
        """The weighted sum of the costs, divided by its largest value."""
        costs = np.zeros(len(labels))
        converted = self._predictions_of_parts(predictions, labels.shape)
        for (part, weight), values in zip(self.parts, converted, strict=True):
            cost = part.loss.per_example(part.loss.read_labels(labels), values)
            costs += weight * _unit(part) * np.asarray(cost, dtype=np.float64)
        return np.minimum(costs / self.unit, 1)  # a rounding error may exceed 1

    def exact(self, labels: Any, predictions: Any) -> float:
        """Return the weighted sum of costs, without the caps that bound them."""
        complete = self.for_labels(labels)
        plain = complete.read_labels(labels)
        given = complete.read_predictions(predictions, plain.shape)
        return sum(
            weight * part.loss.exact(plain, convert(given)) * _unit(part) / part.loss.unit
            for (part, weight), convert in zip(
                complete.parts, _find_reader(complete.parts)[1], strict=True
            )
        )

    def perfect_predictions(self, labels: NDArray[Any]) -> NDArray[Any]:
        """Those of the part that reads predictions."""
        return self._reader.perfect_predictions(labels)

    def constant_predictions(self, labels: NDArray[Any]) -> list[Any]:
        """Those of the part that reads predictions."""
        reader = self._reader
        return reader.constant_predictions(reader.read_labels(labels))


_ROUNDING, _MAX_WEIGHT = 1e-12, 1e9


@lru_cache(maxsize=64)  # its functions cannot be pickled with the loss
def _find_reader(parts: tuple[tuple[Metric, float], ...]) -> tuple[Loss, list[Converter]]:
    """Return the loss that reads predictions, and how each part gets its own from them."""
    losses = [part.loss for part, _ in parts]
    kind = next((loss.label_kind for loss in losses if loss.label_kind is not None), "number")
    columns = [loss.columns(kind=kind, width=None) for loss in losses]
    for reader, given in zip(losses, columns, strict=True):
        converters = [predictions_converter(given, wanted) for wanted in columns]
        usable = [convert for convert in converters if convert is not None]
        if len(usable) == len(losses):
            return reader, usable
    names = " and ".join(part.name for part, _ in parts)
    raise InvalidSetting(
        f"{names} cannot be added: they take different predictions. If they have classes, "
        "declare the same for all; or show one beside the other, as a metric of its own."
    )


def _unit(part: Metric) -> float:
    return part.loss.display_unit(part.shown_as)


def _setting_names(described: Loss) -> set[str]:
    return {field.name for field in fields(described)}


def _with_common_classes(parts: list[tuple[Metric, float]]) -> tuple[tuple[Metric, float], ...]:
    """Return the parts, of which those without classes have the classes of the others."""
    declared = [getattr(part.loss, "classes", None) for part, _ in parts]
    classes = next((names for names in declared if isinstance(names, tuple)), None)
    return tuple(
        (part, weight)
        if isinstance(names, tuple) or classes is None or "classes" not in _setting_names(part.loss)
        else (replace(part, loss=replace(part.loss, classes=classes)), weight)  # type: ignore[call-arg]
        for (part, weight), names in zip(parts, declared, strict=True)
    )


def _list_parts(parts: Any) -> list[dict[str, Any]]:
    """Return the parts of a sum as mappings with name, weight and settings."""
    if isinstance(parts, Mapping):
        parts = [{"name": name, "weight": weight} for name, weight in parts.items()]
    if not isinstance(parts, list | tuple):
        raise InvalidSetting(
            'A weighted sum is metrics with weights, such as {"accuracy": 0.7, "brier": 0.3}; '
            f"got {_settings.safe_repr(parts)}."
        )
    for item in parts:
        named = isinstance(item, Mapping) and isinstance(item.get("name"), str)
        if not named or not all(isinstance(key, str) for key in item):
            raise InvalidSetting(
                "A part of a weighted sum needs its name, weight and settings; "
                f"got {_settings.safe_repr(item)}."
            )
    return [dict(item) for item in parts]


def _read_parts(parts: Any) -> Iterator[tuple[Metric, float]]:
    """Yield the metrics of a sum with their weights; raise for those that cannot be added."""
    for settings in _list_parts(parts):
        name, weight = settings.pop("name"), settings.pop("weight", None)
        weight = _settings.number(
            f"the weight of {name[:_MAX_FORMULA]}", weight, above=0, at_most=_MAX_WEIGHT
        )
        if ":" in name or normalize(name) in {WeightedSum.name, Custom.name, WholeSample.name}:
            raise InvalidSetting(
                f"{_settings.safe_repr(name)} cannot be part of a weighted sum; a function of "
                "your own can compute the whole sum."
            )
        part = metric(name, **settings)
        reason = _why_not_added(part)
        if reason is not None:
            raise InvalidSetting(f"{part.name} cannot be part of a weighted sum: {reason}.")
        part.check_settings()
        yield part, weight


def _why_not_added(part: Metric) -> str | None:
    if not part.loss.is_mean:
        return (
            "it is computed from all examples together, so no example has a cost of its own; show "
            "it beside the sum, live or at the close, as one of the board's metrics"
        )
    if part.shown_as == "root":
        return "it is the square root of a mean; add the mean, such as mse instead of rmse"
    return None if part.loss.uses_labels else "it needs no labels"


def _sum_metric(parts: Any, common: dict[str, Any]) -> Metric:
    """Return the metric of a weighted sum; each common setting is for the parts that have it."""
    if common:
        parts = [
            {**{key: common[key] for key in _setting_names_of(item["name"]) & set(common)}, **item}
            for item in _list_parts(parts)
        ]
        unknown = set(common).difference(*parts)
        if unknown:
            names = ", ".join(sorted(unknown))
            raise InvalidSetting(f"No metric of the weighted sum takes {names}.")
    return _show_sum(WeightedSum(parts))


def _show_sum(weighted_sum: WeightedSum) -> Metric:
    formula = weighted_sum.formula
    name = formula if len(formula) <= _MAX_FORMULA else WeightedSum.name
    return Metric(name, weighted_sum, weighted_sum.shown_as)


def _setting_names_of(name: str) -> set[str]:
    """Return the settings that a metric of this name takes; none if it is unknown."""
    resolved = resolve(name)
    kind = LOSSES.get(resolved[1].loss if resolved else normalize(name))
    return set() if kind is None else {field.name for field in fields(kind)}


def _read_formula(text: str) -> list[dict[str, Any]] | None:
    """Return the metrics and weights of a sum in one line; None if it is none.

    >>> _read_formula("0.7 accuracy + 0.3*top-3 accuracy")
    [{'name': 'accuracy', 'weight': 0.7}, {'name': 'top-3 accuracy', 'weight': 0.3}]
    >>> _read_formula("accuracy")
    """
    terms = [_TERM.fullmatch(term) for term in text.split("+")]
    if len(terms) < 2 or not all(terms):
        return None
    return [{"name": term[2], "weight": float(term[1])} for term in terms if term is not None]


def uses_labels(name: str) -> bool:
    """Return whether a loss or metric of this name needs labels; unknown ones do.

    >>> uses_labels("accuracy"), uses_labels("score")
    (True, False)
    """
    resolved = resolve(name)
    known = LOSSES.get(resolved[1].loss if resolved else name)
    return known is None or known.uses_labels


def made_from_description(described: Loss) -> bool:
    """Return whether ``loss`` makes this loss from its description; not for a user's own class."""
    return type(described) in {Custom, LOSSES.get(described.name)}


def metric(
    name: str | Metric | Loss | Mapping[str, Any] | Callable[..., Any], /, **params: Any
) -> Metric:
    """Return a metric: a loss, and how its number is displayed.

    >>> metric("mae", range=(0, 100)).display(0.05)
    5.0
    >>> metric({"sum": {"accuracy": 0.7, "brier": 0.3}}).value([0, 1], [0.2, 0.4])
    0.41
    >>> metric({"name": "rmse", "range": (0, 100)}).title
    'RMSE'
    """
    if isinstance(name, Metric) and not params:
        return name
    if isinstance(name, Mapping):
        name, params = _read_description(name, params)
    if not isinstance(name, str):
        built = loss(name, **params)  # type: ignore[arg-type]
        return _show_sum(built) if isinstance(built, WeightedSum) else Metric(built.name, built)
    added = params.pop("parts", ()) if name == WeightedSum.name else _read_formula(name)
    if added is not None:
        return _sum_metric(added, params)
    if ":" in name or name in {Custom.name, WholeSample.name}:
        return _custom_metric(name, params)
    key = normalize(name)
    if key in LOSSES and key not in METRICS:
        return Metric(key, _create_loss(LOSSES[key], key, params))
    resolved = resolve(name)
    if resolved is not None:
        key, recipe = resolved
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
    raise InvalidSetting(f"There is no metric named {_settings.safe_repr(name)}; {hint}")


def _custom_metric(name: str, params: dict[str, Any]) -> Metric:
    """Return a metric of a user's function: of each example, or with ``whole`` of all of them."""
    if ":" in name:
        whole = params.pop("whole", False)
        params = {"function": name, **params}
    else:
        whole = name == WholeSample.name
    if not whole:
        return Metric(name, _create_loss(Custom, "custom", params))
    whole_sample = _create_loss(WholeSample, WholeSample.name, params)
    title = str(params.get("function")).rpartition(":")[2]
    higher = params.get("direction", "higher") == "higher"
    return Metric(title, whole_sample, "complement" if higher else "scaled")


def loss(name: str | Loss | Mapping[str, Any] | Callable[..., Any], /, **params: Any) -> Loss:
    """Return a loss.

    Parameters
    ----------
    name
        A name (``"zero_one"``, ``"brier"``, ``"log"`` ...), a metric's name (``"accuracy"``,
        ``"mae"`` ...), a weighted sum (``"0.7 accuracy + 0.3 brier"``), ``"module:function"``, a
        function of (labels, predictions), or what ``describe`` returned.
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
        chosen = metric(name, **params)
        chosen.check_settings()
        return chosen.loss
    if callable(name):
        return _create_loss(Custom, "custom", {"function": name, **params})
    key, settings = _read_description(name, params)
    return loss(key, **settings)


def _read_description(
    description: Mapping[str, Any], params: dict[str, Any]
) -> tuple[str, dict[str, Any]]:
    """Return the name of a loss or a metric, and its settings."""
    try:
        settings = {**description, **params}
    except TypeError:
        raise InvalidSetting(
            "A loss must be a name, a function or a description; got "
            f"{_settings.safe_repr(description)}."
        ) from None
    if "sum" in settings and "loss" not in settings:
        settings = {"loss": WeightedSum.name, "parts": settings.pop("sum"), **settings}
    key = settings.pop("loss" if "loss" in settings else "name", None)
    if not isinstance(key, str) or not all(isinstance(setting, str) for setting in settings):
        raise InvalidSetting('A description of a loss needs its name under "loss" or "name".')
    return key, settings


def _create_loss(kind: type[Loss], name: str, params: dict[str, Any]) -> Loss:
    try:
        return kind(**params)
    except TypeError as error:
        reason = str(error).removeprefix(f"{kind.__name__}.__init__() ")
        raise InvalidSetting(f"The loss {name!r} {reason}.") from None
