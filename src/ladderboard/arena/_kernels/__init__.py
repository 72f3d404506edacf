"""Compiled simulations of attacks, and how functions are compiled. Needs numba."""

from ladderboard.arena._kernels._compiled import compiled, inlined
from ladderboard.arena._kernels._placed_attack import placed_attack_biases
from ladderboard.arena._kernels._quiet_attack import (
    PlayedQuietAttack,
    QuietPlanner,
    best_played_attack,
    quiet_attack_biases,
)
from ladderboard.arena._kernels._threads import MajorityAttackRun

__all__ = [
    "MajorityAttackRun",
    "PlayedQuietAttack",
    "QuietPlanner",
    "best_played_attack",
    "compiled",
    "inlined",
    "placed_attack_biases",
    "quiet_attack_biases",
]
