"""Authentication: tokens, and the signed session cookies of the pages.

A cookie holds the token's hash, never the token. Each request checks that the token is still valid,
so a session ends with its token.
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
from ladderboard.server._sign_in import SIGN_IN_COOKIE

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from ladderboard.board import Boards, Caller
    from ladderboard.server._settings import Settings

SESSION_COOKIE = "ladderboard_session"
VISITOR_COOKIE = "ladderboard_visit"
_MAX_COOKIE_LENGTH = 512  # characters
CSRF_HEADER = "x-csrf-token"
_SAFE_METHODS = {"GET", "HEAD"}
_OWN_SITES = {"same-origin", "none"}
_CSRF_MESSAGE = (
    "The form has expired or came from another site. Go back, reload the page and send it again."
)


class CookieSession(NamedTuple):
    """A session: the hash of its token, and its signed cookie."""

    token_hash: bytes
    cookie: str


def _read_cookie(request: Request, name: str) -> str:
    """Return a cookie; of several the first, since browsers send the longest path first.

    Another Ladderboard above our URL prefix may have set one with the same name.
    """
    for pair in "; ".join(request.headers.getlist("cookie")).split(";"):
        key, _, value = pair.strip().partition("=")
        if key == name:
            return value.strip('"')
    return ""


class CookieSessions:
    """Creates and reads the cookies of one server."""

    def __init__(self, boards: Boards, settings: Settings) -> None:
        key = boards.signing_key()
        self._environment = boards.environment
        self._settings = settings
        self._csrf_key = hmac.digest(key, b"ladderboard csrf", "sha256")
        self._signer = URLSafeSerializer(
            hmac.digest(key, b"ladderboard session", "sha256"),
            salt=b"ladderboard.session",
            signer_kwargs={"key_derivation": "hmac", "digest_method": hashlib.sha256},
        )

    def _random_text(self, size: int = 18) -> str:
        return base64.urlsafe_b64encode(self._environment.salt()[-size:]).decode()

    def start(self, token_hash: bytes) -> CookieSession:
        """Return a new session."""
        encoded = base64.b64encode(token_hash).decode()
        cookie = self._signer.dumps([encoded, self._environment.clock(), self._random_text()])
        return CookieSession(token_hash, str(cookie))

    def read(self, request: Request) -> CookieSession | None:
        """Return the session of a request, None without one; an expired one has an empty hash."""
        cookie = _read_cookie(request, SESSION_COOKIE)
        if not cookie or len(cookie) > _MAX_COOKIE_LENGTH:
            return None
        try:
            encoded, time, _ = self._signer.loads(cookie)
            token_hash = base64.b64decode(encoded)
        except (BadData, TypeError, ValueError):
            return None
        age = self._environment.clock() - time
        expired = not 0 <= age < self._settings.session_seconds
        return CookieSession(b"" if expired else token_hash, cookie)

    def csrf_token(self, request: Request, session: CookieSession | None) -> str | None:
        """Return the CSRF token for this browser's forms; None before it has a cookie."""
        cookie = (
            session.cookie
            if session
            else _read_cookie(request, VISITOR_COOKIE)[:_MAX_COOKIE_LENGTH]
        )
        return self._csrf_token_for(cookie) if cookie else None

    def _csrf_token_for(self, cookie: str) -> str:
        digest = hmac.digest(self._csrf_key, cookie.encode("utf-8", "replace"), "sha256")
        return base64.urlsafe_b64encode(digest[:24]).decode()

    def is_valid_csrf(self, request: Request, session: CookieSession | None, token: str) -> bool:
        """Tell whether a CSRF token from a form or a header is right."""
        expected = self.csrf_token(request, session)
        return expected is not None and hmac.compare_digest(expected.encode(), token.encode())

    def new_visitor(self) -> tuple[str, str]:
        """Return a cookie for a new visitor, and the CSRF token for their first form."""
        cookie = self._random_text(32)
        return cookie, self._csrf_token_for(cookie)

    def _set_cookie(
        self, request: Request, response: Response, name: str, value: str, path: str = "/"
    ) -> None:
        secure = self._settings.secure_cookies
        response.set_cookie(
            name,
            value,
            max_age=self._settings.session_seconds if value else 0,
            path=(self._settings.prefix + path).rstrip("/") or "/",
            secure=request.url.scheme == "https" if secure is None else secure,
            httponly=True,
            samesite="lax",
        )

    def set_session_cookie(
        self, request: Request, response: Response, session: CookieSession
    ) -> None:
        """Set the session cookie."""
        self._set_cookie(request, response, SESSION_COOKIE, session.cookie)

    def clear_session_cookie(self, request: Request, response: Response) -> None:
        """Delete the session cookie."""
        self._set_cookie(request, response, SESSION_COOKIE, "")

    def set_sign_in_cookie(self, request: Request, response: Response, cookie: str) -> None:
        """Set the cookie of a sign-in that waits for a provider's answer; empty to delete it."""
        self._set_cookie(request, response, SIGN_IN_COOKIE, cookie, "/sign-in")

    @staticmethod
    def read_sign_in_cookie(request: Request) -> str:
        """Return the cookie of a sign-in that waits for a provider's answer."""
        return _read_cookie(request, SIGN_IN_COOKIE)

    def set_visitor_cookie(self, request: Request, response: Response, cookie: str) -> None:
        """Set the cookie that a visitor's first form is bound to."""
        self._set_cookie(request, response, VISITOR_COOKIE, cookie)


def unauthorised() -> RequestRefused:
    """Return the refusal of an invalid token, the same whatever is wrong with it."""
    return RequestRefused(
        401,
        "no_token",
        "A valid token is required: Authorization: Bearer lb_...",
        {"WWW-Authenticate": "Bearer"},
    )


class InvalidToken(Exception):
    """A token is not valid here."""


class Credentials(NamedTuple):
    """A token from a header or a form, or else the session of one."""

    token: str = ""
    session: CookieSession | None = None

    @property
    def token_hash(self) -> bytes:
        """The hash of the token."""
        return hash_token(self.token) if self.session is None else self.session.token_hash


class Authenticator:
    """Authenticates requests: bearer tokens and session cookies."""

    def __init__(self, boards: Boards, sessions: CookieSessions, settings: Settings) -> None:
        self._boards, self._sessions = boards, sessions
        # Not every proxy forwards the port; the public URL has it.
        self._public = None if settings.url is None else urlsplit(settings.url).netloc
        self._failures = RateLimiter(
            settings.failures,
            "Too many invalid tokens from your address. Wait before you retry.",
            settings.timer,
        )

    def read_credentials(self, request: Request) -> Credentials | None:
        """Return the credentials of a request, None without any; a header wins over a cookie."""
        headers = request.headers.getlist("authorization")
        if headers:
            scheme, _, token = headers[0].partition(" ")
            well_formed = len(headers) == 1 and scheme.lower() == "bearer"
            return Credentials(token.strip() if well_formed else "")
        session = self._sessions.read(request)
        if session is not None:
            return Credentials(session=session)
        return Credentials() if SESSION_COOKIE in request.cookies else None

    def token_hash(self, request: Request) -> bytes:
        """Return the hash of a request's token; empty without one."""
        credentials = self.read_credentials(request)
        return b"" if credentials is None else credentials.token_hash

    def check_form(self, request: Request, session: CookieSession | None, csrf_token: str) -> None:
        """Refuse a form that does not come from a page of ours in the same browser."""
        check_origin(request, self._public)
        if not self._sessions.is_valid_csrf(request, session, csrf_token):
            raise RequestRefused(403, "csrf", _CSRF_MESSAGE)

    def authenticate(
        self, request: Request, slug: str | None, *, csrf_checked: bool = False
    ) -> Caller:
        """Return the caller, on a board or on none. Reads the database: call it in a thread.

        Raises
        ------
        RequestRefused
            The token is not valid here (401, or 429 after too many), or a request with a session
            that may change something comes from another site (403).
        """
        credentials = self.read_credentials(request)
        if not csrf_checked:
            self._check_csrf_header(request, credentials)
        try:
            return self.resolve(credentials, slug)
        except InvalidToken:
            raise self.reject_token(request, credentials) from None

    def authenticate_visitor(self, request: Request, slug: str | None) -> Caller:
        """Return the caller of a page; an invalid session counts as the public."""
        credentials = self.read_credentials(request)
        try:
            if slug is None:
                return self.resolve_with_board(credentials)[0]
            return self.resolve(credentials, slug)
        except InvalidToken:
            if "authorization" in request.headers:
                raise self.reject_token(request, credentials) from None
            return PUBLIC

    def authenticate_with_board(self, request: Request) -> tuple[Caller, str | None]:
        """Return the caller, and the slug of the token's board if it is for one board only."""
        credentials = self.read_credentials(request)
        self._check_csrf_header(request, credentials)
        try:
            return self.resolve_with_board(credentials)
        except InvalidToken:
            raise self.reject_token(request, credentials) from None

    def _check_csrf_header(self, request: Request, credentials: Credentials | None) -> None:
        """Refuse a cross-site request (CSRF)."""
        if request.method in _SAFE_METHODS or credentials is None or credentials.session is None:
            return
        self.check_form(request, credentials.session, request.headers.get(CSRF_HEADER, ""))

    def resolve(self, credentials: Credentials | None, slug: str | None) -> Caller:
        """Return the caller with these credentials, on a board or on none."""
        if credentials is None:
            return PUBLIC
        try:
            if credentials.session is None:
                return self._boards.caller_by_token(credentials.token, slug)
            return self._boards.caller_by_token_hash(credentials.session.token_hash, slug)
        except NotAllowed:
            raise InvalidToken from None

    def resolve_with_board(self, credentials: Credentials | None) -> tuple[Caller, str | None]:
        """Return the caller with these credentials, and the slug of the token's board."""
        if credentials is None:
            return PUBLIC, None
        slug = self._boards.slug_of_token(credentials.token_hash)
        return self.resolve(credentials, slug), slug

    def reject_token(self, request: Request, credentials: Credentials | None) -> RequestRefused:
        """Count an invalid token and return the refusal: 429 if there were too many.

        Valid tokens are never limited: many people may share an address, and 256 bits cannot be
        guessed.
        """
        if credentials is None or credentials.session is None:
            try:
                self._failures.check(client_address(request))
            except RequestRefused as wait:
                return wait
            self._failures.record(client_address(request))
        return unauthorised()


def check_origin(request: Request, public_host: str | None) -> None:
    """Refuse a cross-site request; ``public_host`` is our own host name, if known."""
    site = request.headers.get("sec-fetch-site")
    origin = request.headers.get("origin")
    foreign = site is not None and site not in _OWN_SITES
    # Our Referrer-Policy makes browsers send "null" from our own forms, too.
    if origin not in {None, "null"} and not foreign:
        # Behind a TLS proxy the scheme differs; the host name does not.
        own_hosts = {public_host, request.headers.get("host", "").lower()}
        foreign = urlsplit(str(origin)).netloc.lower() not in own_hosts
    if foreign:
        raise RequestRefused(403, "csrf", _CSRF_MESSAGE)


def has_bearer_token(header: str, token: str | None) -> bool:
    """Tell whether an Authorization header holds this token."""
    scheme, _, sent = header.partition(" ")
    if token is None or scheme.lower() != "bearer":
        return False
    return hmac.compare_digest(sent.strip().encode("utf-8", "replace"), token.encode())


def is_organiser(caller: Caller) -> bool:
    """Tell whether the caller is an organiser."""
    return caller.role >= Role.ORGANISER
