"""A board that takes scores, over HTTP: who may hand them in, and what the pages say."""

import re
import socket
from html import unescape

import pytest

import ladderboard as lb
from support.server.live_server import make_predictions

INLINE = "time|code|strong|a"


def words(page):
    text = re.sub(rf"</?({INLINE})( [^>]*)?>", "", page)
    return " ".join(unescape(re.sub("<[^>]+>", " ", text)).split())


def scores(bad, value="0"):
    rows = "".join(f"{at},{value if at < bad else 1}\n" for at in range(400))
    return f"id,score\n{rows}".encode()


@pytest.fixture
def board(empty_server):
    empty_server.create_board(loss="score")
    return empty_server


def test_who_may_hand_them_in(board):
    team, token = board.join("Alpha")
    for_team = f"?team={team}"
    evaluator = board.issue_token("evaluator")
    said = board.submit(token, scores(0))
    assert (said.status_code, said.json()["code"]) == (403, "not_allowed")
    assert "This board takes scores" in said.json()["detail"]
    assert board.submit(token, scores(0), query=for_team).status_code == 403
    assert board.submit(token, scores(0), Idempotency_Key="a").status_code == 403
    assert board.submit(None, scores(0)).status_code == 401
    told = board.submit(evaluator, scores(60), query=for_team)
    assert (told.status_code, told.json()["loss"]) == (201, 0.2)
    assert board.submit(board.organiser, scores(30), query=for_team).status_code == 201
    # Neither the same file nor the evaluator's key gets an answer for the team.
    assert board.submit(token, scores(30)).status_code == 403
    assert board.call("GET", "/boards/first/team", token).json()["submissions"] == 2
    assert len(board.call("GET", "/boards/first/submissions", token).json()["submissions"]) == 2
    shown = board.call("GET", "/boards/first").json()
    assert (shown["takes"], shown["best"]["display"]) == ("scores", pytest.approx(0.9))


def all_that_a_team_sees(board, slug, bad, value):
    """Have a team's models scored twice; return what it can look at, without names and ids."""
    board.create_board(slug, loss="score", mechanism="{name: ladder, step: 0.05}")
    team, token = board.join("Alpha", slug)
    evaluator = board.issue_token("evaluator", slug)
    for each in (60, bad):
        query = f"?team={team}&message={each}"
        sent = board.submit(evaluator, scores(each, value), slug=slug, query=query)
        assert (sent.status_code, sent.json()["loss"]) == (201, 0.2)
    path = f"/boards/{slug}"
    full = board.call("GET", f"{path}/submissions?team={team}", evaluator).json()["submissions"]
    assert [each["message"] for each in full] == [str(bad), "60"]
    assert all(each["size"] for each in full)
    own = [f"{path}/submissions/{each['id']}" for each in full]
    seen = [
        board.call("GET", each, token) for each in (path + "/submissions", path + "/team", *own)
    ]
    assert {each["size"] for each in seen[0].json()["submissions"]} == {None}
    with board.browser() as browser:
        board.sign_in(browser, token)
        seen.append(browser.get(f"/boards/{slug}/submit"))
    names = "|".join([slug, team, 'name="csrf" value="[^"]+"', *(each["id"] for each in full)])
    return [re.sub(names, "", each.text) for each in seen]


def test_a_team_learns_of_its_scores_what_is_released_and_nothing_else(empty_server):
    """Two worlds with the same releases, in which files of scores differ in length."""
    slug = empty_server.slug
    first = all_that_a_team_sees(empty_server, f"{slug}-one", 70, "0")
    assert first == all_that_a_team_sees(empty_server, f"{slug}-two", 61, "0.0000")


@pytest.mark.parametrize(("state", "trusted"), [("open", 201), ("paused", 409), ("closed", 409)])
def test_every_role_in_every_state(board, state, trusted):
    team, token = board.join("Alpha")
    _, ended = board.join("Ended")
    board.call("POST", "/boards/first/team/token", ended)
    board.create_board(f"{board.slug}-elsewhere")
    _, foreign = board.join("Stranger", f"{board.slug}-elsewhere")
    tokens = [None, token, board.issue_token("evaluator"), board.organiser, ended, foreign]
    if state != "open":
        what = "pause" if state == "paused" else "close"
        assert board.call("POST", f"/boards/first/{what}", board.organiser).status_code == 200
    said = [
        board.submit(each, scores(10 * at), query=f"?team={team}").status_code
        for at, each in enumerate(tokens)
    ]
    assert said == [401, 403, trusted, trusted, 401, 401]


@pytest.mark.parametrize("value", ["1.5", "-1", "nan", "2"])
def test_what_is_no_score_is_refused_by_its_id(board, value):
    team, _ = board.join("Alpha")
    said = board.submit(board.organiser, scores(3, value), query=f"?team={team}")
    assert (said.status_code, said.json()["code"]) == (422, "invalid_predictions")
    (found,) = said.json()["errors"]
    assert (found["count"], found["ids"]) == (3, ["0", "1", "2"])


def test_a_team_is_refused_before_its_body_is_read(board):
    _, token = board.join("Alpha")
    head = (
        f"POST /api/v1/boards/{board.slug}/submissions HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        f"Authorization: Bearer {token}\r\nContent-Type: text/csv\r\n"
        "Content-Length: 1000000\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", board.port), timeout=60) as line:
        line.sendall(head.encode())  # and nothing of the body, ever
        assert line.recv(100).startswith(b"HTTP/1.1 403 ")


def test_a_team_cannot_submit_on_the_page_either(board):
    _, token = board.join("Alpha")
    path = f"/boards/{board.slug}/submit"
    with board.browser() as browser:
        board.sign_in(browser, token)
        page = browser.get(path).text
        assert 'type="file"' not in page
        assert "only its evaluators hand them in, for your team too" in words(page)
        assert "score: from 0 to 1, which is the best." in words(page)
        word = re.search(r'name="csrf" value="([^"]+)"', page).group(1)
        said = browser.post(path, params={"csrf": word}, files={"file": ("s.csv", scores(0))})
        assert said.status_code == 403
        assert "from its evaluators only; teams cannot submit" in words(said.text)
    assert board.call("GET", "/boards/first/team", token).json()["submissions"] == 0


def test_pages_say_who_hands_in_what(board):
    team, _ = board.join("Alpha")
    board.submit(board.organiser, scores(60), query=f"?team={team}")
    with board.browser() as browser:
        path = f"/boards/{board.slug}"
        page = words(browser.get(path).text)
        assert "Evaluators give a score from 0 to 1, the best, to each of 300 hidden" in page
        assert "a team itself cannot submit" in page
        assert "--data-binary @scores.csv" in page
        assert "if the evaluators' scores are right" in page
        assert "predictions" not in page
        assert "scores are handed in by evaluators" in words(browser.get(f"{path}/join").text)
        word = re.search(r'name="csrf" value="([^"]+)"', browser.get(f"{path}/join").text).group(1)
        joined = browser.post(f"{path}/join", data={"csrf": word, "name": "Beta"})
        assert joined.status_code == 201
        assert "There is nothing to submit with it" in words(joined.text)
        assert "curl" not in joined.text


def test_the_organiser_and_an_evaluator_are_told_how(board):
    team, _ = board.join("Alpha")
    path = f"/boards/{board.slug}"
    with board.browser() as browser:
        board.sign_in(browser, board.organiser)
        said = words(browser.get(f"{path}/submit").text)
        assert "an evaluator or organiser hands in scores, each time in the name of a team" in said
        page = browser.get(f"{path}/organise")
        assert page.status_code == 200
        assert "--labels" not in page.text
        assert browser.get(f"{path}/organise/teams/{team}").status_code == 200
        attack = browser.get(f"{path}/attack")
        assert "whose every answer is scored, right or wrong" in words(attack.text)


def test_predictions_are_still_handed_in_by_teams(live_server):
    _, token = live_server.join("Alpha")
    assert live_server.call("GET", "/boards/first").json()["takes"] == "predictions"
    assert live_server.submit(token, make_predictions(30)).status_code == 201


def test_a_guard_of_scores_is_served(tmp_path, serve):
    """In a process of its own, as where a model's maker must not write to it."""
    guard = lb.Holdout.create(
        tmp_path / "guard.db",
        ids=range(400),
        loss="score",
        questions=10,
        mechanism=lb.Ladder(step=0.02),
    )
    remote = lb.Holdout.connect(serve(guard).url)
    assert remote.ask(scores(80)).released == 0.2
    with pytest.raises(lb.errors.InvalidPredictions, match=r"Scores must lie in \[0, 1\]"):
        remote.ask(scores(3, "1.5"))
    assert remote.remaining == 9
