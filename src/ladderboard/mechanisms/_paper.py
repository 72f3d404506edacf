"""The paper's settings, Eq. (2), and the conditions under which its theorem speaks."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ladderboard import _settings
from ladderboard.errors import OutsideTheorem

__all__ = ["PaperSettings", "least_n", "paper_settings"]

_LARGEST_N = 10**30
_LARGEST_K = 10**18
_LEAST_BETA = 1e-100


@dataclass(frozen=True)
class PaperSettings:
    """Eq. (2) for n examples, so many questions and failure probability beta.

    ``transfer_epsilon`` is e = epsilon sqrt(B) with B = 4 / step, the privacy at which the
    transfer theorem is applied; its conditions are tested there (docs/explanation/errata.md).
    """

    n: int
    questions: int
    beta: float
    epsilon: float
    delta: float
    noise_scale: float
    step: float
    updates: float
    transfer_epsilon: float

    def failures(self) -> list[str]:
        """Return the conditions of the transfer theorem that fail, in words."""
        e, delta, n = self.transfer_epsilon, self.delta, self.n
        found = []
        if not e < 1 / 3:
            found.append(f"e = epsilon sqrt(B) must be below 1/3 and is {e:.4g}")
        if not delta < e / 4:
            found.append(f"delta must be below e/4 = {e / 4:.4g} and is {delta:.4g}")
        needed = math.log(4 * e / delta) / e**2
        if not n >= needed:
            found.append(f"n must be at least log(4e/delta)/e^2 = {needed:.4g} and is {n}")
        return found

    def check(self) -> None:
        """Refuse settings that the theorem does not cover."""
        failures = self.failures()
        if not failures:
            return
        least = least_n(self.questions, self.beta)
        hint = (
            "no n below 1e30 would do"
            if least is None
            else f"the least n that would do for {self.questions} questions is {least}"
        )
        raise OutsideTheorem(
            f"The paper's theorem does not cover n={self.n}, questions={self.questions}, "
            f"beta={self.beta:g}: {'; '.join(failures)}; {hint}. "
            "For settings made for use, take ShakyLadder.calibrated.",
            least_n=least,
        )


def paper_settings(n: int, questions: int, beta: float) -> PaperSettings:
    """Compute Eq. (2), whether or not the theorem covers it.

    >>> found = paper_settings(n=10_000, questions=1_000, beta=0.05)
    >>> f"{found.epsilon:.4g} {found.delta:.4g} {found.noise_scale:.4g} {found.step:.4g}"
    '0.03818 5e-09 0.01145 0.5171'
    >>> f"{found.transfer_epsilon:.4g}"
    '0.1062'
    """
    n = _settings.whole("n", n, at_least=1, at_most=2 * _LARGEST_N)
    k = _settings.whole("questions", questions, at_least=1, at_most=_LARGEST_K)
    beta = _settings.number("beta", beta, at_least=_LEAST_BETA, below=1)
    delta = beta / (k * n)  # Eq. (2)
    root = math.sqrt(math.log(1 / delta))
    epsilon = (math.log(k / beta) * root / n) ** 0.6  # Eq. (2)
    scale = root / (epsilon * n)  # Fig. 1, input
    step = 4 * math.log(4 * k / beta) * scale  # Eq. (2)
    updates = 4 / step  # the lemma on B
    return PaperSettings(
        n, k, beta, epsilon, delta, scale, step, updates, epsilon * math.sqrt(updates)
    )


def least_n(questions: int, beta: float) -> int | None:
    """Return the least n whose settings meet every condition, or None below 10^30.

    Once all conditions hold they go on holding for larger n (docs/explanation/paper-settings.md),
    so the first such n is found by doubling and then halving the interval.
    """

    def holds(n: int) -> bool:
        return not paper_settings(n, questions, beta).failures()

    high = 1
    while not holds(high):
        high *= 2
        if high > _LARGEST_N:
            return None
    low = high // 2  # fails, or is 0
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high
