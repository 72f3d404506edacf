"""Addresses: where a server is, and which of its boards is meant."""

from __future__ import annotations

import ipaddress
import re
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

from ladderboard import _settings
from ladderboard.errors import InvalidSetting

__all__ = ["Address", "check_board", "read_address", "split_board"]

_SLUG = re.compile("[a-z0-9][a-z0-9-]{0,62}")
# Empty parts lead nowhere, and what is not printed is nothing to send, to keep or to show.
_PART = r"[a-z0-9_\-\x80-\U0010ffff]{1,63}"
_HOST = re.compile(rf"{_PART}(\.{_PART})*\.?|[0-9a-f:.]*:[0-9a-f:.]*")
_PORTS = {"http": 80, "https": 443}


class Address(NamedTuple):
    """A server's address: two that lead to the same place are the same."""

    scheme: str
    host: str
    port: int

    @property
    def origin(self) -> str:
        """The address as it is typed."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port == _PORTS[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{host}{port}"

    @property
    def place(self) -> str:
        """The same as the name of a folder, of this address and no other."""
        return f"{self.scheme}_{quote(self.host, safe='')}_{self.port}"

    @property
    def private(self) -> bool:
        """Whether nobody on the way can listen."""
        if self.scheme == "https":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"


def read_address(url: Any) -> Address:
    """Return the address that somebody typed.

    >>> read_address("HTTPS://Boards.Example.org:443/").origin
    'https://boards.example.org'
    """
    found = _split(url)
    if found is None or found[1] not in {"", "/"}:
        raise InvalidSetting(
            f"A server's address is like https://boards.example.org; got {_settings.shown(url)}."
        )
    return found[0]


def split_board(board: Any) -> tuple[str | None, str]:
    """Return the server, if one is named, and the name of a board.

    >>> split_board("digits"), split_board("http://127.0.0.1:8000/boards/digits#submit")
    ((None, 'digits'), ('http://127.0.0.1:8000', 'digits'))
    """
    if isinstance(board, str) and "/" in board:
        found = _split(board.partition("#")[0])
        parts = found[1].strip("/").split("/") if found is not None else []
        if found is not None and len(parts) >= 2 and parts[0] == "boards":
            return found[0].origin, check_board(parts[1])
    return None, check_board(board)


def check_board(board: Any) -> str:
    """Return the name of a board, or refuse what can be none."""
    if not isinstance(board, str) or not _SLUG.fullmatch(board):
        raise InvalidSetting(
            "A board goes by its short name, like digits, or by its page's address, like "
            f"https://boards.example.org/boards/digits; got {_settings.shown(board)}."
        )
    return board


def _split(url: Any) -> tuple[Address, str] | None:
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
