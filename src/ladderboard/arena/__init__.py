"""Mechanisms against analysts.

Kernels, sweeps, calibration and figures, on local processes or a cluster. So far: the majority
attack, simulated by `majority_attack` and exact in `majority_attack_moments`.
"""

from ladderboard.arena._majority import majority_attack
from ladderboard.arena._moments import Moments, majority_attack_moments

__all__ = ["Moments", "majority_attack", "majority_attack_moments"]
