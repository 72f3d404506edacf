"""Addresses: where a server is, and which of its boards is meant."""

from __future__ import annotations

import ipaddress
import re
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

from ladderboard import _settings
from ladderboard.errors import InvalidSetting

RESERVED_PATHS = frozenset(
    {"api", "boards", "healthz", "install", "login", "metrics", "openapi.json", "session", "static"}
)
"""How places of a server begin: no part of a prefix, so that one always sees where it ends."""

_SLUG = re.compile("[a-z0-9][a-z0-9-]{0,62}")
# Empty parts lead nowhere, and what is not printed is nothing to send, to keep or to show.
_PART = r"[a-z0-9_\-\x80-\U0010ffff]{1,63}"
_HOST = re.compile(rf"{_PART}(\.{_PART})*\.?|[0-9a-f:.]*:[0-9a-f:.]*")
_PREFIX = re.compile("(/[A-Za-z0-9_~-][A-Za-z0-9_~.-]*)*")
_MAX_TIMEOUTS = 200  # characters of a prefix
_PORTS = {"http": 80, "https": 443}


class Address(NamedTuple):
    """A server's address: two that lead to the same place are the same.

    ``prefix`` is where the server is below a name that others use, too: ``/ladder``, or nothing.
    """

    scheme: str
    host: str
    port: int
    prefix: str = ""

    @property
    def origin(self) -> str:
        """The address without the prefix."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port == _PORTS[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{host}{port}"

    @property
    def url(self) -> str:
        """The address as it is typed."""
        return self.origin + self.prefix

    @property
    def folder_name(self) -> str:
        """The same as the name of a folder, of this address and no other."""
        below = f"_{quote(self.prefix, safe='')}" if self.prefix else ""
        return f"{self.scheme}_{quote(self.host, safe='')}_{self.port}{below}"

    @property
    def is_secure(self) -> bool:
        """Whether nobody on the way can listen."""
        if self.scheme == "https":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"


def parse_address(url: Any) -> Address:
    """Return the address that somebody typed.

    >>> parse_address("HTTPS://Boards.Example.org:443/").url
    'https://boards.example.org'
    >>> parse_address("https://example.org/ladder/").url
    'https://example.org/ladder'
    """
    found = _split_url(url)
    below = None if found is None else _with_prefix(*found)
    if found is None or below is None:
        own = (
            []
            if found is None
            else [each for each in found[1].split("/") if each in RESERVED_PATHS]
        )
        why = f" Its path cannot have {own[0]}, a place of the server's own." if own else ""
        raise InvalidSetting(
            "A server's address is like https://boards.example.org or https://example.org/ladder; "
            f"got {_settings.safe_repr(url)}.{why}"
        )
    return below


def _with_prefix(address: Address, path: str) -> Address | None:
    """Return the address of a server at a path, if one can be there."""
    prefix = path.removesuffix("/")
    right = len(prefix) <= _MAX_TIMEOUTS and _PREFIX.fullmatch(prefix)
    if not right or not RESERVED_PATHS.isdisjoint(prefix.split("/")):
        return None
    return address._replace(prefix=prefix)


def split_board(board: Any) -> tuple[str | None, str]:
    """Return the server, if one is named, and the name of a board.

    >>> split_board("digits"), split_board("http://127.0.0.1:8000/boards/digits#submit")
    ((None, 'digits'), ('http://127.0.0.1:8000', 'digits'))
    >>> split_board("https://example.org/ladder/boards/digits/submit")
    ('https://example.org/ladder', 'digits')
    """
    if isinstance(board, str) and "/" in board:
        found = _split_url(board.partition("#")[0])
        prefix, is_page, rest = ("", "", "") if found is None else found[1].partition("/boards/")
        server = _with_prefix(found[0], prefix) if found is not None and is_page else None
        if server is not None:
            return server.url, check_board_name(rest.partition("/")[0])
    return None, check_board_name(board)


def check_board_name(board: Any) -> str:
    """Return the name of a board, or refuse what can be none."""
    if not isinstance(board, str) or not _SLUG.fullmatch(board):
        raise InvalidSetting(
            "A board goes by its short name, like digits, or by its page's address, like "
            f"https://boards.example.org/boards/digits; got {_settings.safe_repr(board)}."
        )
    return board


def _split_url(url: Any) -> tuple[Address, str] | None:
    try:
        parts = urlsplit(url) if isinstance(url, str) else None
        if parts is None or parts.scheme not in _PORTS or not parts.hostname:
            return None
        if parts.query or parts.fragment or parts.username or parts.password:
            return None
        if not _HOST.fullmatch(parts.hostname) or not parts.hostname.isprintable():
            return None
        port = _PORTS[parts.scheme] if parts.port is None else parts.port
        return Address(parts.scheme, parts.hostname, port), parts.path
    except ValueError:
        return None
