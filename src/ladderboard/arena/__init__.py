"""Plays analysts against mechanisms, and calibrates mechanisms.

``run`` plays every analyst against every mechanism and returns one row for each repetition, the
same rows in one process, in several or on a cluster. ``majority_attack`` is the paper's own attack
on a fast kernel, ``majority_attack_moments`` its exact mean and standard deviation. The experiments
write tables and figures to a directory and resume after an interruption. ``calibrate`` finds
settings of the Shaky Ladder for a size; ``plan_figure`` draws a plan made by
``ladderboard.bounds.plan``.
"""

from ladderboard.arena._experiments import (
    arena_experiment,
    calibrated_experiment,
    faithful_experiment,
    metrics_experiment,
    paper_experiment,
    peers_experiment,
    play_experiment,
    shifted_experiment,
)
from ladderboard.arena._figures import plan_figure
from ladderboard.arena._majority import Moments, majority_attack, majority_attack_moments
from ladderboard.arena._runner import GameRow, run
from ladderboard.arena._shaky_calibration import (
    Calibration,
    CalibrationSize,
    CandidateResult,
    CandidateSettings,
    calibrate,
    calibration_table,
)

__all__ = [
    "Calibration",
    "CalibrationSize",
    "CandidateResult",
    "CandidateSettings",
    "GameRow",
    "Moments",
    "arena_experiment",
    "calibrate",
    "calibrated_experiment",
    "calibration_table",
    "faithful_experiment",
    "majority_attack",
    "majority_attack_moments",
    "metrics_experiment",
    "paper_experiment",
    "peers_experiment",
    "plan_figure",
    "play_experiment",
    "run",
    "shifted_experiment",
]
