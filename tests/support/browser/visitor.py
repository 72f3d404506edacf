"""A visitor of a server with a browser context of its own."""

from __future__ import annotations

from axe_playwright_python.sync_playwright import Axe

from ladderboard.board import hash_token
from ladderboard.server._auth import SESSION_COOKIE
from support.browser.chromium import DESKTOP, PHONE
from support.browser.monitor import BrowserMonitor

_AXE = Axe()
# axe does not check the size of touch targets by default.
_AXE_OPTIONS = {"resultTypes": ["violations"], "rules": {"target-size": {"enabled": True}}}
_OVERFLOWING = """
() => {
  const page = document.scrollingElement;
  if (page.scrollWidth <= innerWidth) return [];
  return [...document.body.querySelectorAll("*")]
    .filter((element) => {
      const { left, right } = element.getBoundingClientRect();
      const open = getComputedStyle(element).overflowX === "visible";
      return right > innerWidth + 0.5 || (open && left + element.scrollWidth > innerWidth + 0.5);
    })
    .map((element) => element.outerHTML.slice(0, 120));
}
"""


class Visitor:
    """One monitored browser context on one server.

    With a ``token``, or the hash of a person's session, the visitor is signed in;
    ``script=False`` turns JavaScript off; ``trusting`` accepts self-signed certificates.
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
            viewport=PHONE if phone else DESKTOP,
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
        self.monitor = BrowserMonitor(self.context, live_server.url)
        if token is not None:
            hashed = token if isinstance(token, bytes) else hash_token(token)
            cookie = live_server.app.state.context.sessions.start(hashed).cookie
            self.context.add_cookies(
                [{"name": SESSION_COOKIE, "value": cookie, "url": live_server.url}]
            )
        self.page = self.context.new_page()

    def open(self, path: str) -> int:
        """Go to a page; return its status."""
        return self.page.goto(path).status

    def text(self, selector: str = "main") -> str:
        """Return the visible text of an element, with single spaces."""
        return " ".join(self.page.locator(selector).first.inner_text().split())

    def choose_file(self, body: bytes, name: str = "predictions.csv") -> None:
        """Choose a file in the form to submit."""
        file = {"name": name, "mimeType": "text/csv", "buffer": body}
        self.page.get_by_label("Predictions", exact=True).set_input_files(file)

    def submit_file(self, body: bytes, name: str = "predictions.csv") -> str:
        """Choose a file and submit it; return the text of the reply."""
        self.page.evaluate("document.querySelector('#reply')?.remove()")
        self.choose_file(body, name)
        self.page.get_by_role("button", name="Submit").click()
        self.page.wait_for_selector("#reply")
        return self.text("#reply")

    def overflowing(self) -> list[str]:
        """Return the elements that make the page wider than the screen."""
        return self.page.evaluate(_OVERFLOWING)

    def axe_violations(self, *rules: str) -> dict[str, list[str]]:
        """Return violations of axe-core's rules, or of some of them, with the elements."""
        selected = {"runOnly": list(rules)} if rules else {}
        report = _AXE.run(self.page, options=_AXE_OPTIONS | selected).response
        return {
            f"{violation['id']} ({violation['impact']})": [
                node["html"][:160] for node in violation["nodes"]
            ]
            for violation in report["violations"]
        }

    def close(self) -> None:
        """Close all pages."""
        self.context.close()
