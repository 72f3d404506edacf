"""The growing ladder: steps in standard errors that grow with what was released.

Derivation, proof and the trade of each setting: docs/explanation/growing-ladder.md. Everything that
decides a release is integer arithmetic, so that every verifier agrees: risks, steps and noise are
in units of 1e-12, shares and multiples in millionths, and roots are whole numbers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

import numpy as np

from ladderboard import _settings
from ladderboard.errors import InvalidSetting, InvalidState
from ladderboard.mechanisms import _fixed_point
from ladderboard.mechanisms._base import Mechanism, check_power, smallest_with_chance
from ladderboard.mechanisms._fixed_point import round_to_grid
from ladderboard.mechanisms._growing._transcript import growing_transcript
from ladderboard.mechanisms._session import (
    ComparisonSettings,
    Observation,
    Observations,
    Release,
    Setup,
    Step,
    StepMany,
    largest_standard_error,
    standard_error_class,
)
from ladderboard.tape import CutGaussian

if TYPE_CHECKING:
    from ladderboard.mechanisms._growing._transcript import GrowingTranscript
    from ladderboard.mechanisms._transcript import VisibleChange
    from ladderboard.tape import Draws, DrawsMany, Law

MILLION = 10**6
"""Settings are whole numbers of millionths; noise has a standard deviation of this many steps."""
_STRIDE = 4_096

# Found in games against the planned attack, docs/explanation/growing-ladder.md: for one account and
# for twenty, the step in standard errors, and the noise on comparison and release as shares of it.
_MANY_ACCOUNTS = 20


class _Choice(NamedTuple):
    step: tuple[float, float]
    compare_noise: tuple[float, float]
    release_noise: tuple[float, float]
    release_accounts: int  # up to as many, release noise is that of one account
    growth: float
    examples_power: float  # the step of one account grows with this power of their number
    # Beyond 1,000 questions the step grows with this power of their number: of one account, and
    # of several.
    questions_power: tuple[float, float]


_CHOICES = {
    "value": _Choice((1.2, 1.75), (0.31, 0.6), (0.1, 0.8), 1, 0.75, 0.0, (0.09, 0.12)),
    # Smaller steps that grow faster: an attack by quiet guesses is left as much, because only
    # growth ends it, and the first records show earlier.
    "model": _Choice((0.5, 1.4), (0.4, 0.6), (0.2, 0.8), 2, 1.0, 0.172851, (0.12, 0.15)),
}
# From the first number of examples on, up to the second: to 0.564. More examples have room for more
# steps, so that an attacker with few questions gains more standard errors of a score.
_STEP_EXAMPLES = 5_000, 10_000
# How many times the first step a step can be; more for more examples, fewer for fewer questions.
_CAP, _CAPPED_EXAMPLES, _EXAMPLES_POWER, _CAP_QUESTIONS_POWER = 8.0, 100_000, 0.25, 0.2
_SHARING = 0.25  # of the changes of all other accounts together
_FREE_QUESTIONS = 1_000
_UNSHARED_ACCOUNTS = 2
_LEAST_DEVIATION = 0.5  # of losses, as a share of the released value
# What is left to the planned attack, times sqrt(n): at 1,000 examples and questions with balanced
# protection; the powers of questions, step and n; a factor for several accounts. It fits the tables
# of docs/explanation/growing-ladder.md within 8%.
_ATTACKER_GAIN = {
    "value": (2.07, 0.155, -0.6, 0.04, 1.25),
    "model": (2.57, 0.134, -0.46, 0.0, 1.3),
}
PROTECTIONS = {"open": 0.75, "balanced": 1.0, "strict": 1.5}
"""Multiples of the step."""


class GrowingLadderState(NamedTuple):
    """The best release R in units, how often it changed, and the class of its standard error.

    The class is only used with ``scale="model"``: the standard error is at most 2^(class/2) units.
    """

    best: int
    changes: int
    error_class: int


class Rung(NamedTuple):
    """What a ladder asks of the next model, in units: the step, the noises and the grid."""

    step: int
    compare_noise: int
    release_noise: int
    grid: int


@lru_cache(maxsize=4_096)
def standard_error_units(setup: Setup, best: int) -> int:
    """Return the standard error of a risk near ``best``, in units, rounded down.

    The variance of a loss in [low, high] with mean R is at most (R - low)(high - R), which is also
    that of the zero-one loss; a quarter of the squared width while R is in the upper half, and at
    least 1/n of it.
    """
    low, high = _fixed_point.to_units(setup.low), _fixed_point.to_units(setup.high)
    above, width = best - low, high - low
    variance = above * (width - above) if 2 * above < width else width * width // 4
    return math.isqrt(max(variance, width * width // setup.n) // setup.n)


@lru_cache(maxsize=65_536)
def growth_millionths(changes: int, quarters: int) -> int:
    """Return (1 + changes/10^6) ** (quarters/4) in millionths, rounded down.

    >>> [growth_millionths(changes * 10**6, 3) for changes in (0, 3, 8)]
    [1000000, 2828427, 5196152]
    """
    power = (MILLION + changes) ** quarters * MILLION ** (4 - quarters)
    return math.isqrt(math.isqrt(power))


@lru_cache(maxsize=4_096)
def readable_grid(units: int) -> int:
    """Return the number 1, 2 or 5 times a power of ten nearest to ``units``, by ratio.

    >>> [readable_grid(units) for units in (1, 3, 4, 14, 15, 700, 720)]
    [1, 2, 5, 10, 20, 500, 1000]
    """
    power = 10 ** (len(str(max(units, 1))) - 1)
    square = max(units, 1) ** 2
    for factor, product in ((1, 2), (2, 10), (5, 50)):
        if square < product * power * power:
            return factor * power
    return 10 * power


@dataclass(frozen=True)
class GrowingLadder(Mechanism):
    """Release a model's risk when it beats the best by a step of some standard errors.

    The step is ``step`` standard errors before the first change and grows by
    ``(1 + changes) ** growth``: the first improvements are seen early, and an attacker, who needs
    tens of changes, meets large steps. Noise and grid are shares of the step.

    Parameters
    ----------
    step
        The first step, in standard errors of a risk near the best one.
    growth
        The exponent of the growth: 0, 0.25, 0.5, 0.75 or 1.
    compare_noise, release_noise
        The standard deviation of the noise on the comparison and on the released value, as shares
        of the step.
    grid
        The spacing of released values as a share of the step; the nearest of 1, 2 and 5 times a
        power of ten is used, so that releases are short decimals.
    cap
        The step grows at most to this multiple of the first one; None for no limit.
    cut
        Noise is cut at this many standard deviations.
    accounts, sharing, sharing_cap
        With several ladders, one attacker may hold this many accounts: each change of the
        ``accounts - 1`` other ladders that changed most counts as ``sharing`` changes of this one.
        Others raise a step at most by the factor ``sharing_cap``.
    scale
        ``"value"``: the standard error follows from the released value, which is right for the
        zero-one loss and more than enough for any other. ``"model"``: noise and grid of a release
        follow the standard error of the new model, rounded up to a power of the square root of
        two; for losses and metrics whose variance is much smaller.
    least_deviation
        With ``scale="model"``: in comparisons the standard deviation of losses counts at least as
        this share of the released value. Otherwise an attacker could make models whose losses are
        all alike unless a label is as guessed.

    Examples
    --------
    >>> import ladderboard as lb
    >>> mechanism = lb.GrowingLadder(step=1, growth=0.75)
    >>> session = mechanism.start(n=10_000, tape=lb.Tape(seed=7))
    >>> [session.ask(risk=risk).value for risk in (0.3141, 0.3139, 0.2975, 0.2702)]
    [0.314, 0.314, 0.298, 0.27]
    """

    name: ClassVar[str] = "growing_ladder"
    certified_by_values: ClassVar[bool] = True
    altered_how: ClassVar[str] = "rounded and with noise"
    state_type: ClassVar[Any] = GrowingLadderState

    step: float
    growth: float = 0.75
    compare_noise: float = 0.5
    release_noise: float = 0.1
    grid: float = 0.4
    cap: float | None = None
    cut: float = 3.0
    accounts: int = 1
    sharing: float = 0.0
    sharing_cap: float = 2.0
    scale: Literal["value", "model"] = "value"
    least_deviation: float = 0.0
    origin: Any = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        growth = _settings.number("growth", self.growth, at_least=0, at_most=1)
        if growth * 4 != round(growth * 4):
            raise InvalidSetting(f"growth must be 0, 0.25, 0.5, 0.75 or 1; got {self.growth!r}.")
        _settings.set_frozen(
            self,
            step=_read_millionths("step", self.step, at_most=1_000),
            growth=growth,
            compare_noise=_read_millionths("compare_noise", self.compare_noise, at_least=0),
            release_noise=_read_millionths("release_noise", self.release_noise, at_least=0),
            grid=_read_millionths("grid", self.grid),
            cap=None if self.cap is None else _read_millionths("cap", self.cap, at_least=1),
            cut=_read_millionths("cut", self.cut, at_least=1, at_most=10),
            accounts=_settings.integer("accounts", self.accounts, at_least=1),
            sharing=_read_millionths("sharing", self.sharing, at_least=0, at_most=1),
            sharing_cap=_read_millionths("sharing_cap", self.sharing_cap, at_least=1),
            scale=_settings.choice("scale", self.scale, ("value", "model")),
            least_deviation=_read_millionths("least_deviation", self.least_deviation, at_least=0),
        )

    def describe(self) -> dict[str, Any]:
        """Return the settings; ledgers of older versions have no ``least_deviation``."""
        described = super().describe()
        if not self.least_deviation:
            del described["least_deviation"]
        return described

    @classmethod
    def calibrated(
        cls,
        n: int,
        questions: int,
        teams: int = 1,
        accounts: int | None = None,
        protection: str = "balanced",
        *,
        scale: Literal["value", "model"] = "value",
    ) -> GrowingLadder:
        """Return settings for a size: the smallest visible gain for an attacker's measured bias.

        Parameters
        ----------
        n, questions
            Examples in the holdout, and questions of all teams together.
        teams
            How many ladders there are.
        accounts
            How many of them one attacker may hold; two if left out.
        protection
            ``"open"``, ``"balanced"`` or ``"strict"``: what an attacker may gain
            (docs/explanation/growing-ladder.md).

        Examples
        --------
        >>> mechanism = GrowingLadder.calibrated(n=5_000, questions=1_000)
        >>> round(mechanism.smallest_visible_gain(n=5_000, released=0.2, changes=3), 3)
        0.029
        """
        n = _settings.integer("n", n, at_least=1)
        questions = _settings.integer("questions", questions, at_least=1)
        teams = _settings.integer("teams", teams, at_least=1)
        accounts = min(teams, 2) if accounts is None else accounts
        accounts = _settings.integer("accounts", accounts, at_least=1, at_most=teams)
        factor = PROTECTIONS[_settings.choice("protection", protection, tuple(PROTECTIONS))]
        choice = _CHOICES[_settings.choice("scale", scale, tuple(_CHOICES))]
        factor *= max(questions / _FREE_QUESTIONS, 1.0) ** choice.questions_power[accounts > 1]
        return cls(
            step=_first_step(choice, n, accounts) * factor,
            growth=choice.growth,
            compare_noise=_between(choice.compare_noise, accounts, few=2),
            # Where noise follows the model, two accounts have that of one: with more, a quiet model
            # is released far from its risk.
            release_noise=_between(choice.release_noise, accounts, few=choice.release_accounts),
            grid=0.4,
            # Only zero-one loss limits how many steps there are room for: quiet models leave room
            # for any number of them, so that only growth ends what is learned.
            cap=None if scale == "model" else _largest_multiple(n, questions),
            accounts=accounts,
            sharing=_SHARING / (accounts - 1) if accounts > 1 else 0.0,
            scale=scale,
            least_deviation=_LEAST_DEVIATION if scale == "model" else 0.0,
        )

    def for_board(self, *, hides_others: bool = False) -> GrowingLadder:
        """Return the settings for a board: steps depend on other teams only if they must.

        An attacker with two accounts and no sharing gains about a third more than with one. A board
        that hides what others do cannot share with more: there every step is the largest that
        sharing could lead to, so an attacker learns no more.
        """
        if self.accounts <= _UNSHARED_ACCOUNTS:
            return replace(self, sharing=0.0)
        if not hides_others or not self.sharing:
            return self
        return replace(self, step=self.step * self.sharing_cap, sharing=0.0)

    @property
    def shared_ladders(self) -> int:
        """How many other ladders count: a step depends on the changes of those changed most."""
        return self.accounts - 1 if self.sharing else 0

    @cached_property
    def needs(self) -> Literal["risk", "standard_error"]:  # type: ignore[override]
        """What questions need."""
        return "standard_error" if self.follows_model else "risk"

    @property
    def follows_model(self) -> bool:
        """Whether releases follow the standard error of the new model."""
        return self.scale == "model"

    @cached_property
    def laws(self) -> tuple[Law, ...]:
        """Noise on the comparison and on the release, in millionths of its standard deviation."""
        law = CutGaussian(MILLION, _millionths(self.cut))
        return law, law

    def rung(self, setup: Setup, state: GrowingLadderState, observation: Observation) -> Rung:
        """Return the step, the noises and the grid for a model.

        With ``scale="model"`` step and comparison follow the larger of the released standard error
        and the model's own: an attacker could otherwise compare loud guesses with a quiet best
        model. Release and grid follow the model's own.
        """
        others = observation.others
        if not self.follows_model:
            return self.rung_at(setup, state.best, state.changes, others)
        own_class = standard_error_class(observation.require_standard_error())
        return self.rung_for(setup, state, own_class, others)

    def rung_for(
        self, setup: Setup, state: GrowingLadderState, own_class: int, others: int
    ) -> Rung:
        """Return the rung for a model of this class; the class is not used if values decide."""
        if not self.follows_model:
            return self.rung_at(setup, state.best, state.changes, others)
        loudest = math.isqrt(1 << max(own_class, state.error_class))
        return self._rung(
            max(loudest, self._least_error(setup, state.best)),
            math.isqrt(1 << own_class),
            state.changes,
            others,
        )

    def _least_error(self, setup: Setup, best: int) -> int:
        """Return the least standard error in comparisons with a released value, in units."""
        deviation = (best - _fixed_point.to_units(setup.low)) * _millionths(self.least_deviation)
        return math.isqrt((deviation // MILLION) ** 2 // setup.n)

    @lru_cache(maxsize=4_096)  # noqa: B019 - mechanisms are few, and live as long as the process
    def _rung(self, compared_error: int, released_error: int, changes: int, others: int) -> Rung:
        multiple = self.step_multiple(changes, others)
        first = _millionths(self.step) * multiple
        step = max(first * compared_error // MILLION**2, 1)
        release = first * released_error // MILLION**2
        return Rung(
            step,
            step * _millionths(self.compare_noise) // MILLION,
            release * _millionths(self.release_noise) // MILLION,
            readable_grid(release * _millionths(self.grid) // MILLION),
        )

    def rung_at(self, setup: Setup, best: int, changes: int, others: int = 0) -> Rung:
        """Return the rung after a release and a number of changes, with ``scale="value"``."""
        error = standard_error_units(setup, best)
        return self._rung(error, error, changes, others)

    def grid_units(self, setup: Setup, best: int, changes: int) -> int:
        """Return the grid of the next release, in units, if no other ladder changed."""
        return self.rung_at(setup, best, changes).grid

    def growth_factor(self, changes: int, others: int = 0) -> float:
        """Return how many times the first step is taken after some changes."""
        return self.step_multiple(changes, others) / MILLION

    def step_multiple(self, changes: int, others: int = 0) -> int:
        """Return how many times the first step is taken after some changes, in millionths."""
        quarters = round(4 * self.growth)
        multiple = growth_millionths(changes * MILLION, quarters)
        if others and self.sharing:
            shared = growth_millionths(
                changes * MILLION + others * _millionths(self.sharing), quarters
            )
            multiple = min(shared, multiple * _millionths(self.sharing_cap) // MILLION)
        return multiple if self.cap is None else min(multiple, _millionths(self.cap))

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
        """The gain below ``released`` that passes the step, with the noise that is drawn for it.

        With ``scale="model"`` this is for a model whose standard error is that of the best one, or
        that of a zero-one loss if it is not given. Ladders go by its class, so it is rounded up.

        >>> mechanism = GrowingLadder(step=1)
        >>> [round(mechanism.smallest_visible_gain(n=10_000, changes=b), 4) for b in (0, 3, 8)]
        [0.0054, 0.0154, 0.0283]
        """
        check_power(power)
        if standard_error is None:
            best = _fixed_point.to_units(min(max(released, 0.0), 1.0))
            error = standard_error_units(Setup(n, 0.0, 1.0), best)
        else:
            error = _fixed_point.to_units(standard_error)
        compared = error
        if self.follows_model:
            # A released standard error, the largest of its class, stays what it is: it may have
            # been rounded up by a unit.
            own_class = standard_error_class(_fixed_point.from_units(max(error - 1, 0)))
            compared = error = math.isqrt(1 << own_class)
            best = _fixed_point.to_units(min(max(released, 0.0), 1.0))
            compared = max(error, self._least_error(Setup(n, 0.0, 1.0), best))
        return self._visible_gain(self._rung(compared, error, changes, others), power)

    def visible_gain_after(self, setup: Setup, state: GrowingLadderState, others: int = 0) -> float:
        """Return ``smallest_visible_gain`` for a ladder in this state."""
        error = None
        if self.follows_model and state.changes:
            error = largest_standard_error(state.error_class)
        return self.smallest_visible_gain(
            n=setup.n,
            released=self.value(state),
            changes=state.changes,
            others=others,
            standard_error=error,
        )

    @lru_cache(maxsize=4_096)  # noqa: B019 - mechanisms are few, and live as long as the process
    def _visible_gain(self, rung: Rung, power: float) -> float:
        step, compare, release, grid = map(_fixed_point.from_units, rung)
        inside = math.erf(self.cut / math.sqrt(2))

        def below(distance: float, noise: float) -> float:
            if not noise:
                return float(distance > 0)
            z = min(max(distance / noise, -self.cut), self.cut)
            return 0.5 + math.erf(z / math.sqrt(2)) / (2 * inside)

        return smallest_with_chance(
            lambda gain: below(gain - step, compare) * below(gain - grid / 2, release),
            power,
            scale=step + grid,
        )

    def attacker_gain(self, *, n: int, questions: int) -> float | None:
        """A formula fitted to games of the planned attack; for calibrated settings only.

        >>> round(GrowingLadder.calibrated(1_000, 1_000).attacker_gain(n=1_000, questions=1_000), 3)
        0.065
        """
        choice = _CHOICES[self.scale]
        if self.growth != choice.growth or self.compare_noise < choice.compare_noise[0]:
            return None
        size, by_questions, by_step, by_n, several_accounts = _ATTACKER_GAIN[self.scale]
        size *= (questions / 1_000) ** by_questions * (n / 1_000) ** by_n
        size *= (self.step / _first_step(choice, n, self.accounts)) ** by_step
        if self.accounts > 1:
            size *= several_accounts * max(self.accounts / _MANY_ACCOUNTS, 1.0) ** 0.25
        return min(size / math.sqrt(n), 0.5)

    def attacker_accounts(self, ladders: int) -> int:
        """As many as were declared."""
        return min(self.accounts, ladders)

    def comparison(self, n: int) -> ComparisonSettings:
        """The first rung, at a released value of one half; ``rung_growth`` has the others."""
        setup = Setup(n, 0.0, 1.0)
        state = GrowingLadderState(_fixed_point.to_units(0.5), 0, 0)
        error = standard_error_units(setup, state.best)
        step, compare, release, grid = map(_fixed_point.from_units, self._rung(error, error, 0, 0))
        return ComparisonSettings(
            step=step, compare_noise=compare, release_noise=release, grid=grid
        )

    def release_errors(self, n: int, changes: tuple[VisibleChange, ...]) -> list[float]:
        """Noise and grid are those of the rung that each change came from.

        >>> from ladderboard.mechanisms._transcript import VisibleChange
        >>> mechanism = GrowingLadder(step=1)
        >>> changes = VisibleChange(1, 0.3, "a"), VisibleChange(2, 0.2, "a")
        >>> [round(error, 5) for error in mechanism.release_errors(2_500, changes)]
        [0.00176, 0.00211]
        """
        replayed = self.transcript(Setup(n, 0.0, 1.0)).replay(changes, len(changes))
        return [
            math.hypot(noise, 2 * (above - self.cut * noise) / math.sqrt(12))
            for noise, above in zip(replayed.noises, replayed.above, strict=True)
        ]

    def explain(self, n: int) -> str:
        """Return the first step; the others are larger."""
        step = self.comparison(n).step
        return f"A Ladder with steps that grow from {step:.3f} with every new best"

    def transcript(self, setup: Setup) -> GrowingTranscript:
        """Every change has its own grid; noise is cut, so that nothing of beta goes to it."""
        return growing_transcript(self, setup)

    def rung_growth(self, changes: int, others: int = 0) -> tuple[float, ...]:
        """Return the size of the step by number of changes, relative to the first one."""
        return tuple(self.step_multiple(count, others) / MILLION for count in range(changes))

    def begin(self, setup: Setup, draws: Draws) -> GrowingLadderState:
        """R_0 is the worst risk there is."""
        worst = _fixed_point.to_units(setup.high)
        # No standard error is larger than that of a fair coin between the ends of the range.
        error_class = standard_error_class((setup.high - setup.low) / 2 / math.sqrt(setup.n))
        return GrowingLadderState(worst, 0, error_class if self.follows_model else 0)

    def advance(
        self, setup: Setup, state: GrowingLadderState, observation: Observation, draws: Draws
    ) -> Step:
        """Release the risk, rounded to the grid, if it is a step below R and R falls."""
        on_compare, on_release = draws
        rung = self.rung(setup, state, observation)
        risk = _fixed_point.to_units(observation.risk)
        compared = risk + scale_noise(on_compare, rung.compare_noise)
        released = round_to_grid(
            setup, risk + scale_noise(on_release, rung.release_noise), rung.grid
        )
        if compared < state.best - rung.step and released < state.best:
            value = _fixed_point.from_units(released)
            own_class = (
                standard_error_class(observation.require_standard_error())
                if self.follows_model
                else 0
            )
            moved = GrowingLadderState(released, state.changes + 1, own_class)
            shown_class = own_class if self.follows_model else None
            return Step(moved, value, value, True, shown_class)
        return Step(state, _fixed_point.from_units(state.best), None, False)

    def follow_release(
        self, setup: Setup, state: GrowingLadderState | None, release: Release, others: int
    ) -> GrowingLadderState:
        """Return the state after a release, which must lie on the grid that decides it."""
        state = self.begin(setup, ()) if state is None else state
        if not release.improved:
            if (release.value, release.error_class) != (self.value(state), None):
                raise InvalidState("its value changed without an improvement")
            return state
        error, error_class = standard_error_units(setup, state.best), 0
        if self.follows_model:
            error_class = _read_class(setup, release.error_class)
            error = math.isqrt(1 << error_class)
        elif release.error_class is not None:
            raise InvalidState("it has a class of a standard error, which its ladder does not use")
        best = _fixed_point.to_units(release.value or 0.0)
        on_grid = best % self._rung(error, error, state.changes, others).grid == 0
        if not on_grid or release.value != _fixed_point.from_units(best) or not best < state.best:
            raise InvalidState("its value is not a lower one on the grid of its ladder")
        return GrowingLadderState(best, state.changes + 1, error_class)

    def advance_many(
        self,
        setup: Setup,
        state: GrowingLadderState,
        observations: Observations,
        draws: DrawsMany,
    ) -> StepMany:
        """As ``advance``, for many questions: the rung is constant between two changes."""
        if self.follows_model:
            return super().advance_many(setup, state, observations, draws)
        nothing = Observation(0.0, None, None)
        risks = _fixed_point.array_to_units(observations.risks)
        count = len(risks)
        values, improved = np.empty(count, dtype=np.int64), np.zeros(count, dtype=np.bool_)
        start = 0
        while start < count:
            rung = self.rung(setup, state, nothing)
            stop = min(start + _STRIDE, count)
            part = slice(start, stop)
            compared = risks[part] + scale_noise(draws[0][part], rung.compare_noise)
            noisy = risks[part] + scale_noise(draws[1][part], rung.release_noise)
            released = round_to_grid(setup, noisy, rung.grid)
            moved = (compared < state.best - rung.step) & (released < state.best)
            first = int(moved.argmax())
            if not moved[first]:
                values[part] = state.best
                start = stop
                continue
            values[start : start + first] = state.best
            state = GrowingLadderState(int(released[first]), state.changes + 1, 0)
            values[start + first] = state.best
            improved[start + first] = True
            start += first + 1
        value = _fixed_point.array_from_units(values)
        return StepMany(state, value, np.where(improved, value, np.nan), improved)

    def value(self, state: GrowingLadderState) -> float:
        """Return the current R."""
        return _fixed_point.from_units(state.best)


def scale_noise(millionths: Any, deviation: int) -> Any:
    """Return noise of this standard deviation in units, from a draw; one int or an array."""
    return (millionths * deviation + MILLION // 2) // MILLION


def _read_class(setup: Setup, error_class: Any) -> int:
    """Return the released class of a standard error, which is at most the range of the risk."""
    limit = standard_error_class(setup.high - setup.low)
    if type(error_class) is not int or not 0 <= error_class <= limit:
        raise InvalidState("the class of its standard error is missing or impossible")
    return error_class


def _largest_multiple(n: int, questions: int) -> float:
    by_examples = max(n / _CAPPED_EXAMPLES, 1.0) ** _EXAMPLES_POWER
    by_questions = min(questions / _FREE_QUESTIONS, 1.0) ** _CAP_QUESTIONS_POWER
    return max(_CAP * by_examples * by_questions, 1.0)


def _between(ends: tuple[float, float], accounts: int, *, few: int) -> float:
    """Return a setting between that of ``few`` accounts and of twenty, in their logarithm."""
    part = math.log(max(accounts / few, 1.0)) / math.log(_MANY_ACCOUNTS / few)
    return ends[0] + min(part, 1.0) * (ends[1] - ends[0])


def _first_step(choice: _Choice, n: int, accounts: int) -> float:
    """Return the first step with balanced protection, in standard errors.

    With twenty accounts a first release teaches a third of an exact one. What those of more
    accounts teach together grows with the root of their number.
    """
    factor = math.sqrt(max((3 * math.sqrt(accounts / _MANY_ACCOUNTS) - 1) / 2, 1.0))
    low, high = _STEP_EXAMPLES
    by_examples = (min(max(n, low), high) / low) ** choice.examples_power
    one, many = choice.step
    return _between((one * by_examples, many), accounts, few=2) * factor


def _millionths(value: float) -> int:
    return round(value * MILLION)


def _read_millionths(
    name: str, value: Any, *, at_least: float = 1 / MILLION, at_most: float = 1_000_000
) -> float:
    """Return a setting rounded to whole millionths."""
    return _millionths(_settings.number(name, value, at_least=at_least, at_most=at_most)) / MILLION
