"""Whatever breaks, a submission is asked about once, and EvalAI hears of it once."""

from __future__ import annotations

import logging

import pytest

from ladderboard.adapters.evalai import on_ladders
from ladderboard.adapters.evalai._api import EvalAiApi
from support.adapters.evalai_server import CHALLENGE, QUEUE, SIGNED, TOKEN, EvalAiServer


class Crash(BaseException):
    """As if the process had ended here."""


def test_a_crash_after_the_answer_costs_nothing(evalai, make_worker, guard, predict):
    def ask(handed, file):
        on_ladders(guard)(handed, file)
        raise Crash

    evalai.submit(5, predict(96))
    with pytest.raises(Crash):
        make_worker(ask).drain()
    assert (guard.remaining, evalai.submissions[100]["status"]) == (19, "running")
    evalai.redeliver()
    assert [each.status for each in make_worker().drain()] == ["finished"]
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
def test_a_broken_line_costs_nothing(evalai, make_worker, guard, predict, fault, request_):
    evalai.submit(5, predict(96))
    evalai.faults[request_] = fault
    first = make_worker().drain()
    assert [each.status for each in first] == ["left"]
    assert "ServerUnreachable" in first[0].message
    evalai.redeliver()
    told = fault == "lost" and request_.startswith("PUT")
    told = told or request_ == "POST queue"
    message_is_gone = request_ == "POST queue" and fault == "lost"
    expected = [] if message_is_gone else ["skipped"] if told else ["finished"]
    assert [each.status for each in make_worker().drain()] == expected
    assert evalai.submissions[100]["status"] == "finished"
    assert [each["accuracies"]["released"] for each in evalai.leaderboard] == [0.24]
    assert (guard.remaining, evalai.waiting, evalai.hidden) == (19, [], [])


@pytest.mark.parametrize(
    ("fault", "said"), [("gone", "fetched: 404"), ("cut", "cut off"), ("moved", "fetched: 302")]
)
def test_half_a_file_is_not_asked_about(evalai, make_worker, guard, predict, fault, said):
    evalai.submit(5, predict(96))
    evalai.faults["GET media"] = fault
    done = make_worker().drain()
    assert (done[0].status, guard.remaining) == ("left", 20)
    assert said in done[0].message


@pytest.mark.parametrize("url", ["file:///etc/hostname", "http://files.example.org/a", None, 7])
def test_only_what_evalai_serves_is_fetched(evalai, make_worker, guard, predict, url):
    evalai.submit(5, predict(96), input_file=url)
    done = make_worker().drain()
    assert (done[0].status, guard.remaining) == ("left", 20)
    assert "no usable address" in done[0].message


def test_a_file_by_its_path_alone_is_fetched(evalai, make_worker, predict):
    evalai.submit(5, predict(96), input_file="/media/submission_files/100/f.csv")
    assert [each.status for each in make_worker().drain()] == ["finished"]


def test_secrets_stay_where_they_belong(evalai, make_worker, guard, predict, caplog):
    """The token goes to the API only; neither it nor a signed address is logged."""
    caplog.set_level(logging.DEBUG)
    worker = make_worker()
    evalai.submit(5, predict(96))
    evalai.submit(5, b"id,prediction\nsecret-row,1\n")
    done = worker.drain()
    for fault, at in [("gone", "GET media"), ("dropped", "PUT update_submission")]:
        evalai.submit(5, predict(80))
        evalai.faults[at] = fault
        done += worker.drain()
    assert [each.status for each in done] == ["finished", "failed", "left", "left"]
    tokens = {(path.split("/")[1], token) for _, path, token, _ in evalai.requests}
    assert tokens == {("api", f"Bearer {TOKEN}"), ("media", None)}
    shown = caplog.text + repr(worker) + repr(done)
    assert TOKEN not in shown
    assert SIGNED not in shown
    assert "secret-row" not in caplog.text
    assert "0.24" not in caplog.text
    assert "submission 100 of team 5: finished" in caplog.text


def test_a_proxy_does_not_get_the_token(evalai, make_worker, predict, monkeypatch, tmp_path):
    """What is not encrypted stays on this machine, the file too."""
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with EvalAiServer() as proxy:
        monkeypatch.setenv("http_proxy", proxy.url)
        evalai.submit(5, predict(96))
        assert [each.status for each in make_worker().drain()] == ["finished"]
        far = EvalAiApi("https://eval.ai", TOKEN, CHALLENGE, QUEUE)
        file = far.download(evalai.submissions[100]["input_file"], tmp_path, 10_000)
    assert (file.read_bytes(), proxy.requests) == (predict(96), [])


def test_a_redirect_does_not_get_the_token(evalai, make_worker, predict):
    evalai.submit(5, predict(96))
    evalai.faults["PATCH update_submission"] = "moved"
    assert "refused: 302" in make_worker().drain()[0].message
    assert not [path for _, path, _, _ in evalai.requests if "elsewhere" in path]
