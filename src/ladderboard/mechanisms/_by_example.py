"""Mechanisms that compare a model with the leader example by example."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

import numpy as np

from ladderboard import _settings
from ladderboard.errors import InvalidSetting, InvalidState
from ladderboard.mechanisms import _fixed_point
from ladderboard.mechanisms._base import (
    NEEDS_ZERO_ONE,
    Mechanism,
    check_power,
    check_state_field,
    normal_below,
    smallest_gain,
    smallest_with_chance,
)
from ladderboard.mechanisms._session import ComparisonSettings, Observation, Setup, Step
from ladderboard.mechanisms._transcript import ZERO_ONE, FallingValues, ReleaseDeviation, Transcript
from ladderboard.tape import Seed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from ladderboard.tape import Draws, Law

# Bayesian bootstrap weights held in memory at once.
_MAX_WEIGHTS_IN_MEMORY = 1_000_000

_BOOTSTRAP_LAWS: tuple[Law, ...] = (Seed(), Seed())


class LeaderState(NamedTuple):
    """The last release, and the losses of its model (None before the first)."""

    best: float
    losses: NDArray[np.float64] | None


@dataclass(frozen=True)
class ByExample(Mechanism):
    """A mechanism that compares a model with the leader example by example."""

    needs: ClassVar[Literal["risk", "losses"]] = "losses"
    required_gain: ClassVar[str] = "by more than the standard error of the difference"
    state_type: ClassVar[Any] = LeaderState

    def check(self, setup: Setup) -> None:
        """Raise for fewer than two examples: a standard deviation needs two."""
        if setup.n < 2:
            raise InvalidSetting(f"{self.name} needs n of at least 2; got {setup.n}.")

    def begin(self, setup: Setup, draws: Draws) -> LeaderState:
        """R_0 is the worst risk there is."""
        return LeaderState(setup.high, None)

    def dump_state(self, state: LeaderState) -> dict[str, Any]:
        """Return the losses as a list; floats survive JSON bit for bit."""
        losses = None if state.losses is None else state.losses.tolist()
        return {"best": state.best, "losses": losses}

    def load_state(
        self, written: Mapping[str, Any], setup: Setup, fresh: LeaderState
    ) -> LeaderState:
        """Return the state from ``dump_state``'s fields."""
        best, losses = written["best"], written["losses"]
        if losses is not None:
            losses = np.array(losses, dtype=np.float64)
            if losses.shape != (setup.n,) or not np.isfinite(losses).all():
                raise InvalidState(f"The saved state does not hold {setup.n} losses.")
        check_state_field(best, fresh.best)
        return LeaderState(best, losses)


def is_significantly_below(
    risk: float, best: float, losses: NDArray[np.float64], leader: NDArray[np.float64] | float
) -> bool:
    """Return whether the risk is below the best by more than the standard error of the difference.

    A gain of exactly one standard error is common: one more correct example is a gain of 1/n, with
    that standard error. So this requires one unit (1e-12) more; rounding errors are 1000 times
    smaller.
    """
    margin = float(np.std(losses - leader, ddof=1)) / math.sqrt(len(losses))
    return best - risk > margin + 1 / _fixed_point.UNITS


def margin_of_gain(gain: float, n: int, released: float) -> float:
    """Return the largest standard error of a paired difference with this mean gain.

    The difference of two losses in [0, 1] is at most 1 in size, so its square is at most its size,
    and their sizes sum to at most both models' losses, and at most what both models leave of n.
    """
    spread = max(min(2 * released - gain, 2 - 2 * released + gain), gain)
    return math.sqrt(max(spread - gain * gain, 0.0) / max(n - 1, 1))


@dataclass(frozen=True)
class ParameterFreeLadder(ByExample):
    """Release a model's risk when it beats the leader's by its standard error.

    The step is the standard error of the paired difference to the leader's losses, so it needs
    the losses and no setting. Releases are rounded to 1/n, and a model whose rounded risk is not
    below the leader's changes nothing.

    Examples
    --------
    >>> session = ParameterFreeLadder().start(n=4)
    >>> session.ask(losses=[1, 1, 0, 0]).value
    0.5
    >>> session.ask(losses=[1, 0, 0, 0]).value  # 0.25 is not below 0.5 - 0.25
    0.5
    >>> session.ask(losses=[0, 0, 0, 0]).value
    0.0

    References
    ----------
    Blum, Hardt, "The Ladder: A reliable leaderboard for machine learning competitions", 2015.
    """

    name: ClassVar[str] = "parameter_free_ladder"
    zero_one_only: ClassVar[bool] = True
    uncounted: ClassVar[str] = f"ParameterFreeLadder {NEEDS_ZERO_ONE}"

    def smallest_visible_gain(
        self,
        *,
        n: int,
        released: float = 0.1,
        changes: int = 3,
        others: int = 0,
        standard_error: float | None = None,
        power: float = 0.95,
    ) -> float:
        """The gain that is shown whichever examples the model and the leader differ on.

        >>> round(ParameterFreeLadder().smallest_visible_gain(n=10_000, released=0.1), 4)
        0.0044
        """
        check_power(power)
        return _smallest_above_margin(n, released)

    def comparison(self, n: int) -> ComparisonSettings:
        """The step is one standard error."""
        return ComparisonSettings(standard_errors=1.0)

    def transcript(self, setup: Setup) -> Transcript | None:
        """Falling multiples of 1/n."""
        if (setup.low, setup.high) != (0, 1):
            return None
        return Transcript(
            FallingValues(setup.n + 1, setup.n),
            ReleaseDeviation(1 / math.sqrt(setup.n)),
            0,
            setup.n - 1,
            1 / setup.n,
            assumptions=(ZERO_ONE,),
        )

    def advance(
        self, setup: Setup, state: LeaderState, observation: Observation, draws: Draws
    ) -> Step:
        """Update if the risk is below R - s/sqrt(n) and, rounded to 1/n, below R."""
        losses = observation.require_losses()
        leader = setup.high if state.losses is None else state.losses
        value = min(round(observation.risk * setup.n) / setup.n, setup.high)
        # With losses other than 0 and 1 a model can be significantly below and round to the same
        # value. Releasing a score would then reveal a crossing that certificates do not count.
        if (
            is_significantly_below(observation.risk, state.best, losses, leader)
            and value < state.best
        ):
            return Step(LeaderState(value, losses), value, value, True)
        return Step(state, state.best, None, False)


@dataclass(frozen=True)
class BootstrapLadder(ByExample):
    """A ladder that releases a bootstrap score, or tests by a Bayesian bootstrap, or both.

    Parameters
    ----------
    test
        ``"paired"``: update if the risk is below the leader's by the standard error of their
        paired difference. ``"bayes"``: update if the model is better with probability above
        1 - alpha under a Bayesian bootstrap of the paired losses.
    resample
        Whether the released score is the mean over a bootstrap resample of the examples (the
        first idea of Neto et al.) instead of the risk itself.
    alpha
        For ``"bayes"``: the probability with which an update may be wrong.
    replicates
        For ``"bayes"``: the number of sets of weights to draw.

    A bootstrap score may be higher than the last one; it is released unchanged, as published.

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
    altered_how: ClassVar[str] = "resampled"
    uncounted: ClassVar[str] = (
        "BootstrapLadder resamples the holdout; nothing is proved about its releases."
    )

    test: Literal["paired", "bayes"] = "paired"
    resample: bool = True
    alpha: float = 0.05
    replicates: int = 1000

    def __post_init__(self) -> None:
        _settings.choice("test", self.test, ("paired", "bayes"))
        if not isinstance(self.resample, bool):
            raise InvalidSetting(
                f"resample must be True or False; got {_settings.safe_repr(self.resample)}."
            )
        _settings.set_frozen(
            self,
            alpha=_settings.number("alpha", self.alpha, above=0, below=1),
            replicates=_settings.integer("replicates", self.replicates, at_least=1, at_most=10**6),
        )

    @property
    def standard_errors(self) -> float:
        """By how many standard errors a model must beat the leader, about that for ``"bayes"``."""
        return 1.0 if self.test == "paired" else smallest_gain(1 - self.alpha, compare=1.0)

    def smallest_visible_gain(
        self,
        *,
        n: int,
        released: float = 0.1,
        changes: int = 3,
        others: int = 0,
        standard_error: float | None = None,
        power: float = 0.95,
    ) -> float:
        """About, whichever examples the model and the leader differ on."""
        factor = self.standard_errors
        if not self.resample:
            check_power(power)
            return _smallest_above_margin(n, released, factor)
        # The released value and the new one are off by a resample each.
        error = math.sqrt(max(released * (1 - released), 0.0) / n)

        def chance(gain: float) -> float:
            lead = gain - factor * margin_of_gain(gain, n, released)
            return normal_below(lead, error) * normal_below(gain, error)

        return smallest_with_chance(chance, power, scale=1 / math.sqrt(n))

    def comparison(self, n: int) -> ComparisonSettings:
        """The mean over a resample has the standard error of the risk: at most 1/(2 sqrt(n))."""
        return ComparisonSettings(
            release_noise=self.resample / (2 * math.sqrt(n)), standard_errors=self.standard_errors
        )

    @property
    def laws(self) -> tuple[Law, ...]:
        """Slots: a seed for the resample, a seed for the weights."""
        return _BOOTSTRAP_LAWS

    def advance(
        self, setup: Setup, state: LeaderState, observation: Observation, draws: Draws
    ) -> Step:
        """Test against the leader; if better, release the score of a resample."""
        losses = observation.require_losses()
        for_resample, for_weights = draws
        leader = setup.high if state.losses is None else state.losses
        if self.test == "paired":
            leader_risk = leader if isinstance(leader, float) else _fixed_point.exact_mean(leader)
            better = is_significantly_below(observation.risk, leader_risk, losses, leader)
        else:
            better = self._posterior(losses - leader, for_weights) > 1 - self.alpha
        if not better:
            return Step(state, state.best, None, False)
        value = (
            _fixed_point.exact_mean(_resample(losses, for_resample))
            if self.resample
            else observation.risk
        )
        return Step(LeaderState(value, losses), value, value, value < state.best)

    def _posterior(self, difference: NDArray[np.float64], seed: bytes) -> float:
        """Return how often the difference, weighted by flat Dirichlet weights, is below 0."""
        raw = np.random.PCG64(int.from_bytes(seed, "big"))
        n = len(difference)
        rows = max(1, _MAX_WEIGHTS_IN_MEMORY // n)
        below = 0
        for start in range(0, self.replicates, rows):
            count = min(rows, self.replicates - start)
            # Weights need not be normalised: only the sign of the sum matters.
            weights = -np.log1p(-_uniform(raw, count * n)).reshape(count, n)
            below += int(np.count_nonzero(weights @ difference < 0))
        return below / self.replicates


def _smallest_above_margin(n: int, released: float, factor: float = 1.0) -> float:
    """Return the smallest gain above ``factor`` standard errors, at least half an example."""

    def exceeds(gain: float) -> float:
        return float(gain >= factor * margin_of_gain(gain, n, released))

    return max(smallest_with_chance(exceeds, 0.5, scale=1 / n), 1 / (2 * n))


def _resample(losses: NDArray[np.float64], seed: bytes) -> NDArray[np.float64]:
    uniform = _uniform(np.random.PCG64(int.from_bytes(seed, "big")), len(losses))
    return losses[(uniform * len(losses)).astype(np.int64)]


def _uniform(raw: np.random.PCG64, count: int) -> NDArray[np.float64]:
    """Return uniform numbers in [0, 1) from the raw words, which NumPy promises never to change."""
    return (raw.random_raw(count) >> np.uint64(11)).astype(np.float64) * 2.0**-53
