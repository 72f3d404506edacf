"""Noise: draws that are pure functions of a key and an address.

A *tape* is a random function that was fixed before the first question: every draw depends only on
(key, ladder, question, slot, context), so a crash, a retry or a replay never draws again.
:class:`Tape` is keyed and exact, for real use; :class:`NumpyTape` is fast, for simulation. A *law*
is the distribution of a draw: :class:`DiscreteGaussian`, :class:`CutGaussian`,
:class:`DiscreteLaplace`, :class:`Laplace`, :class:`Seed`.
"""

from ladderboard.tape._numpy import NumpyTape
from ladderboard.tape._tape import (
    CutGaussian,
    DiscreteGaussian,
    DiscreteLaplace,
    Draws,
    DrawsMany,
    Laplace,
    Law,
    Seed,
    Stream,
    Tape,
)

__all__ = [
    "CutGaussian",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Draws",
    "DrawsMany",
    "Laplace",
    "Law",
    "NumpyTape",
    "Seed",
    "Stream",
    "Tape",
]
