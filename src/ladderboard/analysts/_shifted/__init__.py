"""Attacks that shift the risk of each question close to the ladder's threshold.

They know how the mechanism compares (``_comparison_rule``) and choose their questions by local
search around the best model (``_local_search``) or by the odds of fresh guesses
(``_random_guesses``).
"""

from ladderboard.analysts._shifted._comparison_rule import ComparisonRule, normal_cdf
from ladderboard.analysts._shifted._majority import AbstainingAttack, ShiftedMajority, SybilAttack
from ladderboard.analysts._shifted._placement import GuessModel, LadderRungs, plan_placements
from ladderboard.analysts._shifted._random_guesses import GuessOdds

__all__ = [
    "AbstainingAttack",
    "ComparisonRule",
    "GuessModel",
    "GuessOdds",
    "LadderRungs",
    "ShiftedMajority",
    "SybilAttack",
    "normal_cdf",
    "plan_placements",
]
