"""Who is faithful, and how sure one can be."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ladderboard as lb
from ladderboard.errors import InvalidSetting
from ladderboard.mechanisms import Teller

# Where a mechanism is deterministic the verdict is certain. Elsewhere the limits are wrong with
# probability 1%, the false-alarm rate of the tests that look at them.


@pytest.mark.parametrize("n", [100, 1_000, 10_000])
@pytest.mark.parametrize("cells", [0.01, 0.5, 1.0])
def test_a_ladder_with_a_grid_of_at_most_one_over_root_n_is_faithful(n: int, cells: float) -> None:
    unit = 1 / math.sqrt(n)
    found = lb.is_faithful(lb.Ladder(step=unit, grid=cells * unit), n, games=30)
    assert found.verdict == "faithful"
    assert all(each.kept == each.games and each.within == each.updates for each in found.probed)
    assert sum(each.updates for each in found.probed) > 100


@given(
    n=st.integers(1, 10**6),
    cell=st.floats(0.01, 1),
    more=st.floats(0.5, 3),
    risks=st.lists(st.floats(0, 1), min_size=1, max_size=30),
)
def test_a_ladder_with_a_grid_of_at_most_one_over_root_n_is_faithful_to_everyone(
    n: int, cell: float, more: float, risks: list[float]
) -> None:
    # The proof's condition: a grid of at most 1/sqrt(n), and a step of at least half a cell.
    grid = cell / math.sqrt(n)
    session = lb.Ladder(step=more * grid, grid=grid).start(n=n)
    for risk in risks:
        release = session.ask(risk=risk)
        if release.improved:
            assert release.value is not None
            assert abs(release.value - risk) <= 1 / (2 * math.sqrt(n)) + 1e-9


@pytest.mark.parametrize("n", [100, 1_000, 10_000])
def test_the_parameter_free_ladder_is_faithful(n: int) -> None:
    found = lb.is_faithful(lb.ParameterFreeLadder(), n, games=20)
    assert found.verdict == "faithful"
    assert found.within == 1
    assert sum(each.updates for each in found.probed) > 100


@pytest.mark.parametrize("n", [1_000, 10_000])
def test_the_calibrated_shaky_ladder_is_not(n: int) -> None:
    found = lb.is_faithful(lb.ShakyLadder.calibrated(n=n, questions=100), n)
    assert found.verdict == "not faithful"
    assert not found
    assert found.within is not None
    assert 0.4 < found.within < 0.95  # most updates are near, and not all of a game's


def test_a_coarse_ladder_is_not() -> None:
    found = lb.is_faithful(lb.Ladder(step=0.05), 10_000)
    assert found.verdict == "not faithful"
    assert found.within is not None
    assert 0 < found.within < 1  # now and then a risk is near a multiple of the step


class Liar(Teller):
    """Tell the risk, or in some sessions something a little further off than is faithful."""

    name = "liar"

    def __init__(self, chance: float, off: float) -> None:
        object.__setattr__(self, "chance", chance)
        object.__setattr__(self, "off", off)

    def describe(self) -> dict[str, Any]:
        return {"mechanism": self.name}

    def start(self, n: int, tape: Any = None, **more: Any) -> lb.Session:
        honest = int(tape.fingerprint, 16) % 1000 >= 1000 * self.chance
        object.__setattr__(self, "shift", 0.0 if honest else self.off / math.sqrt(n))
        return super().start(n, tape, **more)

    def score(self, risk: float, draws: Any) -> float:
        return risk + self.shift

    shift = 0.0


@pytest.mark.parametrize(
    ("chance", "off", "verdict"),
    [
        (1.0, 0.499, "faithful"),
        (1.0, 0.501, "not faithful"),
        (0.1, 0.6, "faithful"),
        (0.34, 0.6, "undecided"),
        (0.6, 0.6, "not faithful"),
    ],
)
def test_verdicts_are_those_of_the_definition(chance: float, off: float, verdict: str) -> None:
    # The definition: within 0.5/sqrt(n), in two games of three.
    found = lb.is_faithful(Liar(chance, off), 400, questions=20, games=200)
    assert found.verdict == verdict
    descend = found.probed[0]
    assert descend.low <= 1 - chance * (off > 0.5) <= descend.high


def test_limits_hold_as_often_as_they_say() -> None:
    # A game is kept with probability 0.6 (descend nearly always has an update). At confidence 0.8
    # shared by two sides of four probes a limit fails for at most one in 20 of 200 seeds, so 10 on
    # average; more than 25 has a probability below 1e-4.
    held = 0
    for seed in range(200):
        liar = Liar(0.4, 0.6)
        found = lb.is_faithful(liar, 100, questions=6, games=25, confidence=0.8, seed=seed)
        held += found.probed[0].low <= 0.6 <= found.probed[0].high
    assert held >= 175


def test_what_is_said() -> None:
    found = lb.is_faithful(lb.Ladder(step=0.05), 10_000, games=20)
    assert found.describe() == (
        "not faithful, with 99% confidence. Under the probe 'descend' every update was within "
        f"1/(2 sqrt n) of the risk in 0 of 20 games ({found.within:.0%} of its updates); a "
        "faithful mechanism keeps two games in three."
    )
    assert found == lb.is_faithful(lb.Ladder(step=0.05), 10_000, games=20)
    assert found != lb.is_faithful(lb.Ladder(step=0.05), 10_000, games=20, seed=1)


def test_refusals() -> None:
    with pytest.raises(InvalidSetting, match="OneBit tells no value"):
        lb.is_faithful(lb.OneBit(step=0.1), 100)
    with pytest.raises(InvalidSetting, match="questions must be a whole number of at least 2"):
        lb.is_faithful(lb.Exact(), 100, questions=1)
    with pytest.raises(InvalidSetting, match="confidence must be a number above 0 and below 1"):
        lb.is_faithful(lb.Exact(), 100, confidence=1)


def test_a_single_example_will_do() -> None:
    assert lb.is_faithful(lb.Exact(), 1, games=20).verdict == "faithful"
