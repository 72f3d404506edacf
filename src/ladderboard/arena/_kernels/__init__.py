"""Compiled simulations of the majority attack, and how functions are compiled. Needs numba."""

from ladderboard.arena._kernels._compiled import compiled, inlined
from ladderboard.arena._kernels._threads import MajorityAttackRun

__all__ = ["MajorityAttackRun", "compiled", "inlined"]
