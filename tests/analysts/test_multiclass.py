"""The multiclass attack: as strong as its formula; the majority attack for two classes."""

import math

import numpy as np
import pytest

import ladderboard as lb
from ladderboard.analysts import MajorityAttack, MulticlassAttack, UniformLabelsWorld
from ladderboard.errors import InvalidPredictions, InvalidSetting


def biases(attack, mechanism, repetitions, *, n=1_000, questions=601):
    return np.array(
        [
            attack.play_against(mechanism, n=n, questions=questions, seed=s).bias
            for s in range(repetitions)
        ]
    )


def expected_accuracy(classes, guesses, hard):
    """The part that the vote gets right, by the normal approximation in the class's notes."""
    d = math.sqrt(guesses * classes / (classes - 1) / hard)
    x = np.linspace(-9, 9 + d, 4001)
    below = np.vectorize(math.erf)(x / math.sqrt(2)) / 2 + 0.5
    density = np.exp(-((x - d) ** 2) / 2) / math.sqrt(2 * math.pi)
    return float((density * below ** (classes - 1)).sum() * (x[1] - x[0]))


# False alarm below 1e-4 each: 4 standard errors, and 0.005 for what the normal law leaves out.
@pytest.mark.parametrize(("classes", "easy"), [(2, 0.0), (3, 0.0), (10, 0.0), (10, 0.5)])
def test_it_is_as_strong_as_its_formula(classes, easy):
    n, guesses = 500, 300
    hard = int(n * (1 - easy))
    attack = MulticlassAttack(classes=classes, easy=easy)
    measured = biases(attack, lb.Exact(), 20, n=n, questions=guesses + 1)
    expected = (expected_accuracy(classes, guesses, hard) - 1 / classes) * hard / n
    assert abs(measured.mean() - expected) < 4 * measured.std(ddof=1) / math.sqrt(20) + 0.005


def test_odds_beat_the_plurality_of_those_that_did_well():
    # 0.20 against 0.10, with standard errors of 0.006.
    odds = biases(MulticlassAttack(), lb.Exact(), 6)
    plurality = biases(MulticlassAttack(vote="plurality"), lb.Exact(), 6)
    assert odds.mean() > 1.7 * plurality.mean()
    assert plurality.mean() > 0.05


def test_at_two_classes_it_is_the_majority_attack():
    # A plurality of two is the vote of the better guesses; odds add what signs leave out, which
    # the normal law puts at Phi(sqrt(K/n)) against Phi(sqrt(2K/(pi n))). 4 standard errors: 1e-4.
    two = biases(MulticlassAttack(classes=2, vote="plurality"), lb.Exact(), 10)
    majority = biases(MajorityAttack(keep="better"), lb.Exact(), 10)
    spread = math.hypot(two.std(ddof=1), majority.std(ddof=1)) / math.sqrt(10)
    assert abs(two.mean() - majority.mean()) < 4 * spread
    odds = biases(MulticlassAttack(classes=2), lb.Exact(), 10).mean()
    signed = biases(MajorityAttack(), lb.Exact(), 10).mean()
    assert odds == pytest.approx(0.2807, abs=0.018)
    assert signed == pytest.approx(0.2317, abs=0.018)


def test_a_ladder_stops_the_multiclass_attack():
    n = 1_000
    ladder = lb.Ladder(step=1 / math.sqrt(n))
    # Few guesses are answered; all of them together would give 0.20.
    assert biases(MulticlassAttack(), ladder, 8).mean() < 0.03


def test_labels_score_by_hand():
    world = UniformLabelsWorld(6, np.random.default_rng(0), classes=3, easy=0.5)
    labels = world._labels
    model = labels.copy()
    model[0] = (model[0] + 1) % 3  # one easy label wrong, all hard ones right
    assert world.risk(model) == pytest.approx(1 / 6)
    assert world.true_risk(model) == pytest.approx((1 + 3 * 2 / 3) / 6)
    assert world.known.size == 3
    assert (world.known.labels[:3] == labels[:3]).all()
    assert not world.known.labels[3:].any()
    with pytest.raises(InvalidPredictions):
        world.risk(model[:5])
    with pytest.raises(InvalidSetting, match="classes"):
        UniformLabelsWorld(6, np.random.default_rng(0), classes=1)


def test_labels_take_any_loss():
    loss = lb.loss("brier", classes=[0, 1, 2])
    world = UniformLabelsWorld(5, np.random.default_rng(0), classes=3, loss=loss)
    even = np.full((5, 3), 1 / 3)
    assert world.true_risk(even) == pytest.approx(world.risk(even))
    sure = np.eye(3)[world._labels]
    assert world.risk(sure) == 0
    loss_of_an_error = loss([1], np.eye(3)[[0]])[0]
    assert world.true_risk(sure) == pytest.approx(2 / 3 * loss_of_an_error)
