"""The site in a real browser: at any address, on a phone, offline, and searched."""

from __future__ import annotations

import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest

from support.browser.chromium import DESKTOP, PHONE, open_browser

PAGES = (
    "index", "tutorials/first-board", "reference/cli", "figures/arena/table",
    "explanation/certificates", "project/CHANGELOG",
)  # fmt: skip


@pytest.fixture(scope="module")
def browser():
    with open_browser() as instance:
        yield instance


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *args):
        """Say nothing."""


@pytest.fixture(scope="module")
def address(site):
    """Serve the site below a prefix, as a host may."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=site.parent))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/{site.name}"
    server.shutdown()
    server.server_close()


@pytest.fixture
def visit(browser, address):
    """Give a function that opens a page, which may ask for nothing elsewhere and not complain."""
    wrong, contexts = [], []

    def opened(path, view=DESKTOP, base=address):
        context = browser.new_context(viewport=view)
        contexts.append(context)
        page = context.new_page()
        page.on(
            "request", lambda sent: sent.url.startswith((base, "data:")) or wrong.append(sent.url)
        )
        page.on("console", lambda message: wrong.append(message.text))
        page.on("pageerror", lambda message: wrong.append(str(message)))
        page.goto(f"{base}/{path}.html", wait_until="load")
        return page

    yield opened
    for context in contexts:
        context.close()
    assert wrong == []


@pytest.mark.parametrize("path", PAGES)
def test_a_phone_is_wide_enough(visit, path):
    page = visit(path, PHONE)
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    assert page.locator("h1").first.is_visible()
    for picture in page.locator("article img").all():
        assert picture.evaluate("image => image.complete && image.naturalWidth > 0")


def test_wide_tables_scroll_by_themselves(visit):
    page = visit("figures/arena/table", PHONE)
    around = page.locator("article .md-typeset__scrollwrap").first
    assert around.evaluate("table => table.scrollWidth > table.clientWidth")
    assert around.evaluate("element => getComputedStyle(element).overflowX") == "auto"


def test_search_finds_a_page(visit):
    page = visit("index")
    box = page.get_by_role("combobox").or_(page.get_by_role("textbox")).first
    for _ in range(100):  # a key that is pressed before the page's script listens is lost
        page.keyboard.press("Control+k")
        page.wait_for_timeout(250)
        if box.is_visible():
            break
    box.fill("shaky ladder")
    link = page.get_by_role("option", name="Shaky").first
    link.wait_for()
    assert link.get_attribute("href")


def test_prompts_are_not_copied(visit):
    page = visit("tutorials/first-board")
    style = "element => getComputedStyle(element).userSelect"
    assert page.locator(".highlight .gp").first.evaluate(style) == "none"


def test_it_opens_from_a_folder(browser, site):
    """Without search, for which a browser starts nothing there."""
    page = browser.new_page()
    sent = []
    page.on("request", lambda request: sent.append(request.url))
    page.goto((site / "index.html").as_uri())
    page.get_by_role("link", name="First board").first.click()
    assert page.locator("h1").first.inner_text().startswith("First board")
    assert (
        page.locator("article h1").evaluate("element => getComputedStyle(element).fontWeight")
        > "400"
    )
    assert all(request.startswith("file:") for request in sent)
    page.close()
