"""An organiser at work, and what others see of it."""

import re

import pytest

from ladderboard.board import Boards, DatabaseStore, restore_board
from ladderboard.ledger import SqliteStorage
from support.browser.keyboard import KeyboardUser
from support.server.live_server import make_predictions

WORDS = "correct horse battery"


class Run:
    """A board that is run: its pages, two teams that have asked, and whoever is needed."""

    def __init__(self, live_server, slug, visit):
        self.live_server, self.slug, self.visit = live_server, slug, visit
        self.board, self.page = f"/boards/{slug}", f"/boards/{slug}/organise"
        self.alpha, self.beta = live_server.join("Alpha"), live_server.join("Beta")
        for team, wrong in ((self.alpha, 60), (self.beta, 45)):
            live_server.submit(team[1], make_predictions(wrong, private=wrong // 3))
        self.organiser = visit(live_server.organiser)
        self.organiser.open(self.page)

    def press(self, name):
        """Press a button of the organiser's page; return what is said about it."""
        with self.organiser.page.expect_navigation():
            self.organiser.page.get_by_role("button", name=name, exact=True).click()
        return self.organiser.text("main [role=status], main [role=alert]")

    def seen(self, token=None):
        """Return what somebody reads on the board's page."""
        visitor = self.visit(token)
        visitor.open(self.board)
        return visitor.text()


@pytest.fixture
def run(live_server, make_board, visit):
    """Give a board that is run."""
    return Run(live_server, make_board(title="Well run", finals="{selections: 1}"), visit)


@pytest.mark.slow
def test_the_meter_and_who_was_active(run):
    said = run.organiser.text()
    for told in ("Questions used 2 of 100; 98 left", "Visible changes 2", "Each team's share 25"):
        assert told in said
    row = run.organiser.page.get_by_role("row", name="Beta").first.inner_text().split()
    assert row[:4] == ["Beta", "1", "24", "0.850"]
    assert run.organiser.page.locator("main figure.chart svg:visible").count() >= 2


def test_pause_with_a_keyboard_and_resume(run, visit):
    keys = KeyboardUser(run.organiser)
    keys.follow("Pause the board", "Space")
    assert "The board is paused. It takes no questions" in run.organiser.text("[role=status]")
    team = visit(run.alpha[1])
    team.open(f"{run.board}/submit")
    assert "The board is paused" in team.text()
    assert team.page.locator("input[type=file]").count() == 0
    assert "paused" in run.seen()
    assert run.press("Resume the board") == "The board takes questions again."
    team.open(f"{run.board}/submit")
    assert team.submit_file(make_predictions(30)).startswith("A new best: 0.900")


def test_freeze_and_hide(run):
    organiser = run.organiser.page
    organiser.get_by_role("radio", name="frozen").check()
    assert "others see it as it stands now" in run.press("Change who sees what")
    run.live_server.submit(run.alpha[1], make_predictions(3))
    public = run.seen()
    assert "froze" in public
    assert "0.850" in public
    assert "0.990" not in public
    assert "0.990" in run.seen(run.live_server.organiser)
    organiser.get_by_role("radio", name="hidden").check()
    run.press("Change who sees what")
    public = run.seen()
    assert "hidden" in public
    assert "0.850" not in public
    assert "Beta" not in public
    organiser.get_by_role("radio", name="anonymous").check()
    run.press("Change who sees what")
    public = run.seen()
    assert "0.990" in public
    assert "Alpha" not in public
    organiser.get_by_role("radio", name="public").check()
    assert run.press("Change who sees what") == "Everybody sees the standings, with names."
    assert "Alpha" in run.seen()


@pytest.mark.slow
def test_amend_a_deadline_and_a_title(run):
    page = run.organiser.page
    run.organiser.monitor.expect_statuses(422)
    page.get_by_text("Deadline and phases").click()
    page.get_by_label("End", exact=True).first.fill("2027-01-31")
    said = run.press("Amend the times")
    assert "This was not done." in said
    assert "needs an offset" in said
    end = page.get_by_label("End", exact=True).first
    assert end.input_value() == "2027-01-31"  # and the form is still open
    end.fill("2027-01-31 AoE")
    assert "The rules are amended" in run.press("Amend the times")
    assert "2027-02-01 12:00 UTC" in run.seen()
    page.get_by_text("Title, description and metric").click()
    page.get_by_label("Title", exact=True).fill("Very well run <i>")
    page.get_by_label("Description, in Markdown").fill("Be **bold**.\n\n<script>alert(1)</script>")
    run.press("Amend the texts")
    visitor = run.visit()
    visitor.open(run.board)
    assert visitor.page.get_by_role("heading", level=1).inner_text() == "Very well run <i>"
    assert visitor.page.locator("main strong", has_text="bold").count() == 1
    assert "<script>alert(1)</script>" in visitor.text()


def test_close_for_good_and_not_by_accident(run):
    page, asked = run.organiser.page, []
    run.organiser.monitor.expect_statuses(422)
    page.get_by_text("I want to close this board").click()
    confirm = page.get_by_label(f"Type {run.slug} to confirm")
    answer = {"accept": False}

    def ask(dialog):
        asked.append(dialog.message)
        dialog.accept() if answer["accept"] else dialog.dismiss()

    page.on("dialog", ask)
    page.get_by_role("button", name="Close the board for good").click()  # without its name
    assert asked == []
    confirm.fill(run.slug)
    page.get_by_role("button", name="Close the board for good").click()
    assert asked == [f"Close {run.slug} for good? This cannot be undone."]
    assert run.live_server.call("GET", "/boards/first").json()["status"] == "open"
    answer["accept"] = True
    confirm.fill("another")
    assert "This was not done." in run.press("Close the board for good")
    assert run.live_server.call("GET", "/boards/first").json()["status"] == "open"
    page.get_by_label(f"Type {run.slug} to confirm").fill(run.slug)
    assert run.press("Close the board for good") == "The board is closed for good."
    assert page.get_by_role("button", name="Pause the board").count() == 0
    visitor = run.visit(run.alpha[1])
    visitor.open(run.board)
    finals = visitor.page.get_by_role("region", name="Final ranking").first
    rows = [row.split("\t") for row in finals.get_by_role("row").all_inner_texts()[1:]]
    assert [(row[0], row[1].split()[0], row[2]) for row in rows] == [
        ("1", "Beta", "0.850"), ("2", "Alpha", "0.800"),
    ]  # fmt: skip
    visitor.open(f"{run.board}/submit")
    assert "The board is closed" in visitor.text()


def test_a_team_is_added_disqualified_and_reinstated(run, visit):
    page = run.organiser.page
    page.get_by_label("Its name").fill("Gamma")
    said = run.press("Add the team")
    token = re.search(r"lb_team_[\w-]+", said).group()
    assert "The token of Gamma" in said
    team = visit(token)
    team.open(f"{run.board}/submit")
    assert team.submit_file(make_predictions(15)).startswith("A new best: 0.950")
    run.organiser.open(run.page)
    assert token not in page.content()
    page.get_by_role("link", name="Gamma").click()
    page.once("dialog", lambda dialog: dialog.accept())
    assert "it is no longer shown" in run.press("Disqualify the team")
    public = run.seen()
    assert "Gamma" not in public
    assert "0.950" not in public
    assert run.press("Reinstate the team") == "The team is shown again."
    assert "Gamma" in run.seen()
    page.once("dialog", lambda dialog: dialog.accept())
    assert "has ended" in run.press("End its token")
    team.open(f"{run.board}/submit")
    assert "Sign in to submit" in team.text()


def test_an_invitation_is_used_by_another_browser(run, visit):
    run.organiser.page.get_by_text("Registration and finals", exact=True).click()
    run.organiser.page.get_by_label("Teams come in").select_option("invited")
    run.press("Amend registration and finals")
    said = run.press("Make an invitation")
    invitation = re.search(r"lb_invitation_[\w-]+", said).group()
    guest = visit()
    guest.open(f"{run.board}/join")
    guest.page.get_by_label("Your team's name").fill("Guests")
    guest.page.get_by_label("Invitation", exact=True).fill(invitation)
    guest.page.get_by_role("button", name="Join").click()
    assert "Welcome, Guests" in guest.text()
    run.organiser.open(run.page)
    assert "Guests" in run.organiser.text()


@pytest.mark.slow
def test_somebody_is_trusted_and_then_not(run, visit):
    page = run.organiser.page
    page.get_by_label("They are to be").select_option("organiser")
    said = run.press("Make a token")
    token = re.search(r"lb_organiser_[\w-]+", said).group()
    other = visit(token)
    other.open(run.page)
    assert "Pause the board" in other.text()
    run.organiser.open(run.page)
    page.once("dialog", lambda dialog: dialog.accept())
    with page.expect_navigation():
        page.get_by_role("button", name=re.compile("^End the token")).first.click()
    other.monitor.expect_statuses(401)
    assert other.open(run.page) == 401


@pytest.mark.slow
def test_a_copy_is_downloaded_and_restored_elsewhere(run, tmp_path):
    page = run.organiser.page
    run.organiser.monitor.expect_statuses(422)
    page.get_by_text("Download an encrypted dump").click()
    page.get_by_label("Passphrase", exact=True).fill(WORDS)
    page.get_by_label("The same again").fill("correct horse")
    assert "This was not done." in run.press("Download a copy")
    assert page.get_by_label("Passphrase", exact=True).input_value() == ""
    for label in ("Passphrase", "The same again"):
        page.get_by_label(label, exact=True).fill(WORDS)
    run.organiser.monitor.allow_abort("/organise")
    with page.expect_download() as download:
        page.get_by_role("button", name="Download a copy").click()
    assert download.value.suggested_filename == f"{run.slug}-2027-01-15.dump"
    place = tmp_path / "copy.dump"
    download.value.save_as(place)
    assert b"Alpha" not in place.read_bytes()
    storage = SqliteStorage(tmp_path / "elsewhere.db", create=True)
    elsewhere = Boards(storage, DatabaseStore(storage))
    assert restore_board(elsewhere, place, passphrase=WORDS) == run.slug
    here = run.live_server.boards.open(run.slug)
    organiser = run.live_server.boards.caller_by_token(run.live_server.organiser, run.slug)
    there = elsewhere.open(run.slug).as_seen_by(organiser)
    assert there.leaderboard()["rows"] == here.as_seen_by(organiser).leaderboard()["rows"]
    assert there.ledger()[:5] == here.as_seen_by(organiser).ledger()[:5]
    elsewhere.close()


@pytest.mark.slow
def test_others_are_not_let_in(run, visit):
    public = visit()
    public.monitor.expect_statuses(401)
    assert public.open(run.page) == 401
    assert "Pause" not in public.text()
    public.page.get_by_role("link", name="Sign in").first.click()
    public.page.get_by_label("Token").fill(run.alpha[1])
    with public.page.expect_navigation(url=f"**{run.board}**"):
        public.page.get_by_role("button", name="Sign in").click()
    public.monitor.expect_statuses(403)
    assert public.open(run.page) == 403
    assert "Pause" not in public.text()
    assert public.page.get_by_role("link", name="Organise").count() == 0
