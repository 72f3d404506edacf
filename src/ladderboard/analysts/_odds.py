"""The odds of a guess against a ladder: how often it is told, and what telling and silence mean."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from ladderboard.analysts._normal import below_many

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ladderboard.analysts._rule import Rule

__all__ = ["Odds"]

_LUCK = np.linspace(-5, 5, 161)  # of a guess, in standard deviations: fewer examples wrong
_SLACKS = np.linspace(-3, 3, 13)  # the noise that stands until the next crossing
_SHIFTS = 61
_FINE = 4  # what is told is read to this part of its own spread, unless the grid is coarser
_LEAST = 1e-300


def _weights(points: NDArray[np.float64]) -> NDArray[np.float64]:
    weight = np.exp(-points * points / 2)
    return weight / weight.sum()


class Odds:
    """What becomes of a guess whose luck has a standard deviation of ``spread`` examples.

    ``shift`` lists where a guess can be put: how far above the value that stands it is expected.
    The noise of a comparison has two halves, one fresh for each question and one that stands until
    the next crossing; the latter is what silence lets one guess at, so a belief about it is kept.

    Arrays are indexed by that standing noise, by shift, and by how many cells the value falls:
    ``told`` and ``luck`` are the chance of each fall and the mean luck over it, ``stayed`` the
    chance of no crossing, ``hidden`` that of one which shows nothing.
    """

    def __init__(self, rule: Rule, spread: float) -> None:
        noise = math.hypot(spread, rule.compare)
        blur = math.hypot(spread, rule.release)
        self.cell = max(rule.grid, blur / _FINE)
        cells = math.ceil((rule.step + 2 * noise + 5 * blur) / self.cell)
        self.falls = np.arange(1, cells + 1)
        self.shift = np.linspace(-rule.step - 2 * noise, -rule.step + 4.5 * noise, _SHIFTS)
        wrong = self.shift[:, None] - spread * _LUCK  # counted from the value that stands
        slacks = _SLACKS if rule.standing else np.zeros(1)
        lead = -rule.step - wrong + rule.standing * slacks[:, None, None]
        crossed = _under(lead, rule.fresh) * _weights(_LUCK)
        self.stayed = 1 - crossed.sum(axis=2)
        # Told at least so many cells below the value; a crossing told no lower shows nothing.
        edges = -self.cell * (self.falls - 0.5)
        reached = _under(edges[:, None, None] - wrong, rule.release)
        told = reached - np.concatenate((reached[1:], np.zeros_like(reached[:1])))
        by_shift = told.transpose(1, 2, 0)
        self.told = _sum_over_luck(crossed, by_shift)
        self.luck = _sum_over_luck(crossed * _LUCK, by_shift)
        self.hidden = 1 - self.stayed - self.told.sum(axis=2)
        self.fresh = _weights(slacks)
        self.belief = self.fresh

    def begin(self) -> None:
        """Forget what silence told: another ladder, another noise."""
        self.belief = self.fresh

    def best(self, pace: float) -> int:
        """Return the shift that teaches most among those at which the value falls no faster."""
        told, luck = self._mixed()
        silent = 1 - told.sum(axis=1)
        gain = (luck**2 / np.maximum(told, _LEAST)).sum(axis=1)
        gain += luck.sum(axis=1) ** 2 / np.maximum(silent, 1e-9)
        fall = self.cell * (told @ self.falls)
        slow = fall <= pace
        return int(np.where(slow, gain, -1.0).argmax()) if slow.any() else _SHIFTS - 1

    def at(self, shift: float) -> int:
        """Return the index of the nearest shift."""
        return int(np.abs(self.shift - shift).argmin())

    def hear(self, at: int, fallen: float | None) -> float:
        """Return the mean luck of a guess after its release: how far the value fell, or None."""
        told, luck = self.belief @ self.told[:, at], self.belief @ self.luck[:, at]
        if fallen is not None:
            self.begin()  # the standing noise was drawn anew
            cell = min(max(round(fallen / self.cell), 1), len(self.falls)) - 1
            return float(luck[cell] / max(told[cell], _LEAST)) if told[cell] else 0.0
        hidden = float(self.belief @ self.hidden[:, at])
        self.belief = self.belief * self.stayed[:, at] + hidden * self.fresh
        self.belief = self.belief / self.belief.sum()
        return float(-luck.sum() / max(1 - told.sum(), 1e-9))

    def _mixed(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return np.tensordot(self.belief, self.told, 1), np.tensordot(self.belief, self.luck, 1)


def _sum_over_luck(
    crossed: NDArray[np.float64], by_shift: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Multiply what crossed, by slack, shift and luck, with what is told, by shift, luck, cell."""
    return np.ascontiguousarray((crossed.transpose(1, 0, 2) @ by_shift).transpose(1, 0, 2))


def _under(distance: NDArray[np.float64], noise: float) -> NDArray[np.float64]:
    """Return the chance that noise of this standard deviation stays below a distance."""
    return below_many(distance / noise) if noise else (distance > 0).astype(float)
