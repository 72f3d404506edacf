"""A browser, a live server, and people who visit it.

The server reads files in its own parsers, as always, and keeps its boards in SQLite: what a browser
sees does not depend on the database, which the tests of the board room and the server look at with
both. One flow in ``test_flow.py`` goes through PostgreSQL all the same.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

# Tests are no package: helpers are found beside this file, and where servers are tested.
HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "server")]

from _chromium import open_browser  # noqa: E402
from _live import serve  # noqa: E402
from _visitor import Visitor  # noqa: E402
from _world import make_world  # noqa: E402


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Without a script the fast lane submits and joins; script/test --all does everything so."""
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
    """Give a browser. It goes with its module: its loop would be in the way of other tests'."""
    with open_browser() as made:
        yield made


@pytest.fixture(scope="module")
def live_server(tmp_path_factory):
    """Serve boards for all tests of a module, without limits on what goes wrong."""
    with serve(tmp_path_factory.mktemp("live_server")) as made:
        yield made


@pytest.fixture(scope="module")
def world(live_server, tmp_path_factory):
    """Give the lively world, which is for looking at: whoever changes things makes a board."""
    return make_world(live_server, tmp_path_factory.mktemp("world"))


@pytest.fixture
def make_board(live_server):
    """Give a function that makes a small board for one test; it returns the board's slug.

    Ids are 0 to 399, labels 0 and 1 in turn, the last 100 private; ``predict`` makes files for it.
    """

    def make(**more):
        live_server.reset()
        rules = {
            "title": "Small",
            "loss": "{name: accuracy, classes: [0, 1]}",
            "display": "{name: accuracy, digits: 3}",
        }
        live_server.create_board(**{**rules, **more})
        return live_server.slug

    return make


@pytest.fixture
def visit(browser, live_server):
    """Give a function that lets somebody in; what their browsers did is looked at in the end."""
    visitors = []

    def enter(token=None, **how):
        visitors.append(Visitor(browser, live_server, token, **how))
        return visitors[-1]

    yield enter
    for each in visitors:
        each.leave()
    for each in visitors:
        each.watch.check()
