"""What a prediction costs.

A *loss* is a frozen description with a vectorised function from labels and predictions to one
number in [0, 1] for each example; the mean of them is the risk. :func:`loss` makes one by name,
:func:`metric` also knows how its number is shown to people. To write one of your own, pass a
function, or subclass :class:`Loss` and run ``ladderboard.testing.check_loss`` on it.
"""

from ladderboard.losses._absolute import Absolute
from ladderboard.losses._brier import Brier
from ladderboard.losses._classes import known as known
from ladderboard.losses._classes import spelled as spelled
from ladderboard.losses._custom import Custom
from ladderboard.losses._hamming import Hamming
from ladderboard.losses._log import Log
from ladderboard.losses._loss import Loss
from ladderboard.losses._metric import METRICS, Metric
from ladderboard.losses._pinball import Pinball
from ladderboard.losses._refused import REFUSED
from ladderboard.losses._registry import LOSSES, loss, metric
from ladderboard.losses._shortfall import Shortfall
from ladderboard.losses._squared import Squared
from ladderboard.losses._top_k import TopK
from ladderboard.losses._zero_one import ZeroOne

__all__ = [
    "LOSSES",
    "METRICS",
    "REFUSED",
    "Absolute",
    "Brier",
    "Custom",
    "Hamming",
    "Log",
    "Loss",
    "Metric",
    "Pinball",
    "Shortfall",
    "Squared",
    "TopK",
    "ZeroOne",
    "loss",
    "metric",
]
