"""Attacks that keep every question just beside the point where it would be told.

They know how the mechanism compares (``_rule``) and place their questions by what they believe
about the labels (``_walking``) or by the odds of fresh guesses (``_guessing``).
"""

from ladderboard.analysts._shifted._abstaining import AbstainingAttack
from ladderboard.analysts._shifted._comparison_rule import ComparisonRule
from ladderboard.analysts._shifted._majority import ShiftedMajority, SybilAttack
from ladderboard.analysts._shifted._random_guesses import GuessOdds

__all__ = ["AbstainingAttack", "ComparisonRule", "GuessOdds", "ShiftedMajority", "SybilAttack"]
