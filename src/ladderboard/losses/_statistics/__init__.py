"""Statistics: metrics of all examples together, with their influence values and promises.

What is proved about each, and why others promise nothing: docs/explanation/metrics.md.
"""

from ladderboard.losses._statistics._agreement import Kappa, Matthews
from ladderboard.losses._statistics._base import Estimate, Statistic
from ladderboard.losses._statistics._correlation import (
    R2,
    ExplainedVariance,
    Kendall,
    MeanColumnRmse,
    MeanColumnRmsle,
    Pearson,
    Spearman,
)
from ladderboard.losses._statistics._counts import (
    BalancedAccuracy,
    FBeta,
    Jaccard,
    Precision,
    ProbabilisticF1,
    Recall,
    cell_columns,
    read_indicators,
    read_structured,
)
from ladderboard.losses._statistics._ranking import AveragePrecision, Gini, LabelRanking, RocAuc
from ladderboard.losses._statistics._text import (
    Bleu,
    CharacterErrorRate,
    Chrf,
    OrderCorrelation,
    WordErrorRate,
)

__all__ = [
    "R2",
    "AveragePrecision",
    "BalancedAccuracy",
    "Bleu",
    "CharacterErrorRate",
    "Chrf",
    "Estimate",
    "ExplainedVariance",
    "FBeta",
    "Gini",
    "Jaccard",
    "Kappa",
    "Kendall",
    "LabelRanking",
    "Matthews",
    "MeanColumnRmse",
    "MeanColumnRmsle",
    "OrderCorrelation",
    "Pearson",
    "Precision",
    "ProbabilisticF1",
    "Recall",
    "RocAuc",
    "Spearman",
    "Statistic",
    "WordErrorRate",
    "cell_columns",
    "read_indicators",
    "read_structured",
]
