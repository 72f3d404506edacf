"""The attack page: simulations run while the organiser watches."""

import pytest

from support.browser.page_checks import check_page


@pytest.fixture
def organiser(make_board, live_server, visit):
    """Give the organiser of a small board, on its attack page."""
    slug = make_board(title="Under attack", questions=60)
    visitor = visit(live_server.organiser)
    visitor.open(f"/boards/{slug}/organise")
    visitor.page.get_by_role("link", name="What could an attacker gain?").first.click()
    visitor.page.get_by_role("heading", level=1, name="What could an attacker gain?").wait_for()
    return visitor


@pytest.mark.slow
def test_a_simulation_shows_progress_and_results(organiser, make_board, live_server):
    page = organiser.page
    assert page.locator("progress").count() == 0
    page.get_by_role("button", name="Play the games").click()
    page.get_by_role("progressbar", name="The simulation is running.").wait_for()
    first = page.url
    # One simulation runs at a time, also for other boards.
    other = make_board(title="Beside it")
    other_page = organiser.context.new_page()
    other_page.goto(f"/boards/{other}/attack")
    assert "A simulation is running for" in other_page.inner_text("main")
    assert other_page.get_by_role("button", name="Play the games").count() == 0
    # The page polls until they end.
    page.get_by_role("heading", name="What they found").wait_for(timeout=240_000)
    assert page.url == first
    figure = page.locator("figure.chart svg:visible")
    assert figure.count() == 1
    assert figure.bounding_box()["height"] > 150
    rows = page.get_by_role("region", name="How much better").get_by_role("row")
    cells = [row.split("\t") for row in rows.all_inner_texts()[2:]]
    questions = [int(row[0].replace(",", "")) for row in cells]
    assert questions == sorted(questions)
    assert questions[-1] == 60
    board_gain, exact_gain = float(cells[-1][1]), float(cells[-1][2])
    assert exact_gain > board_gain  # the board protects against the attack
    assert exact_gain > 0.05
    check_page(organiser)
    page.get_by_role("button", name="Play again, with other luck").click()
    page.get_by_role("button", name="Cancel").click()
    page.get_by_text("The simulation was cancelled.").wait_for()
    assert "What they found" in organiser.text()  # the last complete results
    other_page.reload()
    assert other_page.get_by_role("button", name="Play the games").count() == 1


def test_a_simulation_can_be_watched_without_a_script(live_server, make_board, visit):
    slug = make_board(questions=60)
    organiser = visit(live_server.organiser, script=False)
    page = organiser.page
    organiser.open(f"/boards/{slug}/attack")
    page.get_by_role("button", name="Play the games").click()
    page.get_by_role("progressbar").wait_for()
    page.get_by_role("link", name="Look again").click()
    page.get_by_role("button", name="Cancel").click()
    assert "The simulation was cancelled." in organiser.text()


@pytest.mark.slow
def test_a_refused_start_is_not_sent_again_on_reload(organiser):
    organiser.monitor.expect_statuses(409)
    page, path = organiser.page, organiser.page.url
    other_page = organiser.context.new_page()
    other_page.goto(path)
    other_page.get_by_role("button", name="Play the games").click()
    other_page.get_by_role("progressbar").wait_for()
    methods = []
    page.on("request", lambda request: methods.append(request.method))
    page.get_by_role("button", name="Play the games").click()
    page.get_by_text("A simulation is already running").wait_for()
    other_page.get_by_role("button", name="Cancel").click()
    # The page with the refusal polls, too, and reloads with GET when the games end.
    page.get_by_text("The simulation was cancelled.").wait_for()
    assert methods.count("POST") == 1
    assert "The simulation is running." not in organiser.text()
