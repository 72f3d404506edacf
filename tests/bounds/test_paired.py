"""The exact paired tests, by enumeration of all that can happen under the null hypothesis."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy.stats import binom

from ladderboard.bounds import (
    log_bets,
    log_convex_tail,
    log_sign_tail,
    price_with_beta,
    proven_better,
    required_net_wins,
)
from ladderboard.errors import InvalidSetting


def exact_tail(trials, successes):
    """Return P(Bin(trials, 1/2) >= successes)."""
    return Fraction(sum(math.comb(trials, k) for k in range(successes, trials + 1)), 2**trials)


def law_of_sum(laws):
    """Return the law of a sum of independent variables, each given as probabilities of 0, 1, ..."""
    total = np.ones(1)
    for law in laws:
        total = np.convolve(total, law)
    return total


def test_the_sign_test_is_the_binomial_tail_rounded_up():
    for trials in (1, 2, 7, 30, 200):
        for wins in range(trials // 2 + 1, trials + 1):
            exact = exact_tail(trials, wins)
            if 2 * wins < trials + 2:
                assert log_sign_tail(trials, wins) == 0
            else:
                excess = log_sign_tail(trials, wins) - math.log(exact)
                assert 0 <= excess < 1e-8
    assert log_sign_tail(10, 11) == -math.inf


def test_terms_of_a_tail_that_are_left_out_are_below_what_is_rounded_up():
    for trials, share in ((1_000, 0.5), (10_000, 0.5), (10_000, 0.47), (100_000, 0.1)):
        mean, deviation = trials * share, math.sqrt(trials * share * (1 - share))
        for distance in (0.1, 1, 3, 10, 20):
            wins = math.ceil(mean + distance * deviation) + 1
            excess = log_sign_tail(trials, wins, share) - binom.logsf(wins - 1, trials, share)
            assert 0 <= excess < 1e-5


def test_the_sign_test_holds_for_examples_with_unequal_chances():
    rng = np.random.default_rng(1)
    tightest = 0.0
    for _ in range(400):
        differing, share = int(rng.integers(2, 15)), float(rng.choice([0.5, 0.4, 0.2]))
        chances = rng.random(differing) ** rng.choice([0.2, 1, 5])
        chances *= min(1, share * differing / chances.sum())
        law = law_of_sum([[1 - chance, chance] for chance in chances])
        for wins in range(differing + 1):
            bound = math.exp(log_sign_tail(differing, wins, share))
            assert law[wins:].sum() <= bound * (1 + 1e-9)
            tightest = max(tightest, law[wins:].sum() / bound)
    assert tightest > 0.95


def test_one_more_win_than_the_mean_is_not_covered_by_hoeffding():
    # A sure win beside a sure loss has at least one win; two coins have one in 3 of 4 cases.
    assert log_sign_tail(2, 1, 0.5) == 0
    assert law_of_sum([[0, 1], [1, 0]])[1:].sum() == 1 > exact_tail(2, 1)


def test_the_convex_bound_holds_with_ties_and_unequal_chances():
    rng = np.random.default_rng(2)
    for _ in range(400):
        differing = int(rng.integers(1, 12))
        wins, losses, ties = rng.dirichlet([0.3, 0.3, 0.3], size=differing).T
        excess = max(0.0, (wins - losses).sum())
        move = excess / max(wins.sum(), 1e-9)  # turn wins into ties until the mean is 0
        wins, ties = wins * (1 - move), ties + wins * move
        law = law_of_sum(np.stack([losses, ties, wins], axis=1))
        for doubled in range(2 * differing + 1):
            bound = math.exp(log_convex_tail(differing, doubled / 2))
            assert law[doubled:].sum() <= bound * (1 + 1e-9)


def test_the_convex_bound_costs_at_most_a_nat_more_than_the_sign_test():
    for differing, wins in ((20, 17), (100, 66), (1_000, 560), (10_000, 5_300)):
        cost = log_convex_tail(differing, wins) - log_sign_tail(differing, wins)
        assert 0 < cost < 1


def test_far_tails_are_never_taken_for_impossible():
    assert log_sign_tail(5_000, 5_000) == pytest.approx(-5_000 * math.log(2))
    assert -5_000 * math.log(2) < log_convex_tail(5_000, 5_000) < -600


@pytest.mark.parametrize("margin", [0.0, 0.25])
def test_bets_are_false_no_more_often_than_their_price_allows(margin):
    rng = np.random.default_rng(3)
    n, price = 6, 1.5
    outcomes = np.array(list(product([-1.0, 0.0, 1.0], repeat=n)))
    passes = np.array([log_bets(outcome + margin, price) >= price for outcome in outcomes])
    assert passes.any()
    for _ in range(200):
        laws = rng.dirichlet([0.5, 0.5, 0.5], size=n)  # of -1, 0 and 1
        excess = (laws @ [-1, 0, 1]).sum() + n * margin
        if excess > 0:  # turn wins and ties into losses until the null hypothesis holds
            move = excess / (laws[:, 1] + 2 * laws[:, 2]).sum()
            laws[:, 0] += move * (laws[:, 1] + laws[:, 2])
            laws[:, 1:] *= 1 - move
        assert (laws @ [-1, 0, 1]).sum() <= -n * margin + 1e-9
        chances = np.prod([laws[i][outcomes[:, i].astype(int) + 1] for i in range(n)], axis=0)
        assert chances.sum() == pytest.approx(1)
        assert chances[passes].sum() <= math.exp(-price)


def test_bets_see_small_differences():
    rng = np.random.default_rng(4)
    differences = rng.normal(0.004, 0.02, 5_000).clip(-1, 1)
    price = price_with_beta(5.3, 0.05)
    assert log_bets(differences, price) > price
    assert log_bets(-differences, price) < 0


def test_required_net_wins_are_the_least_that_prove():
    for differing in (1, 9, 30, 101):
        for nats in (0.0, 3.0, 8.0):
            for binary in (True, False):
                needed = required_net_wins(differing, nats, 0.05, binary=binary)
                proving = [
                    net
                    for net in range(-differing, differing + 1, 2 if binary else 1)
                    if _decide(differing, net, nats, binary=binary)
                ]
                assert needed == (proving[0] if proving else None)


def test_one_net_win_less_does_not_prove():
    for differing in (50, 333, 3_000, 20_000):
        for nats in (0.0, 3.3, 6.2, 40.0, 300.0):
            for margin in (0.0, 0.003):
                options = {"examples": 2 * differing, "margin": margin}
                needed = required_net_wins(differing, nats, 0.05, **options)
                share, price = (1 - 2 * margin) / 2, nats - math.log(0.05)
                # A share and a price are rounded up by less than the tolerance.
                too_few = differing if needed is None else needed - 2
                assert log_sign_tail(differing, (differing + too_few) // 2, share) > -price - 1e-6
                if needed is not None:
                    wins = (differing + needed) // 2
                    assert log_sign_tail(differing, wins, share) <= -price + 1e-6


def _decide(differing, net, nats, *, binary):
    ties = 0 if (differing + net) % 2 == 0 else 1
    wins = (differing + net - ties) // 2
    losses = differing - ties - wins
    before, after = np.zeros(200), np.zeros(200)
    before[:wins] = 1
    after[wins : wins + losses] = 1
    before[199 - ties : 199] = after[199 - ties : 199] = 1
    options = {"binary": True} if binary else {"differing": differing}
    return proven_better(before, after, nats, 0.05, **options)


def test_ten_differing_examples_never_prove_at_a_two_hundredth():
    assert required_net_wins(10, math.log(200), 0.05) is None
    assert required_net_wins(12, math.log(200), 0.05) == 12


def test_a_margin_allows_losses():
    options = {"binary": True, "examples": 1_000}
    assert required_net_wins(40, 3.0, 0.05, **options) == 20
    # 1,000 * 0.02 = 20 of 40 net losses are allowed: a chance of 1/4 to win is still too bad.
    assert required_net_wins(40, 3.0, 0.05, margin=0.02, **options) == -2
    tails = [
        sum(Fraction(math.comb(40, k) * 3 ** (40 - k), 4**40) for k in range(wins, 41))
        for wins in (18, 19)
    ]
    assert tails[0] > 0.05 * math.exp(-3.0) > tails[1]
    # Forty differing examples cannot make a model worse by more than 0.05.
    assert required_net_wins(40, 3.0, 0.05, margin=0.05, **options) == -40
    assert required_net_wins(0, 3.0, 0.05, margin=0.001, **options) == 0
    assert required_net_wins(0, 3.0, 0.05, **options) is None
    with pytest.raises(InvalidSetting, match="number of examples"):
        required_net_wins(40, 3.0, 0.05, margin=0.02)


def test_weights_are_divided_by_the_largest():
    before, after = np.repeat([1.0, 0.0], [40, 60]), np.zeros(100)
    assert proven_better(before, after, 3.0, 0.05, weight=np.ones(100))
    # One group that weighs as much as all others makes them count little.
    heavy = np.ones(100)
    heavy[-1] = 100
    assert not proven_better(before, after, 3.0, 0.05, weight=heavy)


def test_losses_must_match():
    with pytest.raises(InvalidSetting, match="one loss per example"):
        proven_better([0.0, 1.0], [0.0], 0.0, 0.05)
