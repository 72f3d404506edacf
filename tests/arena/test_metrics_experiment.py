"""Attacks on metrics: the worlds they are played in, and what the default leaves to them."""

import csv

import numpy as np
import pytest

import ladderboard as lb
from ladderboard import arena
from ladderboard.arena._experiments import _metrics
from ladderboard.arena._experiments._metrics import (
    ATTACKS,
    BALANCED,
    EXACT,
    WORLDS,
    AucWorld,
    MapWorld,
    make_world,
    play_attack,
)


def test_ranks_on_arrays_have_the_value_of_the_metric_on_text():
    world = MapWorld(200)
    rng = np.random.default_rng(1)
    labels = world.draw_labels(rng)
    for numbers in (world.honest, np.where(np.arange(200)[:, None] % 2, world.honest, 0.0)):
        lists = [" ".join(map(str, row)) for row in world.predict(numbers)]
        expected = lb.metric("map_at_k", k=3).value(labels.astype(str), lists)
        assert 1 - world.score(labels, numbers).risk == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("metric", WORLDS)
def test_the_honest_score_is_good_and_standard_errors_are_those_of_new_labels(metric):
    """200 new labels give a standard deviation with an error of 5%; 20% is four of them."""
    world = make_world(metric, 2_000)
    rng = np.random.default_rng(2)
    honest = [world.score(world.draw_labels(rng), world.honest) for _ in range(200)]
    guess = world.score(world.draw_labels(rng), rng.standard_normal(world.shape))
    risks, errors = np.array(honest).T
    assert guess.risk > risks.mean() + 5 * errors.mean()
    # Labels are drawn given the inputs, which leaves out what inputs add to the standard error.
    assert 0.6 * errors.mean() < risks.std() < 1.2 * errors.mean()
    if metric in {"AUC", "F1"}:
        assert world.chances.mean() == pytest.approx(0.1, abs=1e-6)


def mean_bias(metric, label, attack, games=3, **size):
    rows = [play_attack(metric, label, attack, seed=seed, **size) for seed in range(games)]
    return np.mean(rows, axis=0).max()


@pytest.mark.parametrize("metric", ["AUC", "RMSE"])
def test_the_default_leaves_less_than_half_of_what_exact_scores_leave(metric):
    """At 1,000 examples and 150 questions; shares are about 0.35 with a standard error of 0.04."""
    size = {"n": 1_000, "questions": 150}
    exact = mean_bias(metric, EXACT, "majority", **size)
    assert exact > 6
    for attack in ("majority", "shifted"):
        assert mean_bias(metric, BALANCED, attack, **size) < exact / 2


def test_the_table_is_written_and_the_same_again(tmp_path, monkeypatch):
    monkeypatch.setattr(_metrics, "WORLDS", {"AUC": AucWorld})
    monkeypatch.setattr(_metrics, "_QUICK_SIZE", (200, 20))
    monkeypatch.setattr(_metrics, "_TRIALS", 2)
    for folder in ("one", "two"):
        arena.metrics_experiment(tmp_path / folder, quick=True, repetitions=1, workers=1)
    text = (tmp_path / "one/table.md").read_text()
    assert text == (tmp_path / "two/table.md").read_text()
    assert "200 examples, 20 questions, 1 games" in text
    with (tmp_path / "one/figures.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {row["attack"] for row in rows if row["mechanism"] == BALANCED} == set(ATTACKS)


@pytest.mark.slow
@pytest.mark.parametrize("metric", WORLDS)
def test_the_default_leaves_less_than_half_at_full_size(metric):
    """5,000 examples, 1,000 questions; shares are 0.14 to 0.23."""
    size = {"n": 5_000, "questions": 1_000, "games": 2}
    exact = max(mean_bias(metric, EXACT, attack, **size) for attack in ("majority", "climb"))
    for attack in ATTACKS:
        assert mean_bias(metric, BALANCED, attack, **size) < exact / 2
