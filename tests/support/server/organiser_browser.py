"""An HTTP client on the organiser's page of a board, with methods that send its forms."""

from __future__ import annotations

import re

from support.server.live_server import csrf_token

# Where an accepted form leads, unless it is the overview.
NEXT_PAGES = {
    "amend": "/settings",
    "show": "/settings",
    "end": "/settings/access",
    "webhook": "/settings/webhooks",
}


class OrganiserBrowser:
    """A client that is signed in with ``token`` (None: not at all), for the organiser's pages.

    ``suffix`` is what follows the path of the overview, as in ``/teams/ID``.
    """

    def __init__(self, live_server, token):
        self.live_server, self.client = live_server, live_server.browser()
        if token is not None:
            assert live_server.sign_in(self.client, token).status_code == 303
        self.path = f"/boards/{live_server.slug}/organise"

    def get(self, suffix=""):
        """Return the reply to a request for the page."""
        return self.client.get(self.path + suffix)

    def csrf(self):
        """Return this client's CSRF token."""
        return csrf_token(self.client.get("/login").text)

    def send(self, action, suffix="", **fields):
        """Send a form; return the reply."""
        data = {"csrf": self.csrf(), "do": action, **fields}
        return self.client.post(self.path + suffix, data=data)

    def send_accepted(self, action, outcome, suffix="", **fields):
        """Send a form that is accepted; return the page to which the reply redirects."""
        reply = self.send(action, suffix, **fields)
        location = f"{self.path}{suffix or NEXT_PAGES.get(action, '')}?done={outcome}"
        assert (reply.status_code, reply.headers.get("location")) == (303, location), reply.text
        page = self.client.get(location)
        assert page.status_code == 200
        assert 'class="notice notice-good" role="status"' in page.text
        return page.text

    def send_refused(self, action, status, message, suffix="", **fields):
        """Send a form that is refused with a message; return the page."""
        reply = self.send(action, suffix, **fields)
        assert reply.status_code == status, reply.text
        alert = re.search(r'role="alert">(.*?)</div>', reply.text, re.DOTALL).group(1)
        assert message in alert
        return reply.text

    def snapshot(self):
        """Return everything that a form could change."""
        board = self.live_server.boards.open(self.live_server.slug)
        tables = ("board", "team", "credential", "entry", "webhook", "delivery")
        with board.reading() as view:
            return [view.query(f"SELECT * FROM main.{table} ORDER BY 1, 2") for table in tables]

    def seen_version(self, group):
        """Return the version of the rules that a form of amendments was made from."""
        form = rf'name="group" value="{group}">\s*<input [^>]*"seen" value="(\w+)"'
        return re.search(form, self.get(f"/settings/{group}").text).group(1)
