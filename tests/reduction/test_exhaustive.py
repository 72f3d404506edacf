"""The corrected Fig. 2 against every board there is, on a lattice.

Means, risks and replies are multiples of a unit. What a board says without crossing the threshold
matters only if it is its last word in a query, so all boards are tried by trying, in every
situation that can be reached, every rung at which it may cross and every value it may then say.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

import ladderboard as lb
from ladderboard.mechanisms import Mechanism, Observation, Setup, Step

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ladderboard.tape import Draws


@dataclass(frozen=True)
class Puppet(Mechanism):
    """Say what is on the list."""

    name = "puppet"

    lines: list[float] = field(default_factory=list, compare=False)

    def begin(self, setup: Setup, draws: Draws) -> Any:
        return None

    def advance(self, setup: Setup, state: Any, observation: Observation, draws: Draws) -> Step:
        return Step(None, self.lines.pop(0), None, improved=False)

    def value(self, state: Any) -> float | None:
        return None


@dataclass(frozen=True)
class Lattice:
    """Everything in units: alpha, the largest error, and one as a mean."""

    unit: float
    alpha: int
    error: int
    one: int

    @property
    def rungs(self) -> int:
        return -(-self.one // self.alpha)

    def scripts(self, min_risk: int | None, c: int, mean: int) -> Iterator[tuple[list[int], int]]:
        """Yield what a board may say in a query, and the least risk after it."""
        script: list[int] = []
        for i in range(self.rungs + 1):
            risk2 = 2 * c + mean - i * self.alpha
            assert risk2 % 2 == 0
            min_risk = risk2 // 2 if min_risk is None else min(min_risk, risk2 // 2)
            replies = range(min_risk - self.error, min_risk + self.error + 1)
            quiet = [reply for reply in replies if reply >= c - self.alpha // 2]
            for reply in replies:
                if reply < c - self.alpha // 2 or i == self.rungs:
                    yield [*script, reply], min_risk
            if not quiet:
                return
            script.append(quiet[-1])


def _all_boards(lattice: Lattice) -> tuple[int, float]:
    """Try everything; return how many runs there were and the largest error, in alphas."""
    unit, half = lattice.unit, lattice.one // 2
    queries = lb.GeneralEstimator(Puppet(), n=1, alpha=lattice.alpha * unit).queries
    # Where the least risk and the last value stand, and one way to get there.
    places: dict[tuple[int | None, int], list[tuple[int, list[int]]]] = {(None, half): []}
    runs, worst = 0, 0.0
    for query in range(1, queries + 1):
        reached: dict[tuple[int | None, int], list[tuple[int, list[int]]]] = {}
        for (min_risk, last), way in places.items():
            c = min(last, half)
            for mean in range(0, lattice.one + 1, 2):
                for script, after in lattice.scripts(min_risk, c, mean):
                    path = [*way, (mean, script)]
                    lines = [round(say * unit, 9) for _, says in path for say in says]
                    puppet = Puppet(lines)
                    estimator = lb.GeneralEstimator(puppet, n=1, alpha=lattice.alpha * unit)
                    for step_mean, _ in path:
                        answer = estimator.ask([round(step_mean * unit, 9)])
                    assert not lines
                    assert (answer.query, answer.classifiers) == (query, len(script))
                    assert answer.consistent
                    assert answer.before - answer.after < 1.5 * lattice.alpha * unit
                    assert estimator.remaining == queries - query
                    worst = max(worst, abs(answer.value / unit - mean) / lattice.alpha)
                    reached.setdefault((after, script[-1]), path)
                    runs += 1
        places = reached
    return runs, worst


@pytest.mark.parametrize(
    ("lattice", "min_runs"),
    [
        (Lattice(unit=0.0125, alpha=16, error=3, one=80), 200),
        (Lattice(unit=0.02, alpha=8, error=1, one=50), 1_000),
        pytest.param(Lattice(0.01, 16, 3, 100), 10_000, marks=pytest.mark.slow),
        pytest.param(Lattice(0.0125, 8, 1, 80), 10_000, marks=pytest.mark.slow),
        pytest.param(Lattice(0.00625, 16, 3, 160), 100_000, marks=pytest.mark.slow),
    ],
)
def test_every_board_with_error_below_a_quarter_gets_answers_within_alpha(
    lattice: Lattice, min_runs: int
) -> None:
    runs, worst = _all_boards(lattice)
    assert runs > min_runs
    assert 0.5 <= worst <= 0.75 + 1e-9
