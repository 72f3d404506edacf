"""Somebody with a browser of their own."""

from __future__ import annotations

from _chromium import DESK, PHONE
from _watch import Watch
from axe_playwright_python.sync_playwright import Axe

from ladderboard.board import token_hash
from ladderboard.server._auth import SESSION

__all__ = ["Visitor"]

_AXE = Axe()
# What can be tapped must be large enough, which axe does not look at by itself.
_RULES = {"resultTypes": ["violations"], "rules": {"target-size": {"enabled": True}}}
_WIDER = """
() => {
  const page = document.scrollingElement;
  if (page.scrollWidth <= innerWidth) return [];
  return [...document.body.querySelectorAll("*")]
    .filter((each) => {
      const { left, right } = each.getBoundingClientRect();
      const open = getComputedStyle(each).overflowX === "visible";
      return right > innerWidth + 0.5 || (open && left + each.scrollWidth > innerWidth + 0.5);
    })
    .map((each) => each.outerHTML.slice(0, 120));
}
"""


class Visitor:
    """One browser context on one server, watched.

    With a ``token`` somebody is signed in already; ``script=False`` has no JavaScript;
    ``trusting`` minds no certificate of the tests' own making.
    """

    def __init__(
        self,
        browser,
        live_server,
        token=None,
        *,
        script=True,
        motion=False,
        dark=False,
        phone=False,
        scale=1,
        trusting=False,
    ) -> None:
        self.live_server = live_server
        self.context = browser.new_context(
            base_url=live_server.url,
            viewport=PHONE if phone else DESK,
            has_touch=phone,
            is_mobile=phone,
            device_scale_factor=scale,
            color_scheme="dark" if dark else "light",
            java_script_enabled=script,
            locale="en-GB",
            timezone_id="UTC",
            reduced_motion="no-preference" if motion else "reduce",
            ignore_https_errors=trusting,
        )
        self.context.set_default_timeout(15_000)
        self.watch = Watch(self.context, live_server.url)
        if token is not None:
            cookie = live_server.app.state.work.sessions.start(token_hash(token)).cookie
            self.context.add_cookies([{"name": SESSION, "value": cookie, "url": live_server.url}])
        self.page = self.context.new_page()

    def open(self, path: str) -> int:
        """Go to a page; return its status."""
        return self.page.goto(path).status

    def said(self, selector: str = "main") -> str:
        """Return what can be read, with single spaces."""
        return " ".join(self.page.locator(selector).first.inner_text().split())

    def choose(self, body: bytes, name: str = "predictions.csv") -> None:
        """Choose a file."""
        file = {"name": name, "mimeType": "text/csv", "buffer": body}
        self.page.get_by_label("Predictions", exact=True).set_input_files(file)

    def send(self, body: bytes, name: str = "predictions.csv") -> str:
        """Choose a file and submit it; return the reply."""
        self.page.evaluate("document.querySelector('#reply')?.remove()")
        self.choose(body, name)
        self.page.get_by_role("button", name="Submit").click()
        self.page.wait_for_selector("#reply")
        return self.said("#reply")

    def wider(self) -> list[str]:
        """Return what makes the page wider than the screen."""
        return self.page.evaluate(_WIDER)

    def axe(self, *only: str) -> dict[str, list[str]]:
        """Return what axe-core finds: the rules that are broken, and where; all rules, or some."""
        some = {"runOnly": list(only)} if only else {}
        found = _AXE.run(self.page, options=_RULES | some).response["violations"]
        return {
            f"{each['id']} ({each['impact']})": [node["html"][:160] for node in each["nodes"]]
            for each in found
        }

    def leave(self) -> None:
        """Close all windows."""
        self.context.close()
