"""What a certificate is given, what it says, and what is refused."""

import json
import math
from dataclasses import dataclass, replace

import pytest

import ladderboard as lb
from ladderboard.bounds import Certificate, certificate, paper
from ladderboard.bounds._kl import kl, kl_lower, kl_upper
from ladderboard.errors import InvalidSetting

LADDER = lb.Ladder(step=0.01, grid=0.005)


@dataclass(frozen=True)
class Custom(lb.Ladder):
    """Somebody's own: nobody knows what it says."""


def test_it_prints_and_turns_into_json():
    found = certificate(10_000, 1_000, 5, LADDER, released=0.05)
    again = json.loads(json.dumps(found.describe(), allow_nan=False))
    assert again["half_width"] == found.half_width == (found.high - found.low) / 2
    assert again["vacuous"] is False
    assert again["assumptions"] == list(found.assumptions)
    text = str(found)
    assert text.startswith("min true risk in [0.02")
    assert "with probability at least 0.95" in text
    assert "63.8 nats" in text
    assert all(sentence in text for sentence in found.assumptions)


def test_the_parts_add_up():
    found = certificate(10_000, 1_000, 5, LADDER)
    below, above = found.generalisation
    assert found.differences
    assert found.low == pytest.approx(-found.sample[1] - below)
    assert found.high == pytest.approx(-found.sample[0] + above)
    assert below == pytest.approx(math.sqrt(found.nats / 20_000))
    told = certificate(10_000, 1_000, 5, LADDER, released=0.05)
    below, above = told.generalisation
    assert told.low == pytest.approx(0.05 - told.sample[1] - below)
    assert told.high == pytest.approx(0.05 - told.sample[0] + above)


def test_the_released_value_only_helps():
    blind = certificate(10_000, 1_000, 5, LADDER)
    for value in (0.05, 0.3, 0.5):
        told = certificate(10_000, 1_000, 5, LADDER, released=value)
        assert told.low >= value + blind.low - 1e-12
        assert told.high <= value + blind.high + 1e-12


def test_at_close_the_risk_replaces_the_sample_part():
    live = certificate(10_000, 1_000, 5, LADDER, released=0.05)
    closed = certificate(10_000, 1_000, 5, LADDER, released=0.05, risk=0.047)
    assert closed.nats == live.nats
    assert live.low <= closed.low <= 0.047 <= closed.high <= live.high
    assert any("only when no question will follow" in each for each in closed.assumptions)


def test_rounds_help_an_honest_run_and_cost_little_at_worst():
    count = certificate(10_000, 1_000, 5, LADDER)
    early = certificate(10_000, 1_000, [1, 2, 4, 8, 16], LADDER)
    late = certificate(10_000, 1_000, [600, 700, 800, 900, 990], LADDER)
    assert early.nats < count.nats - 5
    assert count.nats - 1e-9 <= late.nats <= count.nats + math.log(2)
    assert any("fixed beforehand" in each for each in early.assumptions)


def test_a_change_in_the_last_question_has_told_nobody_anything():
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
    assert any("after the last question" in each for each in bits.assumptions)


def test_exact_scores_have_a_true_and_useless_certificate():
    found = certificate(10_000, 1_000, 5, lb.Exact())
    assert found.nats == pytest.approx(999 * math.log(10_001) + math.log(1000 * 2 / 0.05))
    assert found.half_width > 0.6
    assert certificate(1_000, 1_000, 5, lb.Exact()).vacuous
    assert any("zero-one" in each for each in found.assumptions)


def test_several_ladders_count_together_unless_they_are_private():
    one = certificate(10_000, 1_000, 5, LADDER)
    many = certificate(10_000, 1_000, 5, LADDER, ladders=50)
    private = certificate(10_000, 1_000, 5, LADDER, ladders=50, private=True)
    assert one.nats < private.nats == pytest.approx(one.nats + math.log(50))
    assert many.nats > one.nats
    assert any("count together" in each for each in many.assumptions)
    assert any("sees anything" in each for each in private.assumptions)


def test_knowing_whose_changes_they_were_helps_where_one_ladder_had_most():
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
    same = certificate(10_000, 1_000, 5, LADDER, released=0.25)
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
    ids=lambda each: type(each).__name__,
)
def test_where_nothing_can_be_promised_it_says_so(mechanism):
    found = certificate(10_000, 1_000, 5, mechanism)
    assert isinstance(found, Certificate)
    assert found.vacuous
    assert (found.low, found.high, found.theorem, found.nats) == (-1, 1, "none", None)
    assert len(found.assumptions) == 1
    json.dumps(found.describe(), allow_nan=False)
    assert "vacuous" in str(found)
    told = certificate(10_000, 1_000, 5, mechanism, released=0.3)
    assert (told.low, told.high) == (0, 1)


def test_the_papers_own_ladder_gets_the_papers_bound():
    n, k = 1_000_000, 100_000
    mechanism = lb.ShakyLadder.from_paper(n, k)
    found = certificate(n, k, 3, mechanism)
    assert found.high == -found.low == pytest.approx(paper(n, k).bound)
    assert found.theorem == "the paper's, as printed"
    assert "does not follow" in found.assumptions[0]
    assert certificate(n, k, 3, mechanism, released=0.5).half_width <= paper(n, k).bound
    assert certificate(n, k - 1, 3, mechanism, 0.06).high == found.high
    for other in (
        certificate(n, k + 1, 3, mechanism),
        certificate(n + 1, k, 3, mechanism),
        certificate(n, k, 3, mechanism, 0.04),
        certificate(n, k, 3, mechanism, ladders=2),
        certificate(n, None, 3, mechanism, asked=k),
        certificate(n, k, 3, replace(mechanism, step=0.001)),
    ):
        assert other.theorem == "none"
    small = certificate(10_000, 1_000, 3, lb.ShakyLadder.from_paper(10_000, 1_000))
    assert small.vacuous
    assert small.theorem == "the paper's, as printed"


BASE = {"n": 100, "questions": 50, "changes": 3, "mechanism": LADDER}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"n": 0}, "n must be a whole number of at least 1"),
        ({"questions": 0}, "questions must be"),
        ({"questions": None}, "asked must say how many"),
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
    certificate(100, 50, {"a": [2, 30], "b": []}, LADDER, ladders=3, released=0.5)


def test_everything_a_ladder_says_is_taken():
    """Odd grids and odd ranges: whatever was released can be certified."""
    for ladder, span in ((lb.Ladder(0.07, 0.03), (0, 1)), (lb.Ladder(0.1, 0.04), (-0.33, 0.55))):
        session = ladder.start(n=50, risk_range=span)
        changes = 0
        for at in range(1, 51):
            release = session.ask(risk=span[1] - (span[1] - span[0]) * at / 51)
            changes += release.improved
            certificate(50, 50, changes, ladder, released=release.value, asked=at, risk_range=span)
        assert changes > 3


@pytest.mark.parametrize("q", [0.0, 1e-9, 0.05, 0.5, 0.999, 1.0])
@pytest.mark.parametrize("nats", [1e-6, 0.01, 1.0, 50.0])
def test_the_inverses_of_kl(q, nats):
    low, high = kl_lower(q, nats), kl_upper(q, nats)
    assert 0 <= low <= q <= high <= 1
    for end in (low, high):
        assert kl(q, end) >= nats - 1e-9 or end in {0.0, 1.0}
    assert high <= q + math.sqrt(nats / 2) + 1e-12
    assert low >= q - math.sqrt(nats / 2) - 1e-12
