"""Analysts: attacks on leaderboards, and honest analysts to compare them with.

An *analyst* chooses the next model. It plays a :class:`Game`: it proposes a model and sees only the
release, while the game records the risk and the true risk. To write one of your own, subclass
:class:`Analyst` and run ``ladderboard.testing.check_analyst`` on it.
"""

from ladderboard.analysts._game import Analyst, Game, GameResult
from ladderboard.analysts._honest import (
    Breakthroughs,
    HonestAnalyst,
    Plateau,
    RandomSearch,
    SteadyImprovement,
)
from ladderboard.analysts._hyperparameters import (
    DigitsWorld,
    FittedClassifier,
    HyperparameterSearch,
    LabelledImages,
)
from ladderboard.analysts._hyperparameters import draw_classifiers as draw_classifiers
from ladderboard.analysts._log_loss import LogLossDecoder
from ladderboard.analysts._majority import MajorityAttack, MulticlassAttack
from ladderboard.analysts._one_bit import OneBitAttack
from ladderboard.analysts._registry import ANALYSTS, analyst
from ladderboard.analysts._shifted import AbstainingAttack, ShiftedMajority, SybilAttack
from ladderboard.analysts._shifted import ComparisonRule as ComparisonRule
from ladderboard.analysts._shifted import GuessModel as GuessModel
from ladderboard.analysts._shifted import GuessOdds as GuessOdds
from ladderboard.analysts._shifted import LadderRungs as LadderRungs
from ladderboard.analysts._shifted import normal_cdf as normal_cdf
from ladderboard.analysts._shifted import plan_placements as plan_placements
from ladderboard.analysts._worlds import (
    CoinFlipWorld,
    KnownLabels,
    PackedKnownLabels,
    RareClassWorld,
    TrueRiskWorld,
    UniformLabelsWorld,
    World,
    pack_bits,
    random_bits,
    unpack_bits,
)

__all__ = [
    "ANALYSTS",
    "AbstainingAttack",
    "Analyst",
    "Breakthroughs",
    "CoinFlipWorld",
    "DigitsWorld",
    "FittedClassifier",
    "Game",
    "GameResult",
    "HonestAnalyst",
    "HyperparameterSearch",
    "KnownLabels",
    "LabelledImages",
    "LogLossDecoder",
    "MajorityAttack",
    "MulticlassAttack",
    "OneBitAttack",
    "PackedKnownLabels",
    "Plateau",
    "RandomSearch",
    "RareClassWorld",
    "ShiftedMajority",
    "SteadyImprovement",
    "SybilAttack",
    "TrueRiskWorld",
    "UniformLabelsWorld",
    "World",
    "analyst",
    "pack_bits",
    "random_bits",
    "unpack_bits",
]
