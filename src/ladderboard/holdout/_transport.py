"""HTTP to a served guard, over TCP or a Unix socket, with the standard library only."""

from __future__ import annotations

import http.client
import ipaddress
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
_BOARDS = re.compile("lb_[a-z]+_")  # how the token of a board begins
_PORTS = {"http": 80, "https": 443}
_SAID: dict[str, type[LadderboardError]] = {
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
_LARGEST_ANSWER = 2**30


class _Address(NamedTuple):
    """Where a guard is: ``where`` is a host with its port, or the path of a socket."""

    scheme: str
    where: str
    port: int | None = None


class GuardTransport:
    """Keeps connections open, one for each thread that needs it at a time, and asks again once.

    A connection that breaks before an answer came is tried anew: the same predictions never cost
    twice, so this is safe.

    Parameters
    ----------
    url
        ``http://127.0.0.1:8765``, ``https://...`` or ``unix:/path/of.sock``.
    token
        What the guard wants to hear; from the environment's LADDERBOARD_TOKEN if not given, unless
        LADDERBOARD_URL names another place or the token is a board's.
    timeout
        Seconds to wait for an answer.
    """

    def __init__(self, url: str, token: str | None, timeout: float) -> None:
        self.url = url
        self.timeout = _settings.number("timeout", timeout, above=0)
        self.given = token
        self._address = _address(url)
        self._token = _told_token(self._address) if token is None else token
        if self._token and _BOARDS.match(self._token):
            raise InvalidSetting("That is the token of a board, and no guard gets it.")
        if self._token and not _private(self._address):
            raise InvalidSetting(
                "A token is not sent in the clear to another machine; use https, or unset "
                f"{_TOKEN}."
            )
        if self._token and not (self._token.isascii() and self._token.isprintable()):
            raise InvalidSetting("The token must be one word of plain characters.")
        self._idle: deque[http.client.HTTPConnection] = deque()
        self._process = os.getpid()
        weakref.finalize(self, _hang_up, self._idle)

    def get(self, path: str) -> dict[str, Any]:
        """Return what stands at a path."""
        return self._call("GET", path, None, {})

    def post(self, path: str, data: bytes, kind: str) -> dict[str, Any]:
        """Send bytes, and return what is answered."""
        return self._call("POST", path, data, {"Content-Type": kind})

    def close(self) -> None:
        """Close the connections that are idle."""
        _hang_up(self._idle)

    def _call(
        self, method: str, path: str, data: bytes | None, headers: dict[str, str]
    ) -> dict[str, Any]:
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        for again in (True, False):
            line = self._connection()
            try:
                line.request(method, path, data, headers)
                answer = line.getresponse()
                said = _whole(answer)
            except (ConnectionRefusedError, FileNotFoundError, PermissionError) as error:
                line.close()
                raise self._nobody(error) from None
            except TimeoutError:
                line.close()
                raise GuardUnreachable(
                    f"The guard at {self.url} did not answer within {self.timeout:g} seconds; "
                    "asking again costs nothing twice."
                ) from None
            except (OSError, http.client.HTTPException, UnicodeError) as error:
                line.close()
                if again:
                    continue
                raise self._nobody(error) from None
            except BaseException:  # such as Ctrl-C: half an answer may still come
                line.close()
                raise
            if answer.will_close:
                line.close()
            else:
                self._idle.append(line)
            return self._read(answer.status, said)
        raise AssertionError  # never reached

    def _connection(self) -> http.client.HTTPConnection:
        if self._process != os.getpid():  # after a fork they are the parent's, and stay open there
            _hang_up(self._idle)
            self._process = os.getpid()
        try:
            return self._idle.pop()
        except IndexError:
            return _connect(self._address, self.timeout)

    def _nobody(self, error: Exception) -> GuardUnreachable:
        why = getattr(error, "strerror", None) or type(error).__name__
        hint = "Its owner starts it with ladderboard guard serve FILE."
        if isinstance(error, PermissionError):
            hint = "Its owner says who may use the socket, by group and --socket-mode."
        return GuardUnreachable(f"The guard at {self.url} cannot be reached: {why}. {hint}")

    def _read(self, status: int, said: bytes) -> dict[str, Any]:
        try:
            read = json.loads(said, parse_float=_number, parse_int=_number, parse_constant=_number)
            if not isinstance(read, dict):
                raise TypeError
            if status < 300:
                return read
            detail, code = str(read["detail"]), str(read["code"])
            problems = tuple(_problem(each) for each in read["errors"])
        except (ValueError, TypeError, KeyError, ArithmeticError, RecursionError):
            raise GuardUnreachable(
                f"What answers at {self.url} is no guard: it said {status} and something else."
            ) from None
        if code == "invalid_predictions":
            raise InvalidPredictions(detail, problems=problems)
        if code == "too_large":
            refuse(InvalidPredictions, "too_many_bytes", detail)
        raise _SAID.get(code, GuardUnreachable)(detail)


def _whole(answer: http.client.HTTPResponse) -> bytes:
    """Return an answer that is whole, and raise what a broken connection raises otherwise."""
    if answer.chunked:
        return answer.read(_LARGEST_ANSWER)
    if answer.length is None or answer.length > _LARGEST_ANSWER:
        raise http.client.IncompleteRead(b"")
    return answer.read()


def _number(text: str) -> float:
    """Return a number as it is written; one that is too large for a float is no guard's."""
    if not math.isfinite(float(text)):
        raise ValueError
    return int(text) if text.lstrip("-").isdigit() else float(text)


def _problem(written: dict[str, Any]) -> Problem:
    column = written["column"]
    return Problem(
        code=str(written["code"]),
        column=None if column is None else str(column),
        count=int(written["count"]),
        ids=tuple(map(str, written["ids"])),
        message=str(written["message"]),
    )


def _address(url: str) -> _Address:
    if isinstance(url, str) and url.startswith("unix:"):
        path = url.removeprefix("unix:")
        if path:  # unix:///run/guard.sock is unix:/run/guard.sock
            whole = f"/{path.lstrip('/')}" if path.startswith("//") else path
            return _Address("unix", str(Path(whole).absolute()))
    try:
        parts = urlsplit(url) if isinstance(url, str) else None
        if parts and parts.scheme in {"http", "https"} and parts.hostname:
            plain = parts.path in {"", "/"} and not parts.query and not parts.username
            if plain:
                port = _PORTS[parts.scheme] if parts.port is None else parts.port
                return _Address(parts.scheme, parts.hostname, port)
    except ValueError:
        pass
    raise InvalidSetting(
        f"A guard's address is like http://127.0.0.1:8765 or unix:/run/guard.sock; "
        f"got {_settings.safe_repr(url)}."
    )


def _told_token(address: _Address) -> str | None:
    """Return the environment's token, if it is for this guard: one that came with an address is."""
    token, url = os.environ.get(_TOKEN), os.environ.get(_URL)
    try:
        fits = not url or _address(url) == address
    except InvalidSetting:
        fits = False
    return token if token and fits and not _BOARDS.match(token) else None


def _private(address: _Address) -> bool:
    """Return whether nobody on the way can listen."""
    if address.scheme != "http":
        return True
    try:
        return ipaddress.ip_address(address.where).is_loopback
    except ValueError:
        return address.where == "localhost"


def _connect(address: _Address, timeout: float) -> http.client.HTTPConnection:
    if address.scheme == "unix":
        return _UnixConnection(address.where, timeout)
    if address.scheme == "https":
        return http.client.HTTPSConnection(address.where, address.port, timeout=timeout)
    return http.client.HTTPConnection(address.where, address.port, timeout=timeout)


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


def _hang_up(idle: deque[http.client.HTTPConnection]) -> None:
    while idle:
        idle.pop().close()
