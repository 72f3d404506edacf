"""Joining a board: open registration, invitations, teams added by the organiser, new tokens."""

import re

import pytest

from support.server.live_server import make_predictions

TOKEN = re.compile(r"lb_team_[A-Za-z0-9_-]{20,}")


@pytest.mark.parametrize("script", [True, False], ids=["script", "no script"])
def test_a_team_joins_submits_and_signs_in_from_another_browser(
    visit, make_board, live_server, script
):
    slug = make_board(title="Come in")
    newcomer = visit(script=script)
    page = newcomer.page
    newcomer.open(f"/boards/{slug}")
    page.get_by_role("navigation", name="Come in").get_by_role("link", name="Submit").click()
    page.get_by_role("link", name="Join this board").click()
    page.get_by_label("Your team's name").fill("Ada & Söhne <x>")
    page.get_by_role("button", name="Join").click()
    page.get_by_role("heading", name="Welcome, Ada & Söhne <x>").wait_for()
    tokens = TOKEN.findall(newcomer.text())
    assert len(set(tokens)) == 1
    token = tokens[0]
    assert live_server.call("GET", "/boards/first/team", token).json()["name"] == "Ada & Söhne <x>"
    assert token not in page.url
    page.get_by_role("link", name="Go on to submit").click()
    assert newcomer.submit_file(make_predictions(60)).startswith(
        "A new best: 0.800. 24 submissions left."
    )
    newcomer.open(f"/boards/{slug}")  # it is shown once
    assert token not in page.content()
    assert "Ada & Söhne <x>" in newcomer.text()
    other_browser = visit(script=script)
    other_browser.open(f"/boards/{slug}/submit")
    other_browser.page.get_by_label("Your team's token").fill(token)
    other_browser.page.get_by_role("button", name="Sign in").click()
    assert "Ada & Söhne <x>: 24 submissions left" in other_browser.text()
    with other_browser.page.expect_navigation(url=live_server.url + "/"):
        other_browser.page.get_by_role("button", name="Sign out").click()
    other_browser.open(f"/boards/{slug}/submit")
    assert "Sign in to submit" in other_browser.text()


def test_taken_names_and_full_boards_are_refused(visit, make_board, live_server):
    slug = make_board(teams=2)
    live_server.join("Alpha")
    newcomer = visit()
    newcomer.monitor.expect_statuses(409)
    page = newcomer.page
    newcomer.open(f"/boards/{slug}/join")
    assert "1 of 2 places are taken" in newcomer.text()
    page.get_by_label("Your team's name").fill("ALPHA")
    page.get_by_role("button", name="Join").click()
    assert "Another team has this name" in newcomer.text("[role=alert]")
    assert page.get_by_label("Your team's name").input_value() == "ALPHA"
    third = visit()
    third.monitor.expect_statuses(409)
    third.open(f"/boards/{slug}/join")  # before it is full
    page.get_by_label("Your team's name").fill("Beta")
    page.get_by_role("button", name="Join").click()
    assert "Welcome, Beta" in newcomer.text()
    third.page.get_by_label("Your team's name").fill("Gamma")
    third.page.get_by_role("button", name="Join").click()
    assert "it has 2 teams" in third.text("[role=alert]")
    assert "The board is full" in third.text()


def test_joining_with_an_invitation(visit, make_board, live_server):
    slug = make_board(registration="invited")
    response = live_server.call(
        "POST", "/boards/first/invitations", live_server.organiser, json={"days": 1}
    )
    invitation = response.json()["invitation"]
    guest = visit()
    guest.monitor.expect_statuses(403)
    page = guest.page
    # A fragment is not sent to the server.
    guest.open(f"/boards/{slug}/join#{invitation}")
    assert page.get_by_label("Invitation", exact=True).input_value() == invitation
    assert invitation not in page.url
    page.get_by_label("Invitation", exact=True).fill("lb_invitation_wrong")
    page.get_by_label("Your team's name").fill("Guests")
    page.get_by_role("button", name="Join").click()
    assert "This invitation is unknown" in guest.text("[role=alert]")
    page.get_by_label("Invitation", exact=True).fill(invitation)
    page.get_by_role("button", name="Join").click()
    assert "Welcome, Guests" in guest.text()
    late = visit(script=False)
    late.monitor.expect_statuses(403)
    late.open(f"/boards/{slug}/join")
    late.page.get_by_label("Your team's name").fill("Others")
    late.page.get_by_label("Invitation", exact=True).fill(invitation)
    late.page.get_by_role("button", name="Join").click()
    assert "was used before" in late.text("[role=alert]")


def test_boards_where_only_the_organiser_adds_teams(visit, make_board):
    slug = make_board(registration="organiser")
    guest = visit()
    guest.open(f"/boards/{slug}/join")
    assert "The organiser creates the teams of this board" in guest.text()
    assert guest.page.locator("main form").count() == 0


@pytest.mark.parametrize("script", [True, False], ids=["script", "no script"])
@pytest.mark.slow
def test_rotating_a_token_ends_other_sessions(visit, make_board, live_server, script):
    slug = make_board()
    old = live_server.join("Alpha")[1]
    first, second = visit(old, script=script), visit(old)
    second.open(f"/boards/{slug}/submit")
    first.open(f"/boards/{slug}/submit")
    first.page.get_by_text("Replace it by a new one").click()
    first.page.get_by_role("button", name="Make a new token").click()
    new = TOKEN.search(first.text()).group()
    assert new != old
    assert live_server.call("GET", "/boards/first/team", old).status_code == 401
    assert live_server.call("GET", "/boards/first/team", new).status_code == 200
    assert first.submit_file(make_predictions(60)).startswith(
        "A new best: 0.800. 24 submissions left."
    )
    second.monitor.expect_statuses(401)
    assert "Your session has ended. Sign in again below." in second.submit_file(
        make_predictions(50)
    )
    second.page.get_by_label("Your team's token").fill(new)
    second.page.get_by_role("button", name="Sign in").click()
    assert "Alpha: 24 submissions left" in second.text()
