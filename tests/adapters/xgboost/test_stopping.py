"""XGBoost's own training, stopped by a guard."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import xgboost as xgb

from ladderboard.adapters.xgboost import GuardStopping
from ladderboard.errors import InvalidSetting
from ladderboard.testing import check_stopping
from support.adapters import XGBOOST_WORKER
from support.adapters.training_data import make_sample

PARAMS = {"objective": "binary:logistic", "max_depth": 3, "eta": 0.5, "nthread": 1, "seed": 0}
WORDS = {"run": "a", "monitor": "valid-logloss", "patience": 8, "min_delta": 0.002}


@pytest.fixture
def data():
    return {"train": xgb.DMatrix(*make_sample(400, 1)), "valid": xgb.DMatrix(*make_sample(500, 2))}


@pytest.fixture
def task(make_guard):
    guard, x = make_guard()
    holdout = xgb.DMatrix(x)
    asked_steps = []

    def predict(booster):
        asked_steps.append(booster.num_boosted_rounds())
        return (booster.predict(holdout) > 0.5).astype(int)

    return guard, predict, asked_steps


def train(data, callback, *, rounds=200, **settings):
    evals = [(data["train"], "train"), (data["valid"], "valid")]
    log = {}
    booster = xgb.train(
        {name: value for name, value in (PARAMS | settings).items() if value is not None},
        data["train"],
        rounds,
        evals=evals,
        callbacks=[callback],
        evals_result=log,
        verbose_eval=False,
    )
    return booster, log["valid"]


def test_training_stops_and_the_booster_points_to_the_winner(data, task):
    guard, predict, asked_steps = task
    callback = GuardStopping(guard, predict, **WORDS)
    assert isinstance(callback, xgb.callback.TrainingCallback)
    booster, log = train(data, callback)
    trained, losses = booster.num_boosted_rounds(), log["logloss"]
    assert trained < 200
    assert callback.reason == "In 8 checks of valid-logloss the guard measured no improvement."
    # Asked at records that are large enough, and nowhere else.
    records, best = [], np.inf
    for step, loss in enumerate(losses):
        if best - loss > 0.002:
            best = loss
            records.append(step + 1)
    assert asked_steps == records
    assert guard.remaining == 100 - len({row.question for row in callback.judge.judgements})
    improved = [row for row in callback.judge.judgements if row.improved]
    assert len(improved) > 2
    assert callback.winner == improved[-1]
    assert booster.best_iteration == callback.winner.name == trained - 1 - 8
    assert booster.best_score == pytest.approx(losses[callback.winner.name])
    assert callback.winner.reply.ladder == "a"


def test_save_best_returns_the_model_that_was_asked_about(data, task):
    guard, predict, _ = task
    predictions_by_step = {}

    def remember(booster):
        predictions_by_step[booster.num_boosted_rounds() - 1] = predict(booster)
        return predictions_by_step[booster.num_boosted_rounds() - 1]

    callback = GuardStopping(guard, remember, **WORDS, save_best=True)
    booster, _ = train(data, callback)
    assert booster.num_boosted_rounds() == callback.winner.name + 1
    assert booster.best_iteration == callback.winner.name
    assert (predict(booster) == predictions_by_step[callback.winner.name]).all()
    # Asked again, the guard knows it, and says what it said.
    assert guard.ladder("a").ask(predict(booster)).again


def test_the_estimator_predicts_with_the_winner(make_guard):
    guard, x = make_guard()
    callback = GuardStopping(
        guard,
        lambda booster: (booster.inplace_predict(x) > 0.5).astype(int),
        **WORDS | {"monitor": "validation_0-logloss"},
    )
    model = xgb.XGBClassifier(
        n_estimators=200, max_depth=3, learning_rate=0.5, n_jobs=1, callbacks=[callback]
    )
    model.fit(*make_sample(400, 1), eval_set=[make_sample(500, 2)], verbose=False)
    assert model.best_iteration == callback.winner.name < 199
    assert guard.ladder("a").ask(model.predict(x)).again


def test_without_a_stop_there_is_no_reason_and_there_is_a_winner(data, task):
    guard, predict, _ = task
    callback = GuardStopping(guard, predict, **WORDS)
    booster, _ = train(data, callback, rounds=3)
    assert callback.reason is None
    assert booster.num_boosted_rounds() == 3
    assert booster.best_iteration == callback.winner.name


def test_continued_training_continues_the_count(data, task):
    guard, predict, _ = task
    first, _ = train(data, GuardStopping(guard, predict, **WORDS), rounds=3)
    callback = GuardStopping(guard, predict, **WORDS | {"run": "b"}, save_best=True)
    booster = xgb.train(
        PARAMS,
        data["train"],
        4,
        evals=[(data["valid"], "valid")],
        xgb_model=first,
        callbacks=[callback],
        verbose_eval=False,
    )
    assert 3 <= callback.winner.name <= 6
    assert booster.num_boosted_rounds() == callback.winner.name + 1


@pytest.mark.parametrize("kind", ["dart", "gblinear"])
def test_boosters_that_cannot_be_restored_are_refused(data, task, kind):
    guard, predict, _ = task
    with pytest.raises(InvalidSetting, match=f"booster must be gbtree.*got {kind}"):
        train(data, GuardStopping(guard, predict, **WORDS), booster=kind, max_depth=None)


def test_folds_and_unknown_scores_are_refused_and_nothing_is_asked(data, task):
    guard, predict, asked_steps = task
    with pytest.raises(InvalidSetting, match="cross-validation trains one for each fold"):
        xgb.cv(PARAMS, data["train"], 5, callbacks=[GuardStopping(guard, predict, **WORDS)])
    callback = GuardStopping(guard, predict, **WORDS | {"monitor": "logloss"})
    with pytest.raises(InvalidSetting, match="the scores are: train-logloss, valid-logloss"):
        train(data, callback)
    assert asked_steps == []
    assert guard.remaining == 100


def test_training_in_two_processes_is_refused(make_guard, tmp_path):
    from xgboost.tracker import RabitTracker

    guard, _ = make_guard()
    tracker = RabitTracker(n_workers=2, host_ip="127.0.0.1")
    tracker.start()
    args = tracker.worker_args()
    command = [sys.executable, str(XGBOOST_WORKER), str(tmp_path)]
    command += [str(args["dmlc_tracker_uri"]), str(args["dmlc_tracker_port"])]
    workers = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for _ in range(2)
    ]
    outputs = [worker.communicate(timeout=300)[0] for worker in workers]
    assert all("this training uses 2. Train with one worker." in output for output in outputs)
    assert guard.remaining == 100


def test_it_passes_the_conformance_suite():
    data = xgb.DMatrix(*make_sample(50, 1))

    def play(callback, scores):
        xgb.train(
            {"max_depth": 1, "nthread": 1, "disable_default_eval_metric": 1},
            data,
            len(scores),
            evals=[(data, "valid")],
            custom_metric=lambda *_: ("own", next(scores)),
            callbacks=[callback],
            verbose_eval=False,
        )

    check_stopping(GuardStopping, play, monitor="valid-own")
