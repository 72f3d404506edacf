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


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    """Python's web server, without a log."""

    def log_message(self, *arguments):
        """Log nothing."""


@contextlib.contextmanager
def serve_folder(folder):
    """Serve a folder with a plain web server."""
    handler = functools.partial(QuietHandler, directory=folder)
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
    """Write the sites of four boards below a path prefix."""
    top = tmp_path_factory.mktemp("www")
    below = top / "archive" / "of old boards"
    below.mkdir(parents=True)
    boards = {
        "beetles-2026": make_small_board(
            live_server, "beetles-2026", 4, 6, title="Beetles, 2026"
        ).board,
        "odd": _make_board_with_odd_names(live_server),
        "many": _make_board_with_many_teams(live_server),
        "hidden": _make_hidden_board(live_server),
    }
    for name, board in boards.items():
        board.closer.close(ORGANISER)
        crawl_site(write_site(board, below / name, bundle=name != "hidden").folder)
    return top, "archive/of old boards"


def _make_board_with_odd_names(live_server):
    """Return a board with HTML and right-to-left text in its names."""
    live_server.reset()
    board = live_server.create_board(
        title=f"'Title {EVIL}'", description=f"'{EVIL} [here](/there)'"
    )
    for name in ("עַמּוּד ראשון", "فريق الواحة", "x" * 64, EVIL[:60]):
        board.teams.create(ORGANISER, name)
    return board


def _make_board_with_many_teams(live_server):
    """Return a board with two pages of standings."""
    live_server.reset()
    board = live_server.create_board(teams=200, questions=200)
    for number in range(102):
        board.teams.create(ORGANISER, f"Team {number}")
    return board


def _make_hidden_board(live_server):
    live_server.reset()
    return live_server.create_board(visibility="hidden")


@pytest.fixture(params=["hosted", "double-clicked"])
def url(request, sites):
    """Give the URL of the sites: on a web server below a prefix, or as local files."""
    top, prefix = sites
    if request.param == "double-clicked":
        yield (top / prefix).as_uri()
        return
    with serve_folder(top) as server:
        yield f"{server}/{prefix.replace(' ', '%20')}"


@pytest.fixture
def visit(browser, url):
    """Give a function that opens a page; its monitor is checked at the end."""
    visitors = []

    def enter(path, **options):
        visitor = Visitor(browser, SimpleNamespace(url=url), **options)
        visitors.append(visitor)
        visitor.page.goto(f"{url}/{path}")
        return visitor

    yield enter
    for visitor in visitors:
        visitor.close()
        visitor.monitor.check()


@pytest.mark.parametrize("site", ["beetles-2026", "odd", "hidden"])
@pytest.mark.parametrize("page", ["index", "standings", "verify"])
@pytest.mark.parametrize("url", ["hosted"], indirect=True)  # axe fetches style sheets itself
def test_sites_are_accessible_in_all_colour_schemes_and_on_phones(visit, site, page):
    check_page(visit(f"{site}/{page}.html"))


def test_the_style_sheet_is_applied(visit):
    visitor = visit("beetles-2026/index.html")
    radius = "getComputedStyle(document.querySelector('.card')).borderTopLeftRadius"
    assert visitor.page.evaluate(radius) == "12px"  # the policy allows the style sheet
    box = visitor.page.locator("figure svg:visible").first.bounding_box()
    assert box["width"] > 500
    assert "The board was closed at 2027-01-15 08:00 UTC, after 18 submissions." in visitor.text()


def test_links_work(visit, url):
    visitor = visit("many/index.html", script=url.startswith("http"))
    page = visitor.page
    page.click("text=anyone can check it")
    assert page.url.endswith("many/verify.html#check")
    page.click("text=Leaderboard")
    page.click("text=Public leaderboard")
    assert page.url.endswith("many/standings.html")
    for number in range(2, 6):
        page.click("text=Next page")
        assert page.url.endswith(f"many/standings-{number}.html")
        assert f"Page {number}" in visitor.text(".pages")
    assert "Team 101" in visitor.text("table.standings")
    page.click("text=First page")
    assert page.url.endswith("many/standings.html")
    page.click("a.brand")
    assert page.url.endswith("many/index.html")


def test_names_are_escaped(visit):
    visitor = visit("odd/standings.html")
    assert visitor.text("h1") == f"Title {EVIL}"
    assert EVIL[:60] in visitor.text("table.standings")


def test_the_bundle_can_be_downloaded(visit, sites):
    visitor = visit("beetles-2026/verify.html")
    visitor.monitor.allow_abort(".bundle")
    with visitor.page.expect_download() as download:
        visitor.page.click("text=beetles-2026.bundle >> nth=0")
    top, prefix = sites
    content = (top / prefix / "beetles-2026/beetles-2026.bundle").read_bytes()
    assert download.value.suggested_filename == "beetles-2026.bundle"
    assert Path(download.value.path()).read_bytes() == content
