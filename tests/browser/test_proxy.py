"""Joining and submitting through nginx, over TLS, with a path prefix."""

import re

import pytest

from support.browser.browser_server import serve_for_browser
from support.browser.visitor import Visitor
from support.nginx import Nginx
from support.processes import free_port
from support.server.live_server import make_predictions


@pytest.fixture(scope="module")
def public(tmp_path_factory):
    """Serve boards behind nginx; give the server, with its public URL."""
    port = free_port()
    url = f"https://localhost:{port}/ladder"
    with serve_for_browser(tmp_path_factory.mktemp("server"), url=url, secure=True) as live_server:
        nginx = Nginx(live_server.port, port=port)
        live_server.url = url
        try:
            yield live_server
        finally:
            nginx.stop()


def test_joining_and_submitting_behind_a_path_prefix(browser, public):
    public.reset()
    public.create_board(title="Small")
    board = f"{public.url}/boards/{public.slug}"
    ada = Visitor(browser, public, trusting=True)  # reports requests outside of the path
    try:
        assert ada.open(f"{public.url}/") == 200
        ada.page.get_by_role("link", name="Small").first.click()
        ada.page.wait_for_url(board)
        ada.page.get_by_role("link", name="from a program").click()
        assert f"ladderboard submit {board} -f" in ada.text("main")
        ada.page.go_back()
        ada.page.get_by_role("link", name="Join").first.click()
        ada.page.get_by_label("name").first.fill("Ada")
        ada.page.get_by_role("button", name=re.compile("Join|Register")).click()
        ada.page.get_by_role("link", name="Go on to submit").click()
        ada.page.wait_for_url(f"{board}/submit")
        assert "submissions left" in ada.submit_file(make_predictions(30))
        (cookie,) = [
            cookie for cookie in ada.context.cookies() if cookie["name"].endswith("_session")
        ]
        assert (cookie["path"], cookie["secure"], cookie["httpOnly"]) == ("/ladder", True, True)
        ada.page.get_by_role("button", name="Sign out").click()
        ada.page.wait_for_url(f"{public.url}/")
        names = [cookie["name"] for cookie in ada.context.cookies()]
        assert "ladderboard_session" not in names
    finally:
        ada.close()
    ada.monitor.check()
