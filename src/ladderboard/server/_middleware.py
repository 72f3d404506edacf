"""The middleware of all requests: host check, body limits, security headers, log."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect

from ladderboard.server._log import NO_ROUTE
from ladderboard.server._problems import RequestRefused, problem_from_exception
from ladderboard.server._rate_limits import AddressLimit, RequestScheduler

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from ladderboard.server._log import Metrics, ServerLog
    from ladderboard.server._rate_limits import RequestSlot
    from ladderboard.server._settings import Settings

OWN_BODY_LIMIT = "ladderboard.large"
"""In a scope: the handler limits the body itself."""
BODY_REFUSAL = "ladderboard.refused"
"""In a scope: why reading the body was aborted."""
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
"""Headers of every response."""

_GONE = 499  # in the log: the client has disconnected
_MAX_BODY = 2**16  # bytes, except for submissions
_BODY_SECONDS = 15.0  # for the whole body
_DRAIN_SECONDS = 3.0  # in which a client that is still sending can read the refusal
_STOPPED = (
    "The server was stopped before this was done. Sending the same again is safe: it is answered "
    "once, and never counted twice."
)
_RETRY_HEADERS = {"Retry-After": "5", "Connection": "close"}
_HOST = re.compile(
    r"(\[[0-9a-f:.]+\]|[^\[\]:/\s]+)(?::[0-9]{1,5})?"
)  # anything else is not repeated
_ENCODED = [(name.encode(), value.encode()) for name, value in SECURITY.items()]
_VARY = (b"vary", b"Authorization, Cookie")


class RequestMiddleware:
    """Checks the host, limits requests and bodies, adds response headers, and writes the log."""

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
        # The client behind a trusted proxy is in the scope already.
        self._scheduler = RequestScheduler(AddressLimit(settings.address_connections))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        # Random: a counter would reveal how many requests others made.
        exchange = _Exchange(self._strip_prefix(scope), receive, send, self._salt()[-8:].hex())
        timer = self._settings.timer
        start = timer()
        self._metrics.under_way += 1
        try:
            await self._answer(exchange)
        finally:
            self._metrics.under_way -= 1
            self._log_request(exchange, timer() - start)

    def _strip_prefix(self, scope: Scope) -> Scope:
        """Remove our URL prefix from a path, if the proxy has not: routes have no prefix."""
        prefix, path = self._settings.prefix, scope["path"]
        if not prefix or not f"{path}/".startswith(f"{prefix}/"):
            return scope
        inside = {**scope, "path": path[len(prefix) :] or "/"}
        inside.pop("raw_path", None)
        return inside

    async def _answer(self, exchange: _Exchange) -> None:
        try:
            async with self._scheduler.admit(exchange.scope.get("client")) as exchange.slot:
                self._check_host(exchange.scope)
                await self._app(exchange.scope, exchange.receive, exchange.send)
        except ClientDisconnect:
            exchange.status = exchange.status or _GONE
        except (
            asyncio.CancelledError
        ):  # the server stops, and this took longer than its grace period
            if not exchange.status:
                response, *_ = problem_from_exception(
                    RequestRefused(503, "busy", _STOPPED, _RETRY_HEADERS)
                )
                await response(exchange.scope, exchange.receive, exchange.send)
            raise
        except Exception as error:  # noqa: BLE001 - its text may hold secrets
            response, _, server_fault = problem_from_exception(error)
            if server_fault:
                self._log.write_error(error, exchange.id)
            if not exchange.status:
                await response(exchange.scope, exchange.receive, exchange.send)

    def _check_host(self, scope: Scope) -> None:
        """Refuse a host name that is not ours (DNS rebinding)."""
        hosts = Headers(scope=scope).getlist("host")
        if len(hosts) != 1 or not self._is_known_host(hosts[0]):
            raise RequestRefused(
                403,
                "wrong_host",
                "Unknown host name. The server's owner can add it with --url.",
            )

    def _is_known_host(self, host: str) -> bool:
        match = _HOST.fullmatch(host.lower())
        if match is None:
            return False
        name = match[1].strip("[]")
        if name == "localhost" or name in self._settings.known_hosts:
            return True
        return _is_address(name)  # DNS rebinding needs a name

    def _log_request(self, exchange: _Exchange, seconds: float) -> None:
        scope = exchange.scope
        route = getattr(scope.get("route"), "path", None) or NO_ROUTE
        self._metrics.count_request(exchange.method, route, exchange.status, seconds)
        fields: dict[str, Any] = {
            "request": exchange.id,
            "method": exchange.method,
            "route": route,
            "status": exchange.status,
            "ms": round(seconds * 1000, 1),
            "bytes": exchange.size,
        }
        if self._log.for_terminal:
            fields["route"] = _fill_in_board(route, scope.get("path_params", {}))
        if self._settings.log_client:
            fields["client"] = (scope.get("client") or ("",))[0]
        self._log.write("request", **fields)


def _fill_in_board(route: str, params: Mapping[str, Any]) -> str:
    r"""Return a route with its board's name, if that is safe to write to a terminal.

    >>> _fill_in_board("/boards/{board}/submit", {"board": "digits"})
    '/boards/digits/submit'
    >>> _fill_in_board("/boards/{board}/submit", {"board": "\x1b[2J"})
    '/boards/{board}/submit'
    """
    board = params.get("board", "")
    return route.replace("{board}", board) if re.fullmatch(r"[a-z0-9-]{1,63}", board) else route


@lru_cache(maxsize=64)
def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


_METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT"}


class _Exchange:
    """One request and its response: limits the body, and adds our headers."""

    def __init__(self, scope: Scope, receive: Receive, send: Send, request_id: str) -> None:
        self.id, self.status, self.size = request_id, 0, 0
        self.method = scope["method"] if scope["method"] in _METHODS else "OTHER"
        self._is_head = self.method == "HEAD"
        self.scope = {**scope, "method": "GET"} if self._is_head else dict(scope)
        self.scope["ladderboard.request"] = request_id
        self._receive, self._send = receive, send
        self._received, self._deadline = 0, 0.0
        self.slot: RequestSlot | None = None
        headers = Headers(scope=scope)
        has_body = "transfer-encoding" in headers or headers.get("content-length", "0") != "0"
        # A client that sent "Expect: 100-continue" sends no body after a refusal.
        self._body_pending = has_body and "expect" not in headers

    async def receive(self) -> Message:
        """Receive a part of the body, within our limits unless the handler has its own."""
        if self.slot is not None:
            self.slot.release()
        message = await (
            self._receive() if OWN_BODY_LIMIT in self.scope else self._receive_limited()
        )
        # Submissions have their own queues.
        if self.slot is not None and not self.status and OWN_BODY_LIMIT not in self.scope:
            await self.slot.acquire()
        self._body_pending = message.get("more_body", False)
        return message

    async def _receive_limited(self) -> Message:
        try:
            if not self._deadline:
                self._deadline = asyncio.get_running_loop().time() + _BODY_SECONDS
            async with asyncio.timeout_at(self._deadline):
                message = await self._receive()
        except TimeoutError:
            raise self._abort_body(408, "too_slow", "The request body took too long.") from None
        self._received += len(message.get("body", b""))
        if self._received > _MAX_BODY:
            raise self._abort_body(413, "too_large", f"The body has more than {_MAX_BODY} bytes.")
        return message

    def _abort_body(self, status: int, code: str, detail: str) -> RequestRefused:
        refused = RequestRefused(status, code, detail, {"Connection": "close"})
        self.scope[BODY_REFUSAL] = refused
        return refused

    async def send(self, message: Message) -> None:
        """Add our headers, and count bytes."""
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
            if self._is_head:
                message = {**message, "body": b""}
            if self._body_pending and not message.get("more_body"):
                await self._send({**message, "more_body": True})
                await self._drain_body()
                message = {"type": "http.response.body"}
        await self._send(message)

    async def _drain_body(self) -> None:
        """Read more of a refused body for a moment after the response.

        Closing a connection while the client still sends resets it, and the response is lost: the
        client would see an error, and a proxy would answer 502 instead.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_DRAIN_SECONDS):
                while self._body_pending:
                    self._body_pending = (await self._receive()).get("more_body", False)
