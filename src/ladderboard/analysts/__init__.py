"""Who asks.

An *analyst* is whatever chooses the next model. It plays a :class:`Game`: it proposes a model, sees
the release and nothing else, while the score-keeper notes the risk and the true risk. Attacks climb
by peeking; honest analysts are the control group. To write one of your own, subclass
:class:`Analyst` and run ``ladderboard.testing.check_analyst`` on it.
"""

from ladderboard.analysts._abstaining import AbstainingAttack
from ladderboard.analysts._analyst import Analyst
from ladderboard.analysts._bits import pack, random_bits, unpack
from ladderboard.analysts._coins import Coins, Easy
from ladderboard.analysts._digits import Digits, Fitted, Images
from ladderboard.analysts._draws import Draws
from ladderboard.analysts._game import Game, Score
from ladderboard.analysts._hyperparameters import HyperparameterSearch
from ladderboard.analysts._labels import EasyLabels, Labels
from ladderboard.analysts._log_loss import LogLossDecoder
from ladderboard.analysts._majority import MajorityAttack
from ladderboard.analysts._multiclass import MulticlassAttack
from ladderboard.analysts._odds import Odds as Odds
from ladderboard.analysts._one_bit import OneBitAttack
from ladderboard.analysts._plateau import Plateau
from ladderboard.analysts._random_search import RandomSearch
from ladderboard.analysts._rare_class import RareClass
from ladderboard.analysts._registry import ANALYSTS, analyst
from ladderboard.analysts._rule import Rule as Rule
from ladderboard.analysts._shifted import ShiftedMajority
from ladderboard.analysts._steady import SteadyImprovement
from ladderboard.analysts._sybil import SybilAttack
from ladderboard.analysts._world import World

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
