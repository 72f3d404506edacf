"""A browser, a live server and its visitors.

The server has real parser processes and uses SQLite: pages do not depend on the database, and the
tests of board and server cover both. One flow in ``test_flow.py`` runs on PostgreSQL.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from support.browser.browser_server import serve_for_browser
from support.browser.chromium import open_browser
from support.browser.example_boards import make_example_boards
from support.browser.visitor import Visitor

HERE = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark most tests without JavaScript as slow: the fast lane only submits and joins so."""
    for item in items:
        params = item.callspec.params if hasattr(item, "callspec") else {}
        if (
            params.get("script") is False
            and item.path.parent == HERE
            and item.path.stem not in {"test_join", "test_submit"}
        ):
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="module")
def browser():
    """Give a browser, closed with its module: its event loop would disturb other tests."""
    with open_browser() as browser:
        yield browser


@pytest.fixture(scope="module")
def live_server(tmp_path_factory):
    """Serve boards for all tests of a module, practically without rate limits."""
    with serve_for_browser(tmp_path_factory.mktemp("server")) as server:
        yield server


@pytest.fixture(scope="module")
def example_boards(live_server, tmp_path_factory):
    """Give boards in every state, for reading only; tests that change a board create one."""
    return make_example_boards(live_server, tmp_path_factory.mktemp("boards"))


@pytest.fixture
def make_board(live_server):
    """Give a function that creates a small board and returns its slug.

    Its rows are those of ``make_predictions``.
    """

    def make(**changes):
        live_server.reset()
        rules = {
            "title": "Small",
            "loss": "{name: accuracy, classes: [0, 1]}",
            "display": "{name: accuracy, digits: 3}",
        }
        live_server.create_board(**{**rules, **changes})
        return live_server.slug

    return make


@pytest.fixture
def visit(browser, live_server):
    """Give a function that opens a visitor; at the end their browsers must show no problems."""
    visitors = []

    def enter(token=None, **options):
        visitors.append(Visitor(browser, live_server, token, **options))
        return visitors[-1]

    yield enter
    for visitor in visitors:
        visitor.close()
    for visitor in visitors:
        visitor.monitor.check()
