"""After any failure, a submission is asked about once and reported to EvalAI once."""

from __future__ import annotations

import logging

import pytest

from ladderboard.adapters.evalai import ask_guard
from ladderboard.adapters.evalai._api import EvalAiApi
from support.adapters.evalai_server import CHALLENGE, QUEUE, SIGNED, TOKEN, Crash, EvalAiServer


def test_a_crash_after_the_answer_costs_nothing(evalai, make_worker, guard, predict):
    def ask(handed, file):
        ask_guard(guard)(handed, file)
        raise Crash

    evalai.submit(5, predict(96))
    with pytest.raises(Crash):
        make_worker(ask).drain()
    assert (guard.remaining, evalai.submissions[100]["status"]) == (19, "running")
    evalai.redeliver()
    assert [outcome.status for outcome in make_worker().drain()] == ["finished"]
    assert guard.remaining == 19
    assert evalai.leaderboard[0]["accuracies"] == {
        "released": 0.24, "improved": 1, "remaining": 19,
    }  # fmt: skip
    assert evalai.submissions[100]["stdout"] == (
        "With this question the best went down to 0.24; 19 questions left."
    )


@pytest.mark.parametrize("fault", ["dropped", "lost"])
@pytest.mark.parametrize(
    "request_", ["GET submission", "PATCH update_submission", "PUT update_submission", "POST queue"]
)
def test_a_broken_connection_costs_nothing(evalai, make_worker, guard, predict, fault, request_):
    evalai.submit(5, predict(96))
    evalai.faults[request_] = fault
    first = make_worker().drain()
    assert [outcome.status for outcome in first] == ["left"]
    assert "ServerUnreachable" in first[0].message
    evalai.redeliver()
    delivered = fault == "lost" and request_.startswith("PUT")
    delivered = delivered or request_ == "POST queue"
    message_is_gone = request_ == "POST queue" and fault == "lost"
    expected = [] if message_is_gone else ["skipped"] if delivered else ["finished"]
    assert [outcome.status for outcome in make_worker().drain()] == expected
    assert evalai.submissions[100]["status"] == "finished"
    assert [row["accuracies"]["released"] for row in evalai.leaderboard] == [0.24]
    assert (guard.remaining, evalai.waiting, evalai.hidden) == (19, [], [])


@pytest.mark.parametrize(
    ("fault", "message"), [("gone", "fetched: 404"), ("cut", "cut off"), ("moved", "fetched: 302")]
)
def test_a_truncated_file_is_not_asked_about(evalai, make_worker, guard, predict, fault, message):
    evalai.submit(5, predict(96))
    evalai.faults["GET media"] = fault
    done = make_worker().drain()
    assert (done[0].status, guard.remaining) == ("left", 20)
    assert message in done[0].message


@pytest.mark.parametrize("url", ["file:///etc/hostname", "http://files.example.org/a", None, 7])
def test_only_files_on_evalai_are_fetched(evalai, make_worker, guard, predict, url):
    evalai.submit(5, predict(96), input_file=url)
    done = make_worker().drain()
    assert (done[0].status, guard.remaining) == ("left", 20)
    assert "no usable address" in done[0].message


def test_a_file_with_a_relative_address_is_fetched(evalai, make_worker, predict):
    evalai.submit(5, predict(96), input_file="/media/submission_files/100/f.csv")
    assert [outcome.status for outcome in make_worker().drain()] == ["finished"]


def test_secrets_are_in_no_message_and_no_log(evalai, make_worker, guard, predict, caplog):
    """The token goes to the API only; neither it nor a signed address is logged."""
    caplog.set_level(logging.DEBUG)
    worker = make_worker()
    evalai.submit(5, predict(96))
    evalai.submit(5, b"id,prediction\nsecret-row,1\n")
    done = worker.drain()
    for fault, endpoint in [("gone", "GET media"), ("dropped", "PUT update_submission")]:
        evalai.submit(5, predict(80))
        evalai.faults[endpoint] = fault
        done += worker.drain()
    assert [outcome.status for outcome in done] == ["finished", "failed", "left", "left"]
    tokens = {(path.split("/")[1], token) for _, path, token, _ in evalai.requests}
    assert tokens == {("api", f"Bearer {TOKEN}"), ("media", None)}
    shown = caplog.text + repr(worker) + repr(done)
    assert TOKEN not in shown
    assert SIGNED not in shown
    assert "secret-row" not in caplog.text
    assert "0.24" not in caplog.text
    assert "submission 100 of team 5: finished" in caplog.text


def test_a_proxy_does_not_get_the_token(evalai, make_worker, predict, monkeypatch, tmp_path):
    """Unencrypted requests stay on this machine, also for the file."""
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with EvalAiServer() as proxy:
        monkeypatch.setenv("http_proxy", proxy.url)
        evalai.submit(5, predict(96))
        assert [outcome.status for outcome in make_worker().drain()] == ["finished"]
        far = EvalAiApi("https://eval.ai", TOKEN, CHALLENGE, QUEUE)
        file = far.download(evalai.submissions[100]["input_file"], tmp_path, 10_000)
    assert (file.read_bytes(), proxy.requests) == (predict(96), [])


def test_a_redirect_does_not_get_the_token(evalai, make_worker, predict):
    evalai.submit(5, predict(96))
    evalai.faults["PATCH update_submission"] = "moved"
    assert "refused: 302" in make_worker().drain()[0].message
    assert not [path for _, path, _, _ in evalai.requests if "elsewhere" in path]
