"""The calibrated experiment: its measures are right, and a small version is written whole."""

import csv
import json
import math
from types import SimpleNamespace

import numpy as np
import pytest

import ladderboard as lb
from ladderboard.arena import calibrated_experiment
from ladderboard.arena._experiments import _calibrated as calibrated
from ladderboard.arena._experiments._calibrated import CONSTANT, EXACT, GROWING, Line, Mean

TINY = calibrated.Sizes(
    gain_sizes=((500, 20),),
    attack_sizes=((100, 20),),
    known=(0.0,),
    sybil_sizes=((100, 20),),
    played_sizes=((100, 20),),
    search_sizes=(100,),
    search_models=3,
    search_noises=(1.0,),
    draws=30,
    games=1,
)


@pytest.mark.parametrize("label", [GROWING, CONSTANT])
@pytest.mark.parametrize(("teams", "accounts"), [(1, 1), (20, 2), (20, 20)])
def test_a_played_gain_is_the_one_that_the_mechanism_states(label, teams, accounts):
    """500 draws: the quantile of 0.95 has a standard error of 3% here, and four are allowed."""
    mechanism = calibrated._make_mechanism(label, 5_000, 1_000, teams, accounts)
    gains = calibrated.measure_gains(
        label=label, n=5_000, questions=1_000, released=0.3, changes=3, teams=teams,
        accounts=accounts, games=500, seed=0,
    )  # fmt: skip
    stated = mechanism.smallest_visible_gain(
        n=5_000, released=0.3, changes=3, others=3 * mechanism.shared_ladders
    )
    assert np.quantile(gains, 0.95) == pytest.approx(stated * math.sqrt(5_000), rel=0.12)


def test_exact_scores_show_one_example_and_a_protection_is_named():
    gains = calibrated.measure_gains(
        label=EXACT, n=1_000, questions=9, released=0.2, changes=3, teams=1, accounts=1, games=3,
        seed=0,
    )  # fmt: skip
    assert gains.max() < 0.01
    strict = calibrated._make_mechanism(f"{GROWING}, strict", 1_000, 100)
    assert strict == lb.GrowingLadder.calibrated(1_000, 100, protection="strict")


def test_the_vote_on_exact_scores_gains_what_is_computed():
    """400 games with a standard error of 0.025; five of them are allowed."""
    biases = []
    for seed in range(400):
        rng = np.random.default_rng(seed)
        guesses = rng.integers(0, 2, (40, 100)) * 2 - 1  # 1: right
        luck = guesses.sum(axis=1)
        biases.append(((luck @ guesses > 0).mean() - 0.5) * 10)
    assert np.mean(biases) == pytest.approx(calibrated.exact_scores_bias(100, 41), abs=0.15)


def test_the_winner_of_a_search_is_the_last_record(monkeypatch):
    """One model stands out by twenty standard errors; a step of any ladder is smaller."""
    rng = np.random.default_rng(3)
    wrong = rng.random((12, 4_000)) < np.linspace(0.5, 0.39, 12)[:, None]
    wrong[4] = rng.random(4_000) < 0.1
    monkeypatch.setattr(calibrated, "_fit_classifiers", lambda *_: wrong)
    labels, sizes, games = (GROWING, CONSTANT, EXACT), (500, 1_000), 5
    results = calibrated.measure_searches(
        labels=labels, sizes=sizes, n=4_000, questions=12, noise=1.0,
        games=2 * len(labels) * len(sizes) * games, seed=0,
    )  # fmt: skip
    excess, records = results.reshape(2, len(labels), len(sizes), games)
    assert not excess.any()
    assert (records >= 1).all()
    # Without the model that stands out ladders miss gains that exact scores see.
    monkeypatch.setattr(calibrated, "_fit_classifiers", lambda *_: np.delete(wrong, 4, axis=0))
    results = calibrated.measure_searches(
        labels=labels, sizes=(1_000,), n=4_000, questions=11, noise=1.0, games=2 * 3 * 20, seed=0
    )
    excess, records = results.reshape(2, 3, 20).mean(axis=-1)
    assert excess[2] < min(excess[:2])
    assert records[2] > max(records[:2])


def test_records_are_proven_as_by_a_guard(tmp_path, monkeypatch):
    """The models stand some ten standard errors apart, and one of them hardly does."""
    risks = np.array([0.5, 0.3, 0.28, 0.1])
    monkeypatch.setitem(calibrated._HONEST, "steps", SimpleNamespace(true_risks=lambda *_: risks))
    settings = {"questions": 4, "noise": 0.0, "pool": 0, "games": 3 * 4, "seed": 0}
    results = calibrated.measure_proven(analyst="steps", n=2_000, **settings).reshape(3, 4)
    assert (results[0] >= 2).all()
    assert (results[1] >= 2).all()
    assert (results[1] < results[0] + 1).all()
    assert not results[2].any()
    # A guard with the same losses: the smallest of these gains is no record, or not proven.
    labels = np.zeros(2_000, dtype=int)
    guard = lb.Holdout.create(tmp_path / "guard.db", labels, questions=4, classes=[0, 1])
    models = [np.random.default_rng(index).random(2_000) < risk for index, risk in enumerate(risks)]
    replies = [guard.ask(model.astype(int)) for model in models]
    assert [replies[1].proven, replies[3].proven] == [True, True]
    assert not replies[2].proven


def test_a_line_is_kept_up_to_two_standard_errors():
    assert Line("gain", 1.69, 0.05, 1.6).is_within
    assert not Line("gain", 1.71, 0.05, 1.6).is_within
    assert not Line("gain", 1.71, math.nan, 1.6).is_within
    assert Mean.of([1.0, 3.0]) == (2.0, 1.0)
    assert [str(Mean.of(values)) for values in ([1.0, 3.0], [1.0])] == ["2.00 ± 1.00", "1.00"]
    assert calibrated._ratio(Mean(3.0, 0.3), Mean(2.0, 0.0)) == pytest.approx((1.5, 0.15))


def test_a_small_experiment_is_written_whole_and_resumed(tmp_path, monkeypatch):
    monkeypatch.setattr(calibrated, "_QUICK", TINY)
    files = calibrated_experiment(tmp_path, quick=True, workers=1, repetitions=2)
    assert {path.name for path in files} == {"figures.csv", "lines.csv", "table.md"}
    table = (tmp_path / "table.md").read_text()
    titles = "Sees", "Protects", "Accounts", "Honest", "Searches", "Proven records", "Lines"
    for title in (*titles, "A quick run"):
        assert title in table
    assert "nan" not in table
    with (tmp_path / "lines.csv").open() as file:
        lines = list(csv.DictReader(file))
    assert {line["limit"] for line in lines} >= {"1.6", "3.0", "1.2", "0.55", "1.35", "1.3", "0.7"}
    with (tmp_path / "figures.csv").open() as file:
        mechanisms = {row["mechanism"] for row in csv.DictReader(file)}
    assert mechanisms >= {GROWING, CONSTANT, EXACT, f"{GROWING}, open", f"{GROWING}, strict"}

    stored = (tmp_path / "results.jsonl").read_text().splitlines()
    calibrated_experiment(tmp_path, quick=True, workers=1, repetitions=2)
    assert (tmp_path / "results.jsonl").read_text().splitlines() == stored
    assert {json.loads(line)["task"]["kind"] for line in stored} == set(calibrated._MEASURES)
