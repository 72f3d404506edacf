"""Who asks: tokens, and the signed cookies of the pages.

A cookie holds the token's hash, never the token. Whether that is still good is looked up with every
request, so a session ends with its token.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from itsdangerous import BadData, URLSafeSerializer

from ladderboard.board import PUBLIC, Role, hash_token
from ladderboard.errors import NotAllowed
from ladderboard.server._problems import RequestRefused
from ladderboard.server._rate_limits import RateLimiter, client_address

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from ladderboard.board import Boards, Caller
    from ladderboard.server._server_config import Settings

SESSION_COOKIE = "ladderboard_session"
VISITOR_COOKIE = "ladderboard_visit"
_LONGEST = 512  # characters of a cookie of ours
CSRF_HEADER = "x-csrf-token"
_SAFE = {"GET", "HEAD"}
_OWN = {"same-origin", "none"}
_CSRF = "This did not come from a page of this server. Load the page again, and try once more."


class CookieSession(NamedTuple):
    """A session: the hash of its token, and the cookie that says so."""

    token_hash: bytes
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


class CookieSessions:
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

    def start(self, hashed: bytes) -> CookieSession:
        """Return a new session."""
        told = base64.b64encode(hashed).decode()
        cookie = self._signer.dumps([told, self._world.clock(), self._text()])
        return CookieSession(hashed, str(cookie))

    def read(self, request: Request) -> CookieSession | None:
        """Return the session of a request, if it has one of ours; too old, it is for no token."""
        cookie = _cookie(request, SESSION_COOKIE)
        if not cookie or len(cookie) > _LONGEST:
            return None
        try:
            told, time, _ = self._signer.loads(cookie)
            hashed = base64.b64decode(told)
        except (BadData, TypeError, ValueError):
            return None
        age = self._world.clock() - time
        late = not 0 <= age < self._settings.session_seconds
        return CookieSession(b"" if late else hashed, cookie)

    def csrf_token(self, request: Request, session: CookieSession | None) -> str | None:
        """Return the word that a form of this browser must say; None before it has a cookie."""
        bound = session.cookie if session else _cookie(request, VISITOR_COOKIE)[:_LONGEST]
        return self._csrf_token_for(bound) if bound else None

    def _csrf_token_for(self, bound: str) -> str:
        made = hmac.digest(self._csrf_key, bound.encode("utf-8", "replace"), "sha256")
        return base64.urlsafe_b64encode(made[:24]).decode()

    def is_valid_csrf(self, request: Request, session: CookieSession | None, said: str) -> bool:
        """Tell whether a form, or a header, says what it must."""
        word = self.csrf_token(request, session)
        return word is not None and hmac.compare_digest(word.encode(), said.encode())

    def new_visitor(self) -> tuple[str, str]:
        """Return the cookie for somebody who has none, and the word for their first form."""
        cookie = self._text(32)
        return cookie, self._csrf_token_for(cookie)

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

    def set_session_cookie(
        self, request: Request, response: Response, session: CookieSession
    ) -> None:
        """Give the browser a session."""
        self._set(request, response, SESSION_COOKIE, session.cookie)

    def clear_session_cookie(self, request: Request, response: Response) -> None:
        """Take it back."""
        self._set(request, response, SESSION_COOKIE, "")

    def set_visitor_cookie(self, request: Request, response: Response, cookie: str) -> None:
        """Give the browser something that its first form is bound to."""
        self._set(request, response, VISITOR_COOKIE, cookie)


def unauthorised() -> RequestRefused:
    """Return the one answer to every token that is not good here, whatever is wrong with it."""
    return RequestRefused(
        401,
        "no_token",
        "This needs a token that is good here: Authorization: Bearer lb_...",
        {"WWW-Authenticate": "Bearer"},
    )


class InvalidToken(Exception):
    """A token that is not good here."""


class Credentials(NamedTuple):
    """What somebody shows to say who they are: a token's hash, and a session if it came by one."""

    token_hash: bytes
    session: CookieSession | None = None


class Authenticator:
    """Tells callers apart."""

    def __init__(self, boards: Boards, sessions: CookieSessions, settings: Settings) -> None:
        self.boards, self.sessions = boards, sessions
        # Not every proxy hands on the port of a name; what people type has it.
        self._public = None if settings.url is None else urlsplit(settings.url).netloc
        self._failures = RateLimiter(
            settings.failures, "Too many tokens from here were wrong; wait.", settings.timer
        )

    def read_credentials(self, request: Request) -> Credentials | None:
        """Return what a request shows; a header counts before a cookie. None: the public."""
        given = request.headers.getlist("authorization")
        if given:
            scheme, _, token = given[0].partition(" ")
            right = len(given) == 1 and scheme.lower() == "bearer"
            return Credentials(hash_token(token.strip() if right else ""))
        session = self.sessions.read(request)
        if session is not None:
            return Credentials(session.token_hash, session)
        return Credentials(hash_token("")) if SESSION_COOKIE in request.cookies else None

    def check(self, request: Request, shown: Credentials | None, *, form: bool = False) -> None:
        """Refuse what another site's page made a browser send."""
        if shown is None:
            return
        if request.method not in _SAFE and shown.session is not None and not form:
            self.check_form(request, shown.session, request.headers.get(CSRF_HEADER, ""))

    def check_form(self, request: Request, session: CookieSession | None, said: str) -> None:
        """Refuse a form that is not from a page of ours, in this very browser."""
        check_origin(request, self._public)
        if not self.sessions.is_valid_csrf(request, session, said):
            raise RequestRefused(403, "csrf", _CSRF)

    def resolve(self, shown: Credentials | None, slug: str | None) -> Caller:
        """Return who that is, on a board or on none; for a thread, as it asks the database."""
        if shown is None:
            return PUBLIC
        try:
            return self.boards.caller_by_token_hash(shown.token_hash, slug)
        except NotAllowed:
            raise InvalidToken from None

    def resolve_or_public(
        self, request: Request, shown: Credentials | None, slug: str | None
    ) -> Caller:
        """Return the same for a page, which everybody may see."""
        try:
            return self.default_board(shown)[0] if slug is None else self.resolve(shown, slug)
        except InvalidToken:
            if "authorization" in request.headers:
                raise
            return PUBLIC

    def default_board(self, shown: Credentials | None) -> tuple[Caller, str | None]:
        """Return who that is, and the slug of the one board that the token is for; a thread's."""
        if shown is None:
            return PUBLIC, None
        slug = self.boards.slug_of_token(shown.token_hash)
        return self.resolve(shown, slug), slug

    def reject_token(self, request: Request, shown: Credentials | None) -> RequestRefused:
        """Count a token that is not good, and return the answer: to wait, if there were too many.

        Good ones are never made to wait: many people may come from one address, and 256 bits need
        no guard against guessing.
        """
        if shown is None or shown.session is None:  # a session of ours has only ended
            try:
                self._failures.check(client_address(request))
            except RequestRefused as wait:
                return wait
            self._failures.record(client_address(request))
        return unauthorised()


def check_origin(request: Request, public: str | None) -> None:
    """Refuse what another site's page has made a browser send; ``public`` is our own, if known."""
    site = request.headers.get("sec-fetch-site")
    origin = request.headers.get("origin")
    strange = site is not None and site not in _OWN
    # Our own policy on referrers makes browsers send "null" from our own forms, too.
    if origin not in {None, "null"} and not strange:
        # Behind a proxy that speaks TLS the scheme is another; the name is not.
        ours = {public, request.headers.get("host", "").lower()}
        strange = urlsplit(str(origin)).netloc.lower() not in ours
    if strange:
        raise RequestRefused(403, "csrf", _CSRF)


def has_bearer_token(given: str, token: str | None) -> bool:
    """Tell whether a header bears a token of the server's own."""
    scheme, _, said = given.partition(" ")
    if token is None or scheme.lower() != "bearer":
        return False
    return hmac.compare_digest(said.strip().encode("utf-8", "replace"), token.encode())


def is_organiser(caller: Caller) -> bool:
    """Tell whether somebody runs all boards."""
    return caller.role >= Role.ORGANISER
