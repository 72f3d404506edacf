"""The base class of all losses."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, fields
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

import numpy as np

from ladderboard.errors import BrokenLoss, InvalidLabels, InvalidPredictions
from ladderboard.losses._arrays import (
    ExpectedColumns,
    LabelKind,
    numbered_columns,
    read_values,
    require_kind,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

DisplayForm = Literal["loss", "complement", "scaled", "root", "percent"]


HIGHER_FORMS = ("complement", "percent")
"""The forms in which higher is better."""
_LEAST_DECIMALS = 4


@lru_cache(maxsize=4096)  # a page shows the same values many times
def display_risk(form: DisplayForm, risk: float, unit: float = 1.0) -> float:
    """Return the metric for a risk; ``unit`` is what a risk of 1 costs in the metric's unit.

    >>> display_risk("complement", 0.1, 2.0), display_risk("root", 0.25, 100.0)
    (0.8, 5.0)
    """
    cost = risk * unit
    if form == "complement":
        return 1 - cost
    if form == "percent":
        return 100 * (1 - cost)
    if form == "root":
        return math.sqrt(max(cost, 0))
    return cost if form == "scaled" else risk


@lru_cache(maxsize=4096)  # as above
def display_release(form: DisplayForm, risk: float, unit: float = 1.0) -> float:
    """Return the metric for a released risk, with the digits that the release carries.

    >>> display_release("complement", 0.184), display_release("root", 0.0072, 100.0**2)
    (0.816, 8.49)
    >>> display_release("scaled", 0.2, 13.8), display_release("scaled", 0.202, 13.8)
    (2.76, 2.788)
    """
    value = display_risk(form, risk, unit)
    # Another last digit of the risk would change the metric by so much. A risk of 0.2 may be 0.2000
    # on its grid, so fewer than four are not taken as all that it carries.
    decimals = len(f"{risk:.12f}".rstrip("0").partition(".")[2])
    last = 10.0 ** -max(decimals, _LEAST_DECIMALS)
    step = max(abs(display_risk(form, risk + last, unit) - value), 1e-12)
    return round(value, max(-math.floor(math.log10(step) + 1e-9), 0))


@dataclass(frozen=True)
class Promise:
    """What is proved about a risk on n examples, for a model that was fixed before its labels.

    P(|risk - expected risk| > e) <= 2 exp(-2 ``effective_n`` e² + ``nats``). ``published`` is what
    the proof takes as known about the labels, such as how many there are of each class: it must be
    public, and ``nats`` pay for it. Proofs: docs/explanation/metrics.md.
    """

    effective_n: float
    nats: float = 0.0
    published: dict[str, Any] = field(default_factory=dict)


class Evaluation(NamedTuple):
    """The costs of examples, as a mask if all are 0 or 1, and the risk if it is not their mean."""

    costs: NDArray[np.float64] | NDArray[np.bool_]
    risk: float | None = None


@dataclass(frozen=True)
class Loss(ABC):
    """A bounded cost of a prediction: a number in [0, 1] for every example.

    Calling it scores predictions against labels. To score many predictions, do the same in three
    parts: ``read_labels`` once (for the owner; its error messages depend on labels),
    ``read_predictions`` for each question (for the participant; its messages never do), then
    ``per_example`` on what the two returned.

    ``range`` is the interval of the predictions: declared for numbers, (0, 1) for probabilities
    and for right or wrong. ``unit`` is what a loss of 1 is worth in the metric's own unit.
    ``uses_labels`` is false for a loss that needs no labels; its holdout then has none.
    ``binary`` says that every cost is 0 or 1; a class declares it itself, because a subclass may
    cost otherwise. ``infers_classes`` says that classes which are not declared come from labels.
    ``is_mean`` says that the risk is the mean of the losses; a :class:`Statistic` has another.
    ``at_close_only`` says that nothing bounds what its answers reveal, and ``takes_any_columns``
    that it takes predictions as any other loss reads them.
    """

    name: ClassVar[str]
    range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    uses_labels: ClassVar[bool] = True
    binary: ClassVar[bool] = False
    infers_classes: ClassVar[bool] = False
    is_mean: ClassVar[bool] = True
    at_close_only: ClassVar[bool] = False
    takes_any_columns: ClassVar[bool] = False
    success: ClassVar[str] = ""
    """What is true of an example that costs 0 if all others cost 1: a clause for people, if any."""
    wanted: ClassVar[str] = ""
    """What to send, if other valid predictions are worth less: a phrase for people, if any."""

    @property
    def is_binary(self) -> bool:
        """Whether every cost is 0 or 1, as this very class declares."""
        return bool(vars(type(self)).get("binary", False))

    @property
    def explanation(self) -> str:
        """What a prediction costs, or what a statistic is computed from: a clause for people."""
        return f"the loss {self.name} says what a prediction costs, from 0 to 1"

    @property
    def label_kind(self) -> LabelKind | None:
        """The kind of labels that the loss takes; None if it takes either."""
        return None

    def columns(self, *, kind: str | None, width: int | None) -> ExpectedColumns:
        """Return the columns of predictions that a file needs.

        ``kind`` is the declared kind of the labels, ``"number"`` or ``"text"``, if any; ``width``
        the number of labels of an example if there are several.
        """
        return numbered_columns(require_kind(self.name, kind), None, "label", "")

    @property
    def takes_empty(self) -> bool:
        """Whether an empty label or prediction means something, such as no mask."""
        return False

    @property
    def unit(self) -> float:
        """What a loss of 1 is worth in the metric's own unit."""
        return 1.0

    def display_unit(self, form: str) -> float:
        """Return the unit in which a form of display shows a risk.

        The complement of a mean of losses is 1 - risk whatever its unit is; that of a statistic is
        its own value.
        """
        return self.unit if form in {"scaled", "root"} or not self.is_mean else 1.0

    @property
    def allowed(self) -> tuple[Any, ...] | None:
        """The values that a single-valued prediction may have; None if it may have any."""
        return None

    @property
    def positive_class(self) -> Any:
        """The declared class that the metric is about, such as F1's; None without one."""
        return None

    @property
    def accepts_any(self) -> bool:
        """Whether a prediction may be a value that cannot be a label, and so is certainly wrong."""
        return False

    @property
    def params(self) -> dict[str, Any]:
        """The parameters that, with the name, identify the loss; JSON-able."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in values.items()
        }

    def describe(self) -> dict[str, Any]:
        """Return name and parameters, from which ``ladderboard.loss`` makes the loss again."""
        return {"loss": self.name, **self.params}

    def read_labels(self, labels: Any) -> NDArray[Any]:
        """Check the owner's labels and return them in the form that ``per_example`` needs."""
        read = read_values(labels, "labels", InvalidLabels)
        if read.ndim != 1 or not len(read):
            raise InvalidLabels(f"labels must be a vector, not empty; got the shape {read.shape}.")
        return read

    def compact_labels(self, labels: NDArray[Any]) -> NDArray[np.int8] | None:
        """Return labels that ``read_labels`` returned as bytes, if they are only compared.

        ``evaluate`` then takes predictions as bytes, too. None for most losses.
        """
        return None

    def with_inferred_classes(self, labels: NDArray[Any], also: NDArray[Any] | None = None) -> Loss:
        """Return the loss with classes inferred from labels, if it can have classes and has none.

        For the owner, who publishes them. ``labels`` are the holdout's; ``also`` are public
        predictions, such as a sample submission, whose values are used if they include all labels.
        """
        return self

    def check_settings(self) -> None:
        """Raise ``InvalidSetting`` if a setting is missing without which nothing can be scored."""
        return

    def for_labels(self, labels: Any) -> Loss:
        """Return the loss with the classes of these labels, if it needs classes and has none.

        For the owner. Unlike ``with_inferred_classes`` it takes every label for a class.
        """
        return self

    def exact(self, labels: Any, predictions: Any) -> float:
        """Return the mean cost in the metric's own unit, without the cap that bounds a loss."""
        complete = self.for_labels(labels)
        return float(np.mean(complete(labels, predictions))) * complete.unit

    def promise(self, labels: NDArray[Any]) -> Promise | None:
        """Return what is proved about the risk on labels from ``read_labels``, if anything.

        For a mean of losses in [0, 1] this is Hoeffding's inequality.
        """
        return Promise(float(len(labels)))

    def check_on_labels(self, labels: Any) -> None:
        """Raise if the loss of the labels themselves is invalid. For the owner only."""
        return

    def abstention_accuracy(self, labels: NDArray[Any]) -> float | None:
        """Return how often the most certainly wrong prediction is right. For the owner only.

        0 if values that cannot be labels are accepted; None if no prediction is certainly wrong.
        See docs/explanation/attacks.md#abstaining.
        """
        return 0.0 if self.accepts_any else None

    def perfect_predictions(self, labels: NDArray[Any]) -> NDArray[Any]:
        """Return predictions without a mistake, from the owner's labels. For the owner only."""
        return labels

    def advice(self, predictions: NDArray[Any]) -> str:
        """Return a sentence on valid predictions that are probably not what was meant, or ''.

        It depends on the predictions only.
        """
        return ""

    @abstractmethod
    def read_predictions(self, predictions: Any, shape: tuple[int, ...]) -> NDArray[Any]:
        """Check predictions, given only the shape of the labels."""

    @abstractmethod
    def per_example(self, labels: NDArray[Any], predictions: NDArray[Any]) -> NDArray[Any]:
        """Return the loss of every example, from the results of the two ``read_`` methods."""

    def score(self, labels: NDArray[Any], predictions: Any) -> NDArray[np.float64]:
        """Score predictions against labels that ``read_labels`` returned."""
        read = self.read_predictions(predictions, labels.shape)
        return _check_losses(self, self.per_example(labels, read), len(labels))

    def evaluate(self, labels: NDArray[Any], predictions: Any) -> Evaluation:
        """Return the losses of examples, whose mean is the risk."""
        return Evaluation(self.score(labels, predictions))

    def constant_predictions(self, labels: NDArray[Any]) -> list[Any]:
        """Return good constant predictions, as baselines. For the owner only.

        ``labels`` are those that ``read_labels`` returned. Empty if the loss has none.
        """
        return []

    def plausible_evaluation(self, labels: NDArray[Any]) -> Evaluation | None:
        """Return what a plausible good model would get, made from the labels. For the owner only.

        Its costs give the standard error to plan with. ``labels`` are those that ``read_labels``
        returned. None for a mean of losses: a constant prediction or the loss itself tells it.
        """
        return None

    def planned_error(self, value: float, positives: float) -> float | None:
        """Return the standard error of a value times sqrt(n), without any labels.

        ``positives`` is the share of examples that are positive. None if more must be known.
        """
        return None

    def class_sizes(self, labels: NDArray[Any]) -> dict[Any, int]:
        """Return how many examples each class has, if the standard error depends on it.

        ``labels`` are those that ``read_labels`` returned. For the owner only.
        """
        return {}

    def __call__(self, labels: Any, predictions: Any) -> NDArray[np.float64]:
        """Score predictions against labels: one number in [0, 1] for each example."""
        return self.score(self.read_labels(labels), predictions)


@dataclass(frozen=True)
class CostLoss(Loss):
    """A loss by the cost of each example in the metric's own unit, which may exceed the unit."""

    @abstractmethod
    def cost(self, labels: NDArray[Any], predictions: NDArray[Any]) -> NDArray[np.float64]:
        """Return the cost of each example in the metric's own unit, without a cap."""

    def per_example(self, labels: NDArray[Any], predictions: NDArray[Any]) -> NDArray[Any]:
        """Return the cost as a part of the unit, at most 1."""
        return np.minimum(self.cost(labels, predictions) / self.unit, 1)

    def exact(self, labels: Any, predictions: Any) -> float:
        """Return the mean cost, without a cap."""
        read = self.read_labels(labels)
        return float(np.mean(self.cost(read, self.read_predictions(predictions, read.shape))))


def _check_losses(loss: Loss, values: Any, n: int) -> NDArray[np.float64]:
    """Return per-example losses, checked. Messages show no number: it would reveal labels."""
    try:
        read = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        read = np.empty((0, 0))
    if read.shape != (n,):
        instead = ", not one for all" if read.shape == () else ""
        raise BrokenLoss(
            f"The loss {loss.name} must return one number for each of {n:,} examples{instead}."
        )
    if read.size and not (read.min() >= 0 and read.max() <= 1):  # False for NaN
        raise BrokenLoss(f"The loss {loss.name} must return numbers in [0, 1]; some are not.")
    return read


def require_one_per_example(read: NDArray[Any], n: int) -> NDArray[Any]:
    """Return predictions if they are a vector with one value for each example; raise if not."""
    if read.shape != (n,):
        raise InvalidPredictions(
            f"predictions must hold one value for each of the {n} examples; "
            f"got the shape {read.shape}."
        )
    return read


def require_shape(read: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """Return predictions if they have the shape of the labels; raise if not."""
    if read.shape != shape:
        raise InvalidPredictions(f"predictions must be in the shape {shape}; got {read.shape}.")
    return read
