"""Pages do not leak what is hidden, and do not make false statements."""

import os
import re

import pytest

from ladderboard.board import Boards, DatabaseStore
from ladderboard.server._pages import _board
from support.server.live_server import csrf_token, make_predictions


def strip_tags(text):
    return re.sub(r"\s+", " ", re.sub("<[^>]*>", "", text))


def page_text(live_server, path="", token=None):
    """Return the text of a page, as the public or the holder of a token sees it."""
    live_server.client.cookies.clear()
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    return strip_tags(
        live_server.client.get(f"/boards/{live_server.slug}{path}", headers=headers).text
    )


@pytest.mark.parametrize("visibility", ["public", "hidden", "frozen"])
def test_caching_does_not_reveal_activity_on_restricted_boards(
    live_server, monkeypatch, visibility
):
    """A cached page is faster, so on restricted boards caching must not depend on activity."""
    _, token = live_server.join("Ada")
    live_server.submit(token, make_predictions(90))
    live_server.amend(visibility=visibility)
    renderings, read_tab = [], _board.tab_variables

    def count(*arguments):
        renderings.append(1)
        return read_tab(*arguments)

    monkeypatch.setattr(_board, "tab_variables", count)
    tabs = ("", "/leaderboard", "/rules", "/verify")

    def count_renderings():
        before = len(renderings)
        for tab in tabs:
            page_text(live_server, tab)
        return len(renderings) - before

    count_renderings()
    without_change = count_renderings()
    live_server.submit(token, make_predictions(60))
    after_submission = count_renderings()
    live_server.join("Bob")
    after_join = count_renderings()
    if visibility == "public":
        assert (without_change, after_submission, after_join) == (0, len(tabs), len(tabs))
    else:
        assert without_change == after_submission == after_join


@pytest.mark.parametrize("ladder", ["team", "board"])
def test_the_bound_covers_models_of_disqualified_teams(empty_server, ladder):
    live_server = empty_server
    live_server.create_board(ladder=ladder, questions=20, mechanism="{name: ladder, step: 0.1}")
    cheater_id, cheater = live_server.join("Ada")
    _, token = live_server.join("Bob")
    for sender, wrong in ((token, 90), (cheater, 3), (token, 60)):
        live_server.submit(sender, make_predictions(wrong))
    before = live_server.call("GET", "/boards/first").json()
    organiser = live_server.boards.caller_by_token(live_server.organiser, live_server.slug)
    live_server.boards.open(live_server.slug).teams.disqualify(organiser, cheater_id)
    after = live_server.call("GET", "/boards/first").json()
    top = live_server.call("GET", "/boards/first/leaderboard").json()["rows"][0]
    assert after["best"]["released"] == top["released"] > before["best"]["released"]
    assert after["bound"] == before["bound"]
    page = page_text(live_server, "/rules")
    match = re.search(
        r"best model submitted so far lies between ([\d.]+) and ([\d.]+)[.] (.{44})", page
    )
    assert float(match[1]) <= 3 / 300 <= float(match[2])
    assert match[3].startswith("That model belongs to a disqualified team")


def test_a_board_without_visible_records_says_so(live_server):
    cheater_id, cheater = live_server.join("Ada")
    _, token = live_server.join("Bob")
    for sender, wrong in ((cheater, 3), (token, 60)):
        live_server.submit(sender, make_predictions(wrong))
    organiser = live_server.boards.caller_by_token(live_server.organiser, live_server.slug)
    live_server.boards.open(live_server.slug).teams.disqualify(organiser, cheater_id)
    page = page_text(live_server)
    assert "The best scores belong to teams that are not shown here" in page
    assert "No scores yet" not in page


def test_a_team_with_pooled_questions_left_is_not_told_that_none_are_left(empty_server):
    live_server = empty_server
    live_server.create_board(questions=21, per_team=20, visibility="hidden")
    _, token = live_server.join("Ada")
    for wrong in range(5):
        live_server.submit(token, make_predictions(90 - wrong))
    page = page_text(live_server, token=token)
    assert "o submissions left" not in page
    assert (
        "5 submissions. Your reserved submissions are used up; you may still submit while" in page
    )
    assert live_server.submit(token, make_predictions(20)).status_code == 201  # from the pool


def test_questions_left_now_differ_from_questions_per_window(empty_server):
    live_server = empty_server
    live_server.create_board(questions=200, window="{questions: 8, hours: 24}")
    _, token = live_server.join("Ada")
    for wrong in range(3):
        live_server.submit(token, make_predictions(90 - wrong))
    live_server.clock.now += 23 * 3600
    for path in ("", "/submit"):
        page = page_text(live_server, path, token)
        assert "47 submissions left, 5 available now (at most 8 in any 24 hours)." in page
    live_server.clock.now += 3601  # the first three have left the window
    statuses = [
        live_server.submit(token, make_predictions(80 - wrong)).status_code for wrong in range(9)
    ]
    assert statuses == [201] * 8 + [429]


def test_confidence_is_never_shown_as_100_percent(empty_server):
    live_server = empty_server
    live_server.create_board(beta=1e-9)
    _, token = live_server.join("Ada")
    live_server.submit(token, make_predictions(10, 0))
    live_server.boards.open(live_server.slug).closer.close(
        live_server.boards.caller_by_token(live_server.organiser, live_server.slug)
    )
    page = page_text(live_server, "/leaderboard")
    assert "With confidence 99.9999%, the interval contains the true" in page
    assert "100%" not in page


@pytest.mark.parametrize("mechanism", ["exact", "{name: ladder, step: 0.01}"])
def test_the_hint_about_unseen_gains_depends_on_the_mechanism(empty_server, mechanism):
    live_server = empty_server
    live_server.create_board(mechanism=mechanism)
    _, token = live_server.join("Ada")
    live_server.submit(token, make_predictions(10))
    path = f"/boards/{live_server.slug}/submit"
    with live_server.browser() as browser:
        live_server.sign_in(browser, token)
        csrf = csrf_token(browser.get(path).text)
        response = browser.post(
            f"{path}?csrf={csrf}", files={"file": ("a.csv", make_predictions(20))}
        )
    page = strip_tags(response.text)
    assert "our best: zero-one loss 0.03" in page
    assert ("may not be detected" in page) == (mechanism != "exact")
    assert "asking again and again gains little" not in page


def test_the_page_explains_an_expired_token(live_server):
    _, token = live_server.join("Ada")
    with live_server.browser() as browser:
        live_server.sign_in(browser, token)
        live_server.call("POST", "/boards/first/team/token", token)
        page = strip_tags(browser.get(f"/boards/{live_server.slug}/submit").text)
    assert "your token is for another board or no longer valid" in page


def test_amendments_of_another_process_are_shown(live_server):
    _, token = live_server.join("Ada")
    live_server.submit(token, make_predictions(60))
    assert "Ada you0.2" in page_text(live_server, "/leaderboard", token)
    storage = live_server.boards.storage
    other = Boards(storage, DatabaseStore(storage), environment=live_server.boards.environment)
    organiser = other.caller_by_token(live_server.organiser, live_server.slug)
    other.open(live_server.slug).amendments.amend(organiser, {"display": {"digits": 0}})
    assert "Ada you00" in page_text(live_server, "/leaderboard", token)  # its entries follow


def test_stale_dumps_are_removed_at_startup(make_server, tmp_path):
    spool = tmp_path / "spool"
    old, new = spool / "dump-old", spool / "dump-new"
    for path in (old, new):
        path.mkdir(parents=True)
        path.joinpath("dump").write_bytes(b"x")
    for path in (old / "dump", old):
        os.utime(path, (1, 1))
    make_server(spool=spool)
    assert not old.exists()
    assert new.exists()  # it may be in use


def test_a_link_cannot_show_a_false_message(live_server):
    token = live_server.organiser
    assert "closed for good" not in page_text(live_server, "/organise?done=closed", token)
    assert "with names." in page_text(live_server, "/organise?done=public", token)
