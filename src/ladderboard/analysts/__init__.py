"""Who asks.

An *analyst* is whatever chooses the next model. It plays a :class:`Game`: it proposes a model, sees
the release and nothing else, while the score-keeper notes the risk and the true risk. Attacks climb
by peeking; honest analysts are the control group. To write one of your own, subclass
:class:`Analyst` and run ``ladderboard.testing.check_analyst`` on it.
"""

from ladderboard.analysts._game import Analyst, Game, Score
from ladderboard.analysts._honest import Plateau, RandomSearch, SteadyImprovement
from ladderboard.analysts._hyperparameters import Digits, Fitted, HyperparameterSearch, Images
from ladderboard.analysts._log_loss import LogLossDecoder
from ladderboard.analysts._majority import MajorityAttack, MulticlassAttack
from ladderboard.analysts._one_bit import OneBitAttack
from ladderboard.analysts._registry import ANALYSTS, analyst
from ladderboard.analysts._shifted import AbstainingAttack, ShiftedMajority, SybilAttack
from ladderboard.analysts._shifted import Odds as Odds
from ladderboard.analysts._shifted import Rule as Rule
from ladderboard.analysts._worlds import (
    Coins,
    Draws,
    Easy,
    EasyLabels,
    Labels,
    RareClass,
    World,
    pack,
    random_bits,
    unpack,
)

__all__ = [
    "ANALYSTS",
    "AbstainingAttack",
    "Analyst",
    "Coins",
    "Digits",
    "Draws",
    "Easy",
    "EasyLabels",
    "Fitted",
    "Game",
    "HyperparameterSearch",
    "Images",
    "Labels",
    "LogLossDecoder",
    "MajorityAttack",
    "MulticlassAttack",
    "OneBitAttack",
    "Plateau",
    "RandomSearch",
    "RareClass",
    "Score",
    "ShiftedMajority",
    "SteadyImprovement",
    "SybilAttack",
    "World",
    "analyst",
    "pack",
    "random_bits",
    "unpack",
]
