"""A judge that asks a board: limits over time, corrected labels, the end of the budget."""

from __future__ import annotations

import numpy as np
import optuna

import ladderboard as lb
from ladderboard.adapters.optuna import guard_objective, judged_trials, winning_trial
from ladderboard.client import Client
from ladderboard.files import read_holdout

LABELS = np.arange(400) % 2


def predictions_with_errors(count):
    """Predictions with a given number of errors on the public split."""
    return {"id": list(range(400)), "prediction": (LABELS ^ (np.arange(400) < count)).tolist()}


def test_a_judge_asks_a_board(live_server, client):
    guard = client.guard(live_server.slug)
    judge = lb.Judge(guard)
    for name, score, errors in [("a", 0.25, 80), ("b", 0.30, 100), ("c", 0.21, 40)]:
        judge.consider(score, predictions_with_errors(errors), name=name)
    assert [judgement.name for judgement in judge.judgements] == ["a", "c"]
    assert judge.winner.name == "c"
    assert guard.remaining == 23
    assert live_server.url in repr(guard)


def test_a_judge_stops_when_no_submissions_are_left(empty_server):
    live_server = empty_server
    live_server.create_board(per_team=1)
    with Client(live_server.url, live_server.join("Ada")[1]) as client:
        judge = lb.Judge(client.guard(live_server.slug))
        assert judge.consider(0.5, predictions_with_errors(80)) is not None
        assert judge.budget_spent
        assert judge.consider(0.4, predictions_with_errors(10)) is None


def test_a_board_that_takes_the_next_question_tomorrow_ends_no_search(empty_server):
    live_server = empty_server
    live_server.create_board(window="{questions: 1, hours: 24}")
    with Client(live_server.url, live_server.join("Ada")[1]) as client:
        judge = lb.Judge(client.guard(live_server.slug))
        assert judge.consider(0.5, predictions_with_errors(80), name="first").improved
        assert judge.consider(0.4, predictions_with_errors(70), name="too soon") is None
        assert (judge.best, judge.budget_spent) == (0.5, False)
        live_server.clock.now += 86_400
        assert judge.consider(0.45, predictions_with_errors(60), name="next day").improved
        assert judge.winner.name == "next day"


def test_a_study_goes_on_while_a_board_takes_no_questions(empty_server):
    live_server = empty_server
    live_server.create_board(window="{questions: 1, hours: 24}")
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study()
    with Client(live_server.url, live_server.join("Ada")[1]) as client:

        def objective(trial):
            live_server.clock.now += 86_400 * (trial.number == 2)
            return (0.5, 0.4, 0.3)[trial.number], predictions_with_errors(
                (80, 70, 60)[trial.number]
            )

        study.optimize(guard_objective(objective, client.guard(live_server.slug)), n_trials=3)
    assert [trial_.state.name for trial_ in study.trials] == ["COMPLETE"] * 3
    assert [row["trial"] for row in judged_trials(study)] == [0, 2]
    assert winning_trial(study).number == 2


def test_the_winner_after_labels_were_corrected_is_the_last_that_improved(live_server, client):
    """A board then counts the questions of a ladder anew."""
    judge = lb.Judge(client.guard(live_server.slug))
    for errors in (90, 80, 70, 60):
        judge.ask(predictions_with_errors(errors), name=errors)
    rows = [
        f"{index},{index % 2 ^ (index < 15)},{'public' if index < 300 else 'private'}"
        for index in range(400)
    ]
    corrected = read_holdout("\n".join(["id,label,split", *rows, ""]).encode())
    organiser = live_server.boards.caller_by_token(live_server.organiser, live_server.slug)
    live_server.boards.open(live_server.slug).amendments.correct_labels(organiser, corrected)
    last = judge.ask(predictions_with_errors(15), name=15)
    assert last.improved
    assert last.question < 4 < last.order
    assert judge.winner is last
    assert [judgement.name for judgement in judge.judgements] == [90, 80, 70, 60, 15]
