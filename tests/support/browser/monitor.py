"""Watches a browser context for errors that a visitor would not see."""

from __future__ import annotations

import re

# Runs before any script of a page; reports violations of the policy to the console.
_REPORT_VIOLATIONS = """
addEventListener("securitypolicyviolation", (event) => console.error(
  `policy: ${event.violatedDirective} ${event.blockedURI} ${event.sourceFile}:${event.lineNumber}`))
"""
_STATUS = re.compile(r"Failed to load resource: .* status of (\d+)")
_ICON = "/static/icon.svg"
_NETWORK_ERROR = "Failed to load resource: net::"


class BrowserMonitor:
    """Collects problems of one context: console messages, errors, failed and foreign requests.

    The console also shows error statuses: a test declares which ones it will provoke, and they must
    occur.
    """

    def __init__(self, context, url: str) -> None:
        self.url, self.problems = url, []
        self.statuses: list[int] = []
        self._expected_statuses: set[int] = set()
        self._abortable: list[str] = []
        self._sites = [f"{url}/", "data:", "blob:"]
        context.add_init_script(_REPORT_VIOLATIONS)
        context.on("console", self._console)
        context.on("weberror", lambda error: self._add("error", str(error.error)))
        context.on("request", self._request)
        context.on("requestfailed", self._failed)

    def expect_statuses(self, *statuses: int) -> None:
        """Declare which error statuses are about to occur."""
        self._expected_statuses |= set(statuses)

    def allow_abort(self, path: str) -> None:
        """Declare that a request may be aborted: a download, or one that is cancelled."""
        self._abortable.append(path)

    def allow_site(self, url: str) -> None:
        """Declare that another site is visited; what its own pages do wrong is not ours."""
        self._sites.append(f"{url}/")

    def _add(self, kind: str, message: str) -> None:
        self.problems.append(f"{kind}: {message}")

    def _console(self, message) -> None:
        refused = _STATUS.match(message.text)
        if message.location["url"].startswith(tuple(self._sites[3:])):
            return
        if message.text.startswith(_NETWORK_ERROR) and self._may_fail(message.location["url"]):
            return
        if refused:
            self.statuses.append(int(refused[1]))
        elif message.type in {"error", "warning", "assert"}:
            self._add(f"console {message.type}", f"{message.text} ({message.location})")

    def _request(self, request) -> None:
        if not request.url.startswith(tuple(self._sites)):
            self._add("foreign request", request.url)

    def _failed(self, request) -> None:
        if _ICON in request.url and request.failure == "net::ERR_ABORTED":
            return  # the visitor left before it was loaded
        if not self._may_fail(request.url):
            self._add("failed request", f"{request.method} {request.url} {request.failure}")

    def _may_fail(self, url: str) -> bool:
        return any(path in url for path in self._abortable)

    def check(self) -> None:
        """Fail if there is any problem."""
        unexpected = [status for status in self.statuses if status not in self._expected_statuses]
        missing = self._expected_statuses - set(self.statuses)
        assert not self.problems, "\n".join(self.problems)
        assert not unexpected, f"unexpected statuses {unexpected}"
        assert not missing, f"expected statuses {missing}"
