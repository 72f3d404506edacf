"""The sample part: how far the released value lies from the least risk on the holdout.

Proofs: docs/explanation/certificates.md, "The sample part".
"""

from __future__ import annotations

from dataclasses import dataclass

from ladderboard.bounds._noise import UNIT, difference_quantile, quantile

__all__ = ["Sample"]

# Risks are rounded to units, and so are losses before they are averaged.
_ROUNDING = 2 * UNIT


@dataclass(frozen=True)
class Sample:
    """What decides R_t - min_i R_S(f_i): step, grid, and the three noises with their law."""

    step: float
    grid: float = 0.0
    compare: float = 0.0
    standing: float = 0.0
    release: float = 0.0
    law: str = "gaussian"

    @property
    def noisy(self) -> bool:
        """Whether some of the failure probability must go to the noise."""
        return bool(self.compare or self.standing or self.release)

    def ends(
        self, questions: int, beta: float, *, ladders: int = 1, anytime: bool = False
    ) -> tuple[float, float]:
        """Return the ends between which R_t - min_i R_S(f_i) lies, but for probability beta.

        At all times at once: up to ``questions``, or for ever if ``anytime``, when ``questions``
        is how many were asked.
        """
        on_compare, on_release = self._quantiles(questions, beta, ladders, anytime=anytime)
        half = self.grid / 2
        low = -half - on_release
        high = max(self.step + on_compare, half + on_release)
        return low - _ROUNDING, high + _ROUNDING

    def _quantiles(
        self, k: int, beta: float, ladders: int, *, anytime: bool
    ) -> tuple[float, float]:
        if not self.noisy:
            return 0.0, 0.0
        compared = bool(self.compare or self.standing)
        share = beta / (compared + bool(self.release))
        opened = min(ladders, k)
        # How many draws, and pairs of draws, share the failure probability at the last question.
        if anytime:
            draws = k * (k + 1)
            slacks = draws if ladders == 1 else 2 * draws
            pairs = draws * (k - 1 + opened)
        else:
            draws = k
            slacks = k - 1 + opened
            pairs = k * (k - 1) // 2 + k * opened
        on_release = quantile(self.law, self.release, share / 2 / draws)
        if not self.standing:
            return quantile(self.law, self.compare, share / draws), on_release
        if not self.compare:
            return quantile(self.law, self.standing, share / slacks), on_release
        apart = quantile(self.law, self.compare, share / 2 / draws)
        apart += quantile(self.law, self.standing, share / 2 / slacks)
        if self.standing != self.compare:
            return apart, on_release
        together = difference_quantile(self.law, self.compare, share / pairs)
        return min(apart, together), on_release
