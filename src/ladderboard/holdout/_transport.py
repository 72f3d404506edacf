"""HTTP to a served guard, over TCP or a Unix socket, with the standard library only."""

from __future__ import annotations

import http.client
import json
import math
import os
import re
import socket
import weakref
from collections import deque
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from ladderboard import _settings
from ladderboard.errors import (
    BudgetSpent,
    DiskFull,
    GuardUnreachable,
    InvalidPredictions,
    InvalidSetting,
    LadderboardError,
    NotAllowed,
    Problem,
    ReadOnly,
    SessionClosed,
    StorageFailed,
    TooManyLadders,
)
from ladderboard.files import refuse

_URL, _TOKEN = "LADDERBOARD_URL", "LADDERBOARD_TOKEN"
_BOARD_TOKEN = re.compile("lb_[a-z]+_")  # the prefix of a board's token
_PORTS = {"http": 80, "https": 443}
_ERRORS_BY_CODE: dict[str, type[LadderboardError]] = {
    "no_token": NotAllowed,
    "invalid_setting": InvalidSetting,
    "content_type": InvalidSetting,
    "too_many_ladders": TooManyLadders,
    "budget_spent": BudgetSpent,
    "closed": SessionClosed,
    "storage": StorageFailed,
    "disk_full": DiskFull,
    "read_only": ReadOnly,
}
_MAX_ANSWER_BYTES = 2**30


class _Address(NamedTuple):
    """The address of a guard; ``host_or_path`` is a host name, or the path of a Unix socket."""

    scheme: str
    host_or_path: str
    port: int | None = None


class GuardTransport:
    """Sends requests to a served guard over pooled connections, one per concurrent thread.

    If a connection breaks before the answer, the request is sent once more. This is safe, because
    the same predictions never count twice.

    Parameters
    ----------
    url
        ``http://127.0.0.1:8765``, ``https://...`` or ``unix:/path/of.sock``.
    token
        The guard's token; by default the environment variable LADDERBOARD_TOKEN, unless
        LADDERBOARD_URL is another address or the token is a board's.
    timeout
        Seconds to wait for an answer.
    """

    def __init__(self, url: str, token: str | None, timeout: float) -> None:
        self.url = url
        self.timeout = _settings.number("timeout", timeout, above=0)
        self.given_token = token
        self._address = _parse_address(url)
        self._token = _token_from_environment(self._address) if token is None else token
        if self._token and _BOARD_TOKEN.match(self._token):
            raise InvalidSetting("This is the token of a board; it is not sent to a guard.")
        if self._token and not _is_private_connection(self._address):
            raise InvalidSetting(
                f"A token is not sent unencrypted to another machine; use https, or unset {_TOKEN}."
            )
        if self._token and not (self._token.isascii() and self._token.isprintable()):
            raise InvalidSetting("The token must be one word of plain characters.")
        self._idle: deque[http.client.HTTPConnection] = deque()
        self._process = os.getpid()
        weakref.finalize(self, _close_all, self._idle)

    def get(self, path: str) -> dict[str, Any]:
        """Return the JSON object at a path."""
        return self._request("GET", path, None, {})

    def post(self, path: str, data: bytes, media_type: str) -> dict[str, Any]:
        """Send bytes, and return the JSON object of the answer."""
        return self._request("POST", path, data, {"Content-Type": media_type})

    def close(self) -> None:
        """Close idle connections."""
        _close_all(self._idle)

    def _request(
        self, method: str, path: str, data: bytes | None, headers: dict[str, str]
    ) -> dict[str, Any]:
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        for may_retry in (True, False):
            connection = self._connection()
            try:
                connection.request(method, path, data, headers)
                answer = connection.getresponse()
                body = _read_complete(answer)
            except (ConnectionRefusedError, FileNotFoundError, PermissionError) as error:
                connection.close()
                raise self._unreachable_error(error) from None
            except TimeoutError:
                connection.close()
                raise GuardUnreachable(
                    f"The guard at {self.url} did not answer within {self.timeout:g} seconds; "
                    "ask again: the same predictions are not counted twice."
                ) from None
            except (OSError, http.client.HTTPException, UnicodeError) as error:
                connection.close()
                if may_retry:
                    continue
                raise self._unreachable_error(error) from None
            except BaseException:  # such as Ctrl-C: the rest of an answer may still arrive
                connection.close()
                raise
            if answer.will_close:
                connection.close()
            else:
                self._idle.append(connection)
            return self._read_answer(answer.status, body)
        raise AssertionError  # never reached

    def _connection(self) -> http.client.HTTPConnection:
        if self._process != os.getpid():  # after a fork the connections belong to the parent
            _close_all(self._idle)
            self._process = os.getpid()
        try:
            return self._idle.pop()
        except IndexError:
            return _connect(self._address, self.timeout)

    def _unreachable_error(self, error: Exception) -> GuardUnreachable:
        reason = getattr(error, "strerror", None) or type(error).__name__
        hint = "Its owner starts it with ladderboard guard serve FILE."
        if isinstance(error, PermissionError):
            hint = "Its owner grants access to the socket, by its group and --socket-mode."
        return GuardUnreachable(f"The guard at {self.url} cannot be reached: {reason}. {hint}")

    def _read_answer(self, status: int, body: bytes) -> dict[str, Any]:
        try:
            fields = json.loads(
                body, parse_float=_number, parse_int=_number, parse_constant=_number
            )
            if not isinstance(fields, dict):
                raise TypeError
            if status < 300:
                return fields
            detail, code = str(fields["detail"]), str(fields["code"])
            problems = tuple(_read_problem(error) for error in fields["errors"])
        except (ValueError, TypeError, KeyError, ArithmeticError, RecursionError):
            raise GuardUnreachable(
                f"The server at {self.url} is not a guard; it answered with status {status} and "
                "unexpected content."
            ) from None
        if code == "invalid_predictions":
            raise InvalidPredictions(detail, problems=problems)
        if code == "too_large":
            refuse(InvalidPredictions, "too_many_bytes", detail)
        raise _ERRORS_BY_CODE.get(code, GuardUnreachable)(detail)


def _read_complete(answer: http.client.HTTPResponse) -> bytes:
    """Return a complete answer; raise the error of a broken connection otherwise."""
    if answer.chunked:
        return answer.read(_MAX_ANSWER_BYTES)
    if answer.length is None or answer.length > _MAX_ANSWER_BYTES:
        raise http.client.IncompleteRead(b"")
    return answer.read()


def _number(text: str) -> float:
    """Return a JSON number; refuse one that is too large for a float."""
    if not math.isfinite(float(text)):
        raise ValueError
    return int(text) if text.lstrip("-").isdigit() else float(text)


def _read_problem(fields: dict[str, Any]) -> Problem:
    column = fields["column"]
    return Problem(
        code=str(fields["code"]),
        column=None if column is None else str(column),
        count=int(fields["count"]),
        ids=tuple(map(str, fields["ids"])),
        message=str(fields["message"]),
    )


def _parse_address(url: str) -> _Address:
    if isinstance(url, str) and url.startswith("unix:"):
        path = url.removeprefix("unix:")
        if path:  # unix:///run/guard.sock is unix:/run/guard.sock
            socket_path = f"/{path.lstrip('/')}" if path.startswith("//") else path
            return _Address("unix", str(Path(socket_path).absolute()))
    try:
        parts = urlsplit(url) if isinstance(url, str) else None
        if parts and parts.scheme in {"http", "https"} and parts.hostname:
            is_bare = parts.path in {"", "/"} and not parts.query and not parts.username
            if is_bare:
                port = _PORTS[parts.scheme] if parts.port is None else parts.port
                return _Address(parts.scheme, parts.hostname, port)
    except ValueError:
        pass
    raise InvalidSetting(
        f"A guard's address is like http://127.0.0.1:8765 or unix:/run/guard.sock; "
        f"got {_settings.safe_repr(url)}."
    )


def _token_from_environment(address: _Address) -> str | None:
    """Return the token of the environment, if LADDERBOARD_URL is unset or this guard's address."""
    token, url = os.environ.get(_TOKEN), os.environ.get(_URL)
    try:
        fits = not url or _parse_address(url) == address
    except InvalidSetting:
        fits = False
    return token if token and fits and not _BOARD_TOKEN.match(token) else None


def _is_private_connection(address: _Address) -> bool:
    """Return whether the connection cannot be intercepted: encrypted, or on this machine."""
    return address.scheme != "http" or _settings.is_loopback(address.host_or_path)


def _connect(address: _Address, timeout: float) -> http.client.HTTPConnection:
    if address.scheme == "unix":
        return _UnixConnection(address.host_or_path, timeout)
    if address.scheme == "https":
        return http.client.HTTPSConnection(address.host_or_path, address.port, timeout=timeout)
    return http.client.HTTPConnection(address.host_or_path, address.port, timeout=timeout)


class _UnixConnection(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path: str, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        """Connect to the socket."""
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def _close_all(idle: deque[http.client.HTTPConnection]) -> None:
    while idle:
        idle.pop().close()
