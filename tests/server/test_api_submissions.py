"""Submissions over HTTP: every way to send one, and every refusal."""

import gzip
import json

import pytest

from ladderboard.board import _submissions
from ladderboard.board._submissions import SubmissionService
from ladderboard.server import Rate
from support.server.live_server import assert_problem, make_predictions

SAME = ("id", "released", "remaining", "receipt")


def test_a_submission_is_scored_at_once_and_can_be_fetched(live_server, team):
    response = live_server.submit(team[1], make_predictions(30), query="?message=first%20try")
    assert response.status_code == 201
    body = response.json()
    assert (body["released"], body["improved"], body["again"]) == (0.1, True, False)
    assert (body["remaining"], body["limit"], body["team"]["id"]) == (24, "team", team[0])
    submission = live_server.call("GET", response.headers["location"], team[1]).json()
    assert (submission["id"], submission["released"], submission["message"]) == (
        body["id"],
        0.1,
        "first try",
    )
    assert submission.pop("receipt") == body["receipt"]
    listed = live_server.call("GET", "/boards/first/submissions", team[1]).json()
    assert listed == {"submissions": [submission], "next": None}
    assert response.headers["cache-control"] == "private, no-store"


def test_a_duplicate_costs_nothing_and_gets_the_same_result(live_server, team):
    body = live_server.submit(team[1], make_predictions(30), Idempotency_Key="a").json()
    for headers in ({"Idempotency_Key": "a"}, {"Idempotency_Key": "b"}, {}):
        response = live_server.submit(team[1], make_predictions(30), **headers)
        assert response.status_code == 200
        assert response.json()["again"] is True
        assert response.json()["reason"] == (
            "Duplicate of submission 1; not counted. After submission 1 the best was zero-one loss "
            "0.1. 24 submissions left."
        )
        assert {k: response.json()[k] for k in SAME} == {k: body[k] for k in SAME}
    assert_problem(
        live_server.submit(team[1], make_predictions(31), Idempotency_Key="a"), 422, "key_reused"
    )


@pytest.mark.parametrize("key", ["x" * 256, "", b"\xe9"])
def test_an_idempotency_key_is_short_ascii(live_server, team, key):
    body = assert_problem(
        live_server.submit(team[1], make_predictions(1), Idempotency_Key=key), 422, "invalid"
    )
    assert body["errors"][0]["column"] == "header.Idempotency-Key"


def test_gzipped_bodies_forms_and_messages(live_server, team):
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
    response = live_server.call("POST", path, team[1], files=files, data={"massage": "typo"})
    assert_problem(response, 400, "form")


def test_an_invalid_file_is_itemised_and_free(live_server, team):
    body = b"\n".join(make_predictions(1).splitlines()[:-3]) + b"\n"
    refusal = assert_problem(live_server.submit(team[1], body), 422, "invalid_predictions")
    assert refusal["errors"][0]["count"] == 3
    assert refusal["errors"][0]["ids"] == ["397", "398", "399"]
    assert live_server.call("GET", "/boards/first/team", team[1]).json()["submissions"] == 0


def test_invalid_files_are_limited_by_team(make_server):
    live_server = make_server(invalid=Rate(2, 60.0))
    live_server.create_board()
    token, other_token = live_server.join("One")[1], live_server.join("Other")[1]
    for _ in range(2):
        assert_problem(live_server.submit(token, b"nothing"), 422, "invalid_predictions")
    response = live_server.submit(token, make_predictions(1))
    assert_problem(response, 429, "rate")
    assert 1 <= int(response.headers["retry-after"]) <= 60
    assert live_server.submit(other_token, make_predictions(1)).status_code == 201


def test_invalid_files_of_one_team_stop_an_evaluator_for_that_team_only(make_server):
    live_server = make_server(invalid=Rate(2, 60.0))
    live_server.create_board()
    evil, good = live_server.join("Evil")[0], live_server.join("Good")[0]
    evaluator = live_server.issue_token("evaluator")
    for _ in range(2):
        response = live_server.submit(evaluator, b"nothing", query=f"?team={evil}")
        assert_problem(response, 422, "invalid_predictions")
    assert_problem(
        live_server.submit(evaluator, make_predictions(1), query=f"?team={evil}"), 429, "rate"
    )
    assert (
        live_server.submit(evaluator, make_predictions(1), query=f"?team={good}").status_code == 201
    )


def test_wrong_types_and_sizes_are_refused(empty_server):
    live_server = empty_server
    live_server.create_board(files="{bytes: 10000}")
    token = live_server.join("Alpha")[1]
    path = "/boards/first/submissions"
    html = {"Content-Type": "text/html"}
    assert_problem(
        live_server.call("POST", path, token, content=b"x", headers=html), 415, "content_type"
    )
    assert_problem(live_server.submit(token, b"x", Content_Encoding="br"), 415, "content_type")
    assert_problem(live_server.submit(token, b"x" * 200_000), 413, "too_large")
    assert_problem(live_server.submit(token, gzip.compress(b"x" * 200_000)), 413, "too_large")
    assert_problem(
        live_server.submit(token, make_predictions(1), Accept="image/png"), 406, "not_acceptable"
    )
    assert_problem(live_server.submit(token, make_predictions(1), query="?tema=1"), 422, "invalid")


def test_limits_over_time_and_budgets(empty_server):
    live_server = empty_server
    live_server.create_board(window="{questions: 2, hours: 1}", per_team=3, questions=12)
    token = live_server.join("Alpha")[1]
    for wrong in (3, 2):
        assert live_server.submit(token, make_predictions(wrong)).status_code == 201
    response = live_server.submit(token, make_predictions(1))
    assert_problem(response, 429, "too_soon")
    assert response.headers["retry-after"] == "3600"
    live_server.clock.now += 3600
    last = live_server.submit(token, make_predictions(1))
    assert last.status_code == 201
    assert last.json()["remaining"] == 0
    assert last.json()["next_submission_at"] is None
    assert_problem(live_server.submit(token, make_predictions(0)), 409, "budget_spent")


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


def test_the_time_of_arrival_decides_about_the_end(empty_server):
    live_server = empty_server
    live_server.create_board(end="2027-01-15T08:00:10Z")  # ten seconds after the clock
    token = live_server.join("Alpha")[1]
    live_server.clock.now += 9
    assert live_server.submit(token, make_predictions(1), Idempotency_Key="a").status_code == 201
    live_server.clock.now += 1
    body = assert_problem(live_server.submit(token, make_predictions(0)), 409, "not_open")
    assert body["detail"] == "The deadline was 2027-01-15 08:00 UTC."
    assert (
        live_server.submit(token, make_predictions(1), Idempotency_Key="a").status_code == 200
    )  # in time
    assert_problem(
        live_server.submit(token, make_predictions(1)), 409, "not_open"
    )  # without a key the body is not even read


def test_a_full_board_refuses_with_507(empty_server):
    live_server = empty_server
    live_server.create_board(files="{quota: 600, team_quota: 1 MB}")
    token = live_server.join("Alpha")[1]
    assert live_server.submit(token, make_predictions(2)).status_code == 201
    assert_problem(live_server.submit(token, make_predictions(1)), 507, "no_room")


def count_authorizations(live_server, monkeypatch):
    """Return a list that grows with each upload that is authorized in the database."""
    authorized = []
    authorize = SubmissionService.authorize_upload

    def count(*arguments, **options):
        authorized.append(arguments)
        return authorize(*arguments, **options)

    monkeypatch.setattr(SubmissionService, "authorize_upload", count)
    return authorized


def test_a_team_is_authorized_once_for_submissions_one_after_another(
    live_server, team, monkeypatch
):
    monkeypatch.setattr(_submissions, "_FRESH_SECONDS", 60.0)
    authorized = count_authorizations(live_server, monkeypatch)
    for wrong in (60, 50, 40):
        assert live_server.submit(team[1], make_predictions(wrong)).status_code == 201
    assert len(authorized) == 1
    assert_problem(live_server.submit(team[1], b"id,prediction\n0,1\n"), 422, "invalid_predictions")
    assert live_server.submit(team[1], make_predictions(30)).status_code == 201
    assert len(authorized) == 2  # anew after a refusal
    assert live_server.submit(team[1], make_predictions(20), Idempotency_Key="a").status_code == 201
    assert len(authorized) == 3
    evaluator = live_server.issue_token("evaluator")
    for wrong in (19, 18):  # their tokens are not looked up in the transaction
        live_server.submit(evaluator, make_predictions(wrong), query=f"?team={team[0]}")
    assert len(authorized) == 5


@pytest.mark.parametrize("change", ["a new token", "paused", "a lower limit"])
def test_what_changed_since_a_team_was_authorized_is_refused_as_usual(
    live_server, team, monkeypatch, change
):
    monkeypatch.setattr(_submissions, "_FRESH_SECONDS", 60.0)
    token = team[1]
    assert live_server.submit(token, make_predictions(60)).status_code == 201
    if change == "a new token":
        live_server.call("POST", "/boards/first/team/token", token)
    elif change == "paused":
        live_server.call("POST", "/boards/first/pause", live_server.organiser)
    else:
        live_server.amend(window={"submissions": 1, "seconds": 3600})
    refusals = {"a new token": (401, "no_token"), "paused": (409, "not_open")}
    status, code = refusals.get(change, (429, "too_soon"))
    for wrong in (50, 40):
        assert_problem(live_server.submit(token, make_predictions(wrong)), status, code)


def test_the_last_submission_of_a_window_ends_an_authorization(make_server, monkeypatch):
    """So what follows it is not read, let alone scored."""
    monkeypatch.setattr(_submissions, "_FRESH_SECONDS", 60.0)
    live_server = make_server()
    live_server.create_board(window="{submissions: 2, seconds: 3600}")
    token = live_server.join("Alpha")[1]
    for wrong in (60, 50):
        assert live_server.submit(token, make_predictions(wrong)).status_code == 201
    scored = []
    monkeypatch.setattr(SubmissionService, "_score", lambda *arguments: scored.append(arguments))
    assert live_server.submit(token, make_predictions(40)).status_code == 429
    assert not scored


def test_evaluators_submit_for_any_team_and_teams_only_for_themselves(live_server, team):
    other_team = live_server.join("Beta")
    evaluator = live_server.issue_token("evaluator")
    response = live_server.submit(evaluator, make_predictions(5), query=f"?team={team[0]}")
    assert (response.status_code, response.json()["team"]["id"]) == (201, team[0])
    assert_problem(live_server.submit(evaluator, make_predictions(4)), 422, "invalid_setting")
    assert_problem(
        live_server.submit(evaluator, make_predictions(4), query="?team=0123456789abcdef"),
        404,
        "not_found",
    )
    assert_problem(
        live_server.submit(team[1], make_predictions(4), query=f"?team={other_team[0]}"),
        422,
        "invalid_setting",
    )
    assert_problem(live_server.submit(None, make_predictions(4)), 401, "no_token")
    path = f"/boards/first/submissions/{response.json()['id']}"
    assert_problem(live_server.call("GET", path, other_team[1]), 404, "not_found")
    assert live_server.call("GET", path, evaluator).status_code == 200
    listed = live_server.call("GET", f"/boards/first/submissions?team={team[0]}", evaluator).json()
    assert [submission["id"] for submission in listed["submissions"]] == [response.json()["id"]]
    assert_problem(
        live_server.call("GET", f"/boards/first/submissions?team={team[0]}", other_team[1]),
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
    numbers = [
        submission["number"]
        for page in (first, second, third)
        for submission in page["submissions"]
    ]
    assert numbers == [5, 4, 3, 2, 1]
    assert third["next"] is None


@pytest.mark.parametrize("text", ["a\u202eb", "nul\0", "x" * 501])
def test_unprintable_or_long_messages_are_refused(live_server, team, text):
    path = "/boards/first/submissions"
    files = {"file": ("p.csv", make_predictions(10))}
    response = live_server.call("POST", path, team[1], files=files, data={"message": text})
    assert_problem(response, 422, "invalid_setting")
    assert live_server.call("GET", path, team[1]).json()["submissions"] == []


def test_numbers_are_json_and_text_is_ascii_on_the_wire(live_server):
    token = live_server.join("Ünïcode \U0001f680")[1]
    response = live_server.submit(token, make_predictions(3))
    assert response.content.isascii()
    assert json.loads(response.content, parse_constant=pytest.fail)["team"]["name"].startswith(
        "Ünï"
    )
