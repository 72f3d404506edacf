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
        "New best: 0.8 Accuracy 0.8 is the first score. 24 submissions left."
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
