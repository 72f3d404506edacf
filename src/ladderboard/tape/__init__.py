"""Where noise comes from.

A *tape* is a random function that was fixed before the first question: every draw is decided by
(key, ladder, question, slot, context) and by nothing else, so a crash, a retry or a replay never
draws again. :class:`Tape` is the real one, keyed and exact; :class:`NumpyTape` is its fast twin
for simulation. What is drawn is described by a *law*: :class:`DiscreteGaussian`,
:class:`DiscreteLaplace`, :class:`Laplace`, :class:`Seed`.
"""

from ladderboard.tape._laws import DiscreteGaussian, DiscreteLaplace, Laplace, Law, Seed
from ladderboard.tape._numpy import NumpyTape
from ladderboard.tape._samplers import Stream
from ladderboard.tape._tape import Draws, DrawsMany, Tape

__all__ = [
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
