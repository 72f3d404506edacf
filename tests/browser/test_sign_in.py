"""Signing in with a real OpenID provider, registering, approval, and signing out."""

import time

import pytest

from support.board_stubs import ManualClock
from support.browser.browser_server import serve_for_browser
from support.openid import OpenIdProvider


@pytest.fixture(scope="module")
def provider():
    running = OpenIdProvider()
    yield running
    running.stop()


@pytest.fixture(scope="module")
def live_server(tmp_path_factory, provider):
    """Serve boards with the provider's clock."""
    with serve_for_browser(
        tmp_path_factory.mktemp("server"),
        clock=ManualClock(int(time.time())),
        sign_in=provider.settings(),
    ) as server:
        yield server


@pytest.fixture
def make_sign_in_board(make_board, live_server):
    def make(**rules):
        slug = make_board(registration="sign_in", **rules)
        live_server.clock.now = int(time.time())
        return slug

    return make


def press(locator, keyboard):
    """Click, or focus and press Enter."""
    if keyboard:
        locator.focus()
        locator.press("Enter")
    else:
        locator.click()


def sign_in(visitor, provider, slug, login, *, keyboard=False):
    """Sign in from the page Join."""
    visitor.monitor.allow_site(provider.openid)
    page = visitor.page
    visitor.open(f"/boards/{slug}/join")
    assert not visitor.axe_violations()
    assert not visitor.overflowing()
    press(page.get_by_role("link", name="Sign in with University"), keyboard)
    page.wait_for_url(f"{provider.openid}/**")
    page.locator("input[name=login]").fill(login)
    page.locator("input[name=password]").fill("any")
    press(page.get_by_role("button", name="Sign-in"), keyboard)
    press(page.get_by_role("button", name="Continue"), keyboard)
    page.wait_for_url(f"{visitor.live_server.url}/boards/{slug}/**")


@pytest.mark.parametrize("way", ["keyboard", "phone"])
def test_a_person_signs_in_registers_signs_out_and_comes_back(
    visit, make_sign_in_board, provider, live_server, way
):
    slug = make_sign_in_board()
    ada = visit(phone=way == "phone")
    page = ada.page
    sign_in(ada, provider, slug, f"ada-{way}", keyboard=way == "keyboard")
    assert "One person has one team on this board" in ada.text()
    page.get_by_label("Your team's name").fill("Analytical")
    press(page.get_by_role("button", name="Join"), way == "keyboard")
    page.get_by_role("heading", name="Welcome, Analytical").wait_for()
    ada.open(f"/boards/{slug}/submit")
    assert "Analytical: 25 submissions left" in ada.text()
    with page.expect_navigation(url=live_server.url + "/"):
        press(page.get_by_role("button", name="Sign out"), way == "keyboard")
    ada.open(f"/boards/{slug}/submit")
    assert "Analytical" not in ada.text()
    ada.open(f"/boards/{slug}/join")
    press(page.get_by_role("link", name="Sign in with University"), way == "keyboard")
    page.wait_for_url(f"{live_server.url}/boards/{slug}/submit")  # the provider remembers them
    assert "Analytical: 25 submissions left" in ada.text()


def test_an_organiser_approves_one_person_and_rejects_another(
    visit, make_sign_in_board, provider, live_server
):
    slug = make_sign_in_board(sign_in="{approval: true}")
    people = [visit(), visit()]
    for person, login in zip(people, ("carl", "dora"), strict=True):
        sign_in(person, provider, slug, login)
        person.page.get_by_label("Your team's name").fill(f"Team {login}")
        person.page.get_by_role("button", name="Join").click()
        person.page.get_by_role("heading", name="Your registration waits").wait_for()
        assert not person.axe_violations()
    organiser = visit(live_server.organiser)
    page = organiser.page
    organiser.open(f"/boards/{slug}/organise#people")
    assert not organiser.axe_violations()
    page.locator("#person-1").get_by_role("button", name="Approve").click()
    page.get_by_text("The team is registered.").wait_for()
    form = page.locator("#person-2")
    form.get_by_label("Reason, if you reject it").fill("You work for the organiser.")
    form.get_by_role("button", name="Reject").click()
    page.get_by_text("The registration is rejected").wait_for()
    page.get_by_label("One on each line").fill("emil@example.edu")
    page.get_by_role("button", name="Add them").click()
    page.get_by_text("The list is extended.").wait_for()
    people[0].open(f"/boards/{slug}/submit")
    assert "Team carl: 25 submissions left" in people[0].text()
    people[1].open(f"/boards/{slug}/join")
    assert "You work for the organiser." in people[1].text()
