"""The page to join a board with."""

import re

import pytest

TOKEN = re.compile(r"lb_team_[\w-]{43}")


@pytest.fixture
def browser(hall):
    with hall.browser() as made:
        yield made


def join(hall, browser, halls, **data):
    path = f"/boards/{hall.slug}/join"
    return browser.post(path, data={"csrf": halls.csrf_of(browser.get(path).text), **data})


def test_joining_an_open_board(hall, browser, halls):
    said = join(hall, browser, halls, name="  Two   words ")
    assert said.status_code == 201
    assert said.headers["cache-control"] == "private, no-store"
    (token,) = set(TOKEN.findall(said.text))
    team = hall.call("GET", "/boards/first/team", token).json()
    assert team["name"] == "Two words"
    # The browser is that team from now on, with forms that work.
    assert token not in browser.cookies["ladderboard_session"]
    page = browser.get(f"/boards/{hall.slug}/submit").text
    assert "Two words" in page
    assert token not in page
    assert token not in hall.log.getvalue()
    word = halls.csrf_of(said.text)
    assert browser.post("/session/end", data={"csrf": word}).status_code == 303


def test_sending_the_form_again_makes_no_second_team(hall, browser, halls):
    path = f"/boards/{hall.slug}/join"
    data = {"csrf": halls.csrf_of(browser.get(path).text), "name": "Alpha"}
    assert browser.post(path, data=data).status_code == 201
    assert browser.post(path, data=data).status_code == 403
    assert "You are signed in as" in browser.get(path).text
    assert 'name="name"' not in browser.get(path).text


def test_refusals_stay_on_the_page(hall, browser, halls):
    hall.join("Alpha")
    evil = "<b>\u202e"
    for name, status, why in (
        ("alpha", 409, "Another team has this name"),
        ("", 422, "A team needs a name that can be seen."),
        (evil, 422, "no characters that cannot be seen"),
        ("x" * 65, 422, "at most 64 characters"),
    ):
        said = join(hall, browser, halls, name=name)
        assert said.status_code == status
        assert why in said.text
        assert 'role="alert"' in said.text
        assert "<b>" not in said.text
        assert "ladderboard_session" not in browser.cookies
    assert 'value="alpha"' in join(hall, browser, halls, name="alpha").text
    path = f"/boards/{hall.slug}/join"
    form = {"csrf": halls.csrf_of(browser.get(path).text), "name": "Epsilon"}
    for each in ("Beta", "Gamma", "Delta"):  # while the form is filled in
        hall.join(each)
    said = browser.post(path, data=form)
    assert (said.status_code, "All 4 places on this board are taken" in said.text) == (409, True)
    hall.call("POST", "/boards/first/close", hall.organiser)
    assert "too late to join" in browser.get(f"/boards/{hall.slug}/join").text


def test_joining_with_an_invitation(hall, browser, halls):
    hall.amend(registration="invited")
    made = hall.call("POST", "/boards/first/invitations", hall.organiser).json()["invitation"]
    page = browser.get(f"/boards/{hall.slug}/join?invitation={made}").text
    assert made not in page  # an address is kept by browsers and logs
    for invitation, why in (("", "Teams come by invitation here"), ("x", "is unknown, was used")):
        said = join(hall, browser, halls, name="Alpha", invitation=invitation)
        assert (said.status_code, why in said.text) == (403, True)
    said = join(hall, browser, halls, name="Alpha", invitation=f" {made} ")
    assert said.status_code == 201
    assert TOKEN.search(said.text)
    assert made not in said.text
    with hall.browser() as another:
        said = join(hall, another, halls, name="Beta", invitation=made)
        assert (said.status_code, "was used before" in said.text) == (403, True)


def test_a_board_whose_organiser_makes_the_teams(hall, browser, halls):
    word = halls.csrf_of(browser.get(f"/boards/{hall.slug}/join").text)
    hall.amend(registration="organiser")
    page = browser.get(f"/boards/{hall.slug}/join").text
    assert "Ask the organiser" in page
    assert 'name="name"' not in page
    said = browser.post(f"/boards/{hall.slug}/join", data={"csrf": word, "name": "Alpha"})
    assert said.status_code == 403


def test_an_organiser_stays_one(hall, browser, halls):
    hall.sign_in(browser, hall.organiser)
    page = browser.get(f"/boards/{hall.slug}/join").text
    assert f'href="/boards/{hall.slug}/organise"' in page
    said = join(hall, browser, halls, name="Alpha")
    assert said.status_code == 201
    assert "signed in as your team" not in said.text
    assert browser.get(f"/api/v1/boards/{hall.slug}/teams").json()["teams"][0]["name"] == "Alpha"


def test_joining_is_limited_by_address_as_registering_is(make_hall, halls):
    hall = make_hall(registrations=halls.Rate(2, 1e6))
    hall.renew()
    hall.board()
    with hall.browser() as browser:
        assert join(hall, browser, halls, name="").status_code == 422  # which counts, too
        assert hall.call("POST", "/boards/first/teams", json={"name": "A"}).status_code == 201
        said = join(hall, browser, halls, name="B")
        assert said.status_code == 429
        assert "Too many teams come from here" in said.text
        assert int(said.headers["retry-after"]) > 0
