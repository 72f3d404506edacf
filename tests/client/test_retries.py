"""Network failures, simulated by a proxy: nothing is submitted or counted twice."""

from __future__ import annotations

import json

import pytest

from ladderboard.client import Client
from ladderboard.client._transport import RetryBackoff, error_from_problem, parse_retry_after
from ladderboard.errors import (
    BudgetSpent,
    InvalidPredictions,
    NotAllowed,
    QuotaExceeded,
    RateLimited,
    ServerUnreachable,
    StorageFailed,
)
from support.faulty_proxy import FaultyProxy
from support.server.live_server import make_predictions


def make_response(status, code=None, **headers):
    """Return a response as bytes: a problem document, or a page if there is no code."""
    problem = {"detail": f"{code} it is.", "code": code, "errors": []}
    body = b"<h1>Sorry</h1>" if code is None else json.dumps(problem).encode()
    lines = [f"HTTP/1.1 {status} Said", f"Content-Length: {len(body)}", "Connection: close"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


PASSING = {
    "refused": ["refuse"],
    "reset": ["reset"],
    "answer lost": ["swallow"],
    "answer cut off": ["cut"],
    "408": [make_response(408, "too_slow")],
    "429 rate": [make_response(429, "rate", Retry_After=0)],
    "502": [make_response(502)],
    "503": [make_response(503, "busy", Retry_After=0)],
    "503 storage": [make_response(503, "storage", Retry_After=0)],
    "504": [make_response(504)],
    "507 disk full": [make_response(507, "disk_full", Retry_After=0)],
    "all at once": ["reset", "swallow", make_response(503)],
}


@pytest.mark.parametrize("faults", PASSING.values(), ids=PASSING)
@pytest.mark.parametrize("call", ["sync", "async"], indirect=True)
def test_a_retried_submission_counts_once(live_server, token, call, no_retry_delay, faults):
    with FaultyProxy(live_server.port, *faults) as proxy:
        progress_calls = []
        reply = call(
            proxy.url,
            token,
            "submit",
            live_server.slug,
            make_predictions(30),
            progress=lambda sent, total: progress_calls.append((sent, total)),
        )
        keys, bodies = set(proxy.keys), {request.body for request in proxy.requests}
    assert len(keys) == 1
    assert bodies == {make_predictions(30)}
    assert reply.released == pytest.approx(0.1, abs=0.01)
    assert progress_calls[-1] == (len(make_predictions(30)), len(make_predictions(30)))
    with Client(live_server.url, token) as client:
        assert client.team(live_server.slug).submissions == 1
        assert client.board(live_server.slug).used == 1
        assert [
            receipt.state for receipt in client.receipts(live_server.slug)
        ] == []  # another address's


@pytest.mark.parametrize("faults", PASSING.values(), ids=PASSING)
def test_reads_are_retried(live_server, token, call, no_retry_delay, faults):
    with FaultyProxy(live_server.port, *faults) as proxy:
        assert call(proxy.url, token, "team", live_server.slug).name == "Ada"


@pytest.mark.parametrize("call", ["sync", "async"], indirect=True)
def test_reading_all_pages_is_retried(live_server, token, call, no_retry_delay, monkeypatch):
    monkeypatch.setattr("ladderboard.client._requests._PAGE_SIZE", 1)
    for errors in (10, 20, 30):
        call(live_server.url, token, "submit", live_server.slug, make_predictions(errors))
    with FaultyProxy(live_server.port, "cut", None, "swallow", None, "reset") as proxy:
        submissions = call(proxy.url, token, "submissions", live_server.slug)
    assert [submission.number for submission in submissions] == [3, 2, 1]


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (make_response(409, "budget_spent"), BudgetSpent),
        (make_response(422, "invalid_predictions"), InvalidPredictions),
        (make_response(403, "not_allowed"), NotAllowed),
        (make_response(429, "too_soon", Retry_After=1), RateLimited),
        (make_response(429, "rate", Retry_After=3600), RateLimited),
        (make_response(503, "busy", Retry_After=3600), ServerUnreachable),
        (make_response(500, "broken"), ServerUnreachable),
        (make_response(507, "no_room"), QuotaExceeded),
        (make_response(302, None, Location="https://elsewhere.example.org/"), ServerUnreachable),
    ],
)
def test_a_refusal_is_not_sent_again(live_server, token, call, no_retry_delay, answer, kind):
    with FaultyProxy(live_server.port, answer) as proxy:
        with pytest.raises(kind) as refused:
            call(proxy.url, token, "submit", live_server.slug, make_predictions(30))
        assert len(proxy.requests) == 1
    if kind is RateLimited:
        assert refused.value.wait in {1, 3600}


@pytest.mark.parametrize("call", ["sync", "async"], indirect=True)
def test_retries_end(live_server, token, call, no_retry_delay):
    with FaultyProxy(live_server.port, *["refuse"] * 9) as proxy:
        with pytest.raises(ServerUnreachable, match="Sending the same again is safe"):
            call(
                proxy.url,
                token,
                "submit",
                live_server.slug,
                make_predictions(30),
                options={"retries": 2},
            )
        assert len(proxy._faults) == 6
    with FaultyProxy(live_server.port, *[make_response(502)] * 9) as proxy:
        with pytest.raises(ServerUnreachable, match="status 502"):
            call(proxy.url, token, "board", live_server.slug, options={"retries": 1})
        assert len(proxy.requests) == 2


def test_a_server_that_does_not_answer_times_out(live_server, token, call, no_retry_delay):
    with FaultyProxy(live_server.port, *["hang"] * 2) as proxy:
        with pytest.raises(ServerUnreachable, match=r"within 0\.1 seconds"):
            call(proxy.url, token, "team", live_server.slug, options={"retries": 1, "timeout": 0.1})
        assert len(proxy.requests) == 2


@pytest.mark.parametrize("call", ["sync", "async"], indirect=True)
def test_an_answer_that_takes_too_long(live_server, call, monkeypatch):
    """It is sent byte by byte, so that no single read times out."""
    monkeypatch.setattr("ladderboard.client._transport._MAX_TIMEOUTS", 0.001)
    head = b"HTTP/1.1 200 Said\r\nContent-Length: 114\r\nConnection: close\r\n\r\n"
    with FaultyProxy(live_server.port, [head, *[b" "] * 100, b'{"boards": []}']) as proxy:
        with pytest.raises(ServerUnreachable, match=r"longer than 0\.06 seconds"):
            call(proxy.url, None, "boards")
        assert len(proxy.requests) == 1


def test_an_answer_that_is_too_large(live_server, call):
    head = b"HTTP/1.1 200 Said\r\nConnection: close\r\n\r\n"
    endless = head + b'{"boards": [' + b" " * 2**25 + b"]}"
    with (
        FaultyProxy(live_server.port, endless) as proxy,
        pytest.raises(ServerUnreachable, match="larger than 33,554,432 bytes"),
    ):
        call(proxy.url, None, "boards")


@pytest.mark.parametrize("call", ["sync", "async"], indirect=True)
def test_endless_pages(live_server, token, call):
    call(live_server.url, token, "submit", live_server.slug, make_predictions(30))
    row = call(live_server.url, token, "leaderboard", live_server.slug)[0].raw

    def page(*rows, cursor):
        body = json.dumps({"rows": rows, "next": cursor}).encode()
        return b"HTTP/1.1 200 Said\r\nConnection: close\r\n\r\n" + body

    with FaultyProxy(live_server.port, page(row, cursor="a"), page(cursor="b")) as proxy:
        assert len(call(proxy.url, token, "leaderboard", live_server.slug)) == 1
        assert len(proxy.requests) == 2
    circle = [page(row, cursor=next_cursor) for next_cursor in "aba"]
    with (
        FaultyProxy(live_server.port, *circle) as proxy,
        pytest.raises(ServerUnreachable, match="without end"),
    ):
        call(proxy.url, token, "leaderboard", live_server.slug)


def test_requests_without_a_key_are_retried_only_if_never_sent(live_server, call, no_retry_delay):
    with FaultyProxy(live_server.port, "swallow") as proxy:
        with pytest.raises(ServerUnreachable, match="may have been carried out"):
            call(proxy.url, None, "register", live_server.slug, "Eve")
        assert len(proxy.requests) == 1
    with FaultyProxy(live_server.port, make_response(503, "storage", Retry_After=0)) as proxy:
        with pytest.raises(StorageFailed):
            call(proxy.url, None, "register", live_server.slug, "Fay")
        assert len(proxy.requests) == 1


def test_an_unreachable_server(call, no_retry_delay):
    with FaultyProxy(1) as proxy:
        stopped_url = proxy.url
    with pytest.raises(ServerUnreachable, match=f"The server at {stopped_url} cannot be reached"):
        call(stopped_url, None, "boards")


def test_waits_double_and_respect_retry_after():
    waits = [backoff.next_pause() for backoff in [RetryBackoff(8)] for _ in range(9)]
    assert waits.pop() is None
    for attempt, wait in enumerate(waits):
        longest = min(0.25 * 2**attempt, 8)
        assert longest / 2 <= wait <= longest
    assert RetryBackoff(1).next_pause(7.0) == 7.0
    assert RetryBackoff(1).next_pause(31.0) is None
    assert (
        error_from_problem(
            429, {"detail": "", "code": "rate", "errors": []}, parse_retry_after("9" * 999)
        ).wait
        > 31
    )
