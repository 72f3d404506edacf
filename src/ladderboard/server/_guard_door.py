"""The door: who may come in at all, decided before anything else is looked at.

A port on loopback can be reached by every program on the machine, and by every web page that its
user's browser shows. A page gives itself away: what it sends has an ``Origin``, or a ``Host`` that
is a name of the page's own which was made to lead here (DNS rebinding).
"""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING

from starlette.datastructures import Headers

from ladderboard.server._guard_problem import Refused

if TYPE_CHECKING:
    from starlette.types import Scope

__all__ = ["Door"]

_FREE = frozenset({"/healthz"})


class Door:
    """Refuses browsers, other names than the bound one, and wrong tokens.

    Parameters
    ----------
    hosts
        The ``Host`` headers that are let in, in lower case; all of them if None, as on a Unix
        socket, which no page can reach by a name.
    token
        What the ``Authorization`` header must bear; nothing if None.
    """

    def __init__(self, hosts: frozenset[str] | None, token: str | None) -> None:
        self._hosts = hosts
        self._token = None if token is None else token.encode("ascii")

    def __repr__(self) -> str:
        return f"Door({self._hosts}, token={'no' if self._token is None else '<hidden>'})"

    def check(self, scope: Scope) -> None:
        """Refuse a request that may not come in."""
        headers = Headers(scope=scope)
        if self._hosts is not None:
            given = headers.getlist("host")
            if len(given) != 1 or given[0].lower() not in self._hosts:
                raise Refused(
                    403, "wrong_host", "This guard answers only under the address it was bound to."
                )
        if "origin" in headers or headers.get("sec-fetch-site", "none") != "none":
            raise Refused(403, "browser", "This guard does not answer web pages.")
        if self._token is not None and scope["path"] not in _FREE:
            self._check_token(headers.getlist("authorization"))

    def _check_token(self, given: list[str]) -> None:
        scheme, _, token = given[0].partition(" ") if len(given) == 1 else ("", "", "")
        right = hmac.compare_digest(token.strip().encode("utf-8", "replace"), self._token or b"")
        if scheme.lower() != "bearer" or not right:
            raise Refused(
                401,
                "no_token",
                "This guard wants the token that its owner gave you; set LADDERBOARD_TOKEN.",
                {"WWW-Authenticate": "Bearer"},
            )
