"""EvalAI's submissions on a live board, in the name of its teams."""

from __future__ import annotations

import pytest

from ladderboard.adapters.evalai import submit_to_board
from ladderboard.client import Client
from support.adapters.evalai_server import Crash
from support.server.live_server import make_predictions


@pytest.fixture
def teams(live_server):
    """The board's team for participant team 5."""
    return {5: live_server.join("Ada")[0]}


@pytest.fixture
def worker(live_server, teams, make_worker):
    """A worker that asks the board."""
    with Client(live_server.url, live_server.issue_token("evaluator"), receipts=None) as client:
        yield make_worker(submit_to_board(client, live_server.slug, teams))


def test_a_board_answers_for_its_teams(live_server, teams, worker, evalai):
    for wrong in (60, 30, 90):
        evalai.submit(5, make_predictions(wrong))
    assert [outcome.status for outcome in worker.drain()] == ["finished"] * 3
    shown = [row["accuracies"] for row in evalai.leaderboard]
    assert [row["released"] for row in shown] == [0.2, 0.1, 0.1]
    assert [row["improved"] for row in shown] == [1, 1, 0]
    assert [row["remaining"] for row in shown] == [24, 23, 22]  # the team's own share
    about = live_server.call(
        "GET", f"/boards/first/submissions?team={teams[5]}", live_server.organiser
    ).json()
    assert [row["message"] for row in about["submissions"]] == [
        "EvalAI 102", "EvalAI 101", "EvalAI 100",
    ]  # fmt: skip


def test_a_repeated_message_is_one_submission_on_the_board(live_server, teams, worker, evalai):
    evalai.submit(5, make_predictions(60))
    evalai.faults["PUT update_submission"] = "dropped"
    assert [outcome.status for outcome in worker.drain()] == ["left"]
    evalai.redeliver()
    assert [outcome.status for outcome in worker.drain()] == ["finished"]
    assert evalai.leaderboard[0]["accuracies"] == {"released": 0.2, "improved": 1, "remaining": 24}
    assert live_server.call("GET", "/boards/first", live_server.organiser).json()["used"] == 1


@pytest.mark.parametrize("keeps_receipts", [True, False])
def test_a_crash_before_the_boards_answer_costs_nothing(
    live_server, teams, make_worker, evalai, tmp_path, monkeypatch, keeps_receipts
):
    """It needs no stored receipts: the next worker may be on another machine."""
    token, places = live_server.issue_token("evaluator"), iter([tmp_path / "one", tmp_path / "two"])

    def worker():
        client = Client(
            live_server.url, token, receipts=tmp_path / "one" if keeps_receipts else next(places)
        )
        return client, make_worker(submit_to_board(client, live_server.slug, teams))

    evalai.submit(5, make_predictions(60))
    first, at_work = worker()
    heard = first._handle_response

    def crash(request, *args):
        if request.body is not None:  # it was answered, and is not heard
            raise Crash
        return heard(request, *args)

    monkeypatch.setattr(first, "_handle_response", crash)
    with first, pytest.raises(Crash):
        at_work.drain()
    assert live_server.call("GET", "/boards/first", live_server.organiser).json()["used"] == 1
    evalai.redeliver()
    second, at_work = worker()
    with second:
        assert [outcome.status for outcome in at_work.drain()] == ["finished"]
    assert evalai.leaderboard[0]["accuracies"] == {"released": 0.2, "improved": 1, "remaining": 24}
    assert live_server.call("GET", "/boards/first", live_server.organiser).json()["used"] == 1


def test_a_submission_is_run_again_after_a_correction(live_server, worker, evalai, correct_labels):
    evalai.submit(5, make_predictions(60))
    assert [outcome.status for outcome in worker.drain()] == ["finished"]
    correct_labels()
    evalai.submissions[100]["status"] = "submitted"  # its organiser runs it again
    evalai.waiting.append(("again", {"challenge_pk": 12, "phase_pk": 34, "submission_pk": 100}))
    assert [(outcome.status, outcome.message) for outcome in worker.drain()] == [
        ("finished", "With this question the best went down to 0.15; 23 questions left.")
    ]


def test_a_team_unknown_to_the_board_is_reported(live_server, teams, worker, evalai):
    evalai.submit(6, make_predictions(60))
    assert [outcome.status for outcome in worker.drain()] == ["failed"]
    assert evalai.submissions[100]["stderr"] == (
        "Participant team 6 is not a team of the board yet. Its organiser must add it and run "
        "this submission again."
    )


def test_a_boards_refusals_are_itemised(worker, evalai):
    evalai.submit(5, b"id,prediction\n0,1\n1,7\n")
    assert [outcome.status for outcome in worker.drain()] == ["failed"]
    assert "398 missing ids" in evalai.submissions[100]["stderr"]


def test_a_paused_board_is_reported(live_server, worker, evalai):
    live_server.call("POST", "/boards/first/pause", live_server.organiser)
    evalai.submit(5, make_predictions(60))
    assert [outcome.status for outcome in worker.drain()] == ["failed"]
    assert "paused" in evalai.submissions[100]["stderr"]


@pytest.mark.parametrize(
    "rules",
    [{"visibility": "hidden"}, {"ladder": "board"}],
    ids=lambda rules: next(iter(rules)),
)
def test_a_board_without_public_releases_by_team_is_refused(
    live_server, make_worker, evalai, rules
):
    other = f"{live_server.slug}-other"
    live_server.create_board(other, **rules)
    team = live_server.join("Ada", other)[0]
    with Client(
        live_server.url, live_server.issue_token("evaluator", other), receipts=None
    ) as client:
        worker = make_worker(submit_to_board(client, other, {5: team}))
        evalai.submit(5, make_predictions(60))
        done = worker.drain()
    assert (done[0].status, evalai.leaderboard) == ("left", [])
    assert "neither hidden nor frozen" in done[0].message
    assert live_server.call("GET", f"/boards/{other}", live_server.organiser).json()["used"] == 0


def test_a_token_without_permission_is_left_for_the_organiser(
    live_server, teams, make_worker, evalai
):
    with Client(live_server.url, "lb_no-such-token", receipts=None) as client:
        evalai.submit(5, make_predictions(60))
        done = make_worker(submit_to_board(client, live_server.slug, teams)).drain()
    assert (done[0].status, evalai.submissions[100]["status"]) == ("left", "running")
    assert "no-such-token" not in done[0].message
