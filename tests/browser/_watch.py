"""A watch over everything that a browser does: what nobody would see, but must not be."""

from __future__ import annotations

import re

__all__ = ["Watch"]

# Told before anything of a page runs; the console has what the policy forbade, too.
_TELL = """
addEventListener("securitypolicyviolation", (event) => console.error(
  `policy: ${event.violatedDirective} ${event.blockedURI} ${event.sourceFile}:${event.lineNumber}`))
"""
_STATUS = re.compile(r"Failed to load resource: .* status of (\d+)")
_ICON = "/static/icon.svg"
_CUT = "Failed to load resource: net::"


class Watch:
    """Collects complaints about one context: console, errors, failed and foreign requests.

    A refusal is in the console, too: a test says which statuses it is about to provoke, and they
    must come.
    """

    def __init__(self, context, url: str) -> None:
        self.url, self.complaints = url, []
        self.statuses: list[int] = []
        self._expected: set[int] = set()
        self._aborted: list[str] = []
        context.add_init_script(_TELL)
        context.on("console", self._console)
        context.on("weberror", lambda error: self._note("error", str(error.error)))
        context.on("request", self._request)
        context.on("requestfailed", self._failed)

    def expect(self, *statuses: int) -> None:
        """Say which refusals are about to come."""
        self._expected |= set(statuses)

    def allow_abort(self, path: str) -> None:
        """Say that a request may be cut short: a download, or one that somebody cancels."""
        self._aborted.append(path)

    def _note(self, kind: str, said: str) -> None:
        self.complaints.append(f"{kind}: {said}")

    def _console(self, message) -> None:
        refused = _STATUS.match(message.text)
        if message.text.startswith(_CUT) and self._may_fail(message.location["url"]):
            return
        if refused:
            self.statuses.append(int(refused[1]))
        elif message.type in {"error", "warning", "assert"}:
            self._note(f"console {message.type}", f"{message.text} ({message.location})")

    def _request(self, request) -> None:
        if not request.url.startswith((f"{self.url}/", "data:", "blob:")):
            self._note("foreign request", request.url)

    def _failed(self, request) -> None:
        if _ICON in request.url and request.failure == "net::ERR_ABORTED":
            return  # somebody went on before it was there
        if not self._may_fail(request.url):
            self._note("failed request", f"{request.method} {request.url} {request.failure}")

    def _may_fail(self, url: str) -> bool:
        return any(path in url for path in self._aborted)

    def check(self) -> None:
        """Fail if there is anything to complain about."""
        surprising = [each for each in self.statuses if each not in self._expected]
        missing = self._expected - set(self.statuses)
        assert not self.complaints, "\n".join(self.complaints)
        assert not surprising, f"refused with {surprising}"
        assert not missing, f"was to be refused with {missing}"
