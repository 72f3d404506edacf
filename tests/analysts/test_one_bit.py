"""The one-bit attack: one bit is enough against a board without noise."""

import math

import numpy as np
import pytest

import ladderboard as lb
from ladderboard.analysts import Game, MajorityAttack, OneBitAttack
from ladderboard.analysts._one_bit import _LadderSettings

N = 1_000
UNIT = 1 / math.sqrt(N)


def mean_bias(attack, mechanism, *, questions=1_000, seeds=3):
    """In units of 1/sqrt(n)."""
    played = [
        attack.play_against(mechanism, n=N, questions=questions, seed=s).bias for s in range(seeds)
    ]
    return float(np.mean(played)) / UNIT


# Standard errors of these means are about 0.1; every margin below is 4 of them or more.
def test_one_bit_is_worth_more_than_scores_to_a_vote():
    vote = mean_bias(MajorityAttack(easy=0.5), lb.Exact())
    assert vote > 5
    # Half of the 500 hard labels, wrong at first, are mended: 250/1000, or 7.9 units. All of them.
    assert mean_bias(OneBitAttack(), lb.Exact()) > 7.7


@pytest.mark.parametrize(
    ("mechanism", "minimum"),
    [
        (lb.OneBit(step=UNIT), 2.4),
        (lb.Ladder(step=UNIT), 2.4),
        (lb.Ladder(step=UNIT, grid=UNIT / 4), 2.4),
        (lb.Ladder(step=2 * UNIT), 1.7),
        (lb.Ladder(step=UNIT / 20), 3.9),
    ],
    ids=repr,
)
def test_one_bit_gains_on_ladders_where_the_vote_fails(mechanism, minimum):
    assert mean_bias(OneBitAttack(), mechanism) > minimum
    assert mean_bias(MajorityAttack(easy=0.5), mechanism) < minimum


def test_noise_in_the_comparison_is_what_slows_it():
    shaky = lb.ShakyLadder.calibrated(n=N, questions=1_000)
    noiseless = lb.ShakyLadder(step=shaky.step, compare_noise=0, release_noise=0, grid=shaky.grid)
    assert mean_bias(OneBitAttack(), noiseless) > mean_bias(OneBitAttack(), shaky) + 0.8


def test_one_bit_uses_only_the_improvement_bit():
    class BitOnlyGame(Game):
        """Returns the right bit and a wrong value."""

        def ask(self, model, *, account=0):
            return super().ask(model, account=account)._replace(value=0.123, score=None)

    def play(kind):
        attack = OneBitAttack()
        world = attack.world(200, np.random.default_rng(1))
        rng = np.random.default_rng(2)
        tape = lb.NumpyTape(seed=3)
        game = kind(world, lb.Ladder(step=0.05), questions=100, tape=tape, rng=rng)
        attack.play(game)
        return game.finish()

    assert play(BitOnlyGame) == play(Game)


def test_more_questions_and_more_easy_labels_help():
    ladder = lb.Ladder(step=UNIT, grid=UNIT / 4)
    attack = OneBitAttack()
    assert mean_bias(attack, ladder, questions=1_000) > mean_bias(attack, ladder, questions=50) + 1
    assert mean_bias(attack, ladder) > mean_bias(OneBitAttack(easy=0.05), ladder) + 0.5


def test_the_attack_knows_every_noise_of_the_mechanism():
    ladder = lb.ShakyLadder(0.02, 0.01, 0.005, grid=0.01, standing_noise=0.003)
    settings = _LadderSettings.from_mechanism(ladder, 1_000)
    assert settings.noise == pytest.approx(10**2)
    assert settings.release == pytest.approx(5**2)
    assert settings.slack == pytest.approx(3**2)
