"""The organiser's page for tests: a browser, and ways to fill in its forms."""

from __future__ import annotations

import re

__all__ = ["Desk"]


class Desk:
    """A browser in which somebody is signed in, before the organiser's page."""

    def __init__(self, live_server, token):
        self.live_server, self.browser = live_server, live_server.browser()
        if token is not None:
            assert live_server.sign_in(self.browser, token).status_code == 303
        self.place = f"/boards/{live_server.slug}/organise"

    def see(self, end=""):
        return self.browser.get(self.place + end)

    def word(self):
        page = self.browser.get("/login").text
        return re.search(r'name="csrf" value="([^"]+)"', page).group(1)

    def send(self, do, end="", **fields):
        return self.browser.post(self.place + end, data={"csrf": self.word(), "do": do, **fields})

    def done(self, do, word, end="", **fields):
        """Send a form that is done; return the page that comes after it."""
        said = self.send(do, end, **fields)
        assert (said.status_code, said.headers.get("location")) == (
            303,
            f"{self.place}{end}?done={word}",
        ), said.text
        page = self.browser.get(said.headers["location"])
        assert page.status_code == 200
        assert 'class="notice notice-good" role="status"' in page.text
        return page.text

    def refused(self, do, status, sentence, end="", **fields):
        """Send a form that is refused; return the page, which says why."""
        said = self.send(do, end, **fields)
        assert said.status_code == status, said.text
        alert = re.search(r'role="alert">(.*?)</div>', said.text, re.DOTALL).group(1)
        assert sentence in alert
        return said.text

    def state(self):
        """Return everything that a form could change."""
        board = self.live_server.boards.open(self.live_server.slug)
        tables = ("board", "team", "credential", "entry")
        with board.reading() as view:
            return [view.run(f"SELECT * FROM main.{table} ORDER BY 1, 2") for table in tables]

    def seen(self, group):
        """Return what a form of amendments says that it has seen."""
        form = rf'name="group" value="{group}">\s*<input [^>]*"seen" value="(\w+)"'
        return re.search(form, self.see().text).group(1)
