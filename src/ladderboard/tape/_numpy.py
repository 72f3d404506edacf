"""The NumPy twin of the tape: the same interface, fast, for simulation only."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import numpy as np

from ladderboard import _settings
from ladderboard.tape._tape import Draws, DrawsMany, Tape

if TYPE_CHECKING:
    from ladderboard.tape._laws import Law

__all__ = ["NumpyTape"]

# Draws are made this many questions at a time; small enough that a short session pays little.
_BLOCK = 1024


class NumpyTape(Tape):
    """A tape that draws from NumPy generators, about a hundred times faster than the real one.

    Draws are still a pure function of (seed, ladder, question, slot, context), so sessions resume
    and replay. Its laws hold up to floating-point numbers, which is enough to simulate and not
    enough to hide a risk.

    Parameters
    ----------
    seed
        A whole number; without one it comes from the operating system.

    Examples
    --------
    >>> from ladderboard.tape import DiscreteGaussian
    >>> laws = (DiscreteGaussian(1000),)
    >>> tape = NumpyTape(seed=7)
    >>> one_by_one = [tape.draw(laws, ladder=0, question=q)[0] for q in (1, 2, 3)]
    >>> one_by_one == tape.draw_many(laws, ladder=0, first=1, count=3)[0].tolist()
    True
    """

    def __init__(self, seed: int | None = None) -> None:
        super().__init__(seed=seed)
        if seed is None:
            self._seed = int.from_bytes(self._key, "big")
        else:
            self._seed = _settings.whole("seed", seed, at_least=0)
        self._seeded = True
        self._laws: tuple[Law, ...] | None = None
        self._ladder = -1
        self._first = 0
        self._rows: list[Draws] = []

    def draw(
        self, laws: tuple[Law, ...], *, ladder: int, question: int, context: bytes = b""
    ) -> Draws:
        """Draw one number for each law, from the block of questions made last if it is there."""
        if context:
            words = np.frombuffer(hashlib.sha256(context).digest(), dtype=">u4").tolist()
            spot = (question, *words)
            return tuple(
                law.simulate(self._generator(ladder, slot, spot), 1).tolist()[0]
                for slot, law in enumerate(laws)
            )
        if (
            laws is not self._laws
            or ladder != self._ladder
            or not (0 <= question - self._first < _BLOCK)
        ):
            block = question // _BLOCK
            columns = [column.tolist() for column in self._block(laws, ladder, block)]
            self._rows = list(zip(*columns, strict=True)) if laws else [()] * _BLOCK
            self._laws, self._ladder, self._first = laws, ladder, block * _BLOCK
        return self._rows[question - self._first]

    def draw_many(self, laws: tuple[Law, ...], *, ladder: int, first: int, count: int) -> DrawsMany:
        """Draw for ``count`` questions from ``first`` on: one array for each law."""
        start = first // _BLOCK
        blocks = [
            self._block(laws, ladder, block)
            for block in range(start, (first + max(count, 1) - 1) // _BLOCK + 1)
        ]
        begin = first - start * _BLOCK
        return tuple(
            np.concatenate([block[slot] for block in blocks])[begin : begin + count]
            for slot in range(len(laws))
        )

    def _block(self, laws: tuple[Law, ...], ladder: int, block: int) -> DrawsMany:
        return tuple(
            law.simulate(self._generator(ladder, slot, (block,)), _BLOCK)
            for slot, law in enumerate(laws)
        )

    def _generator(self, ladder: int, slot: int, spot: tuple[Any, ...]) -> np.random.Generator:
        # spawn_key keeps addresses apart; spots of one and of nine words never meet.
        sequence = np.random.SeedSequence(self._seed, spawn_key=(ladder, slot, *spot))
        return np.random.Generator(np.random.PCG64(sequence))
