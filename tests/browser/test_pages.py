"""Every page in light and dark and on a phone: accessible, not cut off, not too wide."""

import pytest

from support.browser.page_checks import check_page
from support.browser.page_states import PAGE_STATES, submit_invalid

STATES = [
    pytest.param(state, id=state.name, marks=[pytest.mark.slow] if state.slow else [])
    for state in PAGE_STATES
]


def test_the_pages_of_a_board_with_thirty_teams_fit_two_screens(visit, example_boards):
    team = visit(example_boards["leaves"].teams[0].token)
    team.page.set_viewport_size({"width": 1280, "height": 800})
    heights = {}
    for tab in ("", "/data", "/leaderboard", "/submit", "/rules", "/verify"):
        assert team.open(f"/boards/leaves{tab}") == 200
        heights[tab] = team.page.evaluate("document.documentElement.scrollHeight")
    team.monitor.expect_statuses(422)
    team.open("/boards/leaves/submit")
    submit_invalid(team, example_boards)
    heights["refused"] = team.page.evaluate("document.documentElement.scrollHeight")
    assert max(heights.values()) <= 2 * 800, heights


@pytest.mark.parametrize("state", STATES)
def test_pages_are_accessible_in_all_colour_schemes_and_on_phones(visit, example_boards, state):
    visitor = visit(state.token(example_boards))
    visitor.monitor.expect_statuses(*state.statuses)
    visitor.open(state.path)
    state.prepare(visitor, example_boards)
    check_page(visitor)
