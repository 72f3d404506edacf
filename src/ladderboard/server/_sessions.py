"""Sessions of the page: a signed cookie that says by which token somebody came, and when.

It holds the token's hash, never the token. Whether that is still good is looked up with every
request, so a session ends with its token.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import TYPE_CHECKING, NamedTuple

from itsdangerous import BadData, URLSafeSerializer

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from ladderboard.board import Boards
    from ladderboard.server._options import Settings

__all__ = ["SESSION", "Session", "Sessions"]

SESSION = "ladderboard_session"
VISIT = "ladderboard_visit"
_LONGEST = 512  # characters of a cookie of ours


class Session(NamedTuple):
    """A session: the hash of its token, and the cookie that says so."""

    hashed: bytes
    cookie: str


def _cookie(request: Request, name: str) -> str:
    """Return a cookie. Of several the first is ours: browsers begin with the longest path.

    Another server like this one may be above our prefix, under the same name.
    """
    for each in "; ".join(request.headers.getlist("cookie")).split(";"):
        key, _, value = each.strip().partition("=")
        if key == name:
            return value.strip('"')
    return ""


class Sessions:
    """Makes and reads the cookies of one server."""

    def __init__(self, boards: Boards, settings: Settings) -> None:
        key = boards.signing_key()
        self._world = boards.world
        self._settings = settings
        self._csrf_key = hmac.digest(key, b"ladderboard csrf", "sha256")
        self._signer = URLSafeSerializer(
            hmac.digest(key, b"ladderboard session", "sha256"),
            salt=b"ladderboard.session",
            signer_kwargs={"key_derivation": "hmac", "digest_method": hashlib.sha256},
        )

    def _text(self, size: int = 18) -> str:
        return base64.urlsafe_b64encode(self._world.salt()[-size:]).decode()

    def start(self, hashed: bytes) -> Session:
        """Return a new session."""
        told = base64.b64encode(hashed).decode()
        cookie = self._signer.dumps([told, self._world.clock(), self._text()])
        return Session(hashed, str(cookie))

    def read(self, request: Request) -> Session | None:
        """Return the session of a request, if it has one of ours; too old, it is for no token."""
        cookie = _cookie(request, SESSION)
        if not cookie or len(cookie) > _LONGEST:
            return None
        try:
            told, time, _ = self._signer.loads(cookie)
            hashed = base64.b64decode(told)
        except (BadData, TypeError, ValueError):
            return None
        age = self._world.clock() - time
        late = not 0 <= age < self._settings.session_seconds
        return Session(b"" if late else hashed, cookie)

    def csrf(self, request: Request, session: Session | None) -> str | None:
        """Return the word that a form of this browser must say; None before it has a cookie."""
        bound = session.cookie if session else _cookie(request, VISIT)[:_LONGEST]
        return self._word(bound) if bound else None

    def _word(self, bound: str) -> str:
        made = hmac.digest(self._csrf_key, bound.encode("utf-8", "replace"), "sha256")
        return base64.urlsafe_b64encode(made[:24]).decode()

    def is_csrf(self, request: Request, session: Session | None, said: str) -> bool:
        """Tell whether a form, or a header, says what it must."""
        word = self.csrf(request, session)
        return word is not None and hmac.compare_digest(word.encode(), said.encode())

    def visit(self) -> tuple[str, str]:
        """Return the cookie for somebody who has none, and the word for their first form."""
        cookie = self._text(32)
        return cookie, self._word(cookie)

    def _set(self, request: Request, response: Response, name: str, value: str) -> None:
        secure = self._settings.secure
        response.set_cookie(
            name,
            value,
            max_age=self._settings.session_seconds if value else 0,
            path=self._settings.prefix or "/",
            secure=request.url.scheme == "https" if secure is None else secure,
            httponly=True,
            samesite="lax",
        )

    def remember(self, request: Request, response: Response, session: Session) -> None:
        """Give the browser a session."""
        self._set(request, response, SESSION, session.cookie)

    def forget(self, request: Request, response: Response) -> None:
        """Take it back."""
        self._set(request, response, SESSION, "")

    def greet(self, request: Request, response: Response, cookie: str) -> None:
        """Give the browser something that its first form is bound to."""
        self._set(request, response, VISIT, cookie)
