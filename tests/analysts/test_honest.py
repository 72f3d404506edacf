"""Honest analysts as the control group, and their worlds."""

import math
import sys

import numpy as np
import pytest

import ladderboard as lb
from ladderboard.analysts import (
    Breakthroughs,
    DigitsWorld,
    FittedClassifier,
    HyperparameterSearch,
    Plateau,
    SteadyImprovement,
    TrueRiskWorld,
    draw_classifiers,
)
from ladderboard.analysts import _hyperparameters as digits
from ladderboard.errors import InvalidPredictions, MissingDependency


def test_a_model_is_its_true_risk():
    world = TrueRiskWorld(10_000, np.random.default_rng(1))
    assert world.true_risk(0.3) == 0.3
    # 4.5 standard deviations: false alarm below 1e-5 each.
    assert abs(world.risk(0.3) - 0.3) < 4.5 * math.sqrt(0.21 / 10_000)
    assert abs(world.losses(0.3).mean() - 0.3) < 4.5 * math.sqrt(0.21 / 10_000)
    assert set(world.losses(0.3)) == {0.0, 1.0}
    assert world.risk(0.3) != world.risk(0.3)  # drawn anew
    for risk in (-0.1, 1.1, "0.3", None, True, math.nan):
        with pytest.raises(InvalidPredictions, match="true risk"):
            world.risk(risk)


def test_steady_improvement_goes_from_first_to_last():
    everything = SteadyImprovement(first=0.4, last=0.1)
    risks = everything.true_risks(4, np.random.default_rng(0))
    assert risks.tolist() == pytest.approx([0.4, 0.3, 0.2, 0.1])


def test_a_plateau_climbs_an_exact_board_by_luck_alone():
    n, k = 1_000, 1_000
    scores = [Plateau().play_against(lb.Exact(), n=n, questions=k, seed=s) for s in range(20)]
    mean_error = np.mean([score.leaderboard_error for score in scores])
    # The least of 1000 normal variables is 3.24 deviations below, give or take 0.35 / sqrt(20).
    assert mean_error / math.sqrt(0.25 * 0.75 / n) == pytest.approx(3.24, abs=0.35)


def test_a_ladder_follows_steady_improvement():
    n = 10_000
    ladder = lb.Ladder(step=0.01)
    for seed in range(5):
        score = SteadyImprovement().play_against(ladder, n=n, questions=200, seed=seed)
        # A step, half a cell of the grid, and 5 standard errors.
        assert score.leaderboard_error < 0.01 + 0.005 + 5 * 0.005
        assert score.changes >= 10


def test_digits_examples_are_drawn_from_the_population():
    from sklearn.linear_model import RidgeClassifier

    world = DigitsWorld(500, np.random.default_rng(0))
    training = world.known
    pixels = np.arange(64)
    model = FittedClassifier(RidgeClassifier(100.0).fit(training.pixels, training.digits), pixels)
    risks = [DigitsWorld(500, np.random.default_rng(s)).risk(model) for s in range(60)]
    truth = world.true_risk(model)
    spread = math.sqrt(truth * (1 - truth) / 500)
    # 4 standard errors of the mean, and the 0.002 of the truth itself: false alarm below 1e-4.
    assert abs(np.mean(risks) - truth) < 4 * math.hypot(spread / math.sqrt(60), 0.002)
    assert 0.6 * spread < np.std(risks, ddof=1) < 1.4 * spread
    assert world.losses(model).mean() == world.risk(model)
    with pytest.raises(InvalidPredictions, match="FittedClassifier"):
        world.risk(np.zeros(500))


def test_training_and_holdout_share_no_image():
    first, second = digits._split_images()
    assert len(first.digits) + len(second.digits) == 1_797
    training_images = {row.tobytes() for row in first.pixels}
    # Exact twins may exist in the data set; a shared half would make hundreds.
    assert sum(row.tobytes() in training_images for row in second.pixels) < 5


def test_shifts_move_an_image_by_one_pixel():
    image = np.zeros((1, 64), dtype=np.float32)
    image[0, 8 * 3 + 4] = 16
    source = digits.LabelledImages(image, np.array([7]))
    rows, shift = np.zeros(5, dtype=int), np.arange(5)
    shifted = digits._make_examples(source, rows, shift, np.random.default_rng(0), 0.0)
    assert sorted(shifted.pixels.argmax(axis=1)) == [20, 27, 28, 29, 36]
    assert (shifted.pixels.sum(axis=1) == 16).all()
    assert (shifted.digits == 7).all()


@pytest.mark.slow
def test_a_search_finds_something_and_is_fooled_a_little():
    n, questions = 400, 60
    scores = [
        HyperparameterSearch().play_against(lb.Exact(), n=n, questions=questions, seed=s)
        for s in range(4)
    ]
    assert all(score.changes >= 3 for score in scores)
    # What it hands in looks better than it is: 0.03 or so, with a standard error of 0.012.
    assert np.mean([score.bias for score in scores]) > -0.02


@pytest.mark.slow
def test_the_search_overfits_an_exact_board_and_a_ladder_less():
    # Paired: the same holdouts. Standard error of each mean about 0.003.
    n, questions, seeds = 1_000, 200, 12
    ladder = lb.Ladder(step=1 / math.sqrt(n))

    def bias(mechanism):
        search = HyperparameterSearch()
        return [
            search.play_against(mechanism, n=n, questions=questions, seed=s).bias
            for s in range(seeds)
        ]

    exact, silent = np.array(bias(lb.Exact())), np.array(bias(ladder))
    assert exact.mean() > 0.01
    assert exact.mean() > silent.mean()


def test_a_missing_scikit_learn_is_one_sentence(monkeypatch):
    digits._split_images.cache_clear()
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(MissingDependency, match=r"pip install 'ladderboard\[sklearn\]'"):
        HyperparameterSearch().play_against(lb.Exact(), n=10, questions=1)


def test_breakthroughs_are_a_handful_of_records():
    risks = Breakthroughs(first=0.4, last=0.1, records=4).true_risks(500, np.random.default_rng(1))
    best = np.minimum.accumulate(risks)
    records = np.flatnonzero(np.diff(best) < 0) + 1
    assert len(records) == 4
    assert best[0] == 0.4
    assert best[-1] == pytest.approx(0.1)
    assert (risks <= 1.5 * best + 1e-9).all()
    few = Breakthroughs(records=9).true_risks(3, np.random.default_rng(1))
    assert few.tolist() == sorted(few, reverse=True)


def test_random_classifiers_are_fitted_and_differ():
    pytest.importorskip("sklearn")
    world = DigitsWorld(200, np.random.default_rng(0))
    risks = [world.risk(model) for model in draw_classifiers(3, np.random.default_rng(0))]
    assert len(set(risks)) == 3
    assert all(0 < risk < 0.9 for risk in risks)
