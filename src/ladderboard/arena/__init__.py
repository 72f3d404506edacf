"""Mechanisms against analysts.

``run`` lets every analyst play against every mechanism and returns one row a repetition, the same
rows on one process, on several or on a cluster. ``majority_attack`` is the paper's own attack on a
fast kernel, ``majority_attack_moments`` its exact mean and standard deviation. The experiments
write tables and figures to a directory and go on where they were interrupted. ``calibrate`` finds
settings of the Shaky Ladder for a size; ``plan_figure`` draws a plan made by
``ladderboard.bounds.plan``.
"""

from ladderboard.arena._arena import run
from ladderboard.arena._calibrate import Calibration, calibrate
from ladderboard.arena._calibrated_table import calibration_table
from ladderboard.arena._candidate import Candidate, Size, Trial
from ladderboard.arena._comparison import calibrated_experiment
from ladderboard.arena._contest import arena_experiment
from ladderboard.arena._faithful import faithful_experiment
from ladderboard.arena._majority import majority_attack
from ladderboard.arena._moments import Moments, majority_attack_moments
from ladderboard.arena._paper import paper_experiment
from ladderboard.arena._plan_figure import plan_figure
from ladderboard.arena._play import play_experiment
from ladderboard.arena._row import Row
from ladderboard.arena._shifted import shifted_experiment

__all__ = [
    "Calibration",
    "Candidate",
    "Moments",
    "Row",
    "Size",
    "Trial",
    "arena_experiment",
    "calibrate",
    "calibrated_experiment",
    "calibration_table",
    "faithful_experiment",
    "majority_attack",
    "majority_attack_moments",
    "paper_experiment",
    "plan_figure",
    "play_experiment",
    "run",
    "shifted_experiment",
]
