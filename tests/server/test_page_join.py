"""The page to join a board with."""

import re

import pytest

from ladderboard.server import Rate
from support.server.live_server import csrf_token

TOKEN = re.compile(r"lb_team_[\w-]{43}")


@pytest.fixture
def browser(live_server):
    with live_server.browser() as made:
        yield made


def join(live_server, browser, **data):
    path = f"/boards/{live_server.slug}/join"
    return browser.post(path, data={"csrf": csrf_token(browser.get(path).text), **data})


def test_joining_an_open_board(live_server, browser):
    said = join(live_server, browser, name="  Two   words ")
    assert said.status_code == 201
    assert said.headers["cache-control"] == "private, no-store"
    (token,) = set(TOKEN.findall(said.text))
    team = live_server.call("GET", "/boards/first/team", token).json()
    assert team["name"] == "Two words"
    # The browser is that team from now on, with forms that work.
    assert token not in browser.cookies["ladderboard_session"]
    page = browser.get(f"/boards/{live_server.slug}/submit").text
    assert "Two words" in page
    assert token not in page
    assert token not in live_server.log.getvalue()
    word = csrf_token(said.text)
    assert browser.post("/session/end", data={"csrf": word}).status_code == 303


def test_sending_the_form_again_makes_no_second_team(live_server, browser):
    path = f"/boards/{live_server.slug}/join"
    data = {"csrf": csrf_token(browser.get(path).text), "name": "Alpha"}
    assert browser.post(path, data=data).status_code == 201
    assert browser.post(path, data=data).status_code == 403
    assert "You are signed in as" in browser.get(path).text
    assert 'name="name"' not in browser.get(path).text


def test_refusals_stay_on_the_page(live_server, browser):
    live_server.join("Alpha")
    evil = "<b>\u202e"
    for name, status, why in (
        ("alpha", 409, "Another team has this name"),
        ("", 422, "A team needs a visible name."),
        (evil, 422, "invisible characters"),
        ("x" * 65, 422, "at most 64 characters"),
    ):
        said = join(live_server, browser, name=name)
        assert said.status_code == status
        assert why in said.text
        assert 'role="alert"' in said.text
        assert "<b>" not in said.text
        assert "ladderboard_session" not in browser.cookies
    assert 'value="alpha"' in join(live_server, browser, name="alpha").text
    path = f"/boards/{live_server.slug}/join"
    form = {"csrf": csrf_token(browser.get(path).text), "name": "Epsilon"}
    for each in ("Beta", "Gamma", "Delta"):  # while the form is filled in
        live_server.join(each)
    said = browser.post(path, data=form)
    assert (said.status_code, "The board is full" in said.text) == (409, True)
    live_server.call("POST", "/boards/first/close", live_server.organiser)
    assert "too late to join" in browser.get(f"/boards/{live_server.slug}/join").text


def test_joining_with_an_invitation(live_server, browser):
    live_server.amend(registration="invited")
    made = live_server.call("POST", "/boards/first/invitations", live_server.organiser).json()[
        "invitation"
    ]
    page = browser.get(f"/boards/{live_server.slug}/join?invitation={made}").text
    assert made not in page  # an address is kept by browsers and logs
    for invitation, why in (("", "needs an invitation"), ("x", "is unknown, was used")):
        said = join(live_server, browser, name="Alpha", invitation=invitation)
        assert (said.status_code, why in said.text) == (403, True)
    said = join(live_server, browser, name="Alpha", invitation=f" {made} ")
    assert said.status_code == 201
    assert TOKEN.search(said.text)
    assert made not in said.text
    with live_server.browser() as another:
        said = join(live_server, another, name="Beta", invitation=made)
        assert (said.status_code, "was used before" in said.text) == (403, True)


def test_a_board_whose_organiser_makes_the_teams(live_server, browser):
    word = csrf_token(browser.get(f"/boards/{live_server.slug}/join").text)
    live_server.amend(registration="organiser")
    page = browser.get(f"/boards/{live_server.slug}/join").text
    assert "Ask the organiser" in page
    assert 'name="name"' not in page
    said = browser.post(f"/boards/{live_server.slug}/join", data={"csrf": word, "name": "Alpha"})
    assert said.status_code == 403


def test_an_organiser_stays_one(live_server, browser):
    live_server.sign_in(browser, live_server.organiser)
    page = browser.get(f"/boards/{live_server.slug}/join").text
    assert f'href="/boards/{live_server.slug}/organise"' in page
    said = join(live_server, browser, name="Alpha")
    assert said.status_code == 201
    assert "signed in as your team" not in said.text
    assert (
        browser.get(f"/api/v1/boards/{live_server.slug}/teams").json()["teams"][0]["name"]
        == "Alpha"
    )


def test_joining_is_limited_by_address_as_registering_is(make_server):
    live_server = make_server(registrations=Rate(2, 1e6))
    live_server.reset()
    live_server.create_board()
    with live_server.browser() as browser:
        assert join(live_server, browser, name="").status_code == 422  # which counts, too
        assert (
            live_server.call("POST", "/boards/first/teams", json={"name": "A"}).status_code == 201
        )
        said = join(live_server, browser, name="B")
        assert said.status_code == 429
        assert "Too many registrations from your address" in said.text
        assert int(said.headers["retry-after"]) > 0
