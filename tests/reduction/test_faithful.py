"""Which mechanisms are faithful, and with what confidence."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ladderboard as lb
from ladderboard.errors import BrokenMechanism, InvalidSetting
from ladderboard.mechanisms import Mechanism, Observation, ScoreMechanism, Setup, Step

# Where a mechanism is deterministic the verdict is certain. Elsewhere the limits are wrong with
# probability 1%, the false-alarm rate of the tests that look at them.


@pytest.mark.parametrize("n", [100, 1_000, 10_000])
@pytest.mark.parametrize("cells", [0.01, 0.5, 1.0])
def test_a_ladder_with_a_grid_of_at_most_one_over_root_n_is_faithful(n: int, cells: float) -> None:
    unit = 1 / math.sqrt(n)
    result = lb.is_faithful(lb.Ladder(step=unit, grid=cells * unit), n, games=30)
    assert result.verdict == "faithful"
    assert all(
        probe.kept == probe.games and probe.within == probe.updates for probe in result.probed
    )
    assert sum(probe.updates for probe in result.probed) > 100


@given(
    n=st.integers(1, 10**6),
    cell=st.floats(0.01, 1),
    more=st.floats(0, 3),
    risks=st.lists(st.floats(0, 1), min_size=1, max_size=30),
)
def test_a_ladder_with_a_grid_of_at_most_one_over_root_n_is_faithful_to_everyone(
    n: int, cell: float, more: float, risks: list[float]
) -> None:
    # Proved: a grid of at most 1/sqrt(n), whatever the step.
    grid = cell / math.sqrt(n)
    session = lb.Ladder(step=round(more * grid, 12), grid=grid).start(n=n)
    for risk in risks:
        release = session.ask(risk=risk)
        if release.improved:
            assert release.value is not None
            assert abs(release.value - risk) <= 1 / (2 * math.sqrt(n)) + 1e-9


@pytest.mark.parametrize("n", [100, 1_000, 10_000])
def test_the_parameter_free_ladder_is_faithful(n: int) -> None:
    result = lb.is_faithful(lb.ParameterFreeLadder(), n, games=20)
    assert result.verdict == "faithful"
    assert result.within == 1
    assert sum(probe.updates for probe in result.probed) > 100


@pytest.mark.parametrize("n", [1_000, 10_000])
def test_the_calibrated_shaky_ladder_is_not(n: int) -> None:
    result = lb.is_faithful(lb.ShakyLadder.calibrated(n=n, questions=100), n)
    assert result.verdict == "not faithful"
    assert not result
    assert result.within is not None
    assert 0.4 < result.within < 0.95  # most updates are near, and not all of a game's


def test_a_shaky_ladder_without_release_noise_may_be() -> None:
    # Calibrated for (1,000, 1,000) it has compare noise, and releases that are nearly the risk.
    mechanism = lb.ShakyLadder.calibrated(n=1_000, questions=1_000)
    assert lb.is_faithful(mechanism, 1_000).verdict == "faithful"


def test_thresholdout_is_not() -> None:
    # It repeats the training risk, which is another sample's.
    assert lb.is_faithful(lb.Thresholdout(noise=0), 1_000, games=30).verdict == "not faithful"


def test_a_grid_a_little_coarser_than_one_over_root_n_is_found_out() -> None:
    result = lb.is_faithful(lb.Ladder(step=1.1 / math.sqrt(1_000)), 1_000)
    assert (result.verdict, result.worst.probe) == ("not faithful", "leap")


def test_a_coarse_ladder_is_not() -> None:
    result = lb.is_faithful(lb.Ladder(step=0.05), 10_000)
    assert result.verdict == "not faithful"
    assert result.within is not None
    assert 0 < result.within < 1  # now and then a risk is near a multiple of the step


class Liar(ScoreMechanism):
    """Tell the risk, or in some sessions something a little further off than is faithful."""

    name = "liar"

    def __init__(self, chance: float, off: float) -> None:
        object.__setattr__(self, "chance", chance)
        object.__setattr__(self, "off", off)

    def describe(self) -> dict[str, Any]:
        return {"mechanism": self.name}

    def start(self, n: int, tape: Any = None, **options: Any) -> lb.Session:
        honest = int(tape.fingerprint, 16) % 1000 >= 1000 * self.chance
        object.__setattr__(self, "shift", 0.0 if honest else self.off / math.sqrt(n))
        return super().start(n, tape, **options)

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
        (1.0, 0.5 + 1e-6, "not faithful"),
    ],
)
def test_verdicts_are_those_of_the_definition(chance: float, off: float, verdict: str) -> None:
    # The definition: within 0.5/sqrt(n), in two games of three.
    result = lb.is_faithful(Liar(chance, off), 400, questions=20, games=200)
    assert result.verdict == verdict
    descend = result.probed[0]
    assert descend.low <= 1 - chance * (off > 0.5) <= descend.high


def test_limits_hold_as_often_as_they_say() -> None:
    # A game is kept with probability 0.6 (descend nearly always has an update). At confidence 0.8
    # shared by two sides of five probes a limit fails for at most one in 25 of 200 seeds, so 8 on
    # average; more than 25 has a probability below 1e-6.
    covered = 0
    for seed in range(200):
        liar = Liar(0.4, 0.6)
        result = lb.is_faithful(liar, 100, questions=6, games=25, confidence=0.8, seed=seed)
        covered += result.probed[0].low <= 0.6 <= result.probed[0].high
    assert covered >= 175


def test_two_games_in_three_are_the_limit() -> None:
    # Limits at 1,500 games are within 0.05 of 0.6 and 0.73, and wrong with probability 1%.
    sizes = {"questions": 6, "games": 1_500}
    assert lb.is_faithful(Liar(0.4, 0.6), 100, **sizes).verdict == "not faithful"
    assert lb.is_faithful(Liar(0.27, 0.6), 100, **sizes).verdict == "faithful"


def test_limits_are_chernoffs_shared_by_both_sides_of_all_probes() -> None:
    for confidence in (0.99, 0.8):
        result = lb.is_faithful(lb.Exact(), 50, questions=3, games=100, confidence=confidence)
        shared = (1 - confidence) / (2 * len(result.probed))
        for probe in result.probed:
            assert probe.low == pytest.approx(shared ** (1 / 100))
            assert probe.high == 1
    never = lb.is_faithful(Liar(1.0, 0.6), 50, questions=9, games=100).probed[0]
    assert (never.kept, never.low) == (0, 0)
    assert never.high == pytest.approx(1 - (0.01 / 10) ** (1 / 100))


@dataclass(frozen=True)
class Says(Mechanism):
    """Say what a rule makes of the question, the risk, the last risk and the last value."""

    name = "says"

    rule: Any

    def describe(self) -> dict[str, Any]:
        return {"mechanism": self.name}

    def begin(self, setup: Setup, draws: Any) -> Any:
        return (0, math.inf, math.inf)

    def advance(self, setup: Setup, state: Any, observation: Observation, draws: Any) -> Step:
        question, risk, value = state
        reply = self.rule(question + 1, observation.risk, risk, value)
        return Step((question + 1, observation.risk, reply), reply, reply, improved=False)

    def value(self, state: Any) -> float:
        return float(state[-1])


def _kept_shares(rule: Any, n: int = 10_000) -> dict[str, float]:
    result = lb.is_faithful(Says(rule), n, questions=30, games=20)
    return {probe.probe: probe.kept / probe.games for probe in result.probed}


def test_the_first_release_does_not_count() -> None:
    shares = _kept_shares(lambda question, risk, *_: risk + (0.1 if question == 1 else 0.0))
    assert set(shares.values()) == {1.0}


def test_only_falls_count_as_updates() -> None:
    # Up to 2 with every other question, which is far from any risk, and down to the risk again.
    shares = _kept_shares(lambda question, risk, *_: risk if question % 2 else 2.0)
    assert set(shares.values()) == {1.0}


def test_a_fall_from_the_last_value_counts_though_not_the_lowest() -> None:
    says = {1: 0.0, 2: 2.0, 3: 1.9}
    shares = _kept_shares(lambda question, *_: says.get(question, 1.9))
    assert set(shares.values()) == {0.0}


@pytest.mark.parametrize(
    ("probe", "rule"),
    [
        ("insist", lambda _q, risk, last, value: value - 0.01 if risk == last else risk),
        ("creep", lambda _q, risk, last, value: risk - 0.01 if 0 < value - risk < 2e-4 else risk),
        ("guess", lambda _q, risk, last, value: min(value, risk) - 0.01 * (0.48 < risk < 0.499)),
        ("descend", lambda _q, risk, last, value: min(value, risk) - 0.01 * (risk < 0.05)),
        ("leap", lambda _q, risk, last, value: min(value, risk) - 0.01 * (risk > 0.51)),
    ],
)
def test_each_probe_finds_a_flaw_of_its_own(probe: str, rule: Any) -> None:
    assert _kept_shares(rule)[probe] < 0.2


def test_an_undecided_probe_makes_the_verdict_undecided() -> None:
    # Strays for certain when asked again about one model, in a third of the games.
    def rule(_question: int, risk: float, last: float, value: float) -> float:
        return value - 0.02 if risk == last and round(risk * 10_000) % 3 == 0 else min(value, risk)

    result = lb.is_faithful(Says(rule), 10_000, questions=5, games=100)
    assert result.verdict == "undecided"
    assert result.worst.probe == "insist"


def test_losses_are_those_of_the_risk() -> None:
    # With three examples one more or less is further than 1/(2 sqrt n).
    assert lb.is_faithful(lb.ParameterFreeLadder(), 3, games=20).verdict == "faithful"


@pytest.mark.parametrize("value", [None, math.nan, math.inf, "0.5"])
def test_a_mechanism_that_tells_no_number_is_named(value: Any) -> None:
    with pytest.raises(BrokenMechanism, match="finite value"):
        lb.is_faithful(Says(lambda *_: value), 100)


def test_the_worst_probe_kept_least_and_strayed_most() -> None:
    def probed(name: str, kept_games: int, within: int) -> lb.reduction.ProbeResult:
        return lb.reduction.ProbeResult(name, 10, kept_games, 100, within, 0.0, 1.0)

    parts = (probed("a", 5, 10), probed("b", 4, 90), probed("c", 4, 80), probed("d", 9, 1))
    result = lb.reduction.Faithfulness({}, 100, 10, 0.99, parts)
    assert (result.worst.probe, result.within) == ("c", 0.8)


def test_the_description_of_a_result() -> None:
    result = lb.is_faithful(lb.Ladder(step=0.05), 10_000, games=20)
    assert result.describe() == (
        "not faithful with confidence 99%. Under the probe 'leap' every update was within "
        f"1/(2 sqrt n) of the risk in 0 of 20 games ({result.within:.0%} of its updates); a "
        "faithful mechanism keeps two games in three."
    )
    assert result == lb.is_faithful(lb.Ladder(step=0.05), 10_000, games=20)
    assert result != lb.is_faithful(lb.Ladder(step=0.05), 10_000, games=20, seed=1)


def test_refusals() -> None:
    with pytest.raises(InvalidSetting, match="OneBit"):
        lb.is_faithful(lb.OneBit(step=0.1), 100)
    with pytest.raises(InvalidSetting, match="questions must be a whole number of at least 2"):
        lb.is_faithful(lb.Exact(), 100, questions=1)
    with pytest.raises(InvalidSetting, match="confidence must be a number above 0 and below 1"):
        lb.is_faithful(lb.Exact(), 100, confidence=1)


def test_a_single_example_will_do() -> None:
    assert lb.is_faithful(lb.Exact(), 1, games=20).verdict == "faithful"
