"""What a certificate is given, what it says, and what is refused."""

import json
import math
import re
from dataclasses import dataclass, replace

import numpy as np
import pytest

import ladderboard as lb
from ladderboard.bounds import Certificate, certificate, paper
from ladderboard.errors import InvalidSetting

LADDER = lb.Ladder(step=0.01, grid=0.005)


@dataclass(frozen=True)
class Custom(lb.Ladder):
    """Somebody's own: nobody knows what it says."""


def test_it_prints_and_turns_into_json():
    result = certificate(10_000, 1_000, 5, LADDER, released=0.05)
    again = json.loads(json.dumps(result.describe(), allow_nan=False))
    assert again["half_width"] == result.half_width == (result.high - result.low) / 2
    assert again["vacuous"] is False
    assert again["assumptions"] == list(result.assumptions)
    text = str(result)
    assert text.startswith("The best model's true loss lies in [0.02")
    assert "with confidence 95%" in text
    assert len(text.splitlines()) == 3
    assert text.endswith(
        ".assumptions lists what must hold; .describe() has the theorem and all numbers."
    )
    assert again["nats"] == pytest.approx(63.8, abs=0.05)


def test_the_parts_add_up():
    result = certificate(10_000, 1_000, 5, LADDER)
    below, above = result.generalisation
    assert result.differences
    assert result.low == pytest.approx(-result.sample[1] - below)
    assert result.high == pytest.approx(-result.sample[0] + above)
    assert below == pytest.approx(math.sqrt(result.nats / 20_000))
    with_release = certificate(10_000, 1_000, 5, LADDER, released=0.05)
    below, above = with_release.generalisation
    assert with_release.low == pytest.approx(0.05 - with_release.sample[1] - below)
    assert with_release.high == pytest.approx(0.05 - with_release.sample[0] + above)


def test_the_released_value_only_helps():
    blind = certificate(10_000, 1_000, 5, LADDER)
    for value in (0.05, 0.3, 0.5):
        with_release = certificate(10_000, 1_000, 5, LADDER, released=value)
        assert with_release.low >= value + blind.low - 1e-12
        assert with_release.high <= value + blind.high + 1e-12


def test_at_close_the_risk_replaces_the_sample_part():
    live = certificate(10_000, 1_000, 5, LADDER, released=0.05)
    closed = certificate(10_000, 1_000, 5, LADDER, released=0.05, risk=0.047)
    assert closed.nats == live.nats
    assert live.low <= closed.low <= 0.047 <= closed.high <= live.high
    assert any(
        "only when no question will follow" in assumption for assumption in closed.assumptions
    )


def test_rounds_help_an_honest_run_and_cost_little_at_worst():
    count = certificate(10_000, 1_000, 5, LADDER)
    early = certificate(10_000, 1_000, [1, 2, 4, 8, 16], LADDER)
    late = certificate(10_000, 1_000, [600, 700, 800, 900, 990], LADDER)
    assert early.nats < count.nats - 5
    assert count.nats - 1e-9 <= late.nats <= count.nats + math.log(2)
    assert any("decided beforehand" in assumption for assumption in early.assumptions)


def test_an_improvement_in_the_last_question_costs_nothing():
    before = certificate(10_000, 1_000, [1, 5], LADDER, asked=6)
    assert certificate(10_000, 1_000, [1, 5, 6], LADDER, asked=6).nats == before.nats


def test_any_number_of_questions_costs_more_than_a_number_fixed_beforehand():
    fixed = certificate(10_000, 1_000, 5, LADDER)
    anytime = certificate(10_000, None, 5, LADDER, asked=1_000)
    assert fixed.nats < anytime.nats < fixed.nats + math.log(6 * 1001) + 1e-9
    assert "any number of questions" in anytime.theorem


def test_silence_about_values_is_cheaper():
    bits = certificate(10_000, 1_000, 5, lb.OneBit(step=0.01, grid=0.005))
    assert bits.nats < certificate(10_000, 1_000, 5, LADDER).nats - 15
    assert any("after the last question" in assumption for assumption in bits.assumptions)


def test_exact_scores_have_a_true_and_useless_certificate():
    result = certificate(10_000, 1_000, 5, lb.Exact())
    assert result.nats == pytest.approx(999 * math.log(10_001) + math.log(1000 * 2 / 0.05))
    assert result.half_width > 0.6
    assert certificate(1_000, 1_000, 5, lb.Exact()).vacuous
    assert any("zero-one" in assumption for assumption in result.assumptions)


def test_several_ladders_count_together_unless_they_are_private():
    one = certificate(10_000, 1_000, 5, LADDER)
    many = certificate(10_000, 1_000, 5, LADDER, ladders=50)
    private = certificate(10_000, 1_000, 5, LADDER, ladders=50, private=True)
    assert one.nats < private.nats == pytest.approx(one.nats + math.log(50))
    assert many.nats > one.nats
    assert any("count together" in assumption for assumption in many.assumptions)
    assert any("sees anything" in assumption for assumption in private.assumptions)


def test_changes_by_ladder_help_when_one_ladder_has_most_of_them():
    total = certificate(10_000, 1_000, 50, LADDER, ladders=20)
    split = certificate(10_000, 1_000, {"a": 46, "b": 4}, LADDER, ladders=20)
    assert split.nats < total.nats - 50
    even = certificate(10_000, 1_000, dict.fromkeys(range(20), 2), LADDER, ladders=20)
    assert even.nats <= certificate(10_000, 1_000, 40, LADDER, ladders=20).nats + math.log(2)


def test_other_ranges_of_risk():
    """Twice the range, twice everything."""
    one = certificate(10_000, 1_000, 5, LADDER)
    two = certificate(
        10_000, 1_000, 5, lb.Ladder(step=0.02, grid=0.01), risk_range=(-1, 1), released=-0.5
    )
    same = certificate(10_000, 1_000, 5, LADDER, released=0.25, zero_one=False)
    assert two.nats == pytest.approx(one.nats)
    assert (two.low + 1) / 2 == pytest.approx(same.low, abs=1e-9)
    assert (two.high + 1) / 2 == pytest.approx(same.high, abs=1e-9)


@pytest.mark.parametrize(
    "mechanism",
    [
        lb.Noisy(sd=0.1),
        lb.Thresholdout(),
        lb.BootstrapLadder(),
        lb.ShakyLadder(0.01, 0.01, 0.01),
        lb.ShakyLadder(0.01, 0.01, 0.01, law="laplace"),
        Custom(step=0.1),
    ],
    ids=lambda bound: type(bound).__name__,
)
def test_a_vacuous_certificate_says_so(mechanism):
    result = certificate(10_000, 1_000, 5, mechanism)
    assert isinstance(result, Certificate)
    assert result.vacuous
    assert (result.theorem, result.nats, result.centre) == ("none", None, None)
    # A release may be any number: nothing follows about its difference from a risk.
    assert (result.low, result.high) == result.sample == result.known == (-math.inf, math.inf)
    assert result.half_width == result.error == math.inf
    assert len(result.assumptions) == 1
    written = json.loads(json.dumps(result.describe(), allow_nan=False))
    assert written["low"] is written["high"] is written["half_width"] is written["error"] is None
    assert written["sample"] == [None, None]
    with_release = certificate(10_000, 1_000, 5, mechanism, released=0.3)
    assert (with_release.low, with_release.high, with_release.centre, with_release.error) == (
        0,
        1,
        0.5,
        None,
    )
    assert with_release.vacuous
    for bound in (result, with_release):
        assert "nothing is promised" in str(bound)
        assert "vacuous" in str(bound)
        assert "probability" not in str(bound)


def test_the_papers_own_ladder_gets_the_papers_bound():
    n, k = 1_000_000, 100_000
    mechanism = lb.ShakyLadder.from_paper(n, k)
    result = certificate(n, k, 3, mechanism)
    assert result.high == -result.low == pytest.approx(paper(n, k).bound)
    assert result.theorem == "the paper's, as printed"
    assert "does not follow" in result.assumptions[0]
    assert certificate(n, k, 3, mechanism, released=0.5).half_width <= paper(n, k).bound
    assert certificate(n, k - 1, 3, mechanism, 0.06).high == result.high
    # Its failure probability is kept only up to a constant: the first line does not say 0.95.
    assert "except with probability of a constant times 0.05" in str(result)
    assert "at least 0.95" not in str(result)
    for other, why in (
        (certificate(n, k + 1, 3, mechanism), "100001 questions are more than 100000"),
        (certificate(n + 1, k, 3, mechanism), "n is 1000001 and not 1000000"),
        (certificate(n, k, 3, mechanism, 0.04), "beta is 0.04, below 0.05"),
        (certificate(n, k, 3, mechanism, ladders=2), "it covers one ladder, not 2"),
        (certificate(n, None, 3, mechanism, asked=k), "an unknown number of questions"),
        (certificate(n, k, 3, mechanism, risk_range=(0, 2)), "risks do not lie in"),
        (certificate(n, k, 3, replace(mechanism, step=0.001)), "Give it a grid"),
    ):
        assert other.theorem == "none"
        assert why in other.assumptions[0]


def test_the_papers_bound_is_not_cut_where_it_says_nothing():
    """Its releases are unbounded, so a bound of 2.7 is 2.7: the value may lie so far away."""
    mechanism = lb.ShakyLadder.from_paper(10_000, 1_000)
    small = certificate(10_000, 1_000, 3, mechanism)
    assert small.vacuous
    assert small.theorem == "the paper's, as printed"
    assert small.error == small.high == -small.low == paper(10_000, 1_000).bound > 2
    with_release = certificate(10_000, 1_000, 3, mechanism, released=0.5)
    assert (with_release.low, with_release.high, with_release.vacuous) == (0, 1, True)


def test_releases_outside_the_range_of_risks_are_not_cut_off():
    """Risks are in [0.4, 1], and 0.45 rounds to 0: the true risk may be 1 more than that."""
    rounded = lb.Rounded(digits=0)
    result = certificate(1, 1, None, rounded, risk_range=(0.4, 1))
    assert rounded.start(n=1, risk_range=(0.4, 1)).ask(risk=0.45).value == 0
    assert (result.low, result.high, result.vacuous) == (-0.6, 1, True)
    # The other end: 0.5 rounds to 0 and 0.55 to 1, and a true risk may be 0 all the same.
    result = certificate(1, 1, None, rounded, risk_range=(0, 0.55))
    assert (result.low, result.high, result.vacuous) == (-1, 0.55, True)
    # A ladder never stands above R_0.
    result = certificate(1, 1, None, lb.Ladder(0.5, 0.5), risk_range=(0.2, 0.8))
    assert (result.low, result.high, result.vacuous) == pytest.approx((-0.6, 0.8, True))


def test_the_error_is_that_of_the_released_value():
    """An interval need not be symmetric; half its length is the error of its centre."""
    result = certificate(10_000, 1_000, 5, LADDER)
    assert result.error == max(-result.low, result.high) == -result.low
    assert result.error > result.half_width
    assert result.centre == pytest.approx(result.half_width - result.error)
    with_release = certificate(10_000, 1_000, 5, LADDER, released=0.05)
    assert with_release.error is None
    assert with_release.centre - with_release.half_width == pytest.approx(with_release.low)


def test_the_upper_end_may_lie_between_units():
    high = math.log(1_000)
    ladder = lb.Ladder(step=0.1, grid=0.05)
    value = ladder.start(n=100, risk_range=(0, high)).ask(risk=high).value
    assert value != high
    for stands in (value, high):
        certificate(100, 50, 0, ladder, released=stands, risk_range=(0, high))


def test_changes_are_read_once_and_as_numbers():
    assert certificate(100, 50, np.array(3), LADDER) == certificate(100, 50, 3, LADDER)
    lists = {"a": [2, 30], "b": [4]}
    once = {name: iter(rounds) for name, rounds in lists.items()}
    result = certificate(100, 50, once, LADDER, ladders=2)
    assert result == certificate(100, 50, lists, LADDER, ladders=2)
    yes = np.bool_(True)
    private = certificate(100, 50, 3, LADDER, ladders=2, private=yes)
    assert private == certificate(100, 50, 3, LADDER, ladders=2, private=True)


class Shy:
    """Somebody's team, that cannot be printed."""

    def __repr__(self):
        raise ValueError


def test_probabilities_and_ends_are_printed_so_that_they_stay_true():
    rare = certificate(10_000, 1_000, 5, LADDER, 1e-7)
    assert "with confidence 99.9999%\n" in str(rare)
    assert any("With confidence 99.9999% over" in text for text in rare.assumptions)
    for changes in range(20):
        for value in (None, 0.1):
            result = certificate(10_000, 1_000, changes or None, LADDER, 0.0123456789, value)
            line = str(result).splitlines()[0]
            low, high, half, sure = map(float, re.findall(r"-?\d+\.\d+", line))
            last = (result.high - result.low) / 10  # two digits of the width
            assert low <= result.low < low + last
            assert high - last < result.high <= high
            assert half - last < result.half_width <= half
            assert sure == 98.7654


BASE = {"n": 100, "questions": 50, "changes": 3, "mechanism": LADDER}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"n": 0}, "n must be a whole number of at least 1"),
        ({"questions": 0}, "questions must be"),
        ({"questions": None}, "asked must be"),
        ({"asked": 51}, "asked must be .* at most 50; got 51"),
        ({"changes": 51}, "changes must be .* at most 50; got 51"),
        ({"changes": 11, "asked": 10}, "at most 10; got 11"),
        ({"changes": -1}, "changes must be"),
        ({"changes": "many"}, "changes must be"),
        ({"changes": [3, 2]}, "in rising order"),
        ({"changes": [2, 2]}, "in rising order"),
        ({"changes": [0, 2]}, "a round in changes must be"),
        ({"changes": [2, 51]}, "a round in changes must be"),
        ({"changes": {"a": [1, 2], "b": [2]}, "ladders": 2}, "in rising order"),
        ({"changes": {"a": 2, "b": 1}}, "names 2 ladders and there are 1"),
        ({"changes": {"a": 26, "b": 25}, "ladders": 2}, "at most 50; got 51"),
        ({"beta": 0}, "beta must be"),
        ({"beta": 1}, "beta must be"),
        ({"ladders": 0}, "ladders must be"),
        ({"mechanism": "ladder"}, "mechanism must be a Mechanism"),
        ({"released": 0.0512}, "a multiple of 0.005, or 1 before the first change"),
        ({"released": 1.2}, "released must be a value"),
        ({"released": 1.0}, "released must be a value"),
        ({"released": 0.985}, "released must be a value"),
        ({"released": 0.5, "changes": 0}, "released must be a value"),
        ({"released": math.nan}, "released must be a number"),
        ({"risk": 1.5}, "risk must be a number"),
        ({"released": 0.5, "risk": 0.503}, "released - risk must lie in"),
        ({"released": 0.5, "risk": 0.489}, "released - risk must lie in"),
        ({"private": "no"}, "private must be True or False; got 'no'"),
        ({"changes": {"a": 2, "b": 1}, "ladders": 9, "private": True}, "about one team"),
        ({"changes": {Shy(): -1, "b": 1}, "ladders": 2}, "type Shy that cannot be printed"),
        ({"changes": np.array(3.5)}, "changes must be a whole number"),
        ({"mechanism": lb.Ladder(step=0.9, grid=0.5), "changes": 2}, "at most 1 times on a ladder"),
        ({"mechanism": lb.ParameterFreeLadder(), "n": 1}, "needs n of at least 2"),
    ],
)
def test_refusals(given, message):
    with pytest.raises(InvalidSetting, match=message):
        certificate(**{**BASE, **given})


def test_what_can_stand_is_taken():
    assert certificate(100, 50, 0, LADDER, released=1.0).high == 1
    certificate(100, 50, 3, LADDER, released=0.97)
    certificate(100, 50, 1, LADDER, released=0.99)
    certificate(100, 50, 9, lb.Exact(), released=1 / 3 + 1 / 150)
    certificate(100, 50, 9, lb.Exact(), released=0.34, risk=1 / 3 + 1 / 150)
    for risk in (0.4901, 0.5024):
        certificate(100, 50, 3, LADDER, released=0.5, risk=risk)
    # With noise a release may be as far from the risk as it likes.
    certificate(100, 50, 3, lb.ShakyLadder(0.01, 0.1, 0.1, grid=0.1), released=0.5, risk=0.1)
    certificate(100, 50, {"a": [2, 30], "b": []}, LADDER, ladders=3, released=0.5)


def test_everything_a_ladder_says_is_taken():
    """Odd grids and odd ranges: whatever was released can be certified."""
    for ladder, span in ((lb.Ladder(0.07, 0.03), (0, 1)), (lb.Ladder(0.1, 0.04), (-0.33, 0.55))):
        session = ladder.start(n=50, risk_range=span)
        changes = 0
        for index in range(1, 51):
            release = session.ask(risk=span[1] - (span[1] - span[0]) * index / 51)
            changes += release.improved
            certificate(
                50, 50, changes, ladder, released=release.value, asked=index, risk_range=span
            )
        assert changes > 3
