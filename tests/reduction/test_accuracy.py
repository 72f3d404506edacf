"""The corrected Fig. 2: how accurate it is, what it costs, and how the printed one fails."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ladderboard as lb
from ladderboard.errors import BudgetSpent
from ladderboard.mechanisms import Mechanism, Observation, Setup, Step
from ladderboard.reduction import _estimator

if TYPE_CHECKING:
    from ladderboard.tape import Draws

ALPHAS = (0.02, 0.05, 0.1, 0.2)
NEARLY = 1 - 1e-6  # of alpha/4: the error must stay below it
ROUNDING = Fraction(1, 10**12)


@dataclass
class Known:
    """What an adversary knows beyond its protocol: the estimator's threshold and alpha."""

    threshold: float = 0.5
    alpha: float = 0.1


Manner = Callable[[float, float, float, Known, np.random.Generator], float]


def _trap(low: float, high: float, last: float, known: Known, rng: np.random.Generator) -> float:
    """Cross the threshold as soon as that is allowed, by as much as is allowed."""
    edge = known.threshold - known.alpha / 2
    return low if low < edge else high


def _barely(low: float, high: float, last: float, known: Known, rng: np.random.Generator) -> float:
    """Cross as soon as that is allowed, by as little as is allowed."""
    edge = known.threshold - known.alpha / 2
    return min(max(low, edge - 1e-9), high)


def _late(low: float, high: float, last: float, known: Known, rng: np.random.Generator) -> float:
    """Stay at the edge, which does not cross it, as long as that is allowed; then drop deep."""
    edge = known.threshold - known.alpha / 2
    return edge if low <= edge <= high else low if edge > high else high


MANNERS: dict[str, Manner] = {
    "low": lambda low, high, last, known, rng: low,
    "high": lambda low, high, last, known, rng: high,
    "random": lambda low, high, last, known, rng: rng.uniform(low, high),
    "ends": lambda low, high, last, known, rng: low if rng.random() < 0.5 else high,
    "stubborn": lambda low, high, last, known, rng: min(max(last, low), high),
    "trap": _trap,
    "barely": _barely,
    "late": _late,
    "late, then a trap": lambda *args: (_late, _trap)[int(args[-1].random() < 0.2)](*args),
}


@dataclass(frozen=True)
class Adversary(Mechanism):
    """Say anything within ``error`` of the least risk so far.

    The risks it is asked about are those of the distribution, so its leaderboard error is what it
    does to them.
    """

    name = "adversary"

    error: float
    manner: Manner
    known: Known
    rng: np.random.Generator

    def begin(self, setup: Setup, draws: Draws) -> Any:
        return (np.inf, setup.high)

    def advance(self, setup: Setup, state: Any, observation: Observation, draws: Draws) -> Step:
        min_risk = min(state[0], observation.risk)
        low, high = min_risk - self.error, min_risk + self.error
        reply = self.manner(low, high, state[1], self.known, self.rng)
        assert low <= reply <= high
        return Step((min_risk, reply), reply, reply, improved=reply < state[1])

    def value(self, state: Any) -> float:
        return float(state[1])


def printed_figure_2(
    board: Callable[[float], float], mean: float, last: float | None, alpha: float
) -> float | None:
    """Fig. 2 as it is printed, for the counter-example; None where it defines no answer."""
    c = 0.5 if last is None else last
    for i in range(round(1 / alpha)):
        reply = board(c + (mean - i * alpha) / 2)
        if reply < c - alpha / 2:
            return 2 * (reply - c + i * alpha / 2)
    return None


def _queries(kind: str, estimator: lb.GeneralEstimator, rng: np.random.Generator) -> float:
    """Choose the next query's mean, in view of what was answered."""
    alpha = estimator.alpha
    if kind == "uniform":
        return float(rng.random())
    if kind == "extremes":
        return float(rng.integers(0, 2))
    if kind == "alternating":
        return float(estimator.asked % 2)
    if kind == "zeros":  # every query lowers the threshold
        return 0.0
    # On the rungs, where a little error decides which classifier crosses.
    rungs = rng.integers(0, round(4 / alpha) + 1) * alpha / 4
    return float(np.clip(rungs + rng.choice([-1e-9, 0, 1e-9]), 0, 1))


def _play(alpha: float, manner: str, kind: str, seed: int, error: float = NEARLY) -> list[float]:
    """Ask all queries; return how far off the answers are, in units of alpha."""
    rng = np.random.default_rng(seed)
    known = Known(alpha=alpha)
    board = Adversary(error * alpha / 4, MANNERS[manner], known, rng)
    estimator = lb.GeneralEstimator(board, n=2, alpha=alpha)
    off = []
    for query in range(1, estimator.queries + 1):
        known.threshold = estimator.threshold
        mean = _queries(kind, estimator, rng)
        spread = min(mean, 1 - mean) * rng.random()
        answer = estimator.ask([mean - spread, mean + spread])
        off.append(abs(answer.value - mean) / alpha)
        assert answer.query == query
        assert answer.consistent
        assert answer.before - answer.after <= 1.5 * alpha
        assert answer.after == estimator.threshold
        assert answer.remaining == estimator.queries - query
        assert -alpha / 2 < answer.value < 1 + alpha / 2
    assert estimator.classifiers <= estimator.max_classifiers <= 1 / alpha**2
    assert estimator.queries == math.floor(Fraction(1) / (3 * Fraction(str(alpha))))
    with pytest.raises(BudgetSpent, match="all were asked"):
        estimator.ask([0.5, 0.5])
    return off


KINDS = ("uniform", "extremes", "alternating", "zeros", "rungs")


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("manner", MANNERS)
def test_every_answer_is_within_alpha_of_an_adversary_with_error_below_a_quarter(
    alpha: float, manner: str
) -> None:
    for kind in KINDS:
        for seed in range(4):
            assert max(_play(alpha, manner, kind, seed)) < 0.75 + 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("manner", MANNERS)
def test_every_answer_is_within_alpha_at_length(alpha: float, manner: str) -> None:
    for kind in KINDS:
        for seed in range(100, 200):
            assert max(_play(alpha, manner, kind, seed)) < 0.75 + 1e-9


@given(
    alpha=st.fractions(Fraction(1, 60), Fraction(1, 3)),
    means=st.lists(st.floats(0, 1), min_size=20, max_size=20),
    parts=st.lists(st.floats(-1, 1), min_size=40, max_size=40),
)
def test_every_answer_is_within_alpha_whatever_the_board_says(
    alpha: Fraction, means: list[float], parts: list[float]
) -> None:
    turn = iter(range(10**6))

    def whatever(low: float, high: float, *_: Any) -> float:
        part = (1 + parts[next(turn) % len(parts)]) / 2
        return min(max(low + part * (high - low), low), high)

    known, rng = Known(), np.random.default_rng(0)
    board = Adversary(float(alpha) / 4 * NEARLY, whatever, known, rng)
    estimator = lb.GeneralEstimator(board, n=1, alpha=alpha)
    for mean in means[: estimator.queries]:
        answer = estimator.ask([mean])
        assert abs(Fraction(answer.value) - Fraction(mean)) <= Fraction(3, 4) * alpha + ROUNDING
        assert answer.before - answer.after < 1.5 * float(alpha)
    assert estimator.classifiers <= 1 / alpha**2


def test_the_bounds_are_reached() -> None:
    # So nothing was given away, and the tests above are not passed by boards that are too tame.
    def worst(kind: str) -> float:
        return max(max(_play(0.05, manner, kind, 0)) for manner in MANNERS)

    assert worst("extremes") > 0.75 - 1e-6  # nothing crossed, and the mean was 1
    assert worst("rungs") > 0.5 - 1e-5  # something crossed


# alpha = .05, E g_1 = 0, E g_2 = 1: what a board may say within alpha/2 of the least risk so far.
COUNTER_EXAMPLE = (0.5, 0.5, 0.475, 0.45, 0.40)


def _scripted(error: float, replies: tuple[float, ...]) -> Adversary:
    script = iter(replies)
    return Adversary(error, lambda *_: next(script), Known(), np.random.default_rng(0))


def test_an_error_of_alpha_half_is_too_much_for_the_corrected_form_too() -> None:
    board = _scripted(0.025 + 1e-12, COUNTER_EXAMPLE)
    estimator = lb.GeneralEstimator(board, n=1, alpha=0.05)
    assert estimator.ask([0.0]).value == pytest.approx(0.05)
    second = estimator.ask([1.0])
    assert second.value == pytest.approx(-0.10)
    assert not second.consistent  # and it is known that this went wrong


def test_the_printed_figure_fails_on_the_counter_example() -> None:
    session = _scripted(0.025 + 1e-12, COUNTER_EXAMPLE).start(n=1, risk_range=(-0.5, 1))

    def board(risk: float) -> float:
        reply = session.ask(risk=risk).value
        assert reply is not None
        return reply

    first = printed_figure_2(board, 0.0, None, 0.05)
    assert first == pytest.approx(0.05)
    assert printed_figure_2(board, 1.0, session.value, 0.05) == pytest.approx(-0.10)


def test_the_printed_figure_may_have_no_answer() -> None:
    assert printed_figure_2(lambda risk: min(risk, 1.0), 1.0, None, 0.05) is None


def test_values_outside_zero_and_one_are_not_clipped_away() -> None:
    # With c at 0.08 classifiers go down to -0.4; clipped at 0 their means would be told wrongly.
    estimator = lb.GeneralEstimator(lb.Exact(), n=4, alpha=0.1)
    sample = np.array([0.0, 0.0, 1.0, 1.0])
    for values, mean in ((0 * sample, 0.0), (0 * sample + 0.04, 0.04), (sample, 0.5)):
        assert estimator.ask(values).value == pytest.approx(mean, abs=1e-12)


@pytest.mark.slow
@settings(max_examples=40)
@given(
    means=st.lists(st.floats(0, 1), min_size=16, max_size=16),
    alpha=st.sampled_from(ALPHAS),
    coarse=st.sampled_from([0.25, 0.5, 1.0]),
    seed=st.integers(0, 10**6),
)
def test_a_ladder_answers_within_alpha_where_the_sample_is_large_enough(
    means: list[float], alpha: float, coarse: float, seed: int
) -> None:
    # Half of alpha/4 for the ladder (step, or half a cell if that is more), half for the sample:
    # the mean of g/2 over n examples is off by alpha/8 with probability 2 exp(-n alpha^2 / 8), and
    # n = 240/alpha^2 makes that 2e-13 a query.
    n = round(240 / alpha**2)
    step = alpha / 8 * (1 - 1e-9)
    rng = np.random.default_rng(seed)
    estimator = lb.GeneralEstimator(lb.Ladder(step=step, grid=coarse * step), n=n, alpha=alpha)
    for mean in means[: estimator.queries]:
        ones = int(rng.binomial(n, mean))  # the order of examples is nothing to a Ladder
        values = np.zeros(n)
        values[:ones] = 1
        answer = estimator.ask(values)
        assert abs(answer.value - mean) < 0.75 * alpha + 1e-9
        assert answer.before - answer.after < 1.5 * alpha
        assert answer.consistent
    assert estimator.classifiers <= 1 / alpha**2


@pytest.mark.parametrize(
    ("replies", "consistent"),
    [
        ((0.5, 0.46, 0.44), True),
        ((0.5, 0.4), False),  # an answer of -alpha
        ((0.5, 0.425), False),  # of -alpha/2
        ((0.5, 0.426), True),
        ((0.5, 0.5, 0.5, 0.35), False),  # a drop of 3 alpha/2
        ((0.5, 0.5, 0.5, 0.351), True),
        ((0.5, 0.55, 0.44), False),  # a rise of alpha/2
        ((0.5, 0.549, 0.44), True),
        ((1.025, 0.97, 0.44), False),  # alpha/4 more than any classifier's risk can be
        ((1.024, 0.97, 0.44), True),
    ],
)
def test_what_cannot_be_is_noticed(replies: tuple[float, ...], consistent: bool) -> None:
    estimator = lb.GeneralEstimator(_scripted(10.0, (*replies, 0.44, 0.3)), n=1, alpha=0.1)
    answer = estimator.ask([0.0])
    assert (answer.classifiers, answer.consistent) == (len(replies), consistent)


def test_what_was_noticed_is_not_forgotten() -> None:
    board = _scripted(10.0, (0.5, 0.4, 0.4, 0.4, 0.4, 0.34))
    estimator = lb.GeneralEstimator(board, n=1, alpha=0.1)
    assert [estimator.ask([0.0]).consistent for _ in range(2)] == [False, False]


def test_risks_are_rounded_once() -> None:
    # With shift and half the mean rounded apart the second query would cross a rung too early.
    estimator = lb.GeneralEstimator(lb.Exact(), n=1, alpha=0.1)
    assert [estimator.ask([mean]).classifiers for mean in (0.02, 0.20)] == [3, 5]


def test_means_are_exact_but_for_one_rounding() -> None:
    # So the order of examples, or the machine, cannot decide a tie.
    for seed in range(20):
        values = np.random.default_rng(seed).random(1_000)
        total = float(sum(map(Fraction, values.tolist())))
        assert _estimator._exact_mean(values) == Fraction(total) / 1_000


def test_ties_are_ties() -> None:
    # In doubles 0.4 - 0.05 is 0.35000000000000003, and 0.35 would cross what it only meets.
    assert 0.35 < 0.4 - 0.1 / 2
    board = _scripted(10.0, (0.5, 0.5, 0.4, 0.35, 0.34))
    estimator = lb.GeneralEstimator(board, n=1, alpha=0.1)
    assert estimator.ask([0.0]).after == 0.4
    assert estimator.ask([0.0]).classifiers == 2
