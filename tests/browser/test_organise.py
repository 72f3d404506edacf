"""The organiser's page, and the effect of its forms for others."""

import re
import time

import pytest

from ladderboard.server._pages._organise._texts import SECTION_TITLES
from support.browser.keyboard import KeyboardUser
from support.browser.page_checks import check_page
from support.server.live_server import make_predictions


class ManagedBoard:
    """A board with two teams that have submitted, and its organiser's page in a browser."""

    def __init__(self, live_server, slug, visit):
        self.live_server, self.slug, self.visit = live_server, slug, visit
        self.board_path, self.organise_path = f"/boards/{slug}", f"/boards/{slug}/organise"
        self.alpha, self.beta = live_server.join("Alpha"), live_server.join("Beta")
        for team, wrong in ((self.alpha, 60), (self.beta, 45)):
            live_server.submit(team[1], make_predictions(wrong, private=wrong // 3))
        self.organiser = visit(live_server.organiser)
        self.open()

    def open(self, page=""):
        """Open one of the organiser's pages."""
        self.organiser.open(self.organise_path + page)

    def press(self, name):
        """Press a button of the organiser's page; return the notice that follows."""
        with self.organiser.page.expect_navigation():
            self.organiser.page.get_by_role("button", name=name, exact=True).click()
        return self.organiser.text("main [role=status], main [role=alert]")

    def board_text(self, token=None):
        """Return the text of the board's page, as a visitor sees it."""
        visitor = self.visit(token)
        visitor.open(self.board_path)
        return visitor.text()


@pytest.fixture
def managed(live_server, make_board, visit):
    """Give a board with two teams, open on its organiser's page."""
    return ManagedBoard(live_server, make_board(title="Well run", finals="{selections: 1}"), visit)


def test_no_page_is_longer_than_two_screens(visit, example_boards):
    """With twenty teams, three requests, webhooks and tokens."""
    organiser = visit(example_boards.live_server.organiser)
    organiser.page.set_viewport_size({"width": 1280, "height": 800})
    tabs = ("", "/teams", "/people", "/invitations", "/activity", "/settings")
    pages = [*tabs, *(f"/settings/{section}" for section in SECTION_TITLES)]
    paths = [f"/boards/clouds/organise{page}" for page in pages]
    paths += [
        f"/boards/{slug}/organise/teams/{example_boards[slug].teams[0].id}"
        for slug in ("clouds", "digits")
    ]
    heights = {}
    for path in paths:
        assert organiser.open(path) == 200
        heights[path] = organiser.page.evaluate("document.documentElement.scrollHeight")
    assert {page: height for page, height in heights.items() if height > 1600} == {}


def test_pausing_with_the_keyboard_and_resuming(managed, visit):
    keys = KeyboardUser(managed.organiser)
    keys.follow("Pause the board", "Space")
    assert "The board is paused. It takes no submissions" in managed.organiser.text("[role=status]")
    team = visit(managed.alpha[1])
    team.open(f"{managed.board_path}/submit")
    assert "The board is paused" in team.text()
    assert team.page.locator("input[type=file]").count() == 0
    assert "paused" in managed.board_text()
    assert managed.press("Resume the board") == "The board takes submissions again."
    team.open(f"{managed.board_path}/submit")
    assert team.submit_file(make_predictions(30)).startswith("New best: 0.9")


def test_closing_needs_confirmation(managed):
    page, messages = managed.organiser.page, []
    managed.organiser.monitor.expect_statuses(422)
    managed.open("/settings")
    page.get_by_role("link", name="Close…").click()
    confirm = page.get_by_label(f"Type {managed.slug} to confirm")
    answer = {"accept": False}

    def answer_dialog(dialog):
        messages.append(dialog.message)
        dialog.accept() if answer["accept"] else dialog.dismiss()

    page.on("dialog", answer_dialog)
    page.get_by_role("button", name="Close the board for good").click()  # the name is missing
    assert messages == []
    confirm.fill(managed.slug)
    page.get_by_role("button", name="Close the board for good").click()
    assert messages == [f"Close {managed.slug} for good? This cannot be undone."]
    assert managed.live_server.call("GET", "/boards/first").json()["status"] == "open"
    answer["accept"] = True
    confirm.fill("another")
    assert "Not saved." in managed.press("Close the board for good")
    assert managed.live_server.call("GET", "/boards/first").json()["status"] == "open"
    page.get_by_label(f"Type {managed.slug} to confirm").fill(managed.slug)
    assert managed.press("Close the board for good") == "The board is closed for good."
    assert page.get_by_role("button", name="Pause the board").count() == 0
    visitor = managed.visit(managed.alpha[1])
    visitor.open(f"{managed.board_path}/leaderboard")
    finals = visitor.page.get_by_role("region", name="Final ranking").first
    rows = [row.split("\t") for row in finals.get_by_role("row").all_inner_texts()[1:]]
    assert [(row[0], row[1].split()[0], row[2]) for row in rows] == [
        ("1", "Beta", "0.85"), ("2", "Alpha", "0.80"),
    ]  # fmt: skip
    visitor.open(f"{managed.board_path}/submit")
    assert "The board is closed" in visitor.text()


def test_a_team_is_added_disqualified_and_reinstated(managed, visit):
    page = managed.organiser.page
    page.get_by_role("link", name="Teams", exact=True).click()
    page.get_by_label("Name of the team").fill("Gamma")
    notice = managed.press("Add the team")
    token = re.search(r"lb_team_[\w-]+", notice).group()
    assert "The token of Gamma" in notice
    team = visit(token)
    team.open(f"{managed.board_path}/submit")
    assert team.submit_file(make_predictions(15)).startswith("New best: 0.95")
    managed.open("/teams")
    assert token not in page.content()
    page.get_by_role("link", name="Gamma").click()
    page.once("dialog", lambda dialog: dialog.accept())
    assert "it is no longer shown" in managed.press("Disqualify the team")
    public = managed.board_text()
    assert "Gamma" not in public
    assert "0.95" not in public
    assert managed.press("Reinstate the team") == "The team is shown again."
    assert "Gamma" in managed.board_text()
    page.once("dialog", lambda dialog: dialog.accept())
    assert "is revoked" in managed.press("Revoke its token")
    team.open(f"{managed.board_path}/submit")
    assert "Sign in to submit" in team.text()


def test_an_invitation_is_used_by_another_browser(managed, visit):
    page = managed.organiser.page
    page.get_by_role("link", name="Settings", exact=True).click()
    page.get_by_role("link", name="Edit: Registration and finals").click()
    page.get_by_label("How teams register").select_option("invited")
    managed.press("Save")
    managed.open("/invitations")
    notice = managed.press("Make an invitation")
    invitation = re.search(r"lb_invitation_[\w-]+", notice).group()
    guest = visit()
    guest.open(f"{managed.board_path}/join")
    guest.page.get_by_label("Your team's name").fill("Guests")
    guest.page.get_by_label("Invitation", exact=True).fill(invitation)
    guest.page.get_by_role("button", name="Join").click()
    assert "Welcome, Guests" in guest.text()
    managed.open("/teams")
    assert "Guests" in managed.organiser.text()


@pytest.mark.parametrize("way", ["keyboard", "phone"])
def test_a_webhook_is_added_tested_and_removed(managed, visit, way):
    """This server may not call loopback addresses, and says so."""
    if way == "phone":
        managed.organiser = visit(managed.live_server.organiser, phone=True)
    managed.open("/settings")
    page = managed.organiser.page
    page.get_by_role("link", name="Manage: Webhooks").click()
    managed.organiser.monitor.expect_statuses(422)
    page.get_by_label("URL", exact=True).fill("http://127.0.0.1:9/hook")
    page.get_by_label("the board is paused").uncheck()
    alert = managed.press("Add the webhook")
    assert "The address of this webhook is not public." in alert
    assert page.get_by_label("URL", exact=True).input_value() == "http://127.0.0.1:9/hook"
    assert not page.get_by_label("the board is paused").is_checked()
    page.get_by_label("URL", exact=True).fill("https://hooks.example.invalid/services/1")
    page.get_by_label("Format").select_option("Slack")
    if way == "keyboard":
        KeyboardUser(managed.organiser).follow("Add the webhook", "Enter")
    else:
        with page.expect_navigation():
            page.get_by_role("button", name="Add the webhook").tap()
    assert "it is shown only once" in managed.organiser.text("[role=status]")
    if way == "phone":
        check_page(managed.organiser)
    assert page.get_by_label("Secret", exact=True).inner_text().startswith("whsec_")
    page.get_by_role("link", name="I have copied it").click()
    table = page.get_by_role("region", name="Webhooks, table")
    assert "https://hooks.example.invalid/services/1" in table.inner_text()
    assert "nothing was sent yet" in table.inner_text()
    assert "whsec_" not in page.content()
    assert "A test is being sent" in managed.press("Send a test to webhook 1")
    deadline = time.monotonic() + 20
    while "not sent: its host is unknown" not in table.inner_text():
        assert time.monotonic() < deadline, table.inner_text()
        page.wait_for_timeout(200)
        page.reload()
    if way == "phone":
        check_page(managed.organiser)
    assert "The webhook is removed" in managed.press("Remove webhook 1")
    assert "No webhook yet" in managed.organiser.text()
