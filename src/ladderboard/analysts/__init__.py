"""Who asks.

An *analyst* is whatever chooses the next model. It plays a :class:`Game`: it proposes a model, sees
the release and nothing else, while the score-keeper notes the risk and the true risk. Attacks climb
by peeking; honest analysts are the control group. To write one of your own, subclass
:class:`Analyst` and run ``ladderboard.testing.check_analyst`` on it.
"""

from ladderboard.analysts._analyst import Analyst
from ladderboard.analysts._bits import pack, random_bits, unpack
from ladderboard.analysts._coins import Coins, Easy
from ladderboard.analysts._game import Game, Score
from ladderboard.analysts._majority import MajorityAttack
from ladderboard.analysts._shifted import ShiftedMajority
from ladderboard.analysts._sybil import SybilAttack
from ladderboard.analysts._world import World

__all__ = [
    "Analyst",
    "Coins",
    "Easy",
    "Game",
    "MajorityAttack",
    "Score",
    "ShiftedMajority",
    "SybilAttack",
    "World",
    "pack",
    "random_bits",
    "unpack",
]
