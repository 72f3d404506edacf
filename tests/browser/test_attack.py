"""What could an attacker gain: games that are played while one watches."""

import pytest

from support.browser.page_checks import check_page


@pytest.fixture
def organiser(make_board, live_server, visit):
    """Give the organiser of a small board, on the page of its attacks."""
    slug = make_board(title="Under attack", questions=60)
    made = visit(live_server.organiser)
    made.open(f"/boards/{slug}/organise")
    made.page.get_by_role("link", name="What could an attacker gain?").first.click()
    made.page.get_by_role("heading", level=1, name="What could an attacker gain?").wait_for()
    return made


@pytest.mark.slow
def test_games_run_to_their_figure(organiser, make_board, live_server):
    page = organiser.page
    assert page.locator("progress").count() == 0
    page.get_by_role("button", name="Play the games").click()
    page.get_by_role("progressbar", name="The games are under way.").wait_for()
    first = page.url
    # Another board's organiser finds the one process taken.
    other = make_board(title="Beside it")
    beside = organiser.context.new_page()
    beside.goto(f"/boards/{other}/attack")
    assert "Games are under way for" in beside.inner_text("main")
    assert beside.get_by_role("button", name="Play the games").count() == 0
    # The page follows them by itself.
    page.get_by_role("heading", name="What they found").wait_for(timeout=240_000)
    assert page.url == first
    figure = page.locator("figure.chart svg:visible")
    assert figure.count() == 1
    assert figure.bounding_box()["height"] > 150
    rows = page.get_by_role("region", name="How much better").get_by_role("row")
    told = [row.split("\t") for row in rows.all_inner_texts()[2:]]
    asked = [int(row[0].replace(",", "")) for row in told]
    assert asked == sorted(asked)
    assert asked[-1] == 60
    ours, exact = float(told[-1][1]), float(told[-1][2])
    assert exact > ours  # which is what the board is for
    assert exact > 0.05
    check_page(organiser)
    page.get_by_role("button", name="Play again, with other luck").click()
    page.get_by_role("button", name="Cancel").click()
    page.get_by_text("The games were cancelled.").wait_for()
    assert "What they found" in organiser.text()  # the last whole ones
    beside.reload()
    assert beside.get_by_role("button", name="Play the games").count() == 1


def test_without_a_script_the_page_comes_again_by_itself(live_server, make_board, visit):
    slug = make_board(questions=60)
    organiser = visit(live_server.organiser, script=False)
    page = organiser.page
    organiser.open(f"/boards/{slug}/attack")
    page.get_by_role("button", name="Play the games").click()
    page.get_by_role("progressbar").wait_for()
    page.get_by_role("link", name="Look again").click()
    page.get_by_role("button", name="Cancel").click()
    assert "The games were cancelled." in organiser.text()


@pytest.mark.slow
def test_a_start_that_was_refused_is_not_sent_again_when_the_games_end(organiser):
    organiser.monitor.expect_statuses(409)
    page, path = organiser.page, organiser.page.url
    beside = organiser.context.new_page()
    beside.goto(path)
    beside.get_by_role("button", name="Play the games").click()
    beside.get_by_role("progressbar").wait_for()
    sent = []
    page.on("request", lambda request: sent.append(request.method))
    page.get_by_role("button", name="Play the games").click()
    page.get_by_text("Nothing was begun").wait_for()
    beside.get_by_role("button", name="Cancel").click()
    # The page that refused follows the games, and comes again when they have ended: by itself.
    page.get_by_text("The games were cancelled.").wait_for()
    assert sent.count("POST") == 1
    assert "under way" not in organiser.text()
