"""Pages before somebody who looks for more than is meant for them, or for a word that is false."""

import os
import re

import pytest

from ladderboard.board import Boards, DatabaseStore
from ladderboard.server._pages import _board
from support.server.live_server import csrf_token, make_predictions


def words(text):
    return re.sub(r"\s+", " ", re.sub("<[^>]*>", "", text))


def look(live_server, path="", token=None):
    """Return a page in words, as the public or the bearer of a token sees it."""
    live_server.client.cookies.clear()
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    return words(live_server.client.get(f"/boards/{live_server.slug}{path}", headers=headers).text)


@pytest.mark.parametrize("visibility", ["public", "hidden", "frozen"])
def test_whether_a_page_is_made_anew_does_not_tell_what_is_veiled(
    live_server, monkeypatch, visibility
):
    """Somebody with a watch sees that a page was kept, so whether it was must depend on nothing."""
    _, token = live_server.join("Ada")
    live_server.submit(token, make_predictions(90))
    live_server.amend(visibility=visibility)
    made, real = [], _board._read_board

    def count(*asked):
        made.append(1)
        return real(*asked)

    monkeypatch.setattr(_board, "_read_board", count)

    def taken():
        before = len(made)
        look(live_server)
        return len(made) - before

    taken()
    quiet = taken()
    live_server.submit(token, make_predictions(60))
    asked = taken()
    live_server.join("Bob")
    joined = taken()
    if visibility == "public":
        assert (quiet, asked, joined) == (0, 1, 1)
    else:
        assert quiet == asked == joined


@pytest.mark.parametrize("ladder", ["team", "board"])
def test_the_bound_is_true_of_a_model_that_is_not_shown(empty_server, ladder):
    live_server = empty_server
    live_server.create_board(ladder=ladder, questions=20, mechanism="{name: ladder, step: 0.1}")
    gone, cheat = live_server.join("Ada")
    _, token = live_server.join("Bob")
    for who, wrong in ((token, 90), (cheat, 3), (token, 60)):
        live_server.submit(who, make_predictions(wrong))
    before = live_server.call("GET", "/boards/first").json()
    organiser = live_server.boards.caller_by_token(live_server.organiser, live_server.slug)
    live_server.boards.open(live_server.slug).teams.disqualify(organiser, gone)
    after = live_server.call("GET", "/boards/first").json()
    top = live_server.call("GET", "/boards/first/leaderboard").json()["rows"][0]
    assert after["best"]["released"] == top["released"] > before["best"]["released"]
    assert after["bound"] == before["bound"]
    said = look(live_server)
    found = re.search(
        r"best model asked so far lies between ([\d.]+) and ([\d.]+)[.] (.{30})", said
    )
    assert float(found[1]) <= 3 / 300 <= float(found[2])
    assert found[3].startswith("That is a model of a team")


def test_a_board_whose_records_are_all_gone_says_so(live_server):
    gone, cheat = live_server.join("Ada")
    _, token = live_server.join("Bob")
    for who, wrong in ((cheat, 3), (token, 60)):
        live_server.submit(who, make_predictions(wrong))
    organiser = live_server.boards.caller_by_token(live_server.organiser, live_server.slug)
    live_server.boards.open(live_server.slug).teams.disqualify(organiser, gone)
    said = look(live_server)
    assert "No record is by a team that is shown here" in said
    assert "Nothing has been released" not in said


def test_who_may_still_ask_is_not_told_otherwise(empty_server):
    live_server = empty_server
    live_server.create_board(questions=21, per_team=20, visibility="hidden")
    _, token = live_server.join("Ada")
    for wrong in range(5):
        live_server.submit(token, make_predictions(90 - wrong))
    said = look(live_server, token=token)
    assert "no questions left" not in said
    assert "5 questions asked; your share is used up; whether others left any over is not" in said
    assert (
        live_server.submit(token, make_predictions(20)).status_code == 201
    )  # out of what is nobody's


def test_what_is_left_now_is_not_what_is_left_in_a_window(empty_server):
    live_server = empty_server
    live_server.create_board(questions=200, window="{questions: 8, hours: 24}")
    _, token = live_server.join("Ada")
    for wrong in range(3):
        live_server.submit(token, make_predictions(90 - wrong))
    live_server.clock.now += 23 * 3600
    for path in ("", "/submit"):
        said = look(live_server, path, token)
        assert "47 questions left, 5 of them now (at most 8 in any 24 hours)." in said
    live_server.clock.now += 3601  # within 24 hours of these words it may ask 8, and not 5
    asked = [
        live_server.submit(token, make_predictions(80 - wrong)).status_code for wrong in range(9)
    ]
    assert asked == [201] * 8 + [429]


def test_no_confidence_is_said_to_be_all(empty_server):
    live_server = empty_server
    live_server.create_board(beta=1e-9)
    _, token = live_server.join("Ada")
    live_server.submit(token, make_predictions(10, 10))
    live_server.boards.open(live_server.slug).closer.close(
        live_server.boards.caller_by_token(live_server.organiser, live_server.slug)
    )
    said = look(live_server)
    assert "With confidence 99.9999%, every true" in said
    assert "100%" not in said


@pytest.mark.parametrize("mechanism", ["exact", "{name: ladder, step: 0.01}"])
def test_only_where_gains_go_unseen_it_is_said(empty_server, mechanism):
    live_server = empty_server
    live_server.create_board(mechanism=mechanism)
    _, token = live_server.join("Ada")
    live_server.submit(token, make_predictions(10))
    path = f"/boards/{live_server.slug}/submit"
    with live_server.browser() as browser:
        live_server.sign_in(browser, token)
        word = csrf_token(browser.get(path).text)
        sent = browser.post(f"{path}?csrf={word}", files={"file": ("a.csv", make_predictions(20))})
    said = words(sent.text)
    assert "our best stays 0.03" in said
    assert ("a gain that is too small to be told" in said) == (mechanism != "exact")
    assert "asking again and again gains little" not in said


def test_a_token_that_has_ended_may_have_been_for_this_board(live_server):
    _, token = live_server.join("Ada")
    with live_server.browser() as browser:
        live_server.sign_in(browser, token)
        live_server.call("POST", "/boards/first/team/token", token)
        said = words(browser.get(f"/boards/{live_server.slug}/submit").text)
    assert "a token that is not for this board, or has ended" in said


def test_what_another_process_amended_is_shown(live_server):
    _, token = live_server.join("Ada")
    live_server.submit(token, make_predictions(30))
    assert "Ada you0.1000" in look(live_server, token=token)
    storage = live_server.boards.storage
    other = Boards(storage, DatabaseStore(storage), world=live_server.boards.world)
    organiser = other.caller_by_token(live_server.organiser, live_server.slug)
    other.open(live_server.slug).amendments.amend(organiser, {"display": {"digits": 2}})
    assert "Ada you0.102" in look(live_server, token=token)  # and then its date


def test_a_dump_that_a_crash_left_is_gone_after_the_next_start(make_server, tmp_path):
    spool = tmp_path / "spool"
    old, new = spool / "dump-old", spool / "dump-new"
    for each in (old, new):
        each.mkdir(parents=True)
        each.joinpath("dump").write_bytes(b"x")
    for each in (old / "dump", old):
        os.utime(each, (1, 1))
    make_server(spool=spool)
    assert not old.exists()
    assert new.exists()  # somebody may be at it


def test_a_link_cannot_say_that_a_board_is_closed(live_server):
    token = live_server.organiser
    assert "closed for good" not in look(live_server, "/organise?done=closed", token)
    assert "with names." in look(live_server, "/organise?done=public", token)
