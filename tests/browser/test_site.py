"""A closed board as a folder of files, in a browser: behind a plain web server, and without one."""

import contextlib
import functools
import http.server
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from ladderboard.board import Caller, Role
from ladderboard.server import write_site
from support.browser.example_boards import make_small_board
from support.browser.page_checks import check_page
from support.browser.visitor import Visitor
from support.site_crawler import crawl_site

ORGANISER = Caller(Role.ORGANISER)
EVIL = "<script>alert(1)</script><img src=x onerror=alert(2)>"


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Python's own web server, which says nothing of what it is asked."""

    def log_message(self, *told):
        """Say nothing."""


@contextlib.contextmanager
def hosted(folder):
    """Serve a folder as any web server does."""
    handler = functools.partial(Quiet, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture(scope="module")
def sites(live_server, tmp_path_factory):
    """Write a board with a history, an odd one and a hidden one, below a prefix."""
    top = tmp_path_factory.mktemp("www")
    below = top / "archive" / "of old boards"
    below.mkdir(parents=True)
    boards = {
        "beetles-2026": make_small_board(
            live_server, "beetles-2026", 4, 6, title="Beetles, 2026"
        ).board,
        "odd": _odd(live_server),
        "many": _many(live_server),
        "hidden": _hidden(live_server),
    }
    for name, board in boards.items():
        board.closer.close(ORGANISER)
        crawl_site(write_site(board, below / name, bundle=name != "hidden").folder)
    return top, "archive/of old boards"


def _odd(live_server):
    """Return a board whose names are odd."""
    live_server.reset()
    board = live_server.create_board(
        title=f"'Title {EVIL}'", description=f"'{EVIL} [here](/there)'"
    )
    for name in ("עַמּוּד ראשון", "فريق الواحة", "x" * 64, EVIL[:60]):
        board.teams.create(ORGANISER, name)
    return board


def _many(live_server):
    """Return a board with two pages of standings."""
    live_server.reset()
    board = live_server.create_board(teams=200, questions=200)
    for at in range(102):
        board.teams.create(ORGANISER, f"Team {at}")
    return board


def _hidden(live_server):
    live_server.reset()
    return live_server.create_board(visibility="hidden")


@pytest.fixture(params=["hosted", "double-clicked"])
def url(request, sites):
    """Give where the sites are: below a prefix on a web server, or in a folder of one's own."""
    top, prefix = sites
    if request.param == "double-clicked":
        yield (top / prefix).as_uri()
        return
    with hosted(top) as server:
        yield f"{server}/{prefix.replace(' ', '%20')}"


@pytest.fixture
def visit(browser, url):
    """Give a function that opens a page, watched until the end."""
    visitors = []

    def enter(path, **how):
        visitor = Visitor(browser, SimpleNamespace(url=url), **how)
        visitors.append(visitor)
        visitor.page.goto(f"{url}/{path}")
        return visitor

    yield enter
    for each in visitors:
        each.close()
        each.monitor.check()


@pytest.mark.parametrize("site", ["beetles-2026", "odd", "hidden"])
@pytest.mark.parametrize("url", ["hosted"], indirect=True)  # axe reads a style sheet by itself
def test_it_can_be_read_in_every_light_and_on_a_phone(visit, site):
    check_page(visit(f"{site}/index.html"))


def test_it_looks_as_it_should(visit):
    visitor = visit("beetles-2026/index.html")
    back = "getComputedStyle(document.querySelector('.card')).borderTopLeftRadius"
    assert visitor.page.evaluate(back) == "12px"  # the style came, whatever the policy says
    box = visitor.page.locator("figure svg:visible").first.bounding_box()
    assert box["width"] > 500
    assert "The board was closed at 2027-01-15 08:00 UTC, after 18 questions." in visitor.text()


def test_one_walks_through_it(visit, url):
    visitor = visit("many/index.html", script=url.startswith("http"))
    page = visitor.page
    page.click("text=anybody can check it")
    assert page.url.endswith("many/index.html#check")
    page.click("text=Next page")
    assert page.url.endswith("many/standings-2.html#standings")
    assert "Team 101" in visitor.text("table.standings")
    page.click("text=First page")
    assert page.url.endswith("many/index.html#standings")
    page.click("a.brand")
    assert page.url.endswith("many/index.html")


def test_names_stay_names(visit):
    visitor = visit("odd/index.html")
    assert visitor.text("h1") == f"Title {EVIL}"
    assert EVIL[:60] in visitor.text("table.standings")


def test_a_download_comes_whole(visit, sites):
    visitor = visit("beetles-2026/index.html")
    visitor.monitor.allow_abort(".bundle")
    with visitor.page.expect_download() as coming:
        visitor.page.click("text=beetles-2026.bundle >> nth=0")
    top, prefix = sites
    whole = (top / prefix / "beetles-2026/beetles-2026.bundle").read_bytes()
    assert coming.value.suggested_filename == "beetles-2026.bundle"
    assert Path(coming.value.path()).read_bytes() == whole
