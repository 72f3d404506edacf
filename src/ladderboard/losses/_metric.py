"""Metrics: friendly names for a loss, and how its number is shown."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from ladderboard.losses._loss import Loss

__all__ = ["METRICS", "Metric"]

Shown = Literal["loss", "complement", "scaled", "root"]

# metric: (the loss behind it, how its number is shown)
METRICS: dict[str, tuple[str, Shown]] = {
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


@dataclass(frozen=True)
class Metric:
    """A loss under the name people use, with the direction and unit in which it is shown.

    Everything inside works with the loss; only what a person reads goes through ``shown``.

    Examples
    --------
    >>> import ladderboard as lb
    >>> accuracy = lb.metric("accuracy")
    >>> accuracy.loss.name, accuracy.direction, accuracy.shown(0.25)
    ('zero_one', 'higher', 0.75)
    >>> round(lb.metric("rmse", range=(0, 10)).shown(0.04), 12)
    2.0
    """

    name: str
    loss: Loss
    shown_as: Shown = "loss"

    @property
    def direction(self) -> Literal["higher", "lower"]:
        """Which way is better, as shown."""
        return "higher" if self.shown_as == "complement" else "lower"

    def shown(self, risk: float) -> float:
        """Return the metric for a mean loss in [0, 1]."""
        if self.shown_as == "complement":
            return 1 - risk
        if self.shown_as == "scaled":
            return risk * self.loss.unit
        if self.shown_as == "root":
            return math.sqrt(max(risk, 0) * self.loss.unit)
        return risk
