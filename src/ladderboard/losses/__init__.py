"""Losses: the cost of each prediction, in [0, 1].

A *loss* is a frozen description with a vectorised function from labels and predictions to one
number in [0, 1] for each example; their mean is the risk. :func:`loss` makes one by name,
:func:`metric` adds how its number is displayed to people. To write your own, pass a
function, or subclass :class:`Loss` and run ``ladderboard.testing.check_loss`` on it.
"""

from typing import TYPE_CHECKING

from ladderboard._lazy_exports import lazy_exports
from ladderboard.losses._arrays import ExpectedColumns
from ladderboard.losses._arrays import predictions_converter as predictions_converter
from ladderboard.losses._base import HIGHER_FORMS, DisplayForm, Loss, Promise, display_risk
from ladderboard.losses._base import display_release as display_release
from ladderboard.losses._classification import Brier, Hamming, Log, TopK, ZeroOne
from ladderboard.losses._classification import are_classes as are_classes
from ladderboard.losses._classification import format_unknown_classes as format_unknown_classes
from ladderboard.losses._classification import is_class as is_class
from ladderboard.losses._custom import Custom, Shortfall
from ladderboard.losses._names import ALIASES, METRICS, REFUSED_METRICS
from ladderboard.losses._registry import LOSSES, Metric, WeightedSum, loss, metric
from ladderboard.losses._registry import loss_label as loss_label
from ladderboard.losses._registry import made_from_description as made_from_description
from ladderboard.losses._registry import uses_labels as uses_labels

if TYPE_CHECKING:
    from ladderboard.losses._regression import Absolute, Pinball, Squared
    from ladderboard.losses._statistics import Estimate, Statistic

__all__ = [
    "ALIASES",
    "HIGHER_FORMS",
    "LOSSES",
    "METRICS",
    "REFUSED_METRICS",
    "Absolute",
    "Brier",
    "Custom",
    "DisplayForm",
    "Estimate",
    "ExpectedColumns",
    "Hamming",
    "Log",
    "Loss",
    "Metric",
    "Pinball",
    "Promise",
    "Shortfall",
    "Squared",
    "Statistic",
    "TopK",
    "WeightedSum",
    "ZeroOne",
    "display_risk",
    "loss",
    "metric",
]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {"_regression": ("Absolute", "Pinball", "Squared"), "_statistics": ("Estimate", "Statistic")},
)
