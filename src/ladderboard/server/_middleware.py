"""The front: what every request goes through, and every reply."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import re
from typing import TYPE_CHECKING, Any

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect

from ladderboard.server._problems import RequestRefused, problem_from_exception
from ladderboard.server._rate_limits import AddressLimit, RequestScheduler

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from ladderboard.server._log import ServerLog
    from ladderboard.server._metrics import Metrics
    from ladderboard.server._rate_limits import RequestSlot
    from ladderboard.server._server_config import Settings

OWN_BODY_LIMIT = "ladderboard.large"
"""In a scope: whoever handles it reads the body under limits of its own."""
BODY_REFUSAL = "ladderboard.refused"
"""In a scope: why reading the body was given up."""
SECURITY = {
    "content-security-policy": (
        "default-src 'none'; style-src 'self'; img-src 'self' data:; script-src 'self'; "
        "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
"""Headers of every reply."""

_GONE = 499  # in the log: nobody is left to be answered
_BODY = 2**16  # bytes, of anything but a submission
_PATIENCE = 15.0  # seconds for all of it
_LINGER = 3.0  # seconds in which somebody who still sends can hear that it is refused
_ENDING = (
    "The server was stopped before this was done. Sending the same again is safe: it is answered "
    "once, and never counted twice."
)
_LATER = {"Retry-After": "5", "Connection": "close"}
_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[^\[\]:/\s]+)(?::[0-9]{1,5})?")  # what is said may be shown
_ENCODED = [(name.encode(), value.encode()) for name, value in SECURITY.items()]
_VARY = (b"vary", b"Authorization, Cookie")


class RequestMiddleware:
    """Lets in who asks for this server, gives replies their headers, and writes the log."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        settings: Settings,
        log: ServerLog,
        metrics: Metrics,
        salt: Callable[[], bytes],
    ) -> None:
        self._app, self._settings, self._log, self._metrics = app, settings, log, metrics
        self._salt = salt
        # Who a trusted proxy asks for is in the scope already.
        self._scheduler = RequestScheduler(AddressLimit(settings.address_connections))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        # Random: a counter would tell everybody how many requests all the others made.
        reply = _Exchange(self._strip_prefix(scope), receive, send, self._salt()[-8:].hex())
        timer = self._settings.timer
        begun = timer()
        self._metrics.under_way += 1
        try:
            await self._answer(reply)
        finally:
            self._metrics.under_way -= 1
            self._log_request(reply, timer() - begun)

    def _strip_prefix(self, scope: Scope) -> Scope:
        """Take our prefix off a path, once, where a proxy has left it on: inside there is none."""
        prefix, path = self._settings.prefix, scope["path"]
        if not prefix or not f"{path}/".startswith(f"{prefix}/"):
            return scope
        inside = {**scope, "path": path[len(prefix) :] or "/"}
        inside.pop("raw_path", None)
        return inside

    async def _answer(self, reply: _Exchange) -> None:
        try:
            async with self._scheduler.admit(reply.scope.get("client")) as reply.slot:
                self._check_host(reply.scope)
                await self._app(reply.scope, reply.receive, reply.send)
        except ClientDisconnect:
            reply.status = reply.status or _GONE
        except asyncio.CancelledError:  # the server ends, and this took longer than it waits
            if not reply.status:
                said, _ = problem_from_exception(RequestRefused(503, "busy", _ENDING, _LATER))
                await said(reply.scope, reply.receive, reply.send)
            raise
        except Exception as error:  # noqa: BLE001 - nobody outside may see what it was
            said, ours = problem_from_exception(error)
            if ours:
                self._log.write_error(error, reply.id)
            if not reply.status:
                await said(reply.scope, reply.receive, reply.send)

    def _check_host(self, scope: Scope) -> None:
        """Refuse a name that is not ours: a page of another's may have made it lead here."""
        given = Headers(scope=scope).getlist("host")
        if len(given) != 1 or not self._is_known_host(given[0]):
            raise RequestRefused(
                403,
                "wrong_host",
                "Unknown host name. The server's owner can add it with --url.",
            )

    def _is_known_host(self, host: str) -> bool:
        found = _HOST.fullmatch(host.lower())
        if found is None:
            return False
        name = found[1].strip("[]")
        if name == "localhost" or name in self._settings.hosts:
            return True
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True  # an address belongs to no page that could have changed where it leads

    def _log_request(self, reply: _Exchange, seconds: float) -> None:
        scope = reply.scope
        route = getattr(scope.get("route"), "path", None) or "(none)"
        self._metrics.count_request(reply.method, route, reply.status, seconds)
        fields: dict[str, Any] = {
            "request": reply.id,
            "method": reply.method,
            "route": route,
            "status": reply.status,
            "ms": round(seconds * 1000, 1),
            "bytes": reply.size,
        }
        if self._settings.log_client:
            fields["client"] = (scope.get("client") or ("",))[0]
        self._log.write("request", **fields)


_METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT"}


class _Exchange:
    """One request on its way through: its body under a limit, its reply with our headers."""

    def __init__(self, scope: Scope, receive: Receive, send: Send, request_id: str) -> None:
        self.id, self.status, self.size = request_id, 0, 0
        self.method = scope["method"] if scope["method"] in _METHODS else "OTHER"
        self._head = self.method == "HEAD"
        self.scope = {**scope, "method": "GET"} if self._head else dict(scope)
        self.scope["ladderboard.request"] = request_id
        self._receive, self._send = receive, send
        self._came, self._until = 0, 0.0
        self.slot: RequestSlot | None = None
        headers = Headers(scope=scope)
        sends = "transfer-encoding" in headers or headers.get("content-length", "0") != "0"
        # A client that sent "Expect: 100-continue" sends no body after a refusal.
        self._left = sends and "expect" not in headers

    async def receive(self) -> Message:
        """Hand over a part of the body; unless somebody else does it, not too much nor too late."""
        if self.slot is not None:
            self.slot.release()
        message = await (
            self._receive() if OWN_BODY_LIMIT in self.scope else self._receive_limited()
        )
        # Submissions have queues of their own.
        if self.slot is not None and not self.status and OWN_BODY_LIMIT not in self.scope:
            await self.slot.acquire()
        self._left = message.get("more_body", False)
        return message

    async def _receive_limited(self) -> Message:
        try:
            if not self._until:
                self._until = asyncio.get_running_loop().time() + _PATIENCE
            async with asyncio.timeout_at(self._until):
                message = await self._receive()
        except TimeoutError:
            raise self._abort_body(408, "too_slow", "The rest of the body never came.") from None
        self._came += len(message.get("body", b""))
        if self._came > _BODY:
            raise self._abort_body(413, "too_large", f"This takes at most {_BODY} bytes.")
        return message

    def _abort_body(self, status: int, code: str, detail: str) -> RequestRefused:
        refused = RequestRefused(status, code, detail, {"Connection": "close"})
        self.scope[BODY_REFUSAL] = refused
        return refused

    async def send(self, message: Message) -> None:
        """Add our headers, and count."""
        if message["type"] == "http.response.start":
            if self.slot is not None:
                self.slot.release()
            self.status = message["status"]
            message["headers"] = [
                *message.get("headers", ()),
                *_ENCODED,
                _VARY,
                (b"x-request-id", self.id.encode()),
            ]
        elif message["type"] == "http.response.body":
            self.size += len(message.get("body", b""))
            if self._head:
                message = {**message, "body": b""}
            if self._left and not message.get("more_body"):
                await self._send({**message, "more_body": True})
                await self._drain_body()
                message = {"type": "http.response.body"}
        await self._send(message)

    async def _drain_body(self) -> None:
        """Take in more of a body that was refused, for a moment, once all has been said.

        A connection that is closed on somebody who still sends is cut off, the reply with it: they
        would hear nothing, and a proxy would say 502 in our place.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LINGER):
                while self._left:
                    self._left = (await self._receive()).get("more_body", False)
