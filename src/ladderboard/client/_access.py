"""Access: which server is asked, and with which token, by who said so first.

What is given counts before the environment, and that before the config file. A token goes only to
the server that it belongs to, and never in the clear to another machine unless that is wanted.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from ladderboard.client._address import Address, read_address
from ladderboard.client._config import read_config
from ladderboard.errors import InvalidSetting

__all__ = ["TOKEN", "URL", "Access", "find_access"]

URL, TOKEN = "LADDERBOARD_URL", "LADDERBOARD_TOKEN"


@dataclass(frozen=True)
class Access:
    """A server, one token for everything, or those that are kept for its boards."""

    address: Address
    token: str | None = field(default=None, repr=False)
    kept: dict[str, str] = field(default_factory=dict, repr=False)
    insecure: bool = False

    def token_for(self, board: str | None) -> str | None:
        """Return the token to show on a board; None to come as the public."""
        token = self.kept.get(board or "") if self.token is None else self.token
        if not token:
            return None
        if not (token.isascii() and token.isprintable() and " " not in token):
            raise InvalidSetting("A token must be one word of plain characters, like lb_team_...")
        self.check()
        return token

    def check(self) -> None:
        """Refuse a server to which a token would go in the clear."""
        if not self.address.private and not self.insecure:
            raise InvalidSetting(
                f"A token is not sent in the clear to another machine: {self.address.origin} is "
                "not https. Where everybody on the way is trusted, insecure allows it."
            )


def find_access(url: str | None, token: str | None, *, insecure: bool = False) -> Access:
    """Return whom to ask, from what was given, the environment and the config file."""
    told = os.environ.get(URL) or None
    if url is not None and token is not None:
        return Access(read_address(url), token, insecure=insecure)
    if token is None:
        # One that came with a server's address belongs to that server.
        fits = url is None or told is None or read_address(url) == read_address(told)
        token = (os.environ.get(TOKEN) or None) if fits else None
    url = url or told
    if url is not None and token is not None:
        return Access(read_address(url), token, insecure=insecure)
    config = read_config()
    url = url or config.default
    if url is None:
        raise InvalidSetting(
            f"No server is named: give its address, set {URL}, or type: ladderboard login URL"
        )
    address = read_address(url)
    return Access(address, token, config.tokens.get(address.url, {}), insecure)
