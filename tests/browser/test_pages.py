"""Every page in every light: nothing that axe-core minds, nothing that is cut off or too wide."""

import pytest

from support.browser.page_checks import check_page
from support.browser.page_states import PAGE_STATES

STATES = [
    pytest.param(state, id=state.name, marks=[pytest.mark.slow] if state.slow else [])
    for state in PAGE_STATES
]


@pytest.mark.parametrize("state", STATES)
def test_a_page_can_be_read_in_every_light_and_on_a_phone(visit, example_boards, state):
    visitor = visit(state.token(example_boards))
    visitor.monitor.expect_statuses(*state.statuses)
    visitor.open(state.path)
    state.prepare(visitor, example_boards)
    check_page(visitor)
