"""Submissions over HTTP: every way in, and every refusal."""

import gzip
import json

import pytest

from ladderboard.server import Rate
from support.server.live_server import make_predictions


@pytest.fixture
def team(live_server):
    return live_server.join("Alpha")


SAME = ("id", "released", "remaining", "receipt")


def problem(said, status, code):
    """Check the shape of a refusal, and return it."""
    told = said.json()
    assert (said.status_code, told["code"]) == (status, code), said.text
    assert said.headers["content-type"] == "application/problem+json"
    assert set(told) == {"type", "title", "status", "detail", "code", "errors"}
    assert told["type"] == f"urn:ladderboard:problem:{code}"
    assert told["status"] == status
    return told


def test_a_submission_is_answered_at_once_and_can_be_looked_up(live_server, team):
    said = live_server.submit(team[1], make_predictions(30), query="?message=first%20try")
    assert said.status_code == 201
    told = said.json()
    assert (told["released"], told["improved"], told["again"]) == (0.1, True, False)
    assert (told["remaining"], told["limit"], told["team"]["id"]) == (24, "team", team[0])
    found = live_server.call("GET", said.headers["location"], team[1]).json()
    assert (found["id"], found["released"], found["message"]) == (told["id"], 0.1, "first try")
    assert found.pop("receipt") == told["receipt"]
    listed = live_server.call("GET", "/boards/first/submissions", team[1]).json()
    assert listed == {"submissions": [found], "next": None}
    assert said.headers["cache-control"] == "private, no-store"


def test_the_same_again_costs_nothing_and_says_the_same(live_server, team):
    first = live_server.submit(team[1], make_predictions(30), Idempotency_Key="a").json()
    for headers in ({"Idempotency_Key": "a"}, {"Idempotency_Key": "b"}, {}):
        said = live_server.submit(team[1], make_predictions(30), **headers)
        assert said.status_code == 200
        assert said.json()["again"] is True
        assert {k: said.json()[k] for k in SAME} == {k: first[k] for k in SAME}
    problem(
        live_server.submit(team[1], make_predictions(31), Idempotency_Key="a"), 422, "key_reused"
    )


@pytest.mark.parametrize("key", ["x" * 256, "", b"\xe9"])
def test_a_key_to_retry_with_is_plain_and_short(live_server, team, key):
    told = problem(
        live_server.submit(team[1], make_predictions(1), Idempotency_Key=key), 422, "invalid"
    )
    assert told["errors"][0]["column"] == "header.Idempotency-Key"


def test_forms_packed_bodies_and_messages(live_server, team):
    packed = live_server.submit(
        team[1], gzip.compress(make_predictions(20)), Content_Encoding="gzip"
    )
    assert packed.json()["improved"]
    path = "/boards/first/submissions"
    files = {"file": ("predictions.csv", make_predictions(10))}
    form = live_server.call("POST", path, team[1], files=files, data={"message": "by form"})
    assert form.status_code == 201
    newest = live_server.call("GET", path, team[1]).json()["submissions"][0]
    assert newest["message"] == "by form"
    said = live_server.call("POST", path, team[1], files=files, data={"massage": "typo"})
    problem(said, 400, "form")


def test_an_invalid_file_is_itemised_and_free(live_server, team):
    body = b"\n".join(make_predictions(1).splitlines()[:-3]) + b"\n"
    told = problem(live_server.submit(team[1], body), 422, "invalid_predictions")
    assert told["errors"][0]["count"] == 3
    assert told["errors"][0]["ids"] == ["397", "398", "399"]
    assert live_server.call("GET", "/boards/first/team", team[1]).json()["submissions"] == 0


def test_invalid_files_are_limited_by_team(make_server):
    live_server = make_server(invalid=Rate(2, 60.0))
    live_server.create_board()
    one, other = live_server.join("One")[1], live_server.join("Other")[1]
    for _ in range(2):
        problem(live_server.submit(one, b"nothing"), 422, "invalid_predictions")
    said = live_server.submit(one, make_predictions(1))
    problem(said, 429, "rate")
    assert 1 <= int(said.headers["retry-after"]) <= 60
    assert live_server.submit(other, make_predictions(1)).status_code == 201


def test_invalid_files_of_one_team_stop_an_evaluator_for_that_team_only(make_server):
    live_server = make_server(invalid=Rate(2, 60.0))
    live_server.create_board()
    evil, good = live_server.join("Evil")[0], live_server.join("Good")[0]
    evaluator = live_server.issue_token("evaluator")
    for _ in range(2):
        sent = live_server.submit(evaluator, b"nothing", query=f"?team={evil}")
        problem(sent, 422, "invalid_predictions")
    problem(live_server.submit(evaluator, make_predictions(1), query=f"?team={evil}"), 429, "rate")
    assert (
        live_server.submit(evaluator, make_predictions(1), query=f"?team={good}").status_code == 201
    )


def test_types_and_sizes_that_are_not_taken(empty_server):
    live_server = empty_server
    live_server.create_board(files="{bytes: 10000}")
    token = live_server.join("Alpha")[1]
    path = "/boards/first/submissions"
    html = {"Content-Type": "text/html"}
    problem(live_server.call("POST", path, token, content=b"x", headers=html), 415, "content_type")
    problem(live_server.submit(token, b"x", Content_Encoding="br"), 415, "content_type")
    problem(live_server.submit(token, b"x" * 200_000), 413, "too_large")
    problem(live_server.submit(token, gzip.compress(b"x" * 200_000)), 413, "too_large")
    problem(
        live_server.submit(token, make_predictions(1), Accept="image/png"), 406, "not_acceptable"
    )
    problem(live_server.submit(token, make_predictions(1), query="?tema=1"), 422, "invalid")


def test_limits_over_time_and_budgets(empty_server):
    live_server = empty_server
    live_server.create_board(window="{questions: 2, hours: 1}", per_team=3, questions=12)
    token = live_server.join("Alpha")[1]
    for wrong in (3, 2):
        assert live_server.submit(token, make_predictions(wrong)).status_code == 201
    said = live_server.submit(token, make_predictions(1))
    problem(said, 429, "too_soon")
    assert said.headers["retry-after"] == "3600"
    live_server.clock.now += 3600
    last = live_server.submit(token, make_predictions(1))
    assert last.status_code == 201
    assert last.json()["remaining"] == 0
    assert last.json()["next_submission_at"] is None
    problem(live_server.submit(token, make_predictions(0)), 409, "budget_spent")


@pytest.mark.parametrize("back", [0, 1800])
def test_retry_after_is_right_though_the_clock_went_back(empty_server, back):
    live_server = empty_server
    live_server.create_board(window="{questions: 1, hours: 1}")
    token = live_server.join("Alpha")[1]
    assert live_server.submit(token, make_predictions(3)).status_code == 201
    live_server.clock.now -= back
    wait = int(live_server.submit(token, make_predictions(2)).headers["retry-after"])
    assert wait == 3600 + back
    live_server.clock.now += wait - 1
    assert live_server.submit(token, make_predictions(2)).headers["retry-after"] == "1"
    live_server.clock.now += 1
    assert live_server.submit(token, make_predictions(2)).status_code == 201


def test_the_time_of_receipt_decides(empty_server):
    live_server = empty_server
    live_server.create_board(end="2027-01-15T08:00:10Z")  # ten seconds after the clock
    token = live_server.join("Alpha")[1]
    live_server.clock.now += 9
    assert live_server.submit(token, make_predictions(1), Idempotency_Key="a").status_code == 201
    live_server.clock.now += 1
    told = problem(live_server.submit(token, make_predictions(0)), 409, "not_open")
    assert "2027-01-15T08:00:10Z" in told["detail"]
    assert (
        live_server.submit(token, make_predictions(1), Idempotency_Key="a").status_code == 200
    )  # in time
    problem(
        live_server.submit(token, make_predictions(1)), 409, "not_open"
    )  # without a key it is not even read


def test_a_full_board_says_so(empty_server):
    live_server = empty_server
    live_server.create_board(files="{quota: 600, team_quota: 1 MB}")
    token = live_server.join("Alpha")[1]
    assert live_server.submit(token, make_predictions(2)).status_code == 201
    problem(live_server.submit(token, make_predictions(1)), 507, "no_room")


def test_evaluators_submit_for_any_team_and_teams_for_themselves(live_server, team):
    other = live_server.join("Beta")
    evaluator = live_server.issue_token("evaluator")
    said = live_server.submit(evaluator, make_predictions(5), query=f"?team={team[0]}")
    assert (said.status_code, said.json()["team"]["id"]) == (201, team[0])
    problem(live_server.submit(evaluator, make_predictions(4)), 422, "invalid_setting")
    problem(
        live_server.submit(evaluator, make_predictions(4), query="?team=0123456789abcdef"),
        404,
        "not_found",
    )
    problem(
        live_server.submit(team[1], make_predictions(4), query=f"?team={other[0]}"),
        422,
        "invalid_setting",
    )
    problem(live_server.submit(None, make_predictions(4)), 401, "no_token")
    path = f"/boards/first/submissions/{said.json()['id']}"
    problem(live_server.call("GET", path, other[1]), 404, "not_found")
    assert live_server.call("GET", path, evaluator).status_code == 200
    listed = live_server.call("GET", f"/boards/first/submissions?team={team[0]}", evaluator).json()
    assert [each["id"] for each in listed["submissions"]] == [said.json()["id"]]
    problem(
        live_server.call("GET", f"/boards/first/submissions?team={team[0]}", other[1]),
        404,
        "not_found",
    )


def test_pages_of_submissions(live_server, team):
    for wrong in range(5):
        live_server.submit(team[1], make_predictions(50 - wrong))
    path = "/boards/first/submissions?limit=2"
    first = live_server.call("GET", path, team[1]).json()
    second = live_server.call("GET", f"{path}&before={first['next']}", team[1]).json()
    third = live_server.call("GET", f"{path}&before={second['next']}", team[1]).json()
    numbers = [each["number"] for page in (first, second, third) for each in page["submissions"]]
    assert numbers == [5, 4, 3, 2, 1]
    assert third["next"] is None


@pytest.mark.parametrize("text", ["a\u202eb", "nul\0", "x" * 501])
def test_messages_that_cannot_be_seen_are_refused(live_server, team, text):
    path = "/boards/first/submissions"
    files = {"file": ("p.csv", make_predictions(10))}
    said = live_server.call("POST", path, team[1], files=files, data={"message": text})
    problem(said, 422, "invalid_setting")
    assert live_server.call("GET", path, team[1]).json()["submissions"] == []


def test_numbers_are_json_and_text_is_ascii_on_the_wire(live_server):
    token = live_server.join("Ünïcode \U0001f680")[1]
    said = live_server.submit(token, make_predictions(3))
    assert said.content.isascii()
    assert json.loads(said.content, parse_constant=pytest.fail)["team"]["name"].startswith("Ünï")
