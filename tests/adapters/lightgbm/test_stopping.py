"""LightGBM's own training, stopped by a guard."""

from __future__ import annotations

import lightgbm as lgb
import numpy as np
import pytest

from ladderboard.adapters.lightgbm import GuardStopping
from ladderboard.errors import InvalidSetting
from ladderboard.testing import check_stopping
from support.adapters.training_data import make_sample

PARAMS = {
    "objective": "binary",
    "num_leaves": 7,
    "learning_rate": 0.3,
    "num_threads": 1,
    "seed": 0,
    "verbose": -1,
}
SETTINGS = {"run": "a", "monitor": "valid-binary_logloss", "patience": 8, "min_delta": 0.002}


@pytest.fixture
def task(make_guard):
    guard, x = make_guard()
    asked_steps = []

    def predict(booster):
        asked_steps.append(booster.current_iteration() - 1)
        return (booster.predict(x) > 0.5).astype(int)

    return guard, predict, asked_steps


@pytest.fixture
def train():
    def run(callback, *, rounds=200, init_model=None, **settings):
        training = lgb.Dataset(*make_sample(400, 1), free_raw_data=False)
        valid = lgb.Dataset(*make_sample(500, 2), reference=training, free_raw_data=False)
        log = {}
        booster = lgb.train(
            PARAMS | settings,
            training,
            rounds,
            valid_sets=[valid],
            valid_names=["valid"],
            init_model=init_model,
            callbacks=[callback, lgb.record_evaluation(log)],
        )
        return booster, log["valid"]

    return run


def test_training_stops_and_the_booster_predicts_with_the_winner(task, train):
    guard, predict, asked_steps = task
    predictions_by_step = {}

    def remember(booster):
        predictions = predict(booster)
        predictions_by_step[asked_steps[-1]] = predictions
        return predictions

    callback = GuardStopping(guard, remember, **SETTINGS)
    booster, log = train(callback)
    losses = log["binary_logloss"]  # the last round too: those that write down come first
    assert len(losses) < 200
    assert (
        callback.reason == "In 8 checks of valid-binary_logloss the guard measured no improvement."
    )
    # Asked at records that are large enough, and nowhere else.
    records, best = [], np.inf
    for step, loss in enumerate(losses):
        if best - loss > 0.002:
            best = loss
            records.append(step)
    assert asked_steps == records
    improved = [judgement for judgement in callback.judge.judgements if judgement.improved]
    assert len(improved) > 2
    assert callback.winner == improved[-1]
    assert callback.winner.name == len(losses) - 1 - 8
    # LightGBM leaves out what came after it.
    assert booster.best_iteration == booster.current_iteration() == callback.winner.name + 1
    assert booster.best_score["valid"]["binary_logloss"] == losses[callback.winner.name]
    assert (predict(booster) == predictions_by_step[callback.winner.name]).all()


def test_the_winner_is_the_best_iteration_without_a_stop_too(task, train):
    guard, predict, asked_steps = task
    callback = GuardStopping(guard, predict, **SETTINGS | {"min_delta": 0.05})
    booster, log = train(callback, rounds=8)
    assert callback.reason is None
    assert len(log["binary_logloss"]) == 8
    assert booster.best_iteration == callback.winner.name + 1 < 8
    assert guard.remaining == 100 - len(asked_steps)


def test_the_estimator_predicts_with_the_winner(make_guard):
    guard, x = make_guard()
    callback = GuardStopping(
        guard,
        lambda booster: (booster.predict(x) > 0.5).astype(int),
        **SETTINGS | {"monitor": "valid_0-binary_logloss"},
    )
    model = lgb.LGBMClassifier(
        n_estimators=200, num_leaves=7, learning_rate=0.3, n_jobs=1, verbose=-1
    )
    x_valid, y_valid = make_sample(500, 2)
    model.fit(*make_sample(400, 1), eval_X=(x_valid,), eval_y=(y_valid,), callbacks=[callback])
    assert model.best_iteration_ == callback.winner.name + 1 < 200
    assert guard.ladder("a").ask(model.predict(x)).again


def test_continued_training_continues_the_count(task, train):
    guard, predict, _ = task
    first, _ = train(GuardStopping(guard, predict, **SETTINGS), rounds=3)
    callback = GuardStopping(guard, predict, **SETTINGS | {"run": "b"})
    booster, _ = train(callback, rounds=4, init_model=first)
    assert callback.winner.name >= first.current_iteration()
    assert booster.best_iteration == callback.winner.name + 1


def test_mode_must_agree_with_the_metric(task, train):
    guard, predict, asked_steps = task
    settings = SETTINGS | {"monitor": "valid-auc"}
    with pytest.raises(InvalidSetting, match=r'mode must agree .* valid-auc has "max"'):
        train(GuardStopping(guard, predict, **settings), metric="auc")
    assert asked_steps == []
    callback = GuardStopping(guard, predict, **settings, mode="max")
    _, log = train(callback, metric="auc", num_leaves=2)
    assert callback.judge.best > log["auc"][0]


def test_unsupported_trainings_are_refused_without_a_question(task, train):
    guard, predict, asked_steps = task
    with pytest.raises(InvalidSetting, match="cross-validation trains one for each fold"):
        lgb.cv(
            PARAMS,
            lgb.Dataset(*make_sample(400, 1)),
            5,
            callbacks=[GuardStopping(guard, predict, **SETTINGS)],
        )
    with pytest.raises(InvalidSetting, match="got dart"):
        train(GuardStopping(guard, predict, **SETTINGS), boosting="dart")
    several = lgb.callback.CallbackEnv(lgb.Booster, {"num_machines": 2}, 0, 0, 9, [])
    with pytest.raises(InvalidSetting, match=r"uses 2\. Train with one machine"):
        GuardStopping(guard, predict, **SETTINGS)(several)
    callback = GuardStopping(guard, predict, **SETTINGS | {"monitor": "binary_logloss"})
    with pytest.raises(InvalidSetting, match="the scores are: valid-binary_logloss"):
        train(callback)
    assert asked_steps == []
    assert guard.remaining == 100


def test_it_passes_the_conformance_suite():
    def play(callback, scores):
        data = lgb.Dataset(*make_sample(100, 1), free_raw_data=False)
        lgb.train(
            PARAMS | {"metric": "None"},
            data,
            len(scores),
            valid_sets=[data],
            valid_names=["valid"],
            feval=lambda *_: ("own", next(scores), callback.judge.mode == "max"),
            callbacks=[callback],
        )

    check_stopping(GuardStopping, play, monitor="valid-own")
