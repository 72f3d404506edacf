"""One board from its first visitor to its close, on PostgreSQL."""

import secrets

import pytest

from ladderboard.ledger import PostgresStorage
from support.browser.browser_server import serve_for_browser
from support.server.live_server import make_predictions


@pytest.fixture(scope="module")
def live_server(postgres, tmp_path_factory):
    """Serve boards from PostgreSQL."""
    storage = PostgresStorage(postgres.url(), create=True, schema=f"w_{secrets.token_hex(6)}")
    with serve_for_browser(tmp_path_factory.mktemp("server"), storage) as server:
        yield server


def test_a_board_from_its_first_team_to_its_close(visit, live_server, make_board):
    slug = make_board(title="All of it", finals="{selections: 1}")
    board = f"/boards/{slug}"
    team, organiser = visit(), visit(live_server.organiser)
    team.open("/")
    team.page.get_by_role("link", name="All of it").click()
    team.page.get_by_role("link", name="Join").click()
    team.page.get_by_label("Your team's name").fill("Alpha")
    team.page.get_by_role("button", name="Join").click()
    team.page.get_by_role("link", name="Go on to submit").click()
    assert team.submit_file(make_predictions(60, private=20)).startswith(
        "New best: 0.8 Accuracy 0.8 is the first score. 24 submissions left."
    )
    team.monitor.expect_statuses(422)
    assert "Nothing was counted" in team.submit_file(b"id,prediction\n1,1\n")
    organiser.open(f"{board}/organise/teams")
    page = organiser.page
    row = page.get_by_role("row", name="Alpha").first.inner_text()
    assert {"Alpha", "1", "0.8"} <= set(row.split())
    organiser.open(f"{board}/organise")
    with page.expect_navigation():
        page.get_by_role("button", name="Pause the board").click()
    team.open(f"{board}/submit")
    assert "The board is paused" in team.text()
    with page.expect_navigation():
        page.get_by_role("button", name="Resume the board").click()
    team.open(f"{board}/submit")
    assert team.submit_file(make_predictions(30, private=10)).startswith(
        "New best: 0.9 Accuracy went from 0.8 to 0.9."
    )
    organiser.open(f"{board}/organise/settings")
    page.get_by_role("link", name="Close…").click()
    page.get_by_label(f"Type {slug} to confirm").fill(slug)
    page.once("dialog", lambda dialog: dialog.accept())
    with page.expect_navigation():
        page.get_by_role("button", name="Close the board for good").click()
    team.open(f"{board}/leaderboard")
    finals = team.page.get_by_role("region", name="Final ranking").first.get_by_role("row")
    assert finals.nth(1).inner_text().split("\t")[2] == "0.9"
