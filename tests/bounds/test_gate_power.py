"""The power of a gate beside exact McNemar tests at beta / looks, which people make by hand."""

import math

import pytest

from ladderboard.bounds import LookPrices
from ladderboard.bounds._gate_plan import _GainSearch

ALL_SIZES = [(n, share) for n in (100, 300, 500, 1_319, 5_000) for share in (0.05, 0.1, 0.2)]
FEW_SIZES = [(300, 0.2), (500, 0.2), (1_319, 0.05)]
SIZES = [FEW_SIZES, pytest.param(ALL_SIZES, marks=pytest.mark.slow)]


def ratio(n, share, looks, look, test="sign"):
    """Return the gain proven at a look over that of McNemar's test; None if it proves none."""
    mcnemar = _GainSearch(share, 0.05, 0.8, "sign").smallest_gain(n, math.log(looks))
    nats = LookPrices(looks).nats(look)
    gain = _GainSearch(share, 0.05, 0.8, test).smallest_gain(n, nats)
    return None if mcnemar is None or gain is None else gain / mcnemar


@pytest.mark.parametrize("sizes", SIZES, ids=["few", "all"])
@pytest.mark.parametrize("looks", [1, 20, 200])
def test_no_look_is_much_worse_than_mcnemar(looks, sizes):
    for n, share in sizes:
        for look in {1, looks // 2 or 1, looks}:
            sign, bets = ratio(n, share, looks, look), ratio(n, share, looks, look, "bets")
            assert sign is None or sign <= 1.09
            # A single look needs Markov's inequality with bets, where McNemar is exact.
            assert bets is None or bets <= (1.43 if looks == 1 else 1.3)


@pytest.mark.parametrize("sizes", SIZES, ids=["few", "all"])
def test_the_first_ten_of_200_looks_are_better_than_mcnemar(sizes):
    for n, share in sizes:
        for look in (1, 10):
            first = ratio(n, share, 200, look)
            assert first is None or first <= (0.88 if n * share >= 100 else 0.92)


def test_few_examples_that_differ_are_never_enough():
    assert ratio(100, 0.1, 200, 1) is None
