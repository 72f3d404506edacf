"""Bootstrap ladders (Neto et al. 2016)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from ladderboard import _settings
from ladderboard.errors import InvalidSetting
from ladderboard.mechanisms import _fixed
from ladderboard.mechanisms._by_example import ByExample, Leader, clearly_below
from ladderboard.mechanisms._step import Seen, Setup, Step
from ladderboard.tape import Seed

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ladderboard.tape import Draws, Law

__all__ = ["BootstrapLadder"]

# Bayesian bootstrap weights held in memory at once.
_AT_ONCE = 1_000_000


@dataclass(frozen=True)
class BootstrapLadder(ByExample):
    """A ladder that tells a bootstrap score, or tests by a Bayesian bootstrap, or both.

    Parameters
    ----------
    test
        ``"paired"``: update if the risk is below the leader's by the standard error of their
        paired difference. ``"bayes"``: update if the model is better with probability above
        1 - alpha under a Bayesian bootstrap of the paired losses.
    resample
        Whether the score told is the mean over a bootstrap resample of the examples (the first
        idea of Neto et al.) instead of the risk itself.
    alpha
        For ``"bayes"``: how unsure an update may be.
    replicates
        For ``"bayes"``: how many sets of weights are drawn.

    A bootstrap score may be higher than the last one; it is told as it is, as published.

    Examples
    --------
    >>> import ladderboard as lb
    >>> session = lb.BootstrapLadder(test="bayes").start(n=4, tape=lb.Tape(seed=1))
    >>> session.ask(losses=[1, 1, 0, 0]).improved
    True

    References
    ----------
    Neto et al., "Reducing overfitting in challenge-based competitions", 2016.
    """

    name: ClassVar[str] = "bootstrap_ladder"

    test: Literal["paired", "bayes"] = "paired"
    resample: bool = True
    alpha: float = 0.05
    replicates: int = 1000

    def __post_init__(self) -> None:
        _settings.one_of("test", self.test, ("paired", "bayes"))
        if not isinstance(self.resample, bool):
            raise InvalidSetting(
                f"resample must be True or False; got {_settings.shown(self.resample)}."
            )
        _settings.settle(
            self,
            alpha=_settings.number("alpha", self.alpha, above=0, below=1),
            replicates=_settings.whole("replicates", self.replicates, at_least=1, at_most=10**6),
        )

    @property
    def laws(self) -> tuple[Law, ...]:
        """Slots: a seed for the resample, a seed for the weights."""
        return _LAWS

    def advance(self, setup: Setup, state: Leader, seen: Seen, draws: Draws) -> Step:
        """Test against the leader; if better, tell the score of a resample."""
        losses = seen.losses
        assert losses is not None  # noqa: S101 - the session refuses questions without them
        for_resample, for_weights = draws
        leader = setup.high if state.losses is None else state.losses
        if self.test == "paired":
            ahead = leader if isinstance(leader, float) else _fixed.mean(leader)
            better = clearly_below(seen.risk, ahead, losses, leader)
        else:
            better = self._posterior(losses - leader, for_weights) > 1 - self.alpha
        if not better:
            return Step(state, state.best, None, False)
        value = _fixed.mean(_resampled(losses, for_resample)) if self.resample else seen.risk
        return Step(Leader(value, losses), value, value, value < state.best)

    def _posterior(self, difference: NDArray[np.float64], seed: bytes) -> float:
        """Return how often the difference, weighted by flat Dirichlet weights, is below 0."""
        raw = np.random.PCG64(int.from_bytes(seed, "big"))
        n = len(difference)
        rows = max(1, _AT_ONCE // n)
        lower = 0
        for done in range(0, self.replicates, rows):
            count = min(rows, self.replicates - done)
            # Weights need not be normalised: only the sign of the sum matters.
            weights = -np.log1p(-_uniform(raw, count * n)).reshape(count, n)
            lower += int(np.count_nonzero(weights @ difference < 0))
        return lower / self.replicates


_LAWS: tuple[Law, ...] = (Seed(), Seed())


def _resampled(losses: NDArray[np.float64], seed: bytes) -> NDArray[np.float64]:
    uniform = _uniform(np.random.PCG64(int.from_bytes(seed, "big")), len(losses))
    return losses[(uniform * len(losses)).astype(np.int64)]


def _uniform(raw: np.random.PCG64, count: int) -> NDArray[np.float64]:
    """Return uniform numbers in [0, 1) from the raw words, which NumPy promises never to change."""
    return (raw.random_raw(count) >> np.uint64(11)).astype(np.float64) * 2.0**-53
