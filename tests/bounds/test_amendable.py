"""A number of questions that may be amended: one mixture of weights from the start."""

import math

import pytest

import ladderboard as lb
from ladderboard.bounds import certificate
from ladderboard.bounds._counting import TranscriptWeights
from ladderboard.errors import InvalidSetting
from ladderboard.holdout import Meter
from ladderboard.ledger import EMPTY_CHAIN
from ladderboard.mechanisms import Setup
from ladderboard.mechanisms._transcript import (
    ReleaseDeviation,
    _anytime_shares,
    _known_budget_shares,
    _mixed_shares,
)

TENTHS = lb.Ladder(0.1, 0.1)
NOISY = lb.ShakyLadder(0.02, 0.01, 0.005, 0.01)


@pytest.mark.parametrize("questions", [1, 7, 30])
def test_weights_sum_to_at_most_one(questions):
    """Over all questions for ever, and everything that may be seen before each of them."""
    values = TENTHS.transcript(Setup(100, 0.0, 1.0)).values
    weights = TranscriptWeights(questions, 1.0, 1, amendable=True)
    total = 0.0
    for t in range(1, 400):
        price = weights._uniform_price(values, t)
        for b in range(min(t - 1, values.max_changes) + 1):
            transcripts = math.comb(t - 1, b) * round(math.exp(values.log_count(b)))
            total += transcripts * math.exp(-price(b))
    assert 0.5 < total <= 1  # all but what is past 400, and more changes than there can be


@pytest.mark.parametrize("asked", [1, 5, 30])
@pytest.mark.parametrize("changes", [0, [], 1, [1]])
@pytest.mark.parametrize(
    "mechanism", [TENTHS, NOISY, lb.Rounded(2)], ids=lambda mechanism: mechanism.name
)
def test_it_costs_at_most_ln_2_more_than_either(mechanism, changes, asked):
    arguments = (changes, mechanism)
    mixed = certificate(1000, 30, *arguments, asked=asked, amendable=True)
    known = certificate(1000, 30, *arguments, asked=asked)
    anytime = certificate(1000, None, *arguments, asked=asked)
    cheapest = min(known.nats, anytime.nats)
    assert cheapest - 1e-9 <= mixed.nats <= cheapest + math.log(2) + 1e-9
    assert mixed.sample[1] >= min(known.sample[1], anytime.sample[1]) - 1e-12


def test_past_the_first_number_only_the_other_half_is_left():
    past = certificate(1000, 30, 3, TENTHS, asked=31, amendable=True)
    anytime = certificate(1000, None, 3, TENTHS, asked=31)
    assert past.nats == pytest.approx(anytime.nats + math.log(2), rel=1e-9)
    with pytest.raises(InvalidSetting, match="at most 30"):
        certificate(1000, 30, 3, TENTHS, asked=31)
    with pytest.raises(InvalidSetting, match="amendable=True needs"):
        certificate(1000, None, 3, TENTHS, asked=31, amendable=True)
    with pytest.raises(InvalidSetting, match="amendable must be"):
        certificate(1000, 30, 3, TENTHS, amendable=1)


def test_amending_the_budget_changes_no_certificate():
    """It used to change the form after the data, and so could fail with twice beta."""
    rules = {"beta": 0.05, "worth": 1000, "weighted": False, "questions": 100, "declared": 100}
    chain_state = EMPTY_CHAIN._replace(asked=40, changes=6, ladders=1)
    before = Meter(NOISY, rules, chain_state).certificate(0.2)
    for questions in (50, 200, 10_000):
        assert (
            Meter(NOISY, {**rules, "questions": questions}, chain_state).certificate(0.2) == before
        )
    assert "any number of questions" in before.theorem


def test_noise_shares_sum_to_at_most_one():
    for ladders in (1, 3):
        known = _known_budget_shares(20, ladders)
        mixed = [
            _mixed_shares(known if t <= 20 else None, _anytime_shares(t, ladders))
            for t in range(1, 5000)
        ]
        assert 0.9 < sum(share.draw for share in mixed) <= 1
    alone = ReleaseDeviation(0.01, 0.005, 0.004, 0.0, 0.002)
    assert alone.interval(20, 0.05, asked=20)[1] <= alone.interval(20, 0.025)[1]
