"""The Shaky Ladder (Fig. 1), with the paper's settings or with calibrated ones, for use."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from ladderboard import _settings
from ladderboard.errors import OutsideTheorem
from ladderboard.mechanisms import _fixed_point
from ladderboard.mechanisms._base import Mechanism, smallest_gain
from ladderboard.mechanisms._fixed_point import round_to_grid
from ladderboard.mechanisms._ladder import ShakyLadderState, run_ladder
from ladderboard.mechanisms._session import (
    ComparisonSettings,
    Observation,
    Observations,
    Setup,
    Step,
    StepMany,
)
from ladderboard.mechanisms._shaky_calibration import CalibratedSettings, calibrated_settings
from ladderboard.mechanisms._transcript import (
    GridValues,
    ReleaseDeviation,
    Transcript,
    ladder_transcript,
    multiple_below,
)
from ladderboard.tape import DiscreteGaussian, DiscreteLaplace, Laplace

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ladderboard.tape import Draws, DrawsMany, Law

_LARGEST_N = 10**30
_LARGEST_K = 10**18
_LEAST_BETA = 1e-100


@dataclass(frozen=True)
class PaperSettings:
    """Eq. (2) for n examples, this many questions and failure probability beta.

    ``transfer_epsilon`` is e = epsilon sqrt(B) with B = 4 / step, the privacy at which the
    transfer theorem is applied; its conditions are tested there (docs/explanation/paper.md).
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

    def failed_conditions(self) -> list[str]:
        """Return the conditions of the transfer theorem that fail, in words."""
        e, delta, n = self.transfer_epsilon, self.delta, self.n
        failed = []
        if not e < 1 / 3:
            failed.append(f"e = epsilon sqrt(B) must be below 1/3 and is {e:.4g}")
        if not delta < e / 4:
            failed.append(f"delta must be below e/4 = {e / 4:.4g} and is {delta:.4g}")
        needed = math.log(4 * e / delta) / e**2
        if not n >= needed:
            failed.append(f"n must be at least log(4e/delta)/e^2 = {needed:.4g} and is {n}")
        return failed

    def check(self) -> None:
        """Raise ``OutsideTheorem`` if the theorem does not cover the settings."""
        failures = self.failed_conditions()
        if not failures:
            return
        minimum = least_n(self.questions, self.beta)
        hint = (
            "no n below 1e30 is enough"
            if minimum is None
            else f"the smallest sufficient n for {self.questions} questions is {minimum}"
        )
        raise OutsideTheorem(
            f"The paper's theorem does not cover n={self.n}, questions={self.questions}, "
            f"beta={self.beta:g}: {'; '.join(failures)}; {hint}. "
            "For practical settings use ShakyLadder.calibrated.",
            least_n=minimum,
        )


def paper_settings(n: int, questions: int, beta: float) -> PaperSettings:
    """Compute Eq. (2), whether or not the theorem covers it.

    >>> found = paper_settings(n=10_000, questions=1_000, beta=0.05)
    >>> f"{found.epsilon:.4g} {found.delta:.4g} {found.noise_scale:.4g} {found.step:.4g}"
    '0.03818 5e-09 0.01145 0.5171'
    >>> f"{found.transfer_epsilon:.4g}"
    '0.1062'
    """
    n = _settings.integer("n", n, at_least=1, at_most=2 * _LARGEST_N)
    k = _settings.integer("questions", questions, at_least=1, at_most=_LARGEST_K)
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
    """Return the smallest n whose settings meet every condition; None if it is above 10^30.

    Once all conditions hold they hold for every larger n, so the first such n is found by doubling
    and bisection. Proof: the conditions are (i) e < 1/3, (ii) δ < e/4, (iii) n ≥ log(4e/δ)/e².

    Write a = log(k/β) > 0 and b = log(4k/β). Then ℓ = a + log n, and as B = 1/(bσ),

    e² = ε²/(bσ) = ε³ n/(b √ℓ) = (a^{9/5}/b) · ℓ^{2/5} · n^{-4/5}.

    At n = 1 not all hold: (iii) would need e² ≥ log(4e/δ), which by (ii) is above log 16 > 2.7,
    against e < 1/3. So let n ≥ 2; then ℓ > log 2 > 1/2. Derivatives are with respect to x = log
    n, and ℓ' = 1.

    (i) (log e²)' = 2/(5ℓ) - 4/5 < 0, because ℓ > 1/2: e falls. (ii) e/δ is proportional to
    n^{3/5} ℓ^{1/5} and grows. (iii) Let f = ne² and g = log(4e/δ): f' = f (1/5 + 2/(5ℓ)), g' =
    3/5 + 1/(5ℓ). Suppose all three hold at some n. By (ii), g > log 16 > 2.77; by (iii), f ≥ g.
    If g ≥ 3, then f' ≥ 3/5 + 6/(5ℓ) > g'. If g < 3 and ℓ < 19, then f' > 0.554 + 1.108/ℓ, which
    exceeds 0.6 + 0.2/ℓ = g' because 0.908/ℓ > 0.046. g < 3 and ℓ ≥ 19 cannot be: by (iii) e² ≥
    2.77/n, and n ≤ e^ℓ, so g = ℓ + log(4e) ≥ ℓ + log(4 · 1.66) - ℓ/2 > 9.5 + 1.8. So f - g is
    growing wherever all hold, and f ≥ g cannot be lost. The set is never empty, since f grows
    like n^{1/5} and g like log n; the search stops at 10^30. ∎
    """

    def holds(n: int) -> bool:
        return not paper_settings(n, questions, beta).failed_conditions()

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


@dataclass(frozen=True)
class ShakyLadder(Mechanism):
    """Release a model's risk, with noise, when it beats the best so far by a noisy step.

    Parameters
    ----------
    step
        How much lower a risk must be to be released (the paper's lambda).
    compare_noise
        Noise on the comparison (xi_t, fresh for each question): the standard deviation of a
        Gaussian law, the scale of a Laplace law. This is what stops a patient attacker: a crossing
        may be luck in the noise.
    release_noise
        Noise on the released value (xi'_t). This is what stops many accounts with a ladder each.
    grid
        Releases are multiples of this. With a grid they never rise: a crossing whose noisy value
        is not lower by at least one cell changes nothing that can be seen. Without one this is
        Fig. 1 as printed: unrounded, and a release may be higher than the last.
    law
        ``"gaussian"`` or ``"laplace"``.
    standing_noise
        Noise on the threshold (xi), constant until the next crossing. ``None`` is the paper's
        choice: as large as ``compare_noise``. Calibrated settings have none
        (docs/explanation/mechanisms.md).
    origin
        Where the settings come from; not part of the mechanism's identity or ``describe()``.

    Notes
    -----
    Noise is drawn exactly, as integers of 1e-12, and compared as integers. The one exception is
    the paper's own variant, Laplace without a grid, which is continuous as printed.

    Examples
    --------
    >>> import ladderboard as lb
    >>> mechanism = lb.ShakyLadder(step=0.01, compare_noise=0.004, release_noise=0, grid=0.005)
    >>> session = mechanism.start(n=10_000, tape=lb.Tape(seed=7))
    >>> session.ask(risk=0.3141)
    Release(value=0.315, score=0.315, improved=True, question=1)
    >>> session.ask(risk=0.3139)
    Release(value=0.315, score=None, improved=False, question=2)

    References
    ----------
    Hardt, "Climbing a shaky ladder: Better adaptive risk estimation", 2017.
    """

    name: ClassVar[str] = "shaky_ladder"
    altered_how: ClassVar[str] = "rounded and with noise"
    uncounted: ClassVar[str] = (
        "A ShakyLadder without a grid releases unrounded scores. Give it a grid, or use "
        "ShakyLadder.from_paper where the paper's theorem applies."
    )
    state_type: ClassVar[type[ShakyLadderState]] = ShakyLadderState

    step: float
    compare_noise: float
    release_noise: float
    grid: float | None = None
    law: Literal["gaussian", "laplace"] = "gaussian"
    standing_noise: float | None = None
    origin: PaperSettings | CalibratedSettings | None = field(
        default=None, compare=False, repr=False
    )

    def __post_init__(self) -> None:
        _settings.choice("law", self.law, ("gaussian", "laplace"))
        read = (
            partial(_settings.number, at_least=0)
            if self.continuous
            else _fixed_point.read_magnitude
        )
        grid, standing = self.grid, self.standing_noise
        _settings.set_frozen(
            self,
            step=read("step", self.step),
            compare_noise=read("compare_noise", self.compare_noise),
            release_noise=read("release_noise", self.release_noise),
            grid=None
            if grid is None
            else _fixed_point.read_magnitude("grid", grid, above_zero=True),
            standing_noise=None if standing is None else read("standing_noise", standing),
        )

    @classmethod
    def from_paper(cls, n: int, questions: int, beta: float = 0.05) -> ShakyLadder:
        """Return Fig. 1 with the settings of Eq. (2): Laplace noise, no grid.

        Raises ``OutsideTheorem`` if the theorem's conditions fail; the message says which, and the
        smallest sufficient n. These settings serve the proof. In practice use ``calibrated``.

        >>> mechanism = ShakyLadder.from_paper(n=10_000, questions=1_000, beta=0.05)
        >>> print(f"{mechanism.epsilon:.4g} {mechanism.noise_scale:.4g} {mechanism.step:.4g}")
        0.03818 0.01145 0.5171
        """
        settings = paper_settings(n, questions, beta)
        settings.check()
        scale = settings.noise_scale
        return cls(
            step=settings.step,
            compare_noise=scale,
            release_noise=scale,
            law="laplace",
            origin=settings,
        )

    @classmethod
    def calibrated(cls, n: int, questions: int, teams: int = 1) -> ShakyLadder:
        """Return practical settings, found in games against attackers and honest analysts.

        ``origin`` says where they come from.

        >>> mechanism = ShakyLadder.calibrated(n=10_000, questions=1_000)
        >>> mechanism.step, mechanism.compare_noise, mechanism.release_noise, mechanism.grid
        (0.025, 0.0085, 0.002, 0.01)
        """
        settings = calibrated_settings(n, questions, teams)
        return cls(
            step=settings.step,
            compare_noise=settings.compare_noise,
            release_noise=settings.release_noise,
            grid=settings.grid,
            standing_noise=0,
            origin=settings,
        )

    @property
    def epsilon(self) -> float | None:
        """The paper's epsilon, for settings made by ``from_paper``."""
        return self.origin.epsilon if isinstance(self.origin, PaperSettings) else None

    @property
    def delta(self) -> float | None:
        """The paper's delta, for settings made by ``from_paper``."""
        return self.origin.delta if isinstance(self.origin, PaperSettings) else None

    @property
    def paper_origin(self) -> PaperSettings | None:
        """Eq. (2), if this is Fig. 1 with it; a subclass may be another mechanism."""
        origin = self.origin
        if type(self) is not ShakyLadder or not isinstance(origin, PaperSettings):
            return None
        settings = paper_settings(origin.n, origin.questions, origin.beta)
        scale = settings.noise_scale
        is_fig_1 = self == ShakyLadder(settings.step, scale, scale, law="laplace")
        return origin if is_fig_1 else None

    @property
    def calibration(self) -> CalibratedSettings | None:
        """Where calibrated settings come from."""
        return self.origin if isinstance(self.origin, CalibratedSettings) else None

    def attacker_gain(self, *, n: int, questions: int) -> float | None:
        """The bias of the calibration; None for other settings."""
        return None if self.calibration is None else self.calibration.bias

    @property
    def noise_scale(self) -> float | None:
        """The common scale of all noise (the paper's sigma), or None if scales differ."""
        scales = {self.compare_noise, self.release_noise, self.threshold_noise}
        return self.compare_noise if len(scales) == 1 else None

    @property
    def threshold_noise(self) -> float:
        """The noise on the threshold, as a number."""
        return self.compare_noise if self.standing_noise is None else self.standing_noise

    @property
    def continuous(self) -> bool:
        """Whether this is the paper's variant: Laplace noise on the real line, no grid."""
        return self.law == "laplace" and self.grid is None

    @cached_property
    def laws(self) -> tuple[Law, ...]:
        """Slots of Fig. 1, step 2: xi_t on the risk, xi'_t on the release, xi''_t for later."""
        sizes = self.compare_noise, self.release_noise, self.threshold_noise
        if self.continuous:
            return tuple(map(Laplace, sizes))
        kind = DiscreteGaussian if self.law == "gaussian" else DiscreteLaplace
        return tuple(kind(_fixed_point.to_units(size)) for size in sizes)

    @cached_property
    def step_and_grid_units(self) -> tuple[int, int]:
        """Step and grid as integers in units of 1e-12."""
        return _fixed_point.to_units(self.step), _fixed_point.to_units(self.grid or 0)

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
        """Exact for a threshold whose noise is fresh; never below 0.

        >>> ladder = ShakyLadder.calibrated(n=10_000, questions=1_000)
        >>> round(ladder.smallest_visible_gain(n=10_000), 4)
        0.039
        """
        return smallest_gain(
            power,
            step=self.step,
            grid=self.grid or 0.0,
            compare=self.compare_noise,
            standing=self.threshold_noise,
            release=self.release_noise,
            law=self.law,
        )

    def comparison(self, n: int) -> ComparisonSettings:
        """All settings; a Laplace scale is 1/sqrt(2) of its standard deviation."""
        sd = 1.0 if self.law == "gaussian" else math.sqrt(2)
        return ComparisonSettings(
            step=self.step,
            compare_noise=sd * self.compare_noise,
            standing_noise=sd * self.threshold_noise,
            release_noise=sd * self.release_noise,
            grid=self.grid or 0.0,
        )

    def transcript(self, setup: Setup) -> Transcript | None:
        """Falling multiples of the grid; None without one."""
        if self.grid is None:
            return None
        step, grid = self.step_and_grid_units
        if not (self.compare_noise or self.release_noise or self.threshold_noise):
            return ladder_transcript(step, grid, setup)
        bottom, top = _fixed_point.release_range(setup.low, setup.high, grid)
        first = min(multiple_below(_fixed_point.to_units(setup.high), grid), top)
        return Transcript(
            GridValues.from_grid((first - bottom) // grid + 1, 1),
            ReleaseDeviation(
                _fixed_point.from_units(step),
                _fixed_point.from_units(grid),
                compare=self.compare_noise,
                standing=self.threshold_noise,
                release=self.release_noise,
                law=self.law,
            ),
            bottom // grid,
            first // grid,
            _fixed_point.from_units(grid),
        )

    def begin(self, setup: Setup, draws: Draws) -> ShakyLadderState:
        """R_0 is the worst risk there is; xi is drawn like any xi''."""
        return ShakyLadderState(
            setup.high if self.continuous else _fixed_point.to_units(setup.high), draws[2]
        )

    def advance(
        self, setup: Setup, state: ShakyLadderState, observation: Observation, draws: Draws
    ) -> Step:
        """Fig. 1, step 3."""
        best, slack = state
        on_compare, on_release, next_slack = draws
        if self.continuous:
            step = self.step
            risk = observation.risk
            new_value = risk + on_release
        else:
            step, grid = self.step_and_grid_units
            risk = _fixed_point.to_units(observation.risk)
            new_value = round_to_grid(setup, risk + on_release, grid) if grid else risk + on_release
        crossed = risk + on_compare < best - step + slack
        # With a grid, a crossing that would not lower R is not visible.
        moved = crossed and (self.grid is None or new_value < best)
        value = self._release_value(new_value if moved else best)
        return Step(
            ShakyLadderState(new_value if moved else best, next_slack if crossed else slack),
            value,
            value if moved else None,
            moved and new_value < best,
        )

    def advance_many(
        self, setup: Setup, state: ShakyLadderState, observations: Observations, draws: DrawsMany
    ) -> StepMany:
        """As ``advance``, for many questions."""
        on_compare, on_release, slacks = draws
        if self.continuous:
            step: float = self.step
            risks: NDArray[Any] = observations.risks
            new_values = risks + on_release
        else:
            step, grid = self.step_and_grid_units
            risks = _fixed_point.array_to_units(observations.risks)
            new_values = (
                round_to_grid(setup, risks + on_release, grid) if grid else risks + on_release
            )
        run = run_ladder(
            state, step, risks + on_compare, new_values, slacks, forced_down=self.grid is not None
        )
        value = run.best if self.continuous else _fixed_point.array_from_units(run.best)
        return StepMany(run.state, value, np.where(run.moved, value, np.nan), run.improved)

    def value(self, state: ShakyLadderState) -> float:
        """Return the current R."""
        return self._release_value(state.best)

    def _release_value(self, best: float) -> float:
        return best if self.continuous else _fixed_point.from_units(best)  # type: ignore[arg-type]
