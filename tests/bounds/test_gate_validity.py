"""Verdicts are false in at most beta of all games, whatever the analyst does with them.

Labels are fair coins except on easy rows, whose label everybody knows. So no candidate is better on
the other rows, and it is known exactly which verdicts are false.
"""

import math
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import product

import numpy as np
import pytest

from ladderboard.bounds import (
    LookPrices,
    PairedEvidence,
    PairedTest,
    log_sign_tail,
    price_with_beta,
)

BETA = 0.2


class OneBitGate:
    """A gate in memory for one vector of labels, which notes whether a verdict was false."""

    def __init__(self, labels, chances, looks, *, prices=None, beta=BETA):
        self.labels, self.chances, self.n = labels, chances, len(labels)
        self.prices = LookPrices(looks) if prices is None else prices
        self.test = PairedTest("sign", self.n, beta)
        self.look_number, self.verdicts, self.false = 0, [], False

    def look(self, candidate, rival, margin=0.0):
        """Return the outcome of a look."""
        self.look_number += 1
        nats = self.prices.nats(self.look_number, self.verdicts)
        rows = np.flatnonzero(candidate != rival)
        won = candidate[rows] == self.labels[rows]
        net = 2 * int(won.sum()) - len(rows)
        outcome = _outcome(self.test, len(rows), net, nats, margin)
        certain = self.test.is_certain(margin, len(rows))
        if outcome != ("not_worse" if certain else "cannot_tell"):
            self.verdicts.append(self.test.options(margin, len(rows)))
        if outcome != "cannot_tell":
            right = np.where(candidate[rows] == 1, self.chances[rows], 1 - self.chances[rows])
            expected = float((2 * right - 1).sum())
            limit = 0.0 if outcome == "better" else -self.n * margin - 1e-9
            self.false |= expected <= limit if outcome == "better" else expected < limit
        return outcome


def _outcome(test, differing, net, nats, margin):
    """Return ``test.outcome`` faster, without the thresholds; the test below compares the two."""
    if _proves(test, differing, net, nats, 0.0):
        return "better"
    return "not_worse" if margin and _proves(test, differing, net, nats, margin) else "cannot_tell"


def _proves(test, differing, net, nats, margin):
    price, share = price_with_beta(nats, test.beta), 0.5
    if margin:
        if test.examples * margin > differing:
            return True
        share = (1 - test.examples * margin / differing) / 2 + 1e-12
    return log_sign_tail(differing, (differing + net) // 2, share) <= -price


def test_outcomes_are_those_of_the_gate():
    test = PairedTest("sign", 60, BETA)
    for differing, margin in product((5, 20, 41), (0.0, 0.1, 0.5)):
        for net in range(-differing, differing + 1, 2):
            evidence = PairedEvidence(differing, net)
            assert _outcome(test, differing, net, 2.0, margin) == test.outcome(
                evidence, 2.0, margin
            )


@dataclass
class Walk:
    """Steps to neighbours that are said not to be worse, and claims the sum of their gains."""

    flips: float = 0.2
    luck: float = 0.8  # standard deviations of luck at which a neighbour is said not to be worse
    claims: int = 20
    name: str = field(default="walk")

    def play(self, gate, rng, looks, margin_of):
        start = rng.integers(0, 2, gate.n)
        current = start.copy()
        for number in range(looks - 1):
            if number % self.claims == self.claims - 1:
                gate.look(current, start)
                continue
            candidate = current ^ (rng.random(gate.n) < self.flips)
            margin = margin_of(gate, int((candidate != current).sum()), self.luck)
            if gate.look(candidate, current, margin) != "cannot_tell":
                current = candidate
        gate.look(current, start)


@dataclass
class Majority:
    """Looks at random guesses with a margin, and votes with those that are said not to be worse."""

    luck: float = 0.5
    name: str = field(default="majority")

    def play(self, gate, rng, looks, margin_of):
        rival = rng.integers(0, 2, gate.n)
        votes = np.zeros(gate.n)
        for number in range(looks - 1):
            if number % 25 == 24:
                gate.look((votes > 0).astype(int), rival)
                continue
            guess = rng.integers(0, 2, gate.n)
            margin = margin_of(gate, int((guess != rival).sum()), self.luck)
            if gate.look(guess, rival, margin) != "cannot_tell":
                votes += 2 * guess - 1
        gate.look((votes > 0).astype(int), rival)


@dataclass
class Patient:
    """Waits for luck that is rare, so that a verdict is worth more and most looks cost little."""

    luck: float = 1.8
    name: str = field(default="patient")

    def play(self, gate, rng, looks, margin_of):
        Walk(flips=0.5, luck=self.luck, claims=looks).play(gate, rng, looks, margin_of)


@dataclass
class EasyRows:
    """Is wrong on known rows, so that it is worse by more than the margin, and asks again."""

    name: str = field(default="easy rows")

    def play(self, gate, rng, looks, margin_of):
        easy = np.flatnonzero(gate.chances != 0.5)
        rival = rng.integers(0, 2, gate.n)
        rival[easy] = gate.chances[easy]
        for _ in range(looks):
            candidate = rival ^ (rng.random(gate.n) < 0.5)
            candidate[easy] = 1 - rival[easy]
            gate.look(candidate, rival, (len(easy) - 1) / gate.n)


ANALYSTS = [Walk(), Walk(flips=0.05, luck=1.2), Majority(), Patient(), EasyRows()]


def margin_for(gate, differing, luck):
    """Return a margin with which "not worse" needs about this many standard deviations of luck."""
    price = price_with_beta(gate.prices.nats(gate.look_number + 1, gate.verdicts), gate.test.beta)
    chance = 0.5 + luck / 2 / math.sqrt(max(differing, 1))  # that wins reach this share of all
    deviation = math.sqrt(2 * price * chance * (1 - min(chance, 1)) / max(differing, 1))
    margin = differing * (1 - 2 * max(chance - deviation, 0.0)) / gate.n
    return min(max(margin, 0.0), 0.99)


def play(analyst, n, looks, seed, prices=None, margin_of=margin_for):
    """Play a game; return whether a verdict was false."""
    rng = np.random.default_rng([n, looks, seed])
    chances = np.full(n, 0.5)
    chances[: max(2, n // 25)] = 1.0
    labels = (rng.random(n) < chances).astype(int)
    if not isinstance(analyst, EasyRows):
        chances, labels = np.full(n, 0.5), rng.integers(0, 2, n)
    gate = OneBitGate(labels, chances, looks, prices=prices)
    analyst.play(gate, rng, looks, margin_of)
    return gate.false


@pytest.mark.parametrize("analyst", ANALYSTS, ids=lambda analyst: analyst.name)
def test_few_games_have_a_false_verdict(analyst):
    """If a fifth were false, 60 games with at most 3 would happen once in 3,000 runs."""
    false = sum(play(analyst, 50, 40, seed) for seed in range(60))
    assert false <= 3


@pytest.mark.slow
@pytest.mark.parametrize("n", [50, 500, 5_000])
@pytest.mark.parametrize("analyst", ANALYSTS, ids=lambda analyst: analyst.name)
def test_at_most_beta_of_many_games_have_a_false_verdict(analyst, n):
    """15 times 400 games. At most 50 false where a fifth is would happen once in 10^5 runs."""
    false = sum(play(analyst, n, 200, seed) for seed in range(400))
    assert false <= 50


@dataclass(frozen=True)
class FreeVerdicts(LookPrices):
    """Broken: earlier verdicts are not counted, so a shared prefix is paid for once."""

    def nats(self, look, verdicts=(), *, lost=0):
        return super().nats(look, (), lost=lost)


@dataclass(frozen=True)
class TwiceTheWeight(LookPrices):
    """Broken: the weights add up to 2."""

    def nats(self, look, verdicts=(), *, lost=0):
        return super().nats(look, verdicts, lost=lost) - np.log(2)


def test_free_verdicts_are_caught():
    analyst = Walk(flips=0.05, luck=1.2, claims=10**6)
    honest = sum(play(analyst, 200, 400, seed) for seed in range(6))
    broken = sum(play(analyst, 200, 400, seed, FreeVerdicts(400)) for seed in range(6))
    assert honest == 0
    assert broken >= 5


def test_a_margin_chosen_after_the_data_is_caught():
    """Its size tells the net wins, which nobody counts: a vote by them is "better" falsely."""

    def smallest_passing_margin(gate, candidate, rival):
        rows = candidate != rival
        net = 2 * int((candidate[rows] == gate.labels[rows]).sum()) - int(rows.sum())
        for step in range(1, gate.n):
            if _proves(gate.test, int(rows.sum()), net, 5.0, step / gate.n):
                return step / gate.n
        return 1.0

    false = 0
    for seed in range(15):
        rng = np.random.default_rng(seed)
        labels = rng.integers(0, 2, 60)
        gate = OneBitGate(labels, np.full(60, 0.5), 200)
        rival = rng.integers(0, 2, 60)
        guesses = rng.integers(0, 2, (150, 60))
        margins = np.array([smallest_passing_margin(gate, guess, rival) for guess in guesses])
        votes = (np.median(margins) - margins) @ (2 * guesses - 1)
        gate.look((votes > 0).astype(int), rival)
        false += gate.false
    assert false > 10


def exact_failure(strategy, chances, looks, prices=None):
    """Return the probability of a false verdict, over all labels."""
    n, total = len(chances), 0.0
    for labels in product((0, 1), repeat=n):
        gate = OneBitGate(np.array(labels), chances, looks, prices=prices)
        prefix = ()
        for _ in range(looks):
            prefix += (gate.look(*strategy(prefix)),)
        weight = np.prod(np.where(np.array(labels) == 1, chances, 1 - chances))
        total += weight * gate.false
    return total


def random_strategy(n, seed):
    """Return a fixed choice of candidate, rival and margin for every sequence of verdicts."""

    @lru_cache(None)
    def strategy(prefix):
        rng = np.random.default_rng([seed, *map(len, prefix), len(prefix)])
        rival = rng.integers(0, 2, n)
        flips = rng.random(n) < rng.choice([0.6, 1.0])
        return rival ^ flips, rival, float(rng.choice([0.0, 0.2, 0.5]))

    return strategy


@pytest.mark.parametrize("looks", [1, 2, 3])
def test_all_transcripts_of_tiny_gates(looks):
    rng = np.random.default_rng(looks)
    failures = []
    for seed in range(8):
        chances = np.full(6, 0.5) if seed % 2 else rng.random(6)
        failures.append(exact_failure(random_strategy(6, seed), chances, looks))
    assert 0 < max(failures) <= BETA


def test_twice_the_weight_is_caught_by_all_transcripts():
    def everything(prefix):
        return np.ones(7, int), np.zeros(7, int), 0.0

    chances = np.full(7, 0.5)
    assert exact_failure(everything, chances, 1) <= BETA
    assert exact_failure(everything, chances, 1, TwiceTheWeight(1)) > BETA
