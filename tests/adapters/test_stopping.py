"""Early stopping without any training library: when it asks, when it stops, and who won."""

from __future__ import annotations

import inspect
import pickle
from pathlib import Path

import numpy as np
import pytest

import ladderboard as lb
from ladderboard.adapters import Stopping
from ladderboard.errors import InvalidPredictions, InvalidSetting, TooManyLadders

ROOT = Path(__file__).parents[2]
LABELS = np.random.default_rng(1).integers(2, size=200)


def wrong(count):
    """Predictions of which so many are wrong; the "model" of these tests is that number."""
    return np.where(np.arange(200) < count, 1 - LABELS, LABELS)


@pytest.fixture
def guard(tmp_path):
    return lb.Holdout.create(
        tmp_path / "guard.db", LABELS, questions=5, ladders=3, mechanism=lb.Ladder(step=0.02)
    )


def stopping(guard, **settings):
    return Stopping(guard, wrong, **{"run": "a", "monitor": "loss", "patience": 3} | settings)


def train(callback, models):
    """Train until it is told to stop; a model is (its own score, how many are wrong)."""
    for step, (score, count) in enumerate(models):
        callback.check(score, count, step=step)
        if callback.reason is not None:
            break
    return callback


def test_the_monitor_decides_when_to_ask_and_the_guard_who_won(guard):
    models = [(0.5, 90), (0.6, 10), (0.4, 60), (0.3, 61), (0.2, 62), (0.25, 0), (0.1, 0)]
    done = train(stopping(guard), models)
    assert [verdict.name for verdict in done.judge.verdicts] == [0, 2, 3, 4]
    assert (done.winner.name, done.winner.reply.released) == (2, 0.3)
    assert done.judge.stale == 3
    assert done.reason == "In 3 checks of loss the guard saw no improvement."
    assert guard.remaining == 1


def test_small_gains_are_not_asked_about(guard):
    done = train(stopping(guard, min_delta=0.2), [(0.5, 90), (0.4, 60), (0.25, 60)])
    assert [verdict.name for verdict in done.judge.verdicts] == [0, 2]
    assert done.reason is None


def test_more_may_be_better(guard):
    done = train(stopping(guard, mode="max"), [(0.5, 90), (0.4, 60), (0.6, 60)])
    assert [verdict.name for verdict in done.judge.verdicts] == [0, 2]


def test_a_spent_budget_stops_with_the_reason(guard):
    models = [(-step, 90 - 10 * step) for step in range(9)]
    done = train(stopping(guard), models)
    assert done.reason == "The budget is spent: no questions left."
    assert done.winner.name == len(done.judge.verdicts) - 1 == 4
    late = train(stopping(guard, run="b"), models)
    assert (late.reason, late.winner, late.judge.verdicts) == (done.reason, None, ())


def test_a_guard_without_a_ladder_left_is_refused_before_the_training(tmp_path):
    guard = lb.Holdout.create(tmp_path / "one.db", LABELS, questions=5)
    train(stopping(guard, run="a"), [(0.1, 10)])
    stopping(guard, run="a")
    with pytest.raises(TooManyLadders, match="--ladders 2"):
        stopping(guard, run="b")
    assert guard.remaining == 4


def test_each_run_has_a_ladder_of_its_own(guard):
    first = train(stopping(guard, run="a"), [(0.1, 10)])
    second = train(stopping(guard, run="b"), [(0.4, 80), (0.3, 50)])
    assert first.winner.reply.ladder == "a"
    assert (second.winner.name, second.winner.reply.ladder) == (1, "b")
    as_it_is = train(stopping(guard, run=None), [(0.4, 80)])
    assert as_it_is.winner.reply.ladder == ""


def test_a_run_that_is_started_anew_stops_where_it_stopped_and_pays_nothing(guard):
    models = [(0.5, 90), (0.4, 60), (0.3, 61), (0.35, 20), (0.36, 0)]
    first = train(stopping(guard), models)
    left = guard.remaining
    again = train(stopping(guard), models)
    told = (1, "In 3 checks of loss the guard saw no improvement.")
    assert (first.winner.name, first.reason) == (again.winner.name, again.reason) == told
    assert guard.remaining == left


def test_the_same_predictions_do_not_keep_a_run_alive(guard):
    done = train(stopping(guard), [(0.5 - 0.01 * step, 60) for step in range(20)])
    assert (done.winner.name, done.judge.stale) == (0, 3)
    assert guard.remaining == 4


def test_the_first_reason_stands_and_a_later_winner_wins(guard):
    done = train(stopping(guard, patience=1), [(0.5, 60), (0.4, 60)])
    first = done.reason
    assert done.check(0.3, 20, step=2)  # a library that has to go on a little
    assert (done.reason, done.winner.name) == (first, 2)


def test_what_is_refused_is_raised(guard):
    callback = Stopping(guard, lambda _: [1], run="a", monitor="loss", patience=3)
    with pytest.raises(InvalidPredictions):
        callback.check(0.5, 1, step=0)


def test_scores_are_found_by_name(guard):
    callback = stopping(guard)
    assert callback.monitored_score([("loss", 1.5), ("other", 2)]) == 1.5
    with pytest.raises(InvalidSetting, match="got 'loss', and the scores are: a, b"):
        callback.monitored_score([("b", 1), ("a", 2)])
    with pytest.raises(InvalidSetting, match="the scores are: none"):
        callback.monitored_score([])


@pytest.mark.parametrize(
    "bad",
    [
        {"patience": 0},
        {"patience": 1.5},
        {"mode": "up"},
        {"min_delta": -1},
        {"run": 3},
        {"run": ""},
    ],
)
def test_settings_are_checked(guard, bad):
    with pytest.raises(lb.errors.InvalidInput):
        stopping(guard, **bad)


def test_predict_is_a_function_and_a_board_has_one_ladder(guard):
    with pytest.raises(InvalidSetting, match="predict must be a function"):
        Stopping(guard, LABELS, run="a", monitor="loss", patience=3)

    class Board:
        ask = guard.ask

    with pytest.raises(InvalidSetting, match="run must be None"):
        stopping(Board())
    assert train(stopping(Board(), run=None), [(0.5, 60)]).winner.name == 0


def test_it_can_be_pickled_and_goes_on(guard):
    copy = pickle.loads(pickle.dumps(train(stopping(guard), [(0.5, 60)])))
    assert copy.winner.name == 0
    assert copy.check(0.4, 20, step=1)


def test_the_words_are_those_of_the_reference():
    """That every library takes the same ones is tested where that library is."""
    page = (ROOT / "docs/reference/training.md").read_text()
    words = inspect.signature(Stopping).parameters.values()
    plain = [word.replace(annotation=inspect.Parameter.empty) for word in words]
    shown = str(inspect.Signature(plain)).replace("'", '"')
    assert f"`GuardStopping{shown}`" in page
