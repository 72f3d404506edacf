"""Early stopping without any training library: when it asks, when it stops, the winner."""

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


def with_errors(count):
    """Return predictions with this many errors; the "model" of these tests is that number."""
    return np.where(np.arange(200) < count, 1 - LABELS, LABELS)


@pytest.fixture
def guard(tmp_path):
    return lb.Holdout.create(
        tmp_path / "guard.db", LABELS, questions=5, ladders=3, mechanism=lb.Ladder(step=0.02)
    )


def stopping(guard, **settings):
    return Stopping(guard, with_errors, **{"run": "a", "monitor": "loss", "patience": 3} | settings)


def train(callback, models):
    """Train until the callback stops it; a model is (its own score, its number of errors)."""
    for step, (score, count) in enumerate(models):
        callback.check(score, count, step=step)
        if callback.reason is not None:
            break
    return callback


def test_the_monitor_decides_when_to_ask_and_the_guard_decides_the_winner(guard):
    models = [(0.5, 90), (0.6, 10), (0.4, 60), (0.3, 61), (0.2, 62), (0.25, 0), (0.1, 0)]
    done = train(stopping(guard), models)
    assert [judgement.name for judgement in done.judge.judgements] == [0, 2, 3, 4]
    assert (done.winner.name, done.winner.reply.released) == (2, 0.3)
    assert done.judge.checks_without_improvement == 3
    assert done.reason == "In 3 checks of loss the guard measured no improvement."
    assert guard.remaining == 1


def test_a_spent_budget_stops_with_the_reason(guard):
    models = [(-step, 90 - 10 * step) for step in range(9)]
    done = train(stopping(guard), models)
    assert done.reason == "The budget is spent: no questions left."
    assert done.winner.name == len(done.judge.judgements) - 1 == 4
    late = train(stopping(guard, run="b"), models)
    assert (late.reason, late.winner, late.judge.judgements) == (done.reason, None, ())


def test_a_guard_without_a_ladder_left_is_refused_before_the_training(tmp_path):
    guard = lb.Holdout.create(tmp_path / "one.db", LABELS, questions=5)
    train(stopping(guard, run="a"), [(0.1, 10)])
    stopping(guard, run="a")
    with pytest.raises(TooManyLadders, match="--ladders 2"):
        stopping(guard, run="b")
    assert guard.remaining == 4


def test_each_run_has_its_own_ladder(guard):
    first = train(stopping(guard, run="a"), [(0.1, 10)])
    second = train(stopping(guard, run="b"), [(0.4, 80), (0.3, 50)])
    assert first.winner.reply.ladder == "a"
    assert (second.winner.name, second.winner.reply.ladder) == (1, "b")
    without_run = train(stopping(guard, run=None), [(0.4, 80)])
    assert without_run.winner.reply.ladder == ""


def test_a_repeated_run_stops_at_the_same_step_and_costs_nothing(guard):
    models = [(0.5, 90), (0.4, 60), (0.3, 61), (0.35, 20), (0.36, 0)]
    first = train(stopping(guard), models)
    remaining = guard.remaining
    again = train(stopping(guard), models)
    expected = (1, "In 3 checks of loss the guard measured no improvement.")
    assert (first.winner.name, first.reason) == (again.winner.name, again.reason) == expected
    assert guard.remaining == remaining


def test_equal_predictions_count_against_patience(guard):
    done = train(stopping(guard), [(0.5 - 0.01 * step, 60) for step in range(20)])
    assert (done.winner.name, done.judge.checks_without_improvement) == (0, 3)
    assert guard.remaining == 4


def test_the_first_reason_stays_and_a_later_winner_counts(guard):
    done = train(stopping(guard, patience=1), [(0.5, 60), (0.4, 60)])
    first = done.reason
    assert done.check(0.3, 20, step=2)  # some libraries train on for a while
    assert (done.reason, done.winner.name) == (first, 2)


def test_refused_predictions_raise(guard):
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

    class OneLadderBoard:
        ask = guard.ask

    with pytest.raises(InvalidSetting, match="run must be None"):
        stopping(OneLadderBoard())
    assert train(stopping(OneLadderBoard(), run=None), [(0.5, 60)]).winner.name == 0


def test_a_pickled_callback_continues(guard):
    copy = pickle.loads(pickle.dumps(train(stopping(guard), [(0.5, 60)])))
    assert copy.winner.name == 0
    assert copy.check(0.4, 20, step=1)


def test_the_parameters_are_those_of_the_reference():
    """The tests of each library check that its callback takes the same ones."""
    page = (ROOT / "docs/how-to/early-stopping.md").read_text()
    parameters = inspect.signature(Stopping).parameters.values()
    plain = [parameter.replace(annotation=inspect.Parameter.empty) for parameter in parameters]
    shown = str(inspect.Signature(plain)).replace("'", '"')
    assert f"`GuardStopping{shown}`" in page
