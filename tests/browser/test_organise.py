"""The organiser's page, and the effect of its forms for others."""

import re

import pytest

from ladderboard.board import Boards, DatabaseStore, restore_board
from ladderboard.ledger import SqliteStorage
from support.browser.keyboard import KeyboardUser
from support.server.live_server import make_predictions

THREE_WORDS = "correct horse battery"


class ManagedBoard:
    """A board with two teams that have submitted, and its organiser's page in a browser."""

    def __init__(self, live_server, slug, visit):
        self.live_server, self.slug, self.visit = live_server, slug, visit
        self.board_path, self.organise_path = f"/boards/{slug}", f"/boards/{slug}/organise"
        self.alpha, self.beta = live_server.join("Alpha"), live_server.join("Beta")
        for team, wrong in ((self.alpha, 60), (self.beta, 45)):
            live_server.submit(team[1], make_predictions(wrong, private=wrong // 3))
        self.organiser = visit(live_server.organiser)
        self.organiser.open(self.organise_path)

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


@pytest.mark.slow
def test_meter_and_activity_are_shown(managed):
    page_text = managed.organiser.text()
    for fact in ("Questions used 2 of 100; 98 left", "Visible changes 2", "Each team's share 25"):
        assert fact in page_text
    row = managed.organiser.page.get_by_role("row", name="Beta").first.inner_text().split()
    assert row[:4] == ["Beta", "1", "24", "0.850"]
    assert managed.organiser.page.locator("main figure.chart svg:visible").count() >= 2


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
    assert team.submit_file(make_predictions(30)).startswith("A new best: 0.900")


def test_visibility_changes_what_others_see(managed):
    organiser = managed.organiser.page
    organiser.get_by_role("radio", name="frozen").check()
    assert "others keep seeing the current standings" in managed.press("Change who sees what")
    managed.live_server.submit(managed.alpha[1], make_predictions(3))
    public = managed.board_text()
    assert "froze" in public
    assert "0.850" in public
    assert "0.990" not in public
    assert "0.990" in managed.board_text(managed.live_server.organiser)
    organiser.get_by_role("radio", name="hidden").check()
    managed.press("Change who sees what")
    public = managed.board_text()
    assert "hidden" in public
    assert "0.850" not in public
    assert "Beta" not in public
    organiser.get_by_role("radio", name="anonymous").check()
    managed.press("Change who sees what")
    public = managed.board_text()
    assert "0.990" in public
    assert "Alpha" not in public
    organiser.get_by_role("radio", name="public").check()
    assert managed.press("Change who sees what") == "Everybody sees the standings, with names."
    assert "Alpha" in managed.board_text()


@pytest.mark.slow
def test_amending_a_deadline_and_a_title(managed):
    page = managed.organiser.page
    managed.organiser.monitor.expect_statuses(422)
    page.get_by_text("Deadline and phases").click()
    page.get_by_label("End", exact=True).first.fill("2027-01-31")
    notice = managed.press("Amend the times")
    assert "This was not done." in notice
    assert "needs an offset" in notice
    end = page.get_by_label("End", exact=True).first
    assert end.input_value() == "2027-01-31"  # and the form is still open
    end.fill("2027-01-31 AoE")
    assert "The rules are amended" in managed.press("Amend the times")
    assert "2027-02-01 12:00 UTC" in managed.board_text()
    page.get_by_text("Title, description and metric").click()
    page.get_by_label("Title", exact=True).fill("Very well run <i>")
    page.get_by_label("Description, in Markdown").fill("Be **bold**.\n\n<script>alert(1)</script>")
    managed.press("Amend the texts")
    visitor = managed.visit()
    visitor.open(managed.board_path)
    assert visitor.page.get_by_role("heading", level=1).inner_text() == "Very well run <i>"
    assert visitor.page.locator("main strong", has_text="bold").count() == 1
    assert "<script>alert(1)</script>" in visitor.text()


def test_closing_needs_confirmation(managed):
    page, messages = managed.organiser.page, []
    managed.organiser.monitor.expect_statuses(422)
    page.get_by_text("I want to close this board").click()
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
    assert "This was not done." in managed.press("Close the board for good")
    assert managed.live_server.call("GET", "/boards/first").json()["status"] == "open"
    page.get_by_label(f"Type {managed.slug} to confirm").fill(managed.slug)
    assert managed.press("Close the board for good") == "The board is closed for good."
    assert page.get_by_role("button", name="Pause the board").count() == 0
    visitor = managed.visit(managed.alpha[1])
    visitor.open(managed.board_path)
    finals = visitor.page.get_by_role("region", name="Final ranking").first
    rows = [row.split("\t") for row in finals.get_by_role("row").all_inner_texts()[1:]]
    assert [(row[0], row[1].split()[0], row[2]) for row in rows] == [
        ("1", "Beta", "0.850"), ("2", "Alpha", "0.800"),
    ]  # fmt: skip
    visitor.open(f"{managed.board_path}/submit")
    assert "The board is closed" in visitor.text()


def test_a_team_is_added_disqualified_and_reinstated(managed, visit):
    page = managed.organiser.page
    page.get_by_label("Its name").fill("Gamma")
    notice = managed.press("Add the team")
    token = re.search(r"lb_team_[\w-]+", notice).group()
    assert "The token of Gamma" in notice
    team = visit(token)
    team.open(f"{managed.board_path}/submit")
    assert team.submit_file(make_predictions(15)).startswith("A new best: 0.950")
    managed.organiser.open(managed.organise_path)
    assert token not in page.content()
    page.get_by_role("link", name="Gamma").click()
    page.once("dialog", lambda dialog: dialog.accept())
    assert "it is no longer shown" in managed.press("Disqualify the team")
    public = managed.board_text()
    assert "Gamma" not in public
    assert "0.950" not in public
    assert managed.press("Reinstate the team") == "The team is shown again."
    assert "Gamma" in managed.board_text()
    page.once("dialog", lambda dialog: dialog.accept())
    assert "is revoked" in managed.press("End its token")
    team.open(f"{managed.board_path}/submit")
    assert "Sign in to submit" in team.text()


def test_an_invitation_is_used_by_another_browser(managed, visit):
    managed.organiser.page.get_by_text("Registration and finals", exact=True).click()
    managed.organiser.page.get_by_label("Teams come in").select_option("invited")
    managed.press("Amend registration and finals")
    notice = managed.press("Make an invitation")
    invitation = re.search(r"lb_invitation_[\w-]+", notice).group()
    guest = visit()
    guest.open(f"{managed.board_path}/join")
    guest.page.get_by_label("Your team's name").fill("Guests")
    guest.page.get_by_label("Invitation", exact=True).fill(invitation)
    guest.page.get_by_role("button", name="Join").click()
    assert "Welcome, Guests" in guest.text()
    managed.organiser.open(managed.organise_path)
    assert "Guests" in managed.organiser.text()


@pytest.mark.slow
def test_a_staff_token_is_issued_and_revoked(managed, visit):
    page = managed.organiser.page
    page.get_by_label("They are to be").select_option("organiser")
    notice = managed.press("Make a token")
    token = re.search(r"lb_organiser_[\w-]+", notice).group()
    other = visit(token)
    other.open(managed.organise_path)
    assert "Pause the board" in other.text()
    managed.organiser.open(managed.organise_path)
    page.once("dialog", lambda dialog: dialog.accept())
    with page.expect_navigation():
        page.get_by_role("button", name=re.compile("^End the token")).first.click()
    other.monitor.expect_statuses(401)
    assert other.open(managed.organise_path) == 401


@pytest.mark.slow
def test_a_dump_is_downloaded_and_restored(managed, tmp_path):
    page = managed.organiser.page
    managed.organiser.monitor.expect_statuses(422)
    page.get_by_text("Download an encrypted dump").click()
    page.get_by_label("Passphrase", exact=True).fill(THREE_WORDS)
    page.get_by_label("The same again").fill("correct horse")
    assert "This was not done." in managed.press("Download a copy")
    assert page.get_by_label("Passphrase", exact=True).input_value() == ""
    for label in ("Passphrase", "The same again"):
        page.get_by_label(label, exact=True).fill(THREE_WORDS)
    managed.organiser.monitor.allow_abort("/organise")
    with page.expect_download() as download:
        page.get_by_role("button", name="Download a copy").click()
    assert download.value.suggested_filename == f"{managed.slug}-2027-01-15.dump"
    path = tmp_path / "copy.dump"
    download.value.save_as(path)
    assert b"Alpha" not in path.read_bytes()
    storage = SqliteStorage(tmp_path / "elsewhere.db", create=True)
    other_boards = Boards(storage, DatabaseStore(storage))
    assert restore_board(other_boards, path, passphrase=THREE_WORDS) == managed.slug
    original = managed.live_server.boards.open(managed.slug)
    organiser = managed.live_server.boards.caller_by_token(
        managed.live_server.organiser, managed.slug
    )
    restored = other_boards.open(managed.slug).as_seen_by(organiser)
    assert restored.leaderboard()["rows"] == original.as_seen_by(organiser).leaderboard()["rows"]
    assert restored.ledger()[:5] == original.as_seen_by(organiser).ledger()[:5]
    other_boards.close()


@pytest.mark.slow
def test_only_organisers_can_open_the_page(managed, visit):
    public = visit()
    public.monitor.expect_statuses(401)
    assert public.open(managed.organise_path) == 401
    assert "Pause" not in public.text()
    public.page.get_by_role("link", name="Sign in").first.click()
    public.page.get_by_label("Token").fill(managed.alpha[1])
    with public.page.expect_navigation(url=f"**{managed.board_path}**"):
        public.page.get_by_role("button", name="Sign in").click()
    public.monitor.expect_statuses(403)
    assert public.open(managed.organise_path) == 403
    assert "Pause" not in public.text()
    assert public.page.get_by_role("link", name="Organise").count() == 0
