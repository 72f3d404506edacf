"""Submissions over HTTP: every way in, and every refusal."""

import gzip
import json

import pytest

from ladderboard.server import Rate


@pytest.fixture
def team(hall):
    return hall.join("Alpha")


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


def test_a_submission_is_answered_at_once_and_can_be_looked_up(hall, team, predict):
    said = hall.submit(team[1], predict(30), query="?message=first%20try")
    assert said.status_code == 201
    told = said.json()
    assert (told["released"], told["improved"], told["again"]) == (0.1, True, False)
    assert (told["remaining"], told["limit"], told["team"]["id"]) == (24, "team", team[0])
    found = hall.call("GET", said.headers["location"], team[1]).json()
    assert (found["id"], found["released"], found["message"]) == (told["id"], 0.1, "first try")
    assert found.pop("receipt") == told["receipt"]
    listed = hall.call("GET", "/boards/first/submissions", team[1]).json()
    assert listed == {"submissions": [found], "next": None}
    assert said.headers["cache-control"] == "private, no-store"


def test_the_same_again_costs_nothing_and_says_the_same(hall, team, predict):
    first = hall.submit(team[1], predict(30), Idempotency_Key="a").json()
    for headers in ({"Idempotency_Key": "a"}, {"Idempotency_Key": "b"}, {}):
        said = hall.submit(team[1], predict(30), **headers)
        assert said.status_code == 200
        assert said.json()["again"] is True
        assert {k: said.json()[k] for k in SAME} == {k: first[k] for k in SAME}
    problem(hall.submit(team[1], predict(31), Idempotency_Key="a"), 422, "key_reused")


@pytest.mark.parametrize("key", ["x" * 256, "", b"\xe9"])
def test_a_key_to_retry_with_is_plain_and_short(hall, team, predict, key):
    told = problem(hall.submit(team[1], predict(1), Idempotency_Key=key), 422, "invalid")
    assert told["errors"][0]["column"] == "header.Idempotency-Key"


def test_forms_packed_bodies_and_messages(hall, team, predict):
    packed = hall.submit(team[1], gzip.compress(predict(20)), Content_Encoding="gzip")
    assert packed.json()["improved"]
    path = "/boards/first/submissions"
    files = {"file": ("predictions.csv", predict(10))}
    form = hall.call("POST", path, team[1], files=files, data={"message": "by form"})
    assert form.status_code == 201
    newest = hall.call("GET", path, team[1]).json()["submissions"][0]
    assert newest["message"] == "by form"
    said = hall.call("POST", path, team[1], files=files, data={"massage": "typo"})
    problem(said, 400, "form")


def test_an_invalid_file_is_itemised_and_free(hall, team, predict):
    body = b"\n".join(predict(1).splitlines()[:-3]) + b"\n"
    told = problem(hall.submit(team[1], body), 422, "invalid_predictions")
    assert told["errors"][0]["count"] == 3
    assert told["errors"][0]["ids"] == ["397", "398", "399"]
    assert hall.call("GET", "/boards/first/team", team[1]).json()["submissions"] == 0


def test_invalid_files_are_limited_by_team(make_hall, predict):
    hall = make_hall(invalid=Rate(2, 60.0))
    hall.board()
    one, other = hall.join("One")[1], hall.join("Other")[1]
    for _ in range(2):
        problem(hall.submit(one, b"nothing"), 422, "invalid_predictions")
    said = hall.submit(one, predict(1))
    problem(said, 429, "rate")
    assert 1 <= int(said.headers["retry-after"]) <= 60
    assert hall.submit(other, predict(1)).status_code == 201


def test_invalid_files_of_one_team_stop_an_evaluator_for_that_team_only(make_hall, predict):
    hall = make_hall(invalid=Rate(2, 60.0))
    hall.board()
    evil, good = hall.join("Evil")[0], hall.join("Good")[0]
    evaluator = hall.trusted("evaluator")
    for _ in range(2):
        sent = hall.submit(evaluator, b"nothing", query=f"?team={evil}")
        problem(sent, 422, "invalid_predictions")
    problem(hall.submit(evaluator, predict(1), query=f"?team={evil}"), 429, "rate")
    assert hall.submit(evaluator, predict(1), query=f"?team={good}").status_code == 201


def test_types_and_sizes_that_are_not_taken(empty_hall, predict):
    hall = empty_hall
    hall.board(files="{bytes: 10000}")
    token = hall.join("Alpha")[1]
    path = "/boards/first/submissions"
    html = {"Content-Type": "text/html"}
    problem(hall.call("POST", path, token, content=b"x", headers=html), 415, "content_type")
    problem(hall.submit(token, b"x", Content_Encoding="br"), 415, "content_type")
    problem(hall.submit(token, b"x" * 200_000), 413, "too_large")
    problem(hall.submit(token, gzip.compress(b"x" * 200_000)), 413, "too_large")
    problem(hall.submit(token, predict(1), Accept="image/png"), 406, "not_acceptable")
    problem(hall.submit(token, predict(1), query="?tema=1"), 422, "invalid")


def test_limits_over_time_and_budgets(empty_hall, predict):
    hall = empty_hall
    hall.board(window="{questions: 2, hours: 1}", per_team=3, questions=12)
    token = hall.join("Alpha")[1]
    for wrong in (3, 2):
        assert hall.submit(token, predict(wrong)).status_code == 201
    said = hall.submit(token, predict(1))
    problem(said, 429, "too_soon")
    assert said.headers["retry-after"] == "3600"
    hall.clock.now += 3600
    last = hall.submit(token, predict(1))
    assert last.status_code == 201
    assert last.json()["remaining"] == 0
    assert last.json()["next_submission_at"] is None
    problem(hall.submit(token, predict(0)), 409, "budget_spent")


@pytest.mark.parametrize("back", [0, 1800])
def test_retry_after_is_right_though_the_clock_went_back(empty_hall, predict, back):
    hall = empty_hall
    hall.board(window="{questions: 1, hours: 1}")
    token = hall.join("Alpha")[1]
    assert hall.submit(token, predict(3)).status_code == 201
    hall.clock.now -= back
    wait = int(hall.submit(token, predict(2)).headers["retry-after"])
    assert wait == 3600 + back
    hall.clock.now += wait - 1
    assert hall.submit(token, predict(2)).headers["retry-after"] == "1"
    hall.clock.now += 1
    assert hall.submit(token, predict(2)).status_code == 201


def test_the_time_of_receipt_decides(empty_hall, predict):
    hall = empty_hall
    hall.board(end="2027-01-15T08:00:10Z")  # ten seconds after the clock
    token = hall.join("Alpha")[1]
    hall.clock.now += 9
    assert hall.submit(token, predict(1), Idempotency_Key="a").status_code == 201
    hall.clock.now += 1
    told = problem(hall.submit(token, predict(0)), 409, "not_open")
    assert "2027-01-15T08:00:10Z" in told["detail"]
    assert hall.submit(token, predict(1), Idempotency_Key="a").status_code == 200  # in time
    problem(hall.submit(token, predict(1)), 409, "not_open")  # without a key it is not even read


def test_a_full_board_says_so(empty_hall, predict):
    hall = empty_hall
    hall.board(files="{quota: 600, team_quota: 1 MB}")
    token = hall.join("Alpha")[1]
    assert hall.submit(token, predict(2)).status_code == 201
    problem(hall.submit(token, predict(1)), 507, "no_room")


def test_evaluators_submit_for_any_team_and_teams_for_themselves(hall, team, predict):
    other = hall.join("Beta")
    evaluator = hall.trusted("evaluator")
    said = hall.submit(evaluator, predict(5), query=f"?team={team[0]}")
    assert (said.status_code, said.json()["team"]["id"]) == (201, team[0])
    problem(hall.submit(evaluator, predict(4)), 422, "invalid_setting")
    problem(hall.submit(evaluator, predict(4), query="?team=0123456789abcdef"), 404, "not_found")
    problem(hall.submit(team[1], predict(4), query=f"?team={other[0]}"), 422, "invalid_setting")
    problem(hall.submit(None, predict(4)), 401, "no_token")
    path = f"/boards/first/submissions/{said.json()['id']}"
    problem(hall.call("GET", path, other[1]), 404, "not_found")
    assert hall.call("GET", path, evaluator).status_code == 200
    listed = hall.call("GET", f"/boards/first/submissions?team={team[0]}", evaluator).json()
    assert [each["id"] for each in listed["submissions"]] == [said.json()["id"]]
    problem(
        hall.call("GET", f"/boards/first/submissions?team={team[0]}", other[1]), 404, "not_found"
    )


def test_pages_of_submissions(hall, team, predict):
    for wrong in range(5):
        hall.submit(team[1], predict(50 - wrong))
    path = "/boards/first/submissions?limit=2"
    first = hall.call("GET", path, team[1]).json()
    second = hall.call("GET", f"{path}&before={first['next']}", team[1]).json()
    third = hall.call("GET", f"{path}&before={second['next']}", team[1]).json()
    numbers = [each["number"] for page in (first, second, third) for each in page["submissions"]]
    assert numbers == [5, 4, 3, 2, 1]
    assert third["next"] is None


@pytest.mark.parametrize("text", ["a\u202eb", "nul\0", "x" * 501])
def test_messages_that_cannot_be_seen_are_refused(hall, team, predict, text):
    path = "/boards/first/submissions"
    files = {"file": ("p.csv", predict(10))}
    said = hall.call("POST", path, team[1], files=files, data={"message": text})
    problem(said, 422, "invalid_setting")
    assert hall.call("GET", path, team[1]).json()["submissions"] == []


def test_numbers_are_json_and_text_is_ascii_on_the_wire(hall, predict):
    token = hall.join("Ünïcode \U0001f680")[1]
    said = hall.submit(token, predict(3))
    assert said.content.isascii()
    assert json.loads(said.content, parse_constant=pytest.fail)["team"]["name"].startswith("Ünï")
