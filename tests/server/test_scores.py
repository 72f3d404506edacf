"""A board that takes scores, over HTTP: who may submit them, and what the pages show."""

import re
import socket
from html import unescape

import pytest

import ladderboard as lb

INLINE = "time|code|strong|a"


def text_of(page):
    text = re.sub(rf"</?({INLINE})( [^>]*)?>", "", page)
    return " ".join(unescape(re.sub("<[^>]+>", " ", text)).split())


def scores(bad, value="0"):
    rows = "".join(f"{index},{value if index < bad else 1}\n" for index in range(400))
    return f"id,score\n{rows}".encode()


@pytest.fixture
def score_server(empty_server):
    empty_server.create_board(loss="score")
    return empty_server


def test_only_evaluators_and_organisers_submit_scores(score_server):
    team, token = score_server.join("Alpha")
    for_team = f"?team={team}"
    evaluator = score_server.issue_token("evaluator")
    response = score_server.submit(token, scores(0))
    assert (response.status_code, response.json()["code"]) == (403, "not_allowed")
    assert "This board takes scores" in response.json()["detail"]
    assert score_server.submit(token, scores(0), query=for_team).status_code == 403
    assert score_server.submit(token, scores(0), Idempotency_Key="a").status_code == 403
    assert score_server.submit(None, scores(0)).status_code == 401
    response_for_evaluator = score_server.submit(evaluator, scores(60), query=for_team)
    assert (response_for_evaluator.status_code, response_for_evaluator.json()["loss"]) == (201, 0.2)
    assert (
        score_server.submit(score_server.organiser, scores(30), query=for_team).status_code == 201
    )
    # A duplicate of the evaluator's file is refused to the team, too.
    assert score_server.submit(token, scores(30)).status_code == 403
    assert score_server.call("GET", "/boards/first/team", token).json()["submissions"] == 2
    assert (
        len(score_server.call("GET", "/boards/first/submissions", token).json()["submissions"]) == 2
    )
    body = score_server.call("GET", "/boards/first").json()
    assert (body["takes"], body["best"]["display"]) == ("scores", pytest.approx(0.9))


def replies_visible_to_team(score_server, slug, bad, value):
    """Submit two files of scores for a team; return what it can see, without names and ids."""
    score_server.create_board(slug, loss="score", mechanism="{name: ladder, step: 0.05}")
    team, token = score_server.join("Alpha", slug)
    evaluator = score_server.issue_token("evaluator", slug)
    for bad_rows in (60, bad):
        query = f"?team={team}&message={bad_rows}"
        response = score_server.submit(evaluator, scores(bad_rows, value), slug=slug, query=query)
        assert (response.status_code, response.json()["loss"]) == (201, 0.2)
    path = f"/boards/{slug}"
    full = score_server.call("GET", f"{path}/submissions?team={team}", evaluator).json()[
        "submissions"
    ]
    assert [submission["message"] for submission in full] == [str(bad), "60"]
    assert all(submission["size"] for submission in full)
    submission_paths = [f"{path}/submissions/{submission['id']}" for submission in full]
    replies = [
        score_server.call("GET", path_, token)
        for path_ in (path + "/submissions", path + "/team", *submission_paths)
    ]
    assert {submission["size"] for submission in replies[0].json()["submissions"]} == {None}
    with score_server.browser() as browser:
        score_server.sign_in(browser, token)
        replies.append(browser.get(f"/boards/{slug}/submit"))
    names = "|".join(
        [slug, team, 'name="csrf" value="[^"]+"', *(submission["id"] for submission in full)]
    )
    return [re.sub(names, "", reply.text) for reply in replies]


def test_a_team_learns_only_what_is_released_of_its_scores(empty_server):
    """Two worlds with the same releases, whose files of scores differ in length."""
    slug = empty_server.slug
    first_world = replies_visible_to_team(empty_server, f"{slug}-one", 70, "0")
    assert first_world == replies_visible_to_team(empty_server, f"{slug}-two", 61, "0.0000")


@pytest.mark.parametrize(("state", "trusted"), [("open", 201), ("paused", 409), ("closed", 409)])
def test_submitting_scores_by_role_and_state(score_server, state, trusted):
    team, token = score_server.join("Alpha")
    _, ended = score_server.join("Ended")
    score_server.call("POST", "/boards/first/team/token", ended)
    score_server.create_board(f"{score_server.slug}-elsewhere")
    _, foreign = score_server.join("Stranger", f"{score_server.slug}-elsewhere")
    tokens = [
        None,
        token,
        score_server.issue_token("evaluator"),
        score_server.organiser,
        ended,
        foreign,
    ]
    if state != "open":
        action = "pause" if state == "paused" else "close"
        assert (
            score_server.call("POST", f"/boards/first/{action}", score_server.organiser).status_code
            == 200
        )
    statuses = [
        score_server.submit(role_token, scores(10 * index), query=f"?team={team}").status_code
        for index, role_token in enumerate(tokens)
    ]
    assert statuses == [401, 403, trusted, trusted, 401, 401]


@pytest.mark.parametrize("value", ["1.5", "-1", "nan", "2"])
def test_invalid_scores_are_refused_with_their_ids(score_server, value):
    team, _ = score_server.join("Alpha")
    response = score_server.submit(score_server.organiser, scores(3, value), query=f"?team={team}")
    assert (response.status_code, response.json()["code"]) == (422, "invalid_predictions")
    (error,) = response.json()["errors"]
    assert (error["count"], error["ids"]) == (3, ["0", "1", "2"])


def test_a_team_is_refused_before_its_body_is_read(score_server):
    _, token = score_server.join("Alpha")
    head = (
        f"POST /api/v1/boards/{score_server.slug}/submissions HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        f"Authorization: Bearer {token}\r\nContent-Type: text/csv\r\n"
        "Content-Length: 1000000\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", score_server.port), timeout=60) as connection:
        connection.sendall(head.encode())  # the body is never sent
        assert connection.recv(100).startswith(b"HTTP/1.1 403 ")


def test_a_team_cannot_submit_on_the_page_either(score_server):
    _, token = score_server.join("Alpha")
    path = f"/boards/{score_server.slug}/submit"
    with score_server.browser() as browser:
        score_server.sign_in(browser, token)
        page = browser.get(path).text
        assert 'type="file"' not in page
        assert "from its evaluators only; teams cannot submit" in text_of(page)
        assert "score: from 0 to 1 (best)." in text_of(page)
        csrf = re.search(r'name="csrf" value="([^"]+)"', page).group(1)
        response = browser.post(path, params={"csrf": csrf}, files={"file": ("s.csv", scores(0))})
        assert response.status_code == 403
        assert "from its evaluators only; teams cannot submit" in text_of(response.text)
    assert score_server.call("GET", "/boards/first/team", token).json()["submissions"] == 0


def test_pages_say_who_submits_scores(score_server):
    team, _ = score_server.join("Alpha")
    score_server.submit(score_server.organiser, scores(60), query=f"?team={team}")
    with score_server.browser() as browser:
        path = f"/boards/{score_server.slug}"
        tabs = ("", "/submit", "/rules", "/leaderboard", "/data")
        page = " ".join(text_of(browser.get(path + tab).text) for tab in tabs)
        assert "Evaluators give a score from 0 to 1, the best, to each of 300 hidden" in page
        assert "teams cannot submit" in page
        assert "--data-binary @scores.csv" in page
        assert "the evaluators' scores are right" in page
        assert "predictions" not in page
        assert "evaluators submit them" in text_of(browser.get(f"{path}/join").text)
        csrf = re.search(r'name="csrf" value="([^"]+)"', browser.get(f"{path}/join").text).group(1)
        joined = browser.post(f"{path}/join", data={"csrf": csrf, "name": "Beta"})
        assert joined.status_code == 201
        assert "You cannot submit with it" in text_of(joined.text)
        assert "curl" not in joined.text


def test_pages_tell_organisers_and_evaluators_how_to_submit(score_server):
    team, _ = score_server.join("Alpha")
    path = f"/boards/{score_server.slug}"
    with score_server.browser() as browser:
        score_server.sign_in(browser, score_server.organiser)
        page_text = text_of(browser.get(f"{path}/submit").text)
        assert "an evaluator or organiser submits scores for a team" in page_text
        page = browser.get(f"{path}/organise/settings")
        assert page.status_code == 200
        assert "--labels" not in page.text
        assert browser.get(f"{path}/organise/teams/{team}").status_code == 200


def test_a_guard_of_scores_is_served(tmp_path, serve_guard):
    """As it is when the model's developers must not write to the guard's file."""
    guard = lb.Holdout.create(
        tmp_path / "guard.db",
        ids=range(400),
        loss="score",
        questions=10,
        mechanism=lb.Ladder(step=0.02),
    )
    remote = lb.Holdout.connect(serve_guard(guard).url)
    assert remote.ask(scores(80)).released == 0.2
    with pytest.raises(lb.errors.InvalidPredictions, match=r"Scores must lie in \[0, 1\]"):
        remote.ask(scores(3, "1.5"))
    assert remote.remaining == 9
