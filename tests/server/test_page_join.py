"""The page to join a board with."""

import re

from ladderboard.server import Rate
from support.server.live_server import csrf_token

TOKEN = re.compile(r"lb_team_[\w-]{43}")


def join(live_server, browser, **data):
    path = f"/boards/{live_server.slug}/join"
    return browser.post(path, data={"csrf": csrf_token(browser.get(path).text), **data})


def test_joining_an_open_board(live_server, browser):
    response = join(live_server, browser, name="  Two   words ")
    assert response.status_code == 201
    assert response.headers["cache-control"] == "private, no-store"
    (token,) = set(TOKEN.findall(response.text))
    team = live_server.call("GET", "/boards/first/team", token).json()
    assert team["name"] == "Two words"
    # The browser is signed in as that team, and its forms work.
    assert token not in browser.cookies["ladderboard_session"]
    page = browser.get(f"/boards/{live_server.slug}/submit").text
    assert "Two words" in page
    assert token not in page
    assert token not in live_server.log.getvalue()
    csrf = csrf_token(response.text)
    assert browser.post("/session/end", data={"csrf": csrf}).status_code == 303


def test_sending_the_form_twice_creates_one_team(live_server, browser):
    path = f"/boards/{live_server.slug}/join"
    data = {"csrf": csrf_token(browser.get(path).text), "name": "Alpha"}
    assert browser.post(path, data=data).status_code == 201
    assert browser.post(path, data=data).status_code == 403
    assert "You are signed in as" in browser.get(path).text
    assert 'name="name"' not in browser.get(path).text


def test_refusals_are_shown_on_the_page(live_server, browser):
    live_server.join("Alpha")
    evil = "<b>\u202e"
    for name, status, message in (
        ("alpha", 409, "Another team has this name"),
        ("", 422, "A team needs a visible name."),
        (evil, 422, "invisible characters"),
        ("x" * 65, 422, "at most 64 characters"),
    ):
        response = join(live_server, browser, name=name)
        assert response.status_code == status
        assert message in response.text
        assert 'role="alert"' in response.text
        assert "<b>" not in response.text
        assert "ladderboard_session" not in browser.cookies
    assert 'value="alpha"' in join(live_server, browser, name="alpha").text
    path = f"/boards/{live_server.slug}/join"
    form = {"csrf": csrf_token(browser.get(path).text), "name": "Epsilon"}
    for other_name in ("Beta", "Gamma", "Delta"):  # while the form is filled in
        live_server.join(other_name)
    response = browser.post(path, data=form)
    assert (response.status_code, "The board is full" in response.text) == (409, True)
    live_server.call("POST", "/boards/first/close", live_server.organiser)
    assert "too late to join" in browser.get(f"/boards/{live_server.slug}/join").text


def test_joining_with_an_invitation(live_server, browser):
    live_server.amend(registration="invited")
    invitation = live_server.call(
        "POST", "/boards/first/invitations", live_server.organiser
    ).json()["invitation"]
    page = browser.get(f"/boards/{live_server.slug}/join?invitation={invitation}").text
    assert invitation not in page  # URLs are stored by browsers and logs
    for typed, message in (("", "needs an invitation"), ("x", "is unknown, was used")):
        response = join(live_server, browser, name="Alpha", invitation=typed)
        assert (response.status_code, message in response.text) == (403, True)
    response = join(live_server, browser, name=" ", invitation=invitation)
    assert (response.status_code, f'value="{invitation}"' in response.text) == (422, True)
    response = join(live_server, browser, name="Alpha", invitation=f" {invitation} ")
    assert response.status_code == 201
    assert TOKEN.search(response.text)
    assert invitation not in response.text
    with live_server.browser() as another:
        response = join(live_server, another, name="Beta", invitation=invitation)
        assert (response.status_code, "was used before" in response.text) == (403, True)
        link = f'href="/login?next=/boards/{live_server.slug}/submit">Sign in with your token</a>'
        assert f"Already joined? <a {link}" in response.text


def test_the_link_of_an_invitation_is_an_invitation(live_server, browser):
    live_server.amend(registration="invited")
    invitation = live_server.call(
        "POST", "/boards/first/invitations", live_server.organiser
    ).json()["invitation"]
    link = f"{live_server.url}/boards/first/join#{invitation}"
    assert join(live_server, browser, name="Alpha", invitation=link).status_code == 201


def test_only_the_organiser_adds_teams_if_the_rules_say_so(live_server, browser):
    csrf = csrf_token(browser.get(f"/boards/{live_server.slug}/join").text)
    live_server.amend(registration="organiser")
    page = browser.get(f"/boards/{live_server.slug}/join").text
    assert "Ask the organiser" in page
    assert 'name="name"' not in page
    response = browser.post(
        f"/boards/{live_server.slug}/join", data={"csrf": csrf, "name": "Alpha"}
    )
    assert response.status_code == 403


def test_an_organiser_stays_signed_in_after_adding_a_team(live_server, browser):
    live_server.sign_in(browser, live_server.organiser)
    page = browser.get(f"/boards/{live_server.slug}/join").text
    assert f'href="/boards/{live_server.slug}/organise"' in page
    response = join(live_server, browser, name="Alpha")
    assert response.status_code == 201
    assert "signed in as your team" not in response.text
    assert (
        browser.get(f"/api/v1/boards/{live_server.slug}/teams").json()["teams"][0]["name"]
        == "Alpha"
    )


def test_joining_shares_the_registration_rate_limit(make_server):
    live_server = make_server(registrations=Rate(2, 1e6))
    live_server.reset()
    live_server.create_board()
    with live_server.browser() as browser:
        assert join(live_server, browser, name="").status_code == 422  # counts as well
        assert (
            live_server.call("POST", "/boards/first/teams", json={"name": "A"}).status_code == 201
        )
        response = join(live_server, browser, name="B")
        assert response.status_code == 429
        assert "Too many registrations from your address" in response.text
        assert int(response.headers["retry-after"]) > 0
