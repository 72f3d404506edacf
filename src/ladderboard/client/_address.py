"""Parsing the addresses of servers and boards."""

from __future__ import annotations

import re
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

from ladderboard import _settings
from ladderboard.errors import InvalidSetting

RESERVED_PATHS = frozenset(
    {
        "api",
        "boards",
        "healthz",
        "install",
        "login",
        "metrics",
        "openapi.json",
        "session",
        "sign-in",
        "static",
    }
)
"""First parts of a server's own paths; a prefix has none of them, so its end is unambiguous."""

_SLUG = re.compile("[a-z0-9][a-z0-9-]{0,62}")
# No empty labels and nothing unprintable: hosts are stored and shown.
_PART = r"[a-z0-9_\-\x80-\U0010ffff]{1,63}"
_HOST = re.compile(rf"{_PART}(\.{_PART})*\.?|[0-9a-f:.]*:[0-9a-f:.]*")
_PREFIX = re.compile("(/[A-Za-z0-9_~-][A-Za-z0-9_~.-]*)*")
_MAX_PREFIX = 200  # characters of a prefix
_PORTS = {"http": 80, "https": 443}


class Address(NamedTuple):
    """A server's address, normalised: equal addresses are equal tuples.

    ``prefix`` is the path below which the server runs, such as ``/ladder``; empty for none.
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
        """The address as text."""
        return self.origin + self.prefix

    @property
    def folder_name(self) -> str:
        """A folder name that is unique for this address."""
        below = f"_{quote(self.prefix, safe='')}" if self.prefix else ""
        return f"{self.scheme}_{quote(self.host, safe='')}_{self.port}{below}"

    @property
    def is_secure(self) -> bool:
        """Whether the connection is encrypted, or stays on this machine."""
        return self.scheme == "https" or _settings.is_loopback(self.host)


def parse_address(url: Any) -> Address:
    """Return the address in a text, normalised.

    >>> parse_address("HTTPS://Boards.Example.org:443/").url
    'https://boards.example.org'
    >>> parse_address("https://example.org/ladder/").url
    'https://example.org/ladder'
    """
    split = _split_url(url)
    address = None if split is None else _with_prefix(*split)
    if split is None or address is None:
        parts = [] if split is None else split[1].split("/")
        reserved = [part for part in parts if part in RESERVED_PATHS]
        reason = f" Its path cannot contain {reserved[0]}: the server uses it." if reserved else ""
        raise InvalidSetting(
            "A server's address is like https://boards.example.org or https://example.org/ladder; "
            f"got {_settings.safe_repr(url)}.{reason}"
        )
    return address


def _with_prefix(address: Address, path: str) -> Address | None:
    """Return the address of a server at a path, if one can be there."""
    prefix = path.removesuffix("/")
    valid = len(prefix) <= _MAX_PREFIX and _PREFIX.fullmatch(prefix)
    if not valid or not RESERVED_PATHS.isdisjoint(prefix.split("/")):
        return None
    return address._replace(prefix=prefix)


def split_board(board: Any) -> tuple[str | None, str]:
    """Return the server, or None if only a name was given, and the board's name.

    >>> split_board("digits"), split_board("http://127.0.0.1:8000/boards/digits#submit")
    ((None, 'digits'), ('http://127.0.0.1:8000', 'digits'))
    >>> split_board("https://example.org/ladder/boards/digits/submit")
    ('https://example.org/ladder', 'digits')
    """
    if isinstance(board, str) and "/" in board:
        split = _split_url(board.partition("#")[0])
        prefix, is_page, path = ("", "", "") if split is None else split[1].partition("/boards/")
        server = _with_prefix(split[0], prefix) if split is not None and is_page else None
        if server is not None:
            return server.url, check_board_name(path.partition("/")[0])
    return None, check_board_name(board)


def check_board_name(board: Any) -> str:
    """Return a board's name; refuse an invalid one."""
    if not isinstance(board, str) or not _SLUG.fullmatch(board):
        raise InvalidSetting(
            "A board is given by its short name, like digits, or its page's address, like "
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
