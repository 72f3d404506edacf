"""The base class of all mechanisms, a frozen description with a pure step; what each one shows.

The smallest visible gain g at a released value R is derived in docs/explanation/mechanisms.md for
the Shaky Ladder: P(g) = P(ξ_t - ξ < g - λ) P(ξ'_t < g - γ/2). For the others:

Ladder, OneBit, Exact, Rounded, Noisy are the same without some of the parts: max(η, γ/2); 0; half
of the last digit; the quantile of the noise.

Thresholdout shows a gain at once if the training risk shares it. In the worst case the training
risk shows none: then the holdout must differ from it by more than the threshold, g > T + Lap(2σ)
+ Lap(4σ), and its noisy answer must lie below R. This is P(g) with λ = T, scales 4σ, 2σ and σ,
and no grid.

Parameter-free Ladder. The step is the standard error of the paired difference d. All |d_i| are at
most 1, so Σ d_i² ≤ Σ |d_i|, and that is at most both models' errors, n (2R - g), and at most all
that both get right, n (2 - 2R + g). With m the smaller of the two, the step is at most √((m - g²)
/ (n - 1)), with equality for zero-one loss when the models' errors lie apart. The smallest g that
exceeds it, √(2R/n) for small R, is shown whichever examples the models differ on.

BootstrapLadder compares with the leader's risk instead of R, from which R differs by a resample,
and releases a resample: P(g) = Φ((g - f s(g)) / e) Φ(g / e), with s(g) the bound above, f its
number of standard errors (for the Bayesian test about the quantile of 1 - α) and e = √(R (1 - R)
/ n). This one is a normal approximation.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from ladderboard import _settings
from ladderboard.errors import InvalidState
from ladderboard.mechanisms._session import (
    DAMAGED_STATE,
    ComparisonSettings,
    Observation,
    Observations,
    Release,
    Session,
    Setup,
    Step,
    StepMany,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ladderboard.mechanisms._shaky_calibration import CalibratedSettings
    from ladderboard.mechanisms._shaky_ladder import PaperSettings
    from ladderboard.mechanisms._transcript import Transcript, VisibleChange
    from ladderboard.tape import Draws, DrawsMany, Law, Tape


NEEDS_ZERO_ONE = (
    "has a finite transcript under zero-one loss only, without weights and groups and with risks "
    "in [0, 1]."
)


@dataclass(frozen=True)
class Mechanism(ABC):
    """The rule from risks to releases.

    A subclass is a frozen dataclass of settings with three pure parts: ``laws`` says which noise
    is drawn for every question (always all of it, whatever happens), ``begin`` gives the state
    before the first question, ``advance`` turns a state, a question and its draws into the next
    state and a release. No clock, no disk, no randomness of its own. A state is a NamedTuple of
    JSON-able fields, or the subclass overrides ``dump_state`` and ``load_state``.
    """

    name: ClassVar[str]
    # What a session must be given: the risk, or with it its standard error, or all losses.
    needs: ClassVar[Literal["risk", "standard_error", "losses"]] = "risk"
    needs_training: ClassVar[bool] = False
    zero_one_only: ClassVar[bool] = False  # its releases are a finite list for that loss only
    hides_value: ClassVar[bool] = False  # the value is released when the session is closed
    # For people: whether every question gets a score, by how much a model must beat the best to be
    # released, and how a released score differs from the exact one ("" if it does not).
    scores_every_question: ClassVar[bool] = False
    required_gain: ClassVar[str] = "by enough"
    altered_how: ClassVar[str] = ""
    # Why a certificate promises nothing if ``transcript`` is None.
    certified_by_values: ClassVar[bool] = False
    """Whether certificates use the values of changes, and not only their number."""
    uncounted: ClassVar[str] = (
        "The possible releases of this mechanism are unknown; its transcripts are not counted."
    )
    state_type: ClassVar[Any]

    @property
    def shared_ladders(self) -> int:
        """How many other ladders count: a step depends on the changes of those changed most."""
        return 0

    @property
    def laws(self) -> tuple[Law, ...]:
        """The law of each slot drawn for every question."""
        return ()

    @abstractmethod
    def begin(self, setup: Setup, draws: Draws) -> Any:
        """Return the state before the first question; ``draws`` are those of question 0."""

    @abstractmethod
    def advance(self, setup: Setup, state: Any, observation: Observation, draws: Draws) -> Step:
        """Return the next state and the release, without side effects."""

    def advance_many(
        self, setup: Setup, state: Any, observations: Observations, draws: DrawsMany
    ) -> StepMany:
        """Advance by many risks at once, with the same result as one by one, bit for bit."""
        count = len(observations.risks)
        value, score = np.full(count, np.nan), np.full(count, np.nan)
        improved = np.zeros(count, dtype=np.bool_)
        risks = observations.risks.tolist()
        training = (
            [None] * count if observations.training is None else observations.training.tolist()
        )
        rows = list(zip(*(column.tolist() for column in draws), strict=True)) or [()] * count
        for index in range(count):
            step = self.advance(
                setup, state, Observation(risks[index], None, training[index]), rows[index]
            )
            state = step.state
            if step.value is not None:
                value[index] = step.value
            if step.score is not None:
                score[index] = step.score
            improved[index] = step.improved
        return StepMany(state, value, score, improved)

    def value(self, state: Any) -> float | None:
        """Return the current estimate in this state; None if nothing was released yet."""
        best: float | None = state.best
        return best

    def close(self, state: Any) -> float | None:
        """Return the estimate to release when the session is closed."""
        return self.value(state)

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
        """Return the gain over the released value that is shown with probability ``power``.

        Larger gains are shown at least as often; 0 means that every gain is shown, which is also
        what a mechanism says that does not override this.

        Parameters
        ----------
        n
            Number of examples in the holdout.
        released
            The released value R that a model's risk on the holdout is compared with.
        changes
            How often this ladder has changed.
        others
            How often the other ladders changed that may belong to the same attacker, where a step
            depends on them (``Observation.others``).
        standard_error
            The released standard error of the best model, where steps depend on it.
        power
            The probability with which the gain is shown.
        """
        return 0.0

    def visible_gain_after(self, setup: Setup, state: Any, others: int = 0) -> float:
        """Return ``smallest_visible_gain`` for a ladder in this state."""
        value = self.value(state)
        if value is None:
            return self.smallest_visible_gain(n=setup.n, others=others)
        return self.smallest_visible_gain(n=setup.n, others=others, released=value)

    def attacker_gain(self, *, n: int, questions: int) -> float | None:
        """Return how much too good the strongest known attack makes a model look.

        Mean over games with coin flips as labels, in units of risk; None if it was not measured.
        """
        return None

    def attacker_accounts(self, ladders: int) -> int:
        """Return how many of the ladders one attacker may hold, as the settings assume."""
        return ladders

    def smallest_distinguishable_gain(self, *, n: int, **best: Any) -> float:
        """Return the gain below which two models may look the same, from step, grid and noise.

        ``best`` describes the best model, as for ``smallest_visible_gain``.
        """
        gain = self.smallest_visible_gain(n=n, **best)
        # Steps that grow have a grid in proportion, which the gain includes.
        return gain if self.rung_growth(1) else max(gain, self.comparison(n).grid)

    def comparison(self, n: int) -> ComparisonSettings:
        """Return how models are compared on n examples; attacks are planned with it.

        A mechanism that does not override this is treated as exact beyond a setting ``step``.
        """
        return ComparisonSettings(step=float(getattr(self, "step", 0.0)))

    def release_error(self, n: int) -> float:
        """Return how far a released value is from the risk on n examples, as a standard deviation.

        The noise of the release, and rounding to the grid, which is about uniform.

        >>> from ladderboard.mechanisms import Exact, Ladder, Noisy
        >>> [round(item.release_error(100), 4) for item in (Exact(), Ladder(0.02), Noisy(0.01))]
        [0.0, 0.0058, 0.01]
        """
        settings = self.comparison(n)
        return math.hypot(settings.release_noise, settings.grid / math.sqrt(12))

    def release_errors(self, n: int, changes: tuple[VisibleChange, ...]) -> list[float]:
        """Return the same for the value of each change of a board, in their order.

        A mechanism whose noise depends on what was released before overrides this; then
        ``certified_by_values`` is true, too.
        """
        return [self.release_error(n)] * len(changes)

    def rung_growth(self, changes: int, others: int = 0) -> tuple[float, ...] | None:
        """Return the size of the step by number of changes, relative to the first one.

        For fewer than ``changes`` of them, with ``others`` changes of other ladders. None if steps
        are the same after any number of changes and at every released value; otherwise they are in
        standard errors.
        """
        return None

    def transcript(self, setup: Setup) -> Transcript | None:
        """Return everything that this mechanism can release; None if that is not a finite list.

        Certificates count it, so a class declares it itself: what a parent declares is ignored,
        because a subclass may release more.
        """
        return None

    def follow_release(self, setup: Setup, state: Any, release: Release, others: int) -> Any:
        """Return the state after a release, for mechanisms whose states follow from releases.

        Raises ``InvalidState`` if the release is impossible after that state, which is None before
        the first question. Verifiers call it on public entries; None if the state is not public.
        """
        return None

    def explain(self, n: int) -> str:
        """Return for people what is released on n examples: a sentence without its full stop."""
        step = self.comparison(n).step
        gain = f"by a step of {step:.3f}" if step else self.required_gain
        model = "Says only whether a model" if self.hides_value else "Releases a score only if it"
        return f"{model} beats the best {gain}"

    @property
    def paper_origin(self) -> PaperSettings | None:
        """The paper's settings if this is exactly the paper's mechanism with them."""
        return None

    @property
    def calibration(self) -> CalibratedSettings | None:
        """The calibration that the settings come from, if any."""
        return None

    def check(self, setup: Setup) -> None:  # noqa: B027 - most accept any setup
        """Raise ``InvalidSetting`` if this mechanism does not support the setup."""

    def dump_state(self, state: Any) -> dict[str, Any]:
        """Return a state as JSON-able fields."""
        written: dict[str, Any] = state._asdict()
        return written

    def load_state(self, written: Mapping[str, Any], setup: Setup, fresh: Any) -> Any:
        """Return the state from ``dump_state``'s fields; ``fresh`` is the initial state."""
        state = self.state_type(**written)
        for value, expected in zip(state, fresh, strict=True):
            check_state_field(value, expected)
        return state

    def describe(self) -> dict[str, Any]:
        """Return the settings that decide releases, JSON-able: the mechanism's identity."""
        settings = {
            field.name: getattr(self, field.name) for field in fields(self) if field.compare
        }
        return {"mechanism": self.name, **settings}

    def start(
        self,
        n: int,
        tape: Tape | None = None,
        risk_range: tuple[float, float] = (0, 1),
        ladder: int = 0,
    ) -> Session:
        """Start a session.

        Parameters
        ----------
        n
            Number of examples in the holdout.
        tape
            The source of noise; without one, a new tape with a key from the operating system.
        risk_range
            The interval in which risks lie.
        ladder
            The number of this ladder on the tape; each session on one tape needs another one.
        """
        return Session.start(self, n=n, tape=tape, risk_range=risk_range, ladder=ladder)

    def resume(self, state: Mapping[str, Any], tape: Tape | None = None) -> Session:
        """Continue from ``session.state`` with the same tape; later releases are the same."""
        return Session.resume(self, state, tape=tape)


def declared_transcript(mechanism: Mechanism, setup: Setup, *, zero_one: bool) -> Transcript | None:
    """Return the transcript that the mechanism's own class declares, if it holds for the loss."""
    if "transcript" not in vars(type(mechanism)) or (mechanism.zero_one_only and not zero_one):
        return None
    return mechanism.transcript(setup)


def why_uncounted(mechanism: Mechanism) -> str:
    """Return why the transcripts of a mechanism are not counted, by its own class."""
    reason: str = vars(type(mechanism)).get("uncounted", Mechanism.uncounted)
    return reason


def check_state_field(value: Any, expected: Any) -> None:
    """Raise if a saved field is not a finite number of the same type as ``expected``."""
    if value is None and expected is None:
        return
    kind = float if expected is None else type(expected)
    if type(value) is not kind or not math.isfinite(value):
        raise InvalidState(DAMAGED_STATE)


_CLOSE = 1e-6  # relative difference below which two Laplace scales are treated as equal


@lru_cache(maxsize=1024)  # asked for with every reply, mostly with the same settings
def smallest_gain(
    power: float,
    *,
    step: float = 0.0,
    grid: float = 0.0,
    compare: float = 0.0,
    standing: float = 0.0,
    release: float = 0.0,
    law: str = "gaussian",
) -> float:
    """Return the smallest gain that a ladder with these settings shows with probability ``power``.

    A gain g is shown if it beats the step with the noise of the comparison, and if the noisy value
    falls below the last one on the grid: P(xi_t - xi < g - step) P(xi'_t < g - grid/2), where noise
    of size 0 is 0. Sizes are standard deviations of a Gaussian law and scales of a Laplace law.

    >>> smallest_gain(0.95, step=0.01, grid=0.005)
    0.01
    >>> round(smallest_gain(0.95, step=0.025, compare=0.0085), 4)
    0.039
    """
    if not (compare or standing or release):
        check_power(power)
        return max(step, grid / 2)
    below = _gaussian_difference_below if law == "gaussian" else _laplace_difference_below

    def chance(gain: float) -> float:
        return below(gain - step, compare, standing) * below(gain - grid / 2, release, 0.0)

    return smallest_with_chance(chance, power, scale=step + grid + compare + standing + release)


def smallest_with_chance(chance: Callable[[float], float], power: float, *, scale: float) -> float:
    """Return the smallest gain, at least 0, whose chance reaches ``power``; chances rise to 1."""
    check_power(power)
    if chance(0.0) >= power:
        return 0.0
    low, high = 0.0, scale
    while chance(high) < power:
        low, high = high, 2 * high
    while low < (middle := (low + high) / 2) < high:
        low, high = (low, middle) if chance(middle) >= power else (middle, high)
    return high


@lru_cache(maxsize=64)
def check_power(power: float) -> None:
    """Raise for a probability that is not between 0 and 1."""
    _settings.number("power", power, above=0, below=1)


def normal_below(x: float, sd: float) -> float:
    """Return P(Z < x) for a normal Z with mean 0; with no spread, whether x is at least 0."""
    return math.erfc(-x / (sd * math.sqrt(2))) / 2 if sd else float(x >= 0)


def _gaussian_difference_below(x: float, first: float, second: float) -> float:
    return normal_below(x, math.hypot(first, second))


def _laplace_difference_below(x: float, first: float, second: float) -> float:
    """Return P(X - Y < x) for independent Laplace X and Y with these scales."""
    a, b = max(first, second), min(first, second)
    if not a:
        return float(x >= 0)
    distance = abs(x)
    if a - b <= _CLOSE * a:
        tail = math.exp(-distance / a) * (2 + distance / a) / 4
    else:
        near = b * b * math.exp(-distance / b) if b else 0.0
        tail = (a * a * math.exp(-distance / a) - near) / (2 * (a * a - b * b))
    return 1 - tail if x >= 0 else tail
