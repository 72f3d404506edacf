"""The general estimator: over any mechanism, refusals, saved states."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import ladderboard as lb
from ladderboard.errors import (
    BrokenMechanism,
    BudgetSpent,
    InvalidRisk,
    InvalidSetting,
    InvalidState,
)
from ladderboard.mechanisms import ScoreMechanism


@pytest.mark.parametrize(
    "mechanism",
    [
        lb.Exact(),
        lb.Rounded(digits=4),
        lb.Noisy(sd=0.001),
        lb.Ladder(step=0.005),
        lb.ParameterFreeLadder(),
        lb.BootstrapLadder(),
        lb.Thresholdout(threshold=0.01, noise=0.0005),
        lb.ShakyLadder(step=0.005, compare_noise=0.0005, release_noise=0.0005, grid=0.001),
        lb.ShakyLadder(step=0.005, compare_noise=0.0005, release_noise=0.0005),
    ],
    ids=lambda mechanism: mechanism.name,
)
def test_any_mechanism_will_do(mechanism: lb.Mechanism) -> None:
    rng = np.random.default_rng(3)
    n, alpha = 4_000, 0.1
    x, other = rng.random(n), rng.random(n)
    estimator = lb.GeneralEstimator(mechanism, n=n, alpha=alpha, tape=lb.Tape(seed=5))
    for values, training, mean in (
        (x, other, 1 / 2),
        (x**3, other**3, 1 / 4),
        (1 - x, 1 - other, 1 / 2),
    ):
        more = {"training": training} if mechanism.needs_training else {}
        assert abs(estimator.ask(values, **more).value - mean) < alpha


def test_a_float_alpha_is_the_fraction_that_was_meant() -> None:
    for count in range(1, 400):
        assert lb.GeneralEstimator(lb.Exact(), n=1, alpha=1 / (3 * count)).queries == count


def test_a_spent_threshold_is_refused_and_says_why() -> None:
    # A Ladder much coarser than alpha/4 throws the threshold away.
    estimator = lb.GeneralEstimator(lb.Ladder(step=0.2), n=2, alpha=0.02)
    answers = [estimator.ask([0, 1]) for _ in range(3)]
    with pytest.raises(BudgetSpent, match="threshold is spent: it is 0 after 3 of 16 queries"):
        estimator.ask([0, 1])
    assert [answer.consistent for answer in answers] == [False, False, False]
    assert answers[-1].remaining == estimator.remaining == 0


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ([0.1, 0.2], "one number for each of the 3 examples; got 2"),
        ([0.1, 0.2, 1.5], r"values must be finite numbers in \[0, 1\]; 1 are not"),
        ([0.1, math.nan, math.inf], "2 are not"),
        ([0.1, -1e-9, 0], "1 are not"),
        ("abc", "vector of numbers"),
        ([[0.1, 0.2, 0.3]], "vector of numbers"),
    ],
)
def test_bad_values_are_refused_and_cost_nothing(values: Any, sentence: str) -> None:
    estimator = lb.GeneralEstimator(lb.Ladder(step=0.01), n=3, alpha=0.1)
    before = estimator.state
    with pytest.raises(InvalidRisk, match=sentence):
        estimator.ask(values)
    assert estimator.state == before


def test_training_values_are_for_mechanisms_that_use_them_only() -> None:
    estimator = lb.GeneralEstimator(lb.Ladder(step=0.01), n=3, alpha=0.1)
    with pytest.raises(InvalidSetting, match="training="):
        estimator.ask([0, 0, 1], training=[0, 1])
    estimator = lb.GeneralEstimator(lb.Thresholdout(), n=3, alpha=0.1)
    with pytest.raises(InvalidRisk, match="needs training=, the query's values"):
        estimator.ask([0, 0, 1])
    with pytest.raises(InvalidRisk, match="at least one"):
        estimator.ask([0, 0, 1], training=[])
    assert estimator.asked == estimator.classifiers == 0


@pytest.mark.parametrize("alpha", [0, -0.1, 0.34, 1, math.nan, math.inf, "0.1", True, None])
def test_alpha_out_of_range_is_refused(alpha: Any) -> None:
    with pytest.raises(InvalidSetting, match="alpha must be"):
        lb.GeneralEstimator(lb.Exact(), n=3, alpha=alpha)


def test_alpha_is_read_as_it_was_meant() -> None:
    def queries(alpha: Any) -> int:
        return lb.GeneralEstimator(lb.Exact(), n=1, alpha=alpha).queries

    assert all(queries(np.float32(1) / np.float32(3 * count)) == count for count in range(1, 200))
    assert queries(np.float64(1 / 21)) == queries(Fraction(1, 21)) == 7
    odd = 0.123456789012345
    assert lb.GeneralEstimator(lb.Exact(), n=1, alpha=odd).alpha == odd
    state = lb.GeneralEstimator(lb.Exact(), n=1, alpha=1 / 21).state
    assert lb.GeneralEstimator.resume(lb.Exact(), state).queries == 7


def test_mechanisms_that_tell_no_value_are_refused() -> None:
    with pytest.raises(InvalidSetting, match="OneBit"):
        lb.GeneralEstimator(lb.OneBit(step=0.01), n=3, alpha=0.1)
    with pytest.raises(InvalidSetting, match="mechanism must be a mechanism"):
        lb.GeneralEstimator(lb.Ladder, n=3, alpha=0.1)  # type: ignore[arg-type]
    session: Any = lb.Ladder(step=0.1).start(n=3)
    with pytest.raises(InvalidSetting, match="mechanism must be a mechanism"):
        lb.GeneralEstimator(session, n=3, alpha=0.1)


SHAKY = lb.ShakyLadder(step=0.005, compare_noise=0.002, release_noise=0.002, grid=0.001)


def test_a_saved_state_has_the_same_future_bit_for_bit() -> None:
    rng = np.random.default_rng(1)
    samples = [rng.random(50) for _ in range(6)]

    def answers(stop: int | None) -> list[lb.reduction.Answer]:
        estimator = lb.GeneralEstimator(SHAKY, n=50, alpha=0.05, tape=lb.Tape(seed=2))
        replies = []
        for index, values in enumerate(samples):
            if index == stop:
                saved = json.loads(json.dumps(estimator.state))
                estimator = lb.GeneralEstimator.resume(SHAKY, saved, lb.Tape(seed=2))
                assert estimator.state == saved
            replies.append(estimator.ask(values))
        return replies

    uninterrupted = answers(None)
    assert all(answers(stop) == uninterrupted for stop in range(6))


def test_another_query_from_the_same_saved_state_meets_other_noise() -> None:
    # Else the difference of the two answers would be free of noise.
    mechanism = lb.Noisy(sd=0.01)

    def ask(values: list[float], context: bytes = b"", ladder: int = 0) -> float:
        tape = lb.Tape(seed=2)
        estimator = lb.GeneralEstimator(mechanism, n=2, alpha=0.1, tape=tape, ladder=ladder)
        return float(estimator.ask(values, context=context))

    assert ask([0.5, 0.5]) == ask([0.5, 0.5])
    others = [ask([0.4, 0.6]), ask([0.5, 0.5], b"x"), ask([0.5, 0.5], ladder=1), ask([0.5, 0.5])]
    assert len(set(others)) == 4
    with pytest.raises(InvalidSetting, match="context must be bytes; got str"):
        ask([0.5, 0.5], "x")  # type: ignore[arg-type]


def test_other_training_data_meet_other_noise() -> None:
    # They are far from the sample, so that it speaks with noise both times.
    mechanism = lb.Thresholdout(threshold=0.01, noise=0.005)

    def ask(training: list[float]) -> float:
        estimator = lb.GeneralEstimator(mechanism, n=1, alpha=0.1, tape=lb.Tape(seed=2))
        return estimator.ask([0.3], training=training).value

    assert ask([0.9]) == ask([0.9])
    assert ask([0.9]) != ask([0.91])


@dataclass(frozen=True)
class Secretive(ScoreMechanism):
    """Tell values, and none of them twice."""

    name = "secretive"
    answer: Any = None

    def score(self, risk: float, draws: Any) -> Any:
        return risk if self.answer is None else self.answer

    def value(self, state: Any) -> float | None:
        return None


def test_the_threshold_is_the_last_answer_also_after_a_resume() -> None:
    estimator = lb.GeneralEstimator(Secretive(), n=1, alpha=0.1)
    estimator.ask([0.02])
    again = lb.GeneralEstimator.resume(Secretive(), json.loads(json.dumps(estimator.state)))
    assert again.threshold == estimator.threshold < 0.5


def test_what_was_noticed_is_known_also_after_a_night() -> None:
    mechanism = lb.Ladder(step=0.2)
    estimator = lb.GeneralEstimator(mechanism, n=2, alpha=0.02)
    assert not estimator.ask([0, 1]).consistent
    again = lb.GeneralEstimator.resume(mechanism, estimator.state)
    assert not again.ask([0, 1]).consistent


@pytest.mark.parametrize("answer", [math.nan, math.inf, "0.5", 1j])
def test_a_mechanism_that_tells_no_number_is_named(answer: Any) -> None:
    estimator = lb.GeneralEstimator(Secretive(answer), n=1, alpha=0.1)
    with pytest.raises(BrokenMechanism, match="finite value"):
        estimator.ask([0.5])
    assert estimator.asked == 1


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"format": 2}, "format 2"),
        ({"alpha": "1/0"}, "damaged"),
        ({"alpha": "x"}, "damaged"),
        ({"alpha": "2/3"}, "damaged"),
        ({"asked": 7}, "damaged"),
        ({"asked": -1}, "damaged"),
        ({"consistent": 1}, "damaged"),
        ({"last": "x"}, "damaged"),
        ({"last": "1/3"}, "damaged"),  # nothing was said yet
        ({"session": {}}, "damaged"),
        ({"session": None}, "damaged"),
    ],
)
def test_damaged_states_are_refused(change: dict[str, Any], sentence: str) -> None:
    state = lb.GeneralEstimator(SHAKY, n=50, alpha=0.05, tape=lb.Tape(seed=2)).state
    with pytest.raises(InvalidState, match=sentence):
        lb.GeneralEstimator.resume(SHAKY, {**state, **change}, lb.Tape(seed=2))


def test_states_of_others_are_refused() -> None:
    state = lb.GeneralEstimator(SHAKY, n=50, alpha=0.05, tape=lb.Tape(seed=2)).state
    with pytest.raises(InvalidState, match="another tape"):
        lb.GeneralEstimator.resume(SHAKY, state, lb.Tape(seed=3))
    with pytest.raises(InvalidState, match="another mechanism"):
        lb.GeneralEstimator.resume(lb.Ladder(step=0.01), state, lb.Tape(seed=2))
    with pytest.raises(InvalidSetting, match="tape must be a Tape"):
        lb.GeneralEstimator.resume(SHAKY, state, 2)  # type: ignore[arg-type]
    plain = SHAKY.start(n=50, tape=lb.Tape(seed=2)).state  # of a session on another range
    with pytest.raises(InvalidState, match="damaged"):
        lb.GeneralEstimator.resume(SHAKY, {**state, "session": plain}, lb.Tape(seed=2))


def test_a_query_that_breaks_off_has_been_asked() -> None:
    mechanism, tape = lb.Thresholdout(threshold=0.001, noise=0, budget=3), lb.Tape(seed=1)
    estimator = lb.GeneralEstimator(mechanism, n=2, alpha=0.1, tape=tape)
    with pytest.raises(BudgetSpent, match="budget of 3"):
        estimator.ask([0, 1], training=[1])
    assert (estimator.asked, estimator.classifiers) == (1, 3)
    again = lb.GeneralEstimator.resume(mechanism, estimator.state, tape)
    assert again.threshold == estimator.threshold
