"""The prices of looks: the weights of all looks and verdicts before them add up to at most 1."""

import math
from itertools import product

import pytest

from ladderboard.bounds import LookPrices
from ladderboard.errors import InvalidSetting


def total_weight(looks, options_of, prices=None):
    """Add up the weights of every look after every sequence of verdicts.

    ``options_of(prefix)`` is how many verdicts besides "cannot tell" (0) the next look can give.
    """
    prices = LookPrices(looks) if prices is None else prices
    total, layer = 0.0, [()]
    for look in range(1, looks + 1):
        for prefix in layer:
            options = [
                options_of(prefix[:place]) for place, verdict in enumerate(prefix) if verdict
            ]
            total += math.exp(-prices.nats(look, options))
        layer = [
            (*prefix, verdict) for prefix in layer for verdict in range(options_of(prefix) + 1)
        ]
    return total


@pytest.mark.parametrize("looks", [1, 2, 3, 5, 8, 12])
def test_the_weights_of_all_transcripts_add_up_to_at_most_one(looks):
    total = total_weight(looks, lambda prefix: 1)
    assert 0.75 < total <= 1 + 1e-9


def test_they_do_when_the_analyst_chooses_margins_by_what_was_said():
    assert total_weight(6, lambda prefix: 1 + sum(prefix) % 3) <= 1 + 1e-9
    assert total_weight(6, lambda prefix: 3) <= 1 + 1e-9


def test_counting_shared_prefixes_once_would_be_caught():
    class FreeVerdicts(LookPrices):
        def _nats(self, look, verdicts):
            return super()._nats(look, verdicts[:1])  # later verdicts are free

    assert total_weight(8, lambda prefix: 1, FreeVerdicts(8)) > 1


def test_for_many_looks_the_weights_are_added_up_by_the_number_of_verdicts():
    looks = 300
    prices = LookPrices(looks)
    total = math.fsum(
        math.comb(look - 1, count) * math.exp(-prices.nats(look, [1] * count))
        for look, count in product(range(1, looks + 1), range(25))
        if count < look
    )
    assert 0.9 < total <= 1 + 1e-9


def test_the_first_looks_are_cheap_and_later_ones_cost_a_nat_more_than_an_even_share():
    prices = LookPrices(200)
    assert prices.nats(1) == prices.nats(10) < math.log(30)
    assert prices.nats(11) == prices.nats(200) < math.log(200) + 0.92
    assert LookPrices(1).nats(1) == 0


def test_verdicts_cost_those_after_them():
    prices = LookPrices(200)
    assert prices.nats(20) < prices.nats(20, [1]) < prices.nats(20, [2]) < prices.nats(20, [2, 1])


def test_looks_with_an_unknown_outcome_get_the_highest_price_of_all_outcomes():
    prices = LookPrices(50)
    assert prices.nats(10, [1], lost=3) == max(
        prices.nats(10, [1, *[3] * unknown]) for unknown in range(4)
    )
    assert prices.nats(10, lost=3) > prices.nats(10)


@pytest.mark.parametrize(("look", "verdicts"), [(0, []), (51, []), (2, [1, 1])])
def test_impossible_looks_are_refused(look, verdicts):
    with pytest.raises(InvalidSetting, match="look must be"):
        LookPrices(50).nats(look, verdicts)
