"""Submissions on EvalAI's queue are answered with the release only."""

from __future__ import annotations

import threading
from unittest.mock import ANY

import pytest

import ladderboard as lb
from ladderboard.adapters.evalai import ChallengePhase, Worker, ask_guard
from ladderboard.errors import GuardUnreachable, InvalidSetting, ServerUnreachable
from support.adapters.evalai_server import CHALLENGE, QUEUE, SPLIT, TOKEN
from support.credentials import random_secret


def statuses(evalai):
    return [submission["status"] for submission in evalai.submissions.values()]


def rotating(evalai):
    """Make received messages visible again, at the end of the queue."""
    hide = evalai.receive

    def receive():
        response = hide()
        evalai.waiting, evalai.hidden = evalai.waiting + evalai.hidden, []
        return response

    return receive


def forgetting(evalai):
    """Delete a message from such a queue."""
    return lambda payload: evalai.waiting.remove((payload["receipt_handle"], ANY)) or (200, {})


def test_each_team_has_its_own_ladder(evalai, worker, guard, predict):
    for team, wrong in [(5, 96), (6, 200), (5, 40), (6, 60), (5, 80)]:
        evalai.submit(team, predict(wrong))
    done = worker.drain()
    assert [outcome.status for outcome in done] == ["finished"] * 5 == statuses(evalai)
    shown = [row["accuracies"] for row in evalai.leaderboard]
    assert [row["released"] for row in shown] == [0.24, 0.5, 0.1, 0.16, 0.1]
    assert [row["improved"] for row in shown] == [1, 1, 1, 1, 0]
    assert [row["remaining"] for row in shown] == [19, 18, 17, 16, 15]
    assert all(row["show_to_participant"] for row in evalai.leaderboard)
    assert (evalai.waiting, evalai.hidden) == ([], [])
    assert [ladder.name for ladder in guard.status().ladders] == [
        "",
        "evalai-team-5",
        "evalai-team-6",
    ]
    assert evalai.submissions[104]["stdout"] == (
        "With this question the best stayed 0.1; 15 questions left."
    )
    assert done[0].describe() == {
        "submission": 100, "team": 5, "status": "finished",
        "released": 0.24, "improved": 1, "remaining": 19,
    }  # fmt: skip
    assert worker.step() is None


def test_a_file_that_cannot_be_scored_fails_with_the_reasons(evalai, worker, guard, predict):
    half = predict(10).splitlines(keepends=True)[:201]
    evalai.submit(5, b"".join(half) + b"9999,1\n")
    evalai.submit(5, b"\x00\x01", suffix=".zip")
    assert [outcome.status for outcome in worker.drain()] == ["failed", "failed"]
    message = evalai.submissions[100]["stderr"]
    assert message.startswith("2 problems were found:\n- ")
    assert "200 missing ids" in message
    assert "9999" in message
    assert evalai.submissions[100]["stdout"] == ""
    assert (evalai.leaderboard, evalai.hidden, guard.remaining) == ([], [], 20)


def test_a_guard_with_fewer_ladders_than_teams_is_refused_at_once(guard, serve, tmp_path):
    with pytest.raises(InvalidSetting, match=r"--ladders 11"):
        ask_guard(guard, teams=11)
    with pytest.raises(InvalidSetting, match="has 10"):
        ask_guard(lb.Holdout.connect(serve(guard)), teams=11)
    one_ladder = lb.Holdout.create(tmp_path / "one.db", [0, 1] * 200, questions=9)
    with pytest.raises(InvalidSetting, match="this guard has 1"):
        ask_guard(one_ladder)
    assert ask_guard(guard, teams=10)


def test_a_submission_without_a_free_ladder_is_left_for_the_organiser(
    evalai, make_worker, predict, tmp_path
):
    guard = lb.Holdout.create(tmp_path / "two.db", [0, 1] * 200, questions=9, ladders=2)
    for team in (5, 6, 7):
        evalai.submit(team, predict(40))
    done = make_worker(ask_guard(guard)).drain()
    assert [outcome.status for outcome in done] == ["finished", "finished", "left"]
    assert "--ladders 3" in done[-1].message
    assert guard.remaining == 7


@pytest.mark.parametrize("served", [False, True])
def test_a_guard_of_scores_is_refused(evalai, make_worker, guard_of_scores, scores, serve, served):
    target = lb.Holdout.connect(serve(guard_of_scores)) if served else guard_of_scores
    evalai.submit(5, scores)
    (done,) = make_worker(ask_guard(target)).drain()
    assert (done.status, evalai.leaderboard, guard_of_scores.remaining) == ("left", [], 20)
    assert "would score themselves" in done.message


def test_a_file_that_is_too_large_fails(evalai, make_worker, guard, predict):
    evalai.submit(5, predict(10))
    done = make_worker(max_bytes=1000).drain()
    assert done[0].message == "The file is larger than 1,000 bytes, the maximum."
    assert (statuses(evalai), guard.remaining) == (["failed"], 20)


def test_a_spent_budget_is_reported(evalai, make_worker, predict, tmp_path):
    guard = lb.Holdout.create(tmp_path / "one.db", [0, 1] * 200, questions=1)
    for wrong in (96, 48):
        evalai.submit(5, predict(wrong))
    make_worker(ask_guard(guard, teams=1)).drain()
    assert statuses(evalai) == ["finished", "failed"]
    assert "question" in evalai.submissions[101]["stderr"]


def test_a_withheld_value_is_on_no_leaderboard(evalai, make_worker, predict, tmp_path):
    guard = lb.Holdout.create(
        tmp_path / "bit.db",
        [0, 1] * 200,
        questions=9,
        ladders=2,
        mechanism=lb.mechanisms.OneBit(step=0.02),
    )
    evalai.submit(5, predict(96))
    make_worker(ask_guard(guard)).drain()
    assert (statuses(evalai), evalai.leaderboard) == (["finished"], [])
    stdout = evalai.submissions[100]["stdout"]
    assert stdout.startswith("With this question the best improved")
    assert stdout.endswith("8 questions left.")


def test_labels_are_sent_under_the_leaderboards_names(evalai, make_worker, predict):
    evalai.labels = ("Error",)
    evalai.submit(5, predict(96))
    make_worker(labels={"released": "Error"}).drain()
    assert evalai.leaderboard[0]["accuracies"] == {"Error": 0.24}


def test_a_label_unknown_to_evalai_is_left_for_the_organiser(evalai, make_worker, guard, predict):
    evalai.labels = ("Error",)
    evalai.submit(5, predict(96))
    done = make_worker().drain()
    assert done[0].status == "left"
    assert "metrics are missing" in done[0].message
    assert statuses(evalai) == ["running"]
    evalai.labels = ("released", "improved", "remaining")  # mended
    evalai.redeliver()
    assert [outcome.status for outcome in make_worker().drain()] == ["finished"]
    assert guard.remaining == 19


@pytest.mark.parametrize("status", ["finished", "failed", "cancelled", "archived"])
def test_a_final_submission_is_removed_from_the_queue(evalai, worker, guard, predict, status):
    evalai.submit(5, predict(96), status=status)
    assert [outcome.status for outcome in worker.drain()] == ["skipped"]
    assert (evalai.hidden, evalai.leaderboard, guard.remaining) == ([], [], 20)


def test_another_workers_submission_is_left(evalai, worker, guard, predict):
    evalai.submit(5, predict(96), status="running", job_name=["ladderboard", "other"])
    assert [(outcome.status, outcome.message) for outcome in worker.drain()] == [
        ("left", "another worker's")
    ]
    assert (len(evalai.hidden), guard.remaining) == (1, 20)


@pytest.mark.parametrize("other", [{"phase_pk": 35}, {"challenge_pk": 13}])
def test_a_message_of_another_phase_is_left(evalai, worker, guard, predict, other):
    evalai.submit(5, predict(96))
    evalai.waiting[0][1].update(other)
    assert [outcome.status for outcome in worker.drain()] == ["left"]
    assert (statuses(evalai), len(evalai.hidden), guard.remaining) == (["submitted"], 1, 20)


def test_messages_of_another_phase_do_not_block_others(evalai, worker, predict):
    for index in range(4):
        evalai.submit(5, predict(96 - index))
    for index in (0, 1, 3):
        evalai.waiting[index][1]["phase_pk"] = 35
    assert [outcome.status for outcome in worker.drain()] == ["left", "left", "finished", "left"]
    assert [body["submission_pk"] for _, body in evalai.hidden] == [100, 101, 103]


def test_draining_a_queue_of_other_phases_ends(evalai, worker, predict, monkeypatch):
    """Even if a received message is not hidden and comes again at once."""
    for _ in range(3):
        evalai.submit(5, predict(96))
    for index in (0, 1):
        evalai.waiting[index][1]["phase_pk"] = 35
    monkeypatch.setattr(evalai, "receive", rotating(evalai))
    monkeypatch.setattr(evalai, "delete", forgetting(evalai))
    done = [(outcome.submission, outcome.status) for outcome in worker.drain()]
    assert done == [(100, "left"), (101, "left"), (102, "finished")]


def test_each_phase_has_its_own_guard(evalai, guard, predict, tmp_path):
    second = lb.Holdout.create(tmp_path / "second.db", [0, 1] * 200, questions=7, ladders=2)
    phases = {
        34: ChallengePhase(SPLIT, ask_guard(guard)),
        35: ChallengePhase("other", ask_guard(second)),
    }
    worker = Worker(phases, challenge=CHALLENGE, queue=QUEUE, token=TOKEN, server=evalai.url)
    evalai.submit(5, predict(96))
    evalai.submit(5, predict(96))
    evalai.waiting[1][1]["phase_pk"] = 35
    worker.drain()
    assert (guard.remaining, second.remaining) == (19, 6)


def test_an_invalid_message_does_not_block_others(evalai, worker, predict):
    evalai.waiting.append(("odd", {"hello": 1}))
    evalai.submit(5, predict(96))
    assert [(outcome.status, outcome.message[:8]) for outcome in worker.drain()] == [
        ("left", "KeyError"), ("finished", "With thi"),
    ]  # fmt: skip


def poison(evalai, body, index=0):
    """Put an invalid message on the queue."""
    evalai.waiting.insert(index, (f"odd-{index}", body))


@pytest.mark.parametrize("hidden", [True, False])
def test_poisoned_messages_do_not_block_others(evalai, worker, predict, monkeypatch, hidden):
    """Even if received messages are not hidden; several of them, and a missing file."""
    for wrong in (96, 80, 60):
        evalai.submit(5, predict(wrong))
    evalai.submissions[100]["input_file"] = f"{evalai.url}/media/submission_files/x"
    poison(evalai, {"submission_pk": "x", "phase_pk": 34, "challenge_pk": 12})
    poison(evalai, {"submission_pk": None}, 1)
    poison(evalai, {"submission_pk": 1e999, "phase_pk": 34, "challenge_pk": 12}, 3)
    if not hidden:
        monkeypatch.setattr(evalai, "receive", rotating(evalai))
        monkeypatch.setattr(evalai, "delete", forgetting(evalai))
    done = worker.drain()
    assert [outcome.status for outcome in done] == ["left"] * 4 + ["finished"] * 2
    assert statuses(evalai) == ["running", "finished", "finished"]
    assert (len(evalai.hidden) + len(evalai.waiting)) == 4


def test_draining_ends_if_messages_are_not_deleted(evalai, worker, predict, monkeypatch):
    evalai.submit(5, predict(96))
    monkeypatch.setattr(evalai, "receive", rotating(evalai))
    monkeypatch.setattr(evalai, "delete", lambda payload: (200, {}))
    assert [outcome.status for outcome in worker.drain()] == ["finished", "skipped"]


@pytest.mark.parametrize("endpoint", ["GET queue", "GET submission"])
def test_deeply_nested_json_does_not_block_others(evalai, make_worker, guard, predict, endpoint):
    stop = threading.Event()

    def ask(handed, file):
        stop.set()
        return ask_guard(guard)(handed, file)

    evalai.submit(5, predict(96))
    evalai.submit(5, predict(80))
    evalai.faults[endpoint] = "deep"
    make_worker(ask).run(every=0.01, stop=stop)
    assert "finished" in statuses(evalai)


def test_an_error_while_asking_does_not_block_others(evalai, make_worker, guard, predict):
    def ask(handed, file):
        if handed.team == 5:
            raise MemoryError
        return ask_guard(guard)(handed, file)

    worker = make_worker(ask)
    evalai.submit(5, predict(96))
    evalai.submit(6, predict(96))
    assert [outcome.message[:11] for outcome in worker.drain()] == ["MemoryError", "With this q"]
    assert statuses(evalai) == ["running", "finished"]


def test_an_unreachable_guard_fails_no_submission(evalai, make_worker, guard, predict):
    def away(handed, file):
        raise GuardUnreachable("The guard cannot be reached.")

    evalai.submit(5, predict(96))
    evalai.submit(5, predict(80))
    assert [outcome.status for outcome in make_worker(away).drain()] == ["left"]
    assert statuses(evalai) == ["running", "submitted"]  # the second is not tried in vain
    evalai.redeliver()
    assert [outcome.status for outcome in make_worker().drain()] == ["finished", "finished"]
    assert (evalai.submissions[100]["job_name"], guard.remaining) == (["ladderboard"], 18)


def test_it_runs_until_it_is_stopped(evalai, make_worker, guard, predict):
    stop = threading.Event()

    def ask(handed, file):
        if handed.team == 6:
            stop.set()
        return ask_guard(guard)(handed, file)

    evalai.faults["GET queue"] = "dropped"  # which it survives
    for team in (5, 6, 7):
        evalai.submit(team, predict(96))
    make_worker(ask).run(every=0.01, stop=stop)
    assert statuses(evalai) == ["finished", "finished", "submitted"]


def test_a_wrong_token_is_reported_and_not_shown(evalai, make_worker):
    wrong = random_secret()
    with pytest.raises(ServerUnreachable, match="refused: 401, 'Invalid token'") as caught:
        make_worker(token=wrong).drain()
    assert wrong not in str(caught.value)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"server": "http://eval.example.org"}, "not sent unencrypted"),
        ({"server": "ftp://eval.ai"}, "not sent unencrypted"),
        ({"token": "two words"}, "printable ASCII"),
        ({"queue": "../x"}, "A queue's name"),
        ({"challenge": 0}, "challenge must be"),
        ({"labels": {"risk": "Risk"}}, "labels must be"),
        ({"name": "Me"}, "lower case"),
        ({"max_bytes": 0}, "max_bytes must be"),
    ],
)
def test_invalid_settings_are_refused(make_worker, settings, message):
    with pytest.raises(InvalidSetting, match=message):
        make_worker(**settings)


def test_a_worker_needs_a_phase():
    with pytest.raises(InvalidSetting, match="needs a phase"):
        Worker({}, challenge=1, queue="q", token=random_secret())
