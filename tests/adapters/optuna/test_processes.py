"""A study in a SQLite storage, and two processes that work on it."""

import subprocess
import sys
import time

import numpy as np
import optuna
import pytest

import ladderboard as lb
from ladderboard.adapters.optuna import judged_trials, winning_trial
from support.adapters import OPTUNA_WORKER

LABELS = np.random.default_rng(1).integers(2, size=1000)


def work(storage, tmp_path, *, questions, trials, mode, first=()):
    """Let two processes work on one study with one guard; return both afterwards."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    path = tmp_path / "guard.db"
    study = optuna.create_study(study_name="study", storage=storage)
    for depth in first:
        study.enqueue_trial({"depth": depth})
    guard = lb.Holdout.create(path, LABELS, questions=questions, mechanism=lb.Ladder(step=0.01))
    program = [sys.executable, "-W", "error", str(OPTUNA_WORKER), storage.url, str(path)]
    workers = []
    for seed in "12":
        command = [*program, seed, str(trials), mode]
        workers.append(subprocess.Popen(command, stderr=subprocess.PIPE, text=True))
        # On SQLite two that begin at once may both be program the trial that waits.
        while first and study.trials[0].state.name == "WAITING":
            assert workers[0].poll() is None
            time.sleep(0.05)
    assert [worker.communicate()[1] for worker in workers] == ["", ""]
    assert [worker.returncode for worker in workers] == [0, 0]
    return study, guard


@pytest.mark.parametrize("mode", ["guarded", "callback"])
def test_the_winner_is_the_last_that_improved_in_any_process(study_storage, tmp_path, mode):
    study, guard = work(study_storage, tmp_path, questions=60, trials=25, mode=mode)
    assert len(study.trials) == 50
    rows = judged_trials(study)
    history = guard.status().history
    assert len(rows) == guard.meter.used == len(history) < 25
    assert [row["question"] for row in rows] == list(range(1, len(rows) + 1))
    assert [row["improved"] for row in rows] == [question.improved for question in history]
    assert [row["released"] for row in rows] == [question.value for question in history]
    last = [row for row in rows if row["improved"]][-1]
    won = winning_trial(study)
    assert won.number == last["trial"]
    # The ladder stands at what the winner's predictions are worth, to the nearest step.
    wrong = np.mean(np.arange(1000) < 10 + 60 * won.params["depth"])
    assert last["released"] == guard.released == pytest.approx(wrong, abs=0.00501)
    if mode == "guarded":
        asked_trials = [trial for trial in study.trials if "question" in trial.user_attrs]
        assert {trial.number for trial in asked_trials} == {row["trial"] for row in rows}
        assert won.user_attrs["improved"]
        assert won.user_attrs["bound"]["low"] < wrong < won.user_attrs["bound"]["high"]
    else:
        assert not any(trial.user_attrs for trial in study.trials)


@pytest.mark.slow
def test_a_trial_that_finishes_late_is_asked_about_late(study_storage, tmp_path):
    study, _ = work(study_storage, tmp_path, questions=9, trials=1, mode="late", first=(2.0, 6.0))
    assert [(row["trial"], row["improved"]) for row in judged_trials(study)] == [
        (1, True),
        (0, True),
    ]
    assert winning_trial(study).number == 0
    assert winning_trial(study).params == {"depth": 2.0}


@pytest.mark.slow
def test_both_processes_stop_when_the_budget_is_spent(study_storage, tmp_path):
    study, guard = work(study_storage, tmp_path, questions=2, trials=400, mode="guarded")
    assert guard.remaining == 0
    assert len(judged_trials(study)) == 2
    assert len(study.trials) < 200  # in fact a handful: each finishes the trial that it is at
    assert all(trial.state.name == "COMPLETE" for trial in study.trials)
    assert winning_trial(study).number in {row["trial"] for row in judged_trials(study)}
