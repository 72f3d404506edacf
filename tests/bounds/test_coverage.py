"""Certificates kept in games: honest and hostile analysts, and mechanisms broken on purpose.

A certificate may fail in a part beta of the games. With that many games the number of failures has
standard error sqrt(games beta (1 - beta)); three of them above the mean is a false alarm below 2e-3
even for certificates that fail exactly as often as they may, and these fail far less.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

import ladderboard as lb
from ladderboard.analysts import (
    MajorityAttack,
    OneBitAttack,
    Plateau,
    ShiftedMajority,
    SteadyImprovement,
    SybilAttack,
    World,
)
from ladderboard.bounds import certificate
from ladderboard.bounds._kl import kl_upper
from ladderboard.mechanisms import Observation, Setup, Step
from ladderboard.mechanisms._ladder import LadderState

N, QUESTIONS, BETA = 100, 40, 0.2
LADDER = lb.Ladder(step=0.1, grid=0.05)
SHAKY = lb.ShakyLadder(step=0.05, compare_noise=0.05, release_noise=0.02, grid=0.05)
GROWING = lb.GrowingLadder(step=0.5, growth=0.5, compare_noise=0.3, release_noise=0.2, grid=0.8)
MECHANISMS = [LADDER, SHAKY, lb.OneBit(step=0.1, grid=0.05), lb.ParameterFreeLadder(), GROWING]
ANALYSTS = [
    SteadyImprovement(),
    Plateau(),
    ShiftedMajority(),
    OneBitAttack(),
    MajorityAttack(),
]
FORMS = ("count", "kl", "rounds")


def allowed(games, beta):
    return beta * games + 3 * math.sqrt(games * beta * (1 - beta))


def check(play, misses, mechanism, analyst, games, beta, questions=QUESTIONS):
    records = [play(analyst, mechanism, N, questions, seed) for seed in range(games)]
    for form in (*FORMS, *(["changes"] if mechanism is GROWING else [])):
        failed = sum(misses(record, mechanism, beta, form) for record in records)
        assert failed <= allowed(games, beta), form


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda mechanism: mechanism.name)
@pytest.mark.parametrize("analyst", ANALYSTS, ids=lambda analyst: analyst.name)
def test_certificates_hold(play, misses, mechanism, analyst):
    """850 games in all."""
    check(play, misses, mechanism, analyst, 10 if mechanism is GROWING else 40, BETA)


@pytest.mark.parametrize("mechanism", MECHANISMS[:2], ids=lambda mechanism: mechanism.name)
def test_certificates_of_several_ladders_hold(play, misses, mechanism):
    """80 games; failures would have to be in more than a fifth of them."""
    attack, games = SybilAttack(accounts=6), 40
    records = [play(attack, mechanism, N, QUESTIONS, seed) for seed in range(games)]
    for form in ("count", "rounds"):
        failed = sum(misses(record, mechanism, BETA, form, ladders=6) for record in records)
        assert failed <= allowed(games, BETA), form


@pytest.mark.slow
@pytest.mark.parametrize("beta", [0.05, 0.5])
@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda mechanism: mechanism.name)
@pytest.mark.parametrize("analyst", ANALYSTS, ids=lambda analyst: analyst.name)
def test_certificates_hold_over_many_games(play, misses, mechanism, analyst, beta):
    """25,000 games in all, and longer ones."""
    check(play, misses, mechanism, analyst, 500, beta, questions=80)


def test_paying_for_the_questions_alone_is_caught(play, misses):
    """A union bound over the questions is right for models chosen beforehand, and only for them."""
    mechanism, k, games = lb.ParameterFreeLadder(), 400, 20
    records = [play(ShiftedMajority(), mechanism, N, k, seed) for seed in range(games)]
    naive = math.log(2 * k / BETA) / N
    failed = sum(min(record.true_risks) > kl_upper(record.last, naive) for record in records)
    assert failed > allowed(games, BETA)
    assert sum(misses(record, mechanism, BETA, "kl") for record in records) == 0


def test_colluders_are_caught_where_their_changes_are_not_counted_together(play, misses):
    """Many accounts are no private teams: counting one ladder alone is false, and all is true."""
    mechanism, n, k, accounts, games = lb.Ladder(step=0.1, grid=0.05), 200, 400, 300, 20
    attack = SybilAttack(accounts=accounts, easy=0.0)
    records = [play(attack, mechanism, n, k, seed) for seed in range(games)]
    failed = 0
    for record in records:
        voter = record.accounts[-1]
        whose = zip(record.accounts, record.improved, strict=True)
        changes = sum(improved for account, improved in whose if account == voter)
        alone = certificate(n, k, changes, mechanism, BETA, ladders=accounts, private=True)
        failed += min(record.true_risks) - record.last > alone.high
    assert failed > allowed(games, BETA)
    assert (
        sum(misses(record, mechanism, BETA, "count", ladders=accounts) for record in records) == 0
    )


# A mechanism that does not round, and an analyst who reads labels off the digits.


@dataclass(frozen=True)
class Unrounded(lb.Ladder):
    """A Ladder that says the risk as it is."""

    name: ClassVar[str] = "unrounded"

    def advance(self, setup, state, observation, draws):
        step, _ = self.step_and_grid_units
        risk = round(observation.risk * 10**12)
        if risk < state.best - step:
            return Step(LadderState(risk), risk / 10**12, risk / 10**12, True)
        return Step(state, state.best / 10**12, None, False)


class Probabilities(World):
    """Coin-flip labels; a model is a probability for each, and costs its distance from it."""

    def __init__(self, n, rng):
        self.n = n
        self.labels = rng.integers(0, 2, n)

    def losses(self, model):
        return np.abs(np.asarray(model) - self.labels)

    def true_risk(self, model):
        return 0.5


@dataclass(frozen=True)
class DigitReader(lb.Analyst):
    """Write every label into a digit of its own, read them off the release, and submit them."""

    name: ClassVar[str] = "digit_reader"

    def world(self, n, rng):
        return Probabilities(n, rng)

    def play(self, game):
        weights = 0.5 ** np.arange(1, game.n + 1)
        value = game.ask(0.5 - weights / 2).value
        # The loss is a half less weight/2 where the label is 0, and a half more where it is 1.
        rest = (value - 0.5) * 2 * game.n + weights.sum()
        labels = []
        for weight in weights:
            labels.append(rest > 2 * weight - weights[-1])
            rest -= 2 * weight * labels[-1]
        game.ask(np.array(labels, dtype=float))


@pytest.mark.parametrize(
    ("mechanism", "caught"), [(LADDER, False), (Unrounded(0.1, 0.05), True)], ids=["grid", "none"]
)
def test_unrounded_releases_are_caught(play, misses, mechanism, caught):
    """The certificate is that of a Ladder on the grid; unrounded releases break it every time."""
    games = 100
    records = [play(DigitReader(), mechanism, 32, 2, seed) for seed in range(games)]
    failed = sum(misses(record, LADDER, BETA, "count") for record in records)
    assert (failed > allowed(games, BETA)) == caught
    assert failed == (games if caught else 0)


# A mechanism whose noise is drawn anew when a question is sent again, and an analyst who sends it.

RETRIED = lb.ShakyLadder(step=0.1, compare_noise=0.07, release_noise=0.02, grid=0.05)


def asked_again(record_type, seed, *, redrawn, questions=700, tries=150):
    """Play an analyst who sends each guess many times and keeps the answer it likes.

    That is the highest, most often silence; of its last model, the vote, the lowest. A retry is
    not counted and takes the question back: with a tape it gets the same answer, with noise drawn
    anew it tells how often the guess crosses, which is as good as its risk.
    """
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, N)
    setup = Setup(N, 0.0, 1.0)
    draw = [law.simulate for law in RETRIED.laws]
    state = RETRIED.begin(setup, [sampler(rng, 1)[0].item() for sampler in draw])
    values, improved = [1.0], []

    def ask(model, pick=max):
        nonlocal state
        seen = Observation(float((model != labels).mean()), None, None)
        many = [sampler(rng, tries if redrawn else 1).tolist() for sampler in draw]
        steps = [RETRIED.advance(setup, state, seen, draws) for draws in zip(*many, strict=True)]
        chosen = pick(steps, key=lambda step: step.value)
        state = chosen.state
        values.append(chosen.value)
        improved.append(chosen.improved)
        return np.mean([step.improved for step in steps])

    guesses = rng.integers(0, 2, (questions - 1, N))
    often = np.array([ask(guess) for guess in guesses])
    stood = np.array(values[:-1])
    for value in set(values):  # how often is to be compared where the board stood the same
        often[stood == value] -= often[stood == value].mean() if value in stood else 0
    ask((often @ (2 * guesses - 1) > 0).astype(int), pick=min)
    return record_type(N, questions, [0.5] * questions, values[1:], improved, values[-1])


@pytest.mark.parametrize("redrawn", [False, True], ids=["tape", "redrawn"])
def test_redrawn_noise_is_caught(record_type, misses, redrawn):
    games = 12
    records = [asked_again(record_type, seed, redrawn=redrawn) for seed in range(games)]
    failed = sum(misses(record, RETRIED, BETA, "kl") for record in records)
    assert (failed > allowed(games, BETA)) == redrawn
