"""Who asks: the one place that looks at tokens and cookies."""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from ladderboard.board import PUBLIC, Role, token_hash
from ladderboard.errors import NotAllowed
from ladderboard.server._limits import Bucket, address_of
from ladderboard.server._problems import Refused
from ladderboard.server._sessions import SESSION

if TYPE_CHECKING:
    from starlette.requests import Request

    from ladderboard.board import Boards, Caller
    from ladderboard.server._options import Settings
    from ladderboard.server._sessions import Session, Sessions

__all__ = ["CSRF_HEADER", "Shown", "Unknown", "Who", "unauthorised"]

CSRF_HEADER = "x-csrf-token"
_SAFE = {"GET", "HEAD"}
_OWN = {"same-origin", "none"}
_CSRF = "This did not come from a page of this server. Load the page again, and try once more."


def unauthorised() -> Refused:
    """Return the one answer to every token that is not good here, whatever is wrong with it."""
    return Refused(
        401,
        "no_token",
        "This needs a token that is good here: Authorization: Bearer lb_...",
        {"WWW-Authenticate": "Bearer"},
    )


class Unknown(Exception):
    """A token that is not good here."""


class Shown(NamedTuple):
    """What somebody shows to say who they are: a token's hash, and a session if it came by one."""

    hashed: bytes
    session: Session | None = None


class Who:
    """Tells callers apart."""

    def __init__(self, boards: Boards, sessions: Sessions, settings: Settings) -> None:
        self.boards, self.sessions = boards, sessions
        # Not every proxy hands on the port of a name; what people type has it.
        self._public = None if settings.url is None else urlsplit(settings.url).netloc
        self._failures = Bucket(
            settings.failures, "Too many tokens from here were wrong; wait.", settings.timer
        )

    def shown(self, request: Request) -> Shown | None:
        """Return what a request shows; a header counts before a cookie. None: the public."""
        given = request.headers.getlist("authorization")
        if given:
            scheme, _, token = given[0].partition(" ")
            right = len(given) == 1 and scheme.lower() == "bearer"
            return Shown(token_hash(token.strip() if right else ""))
        session = self.sessions.read(request)
        if session is not None:
            return Shown(session.hashed, session)
        return Shown(token_hash("")) if SESSION in request.cookies else None

    def check(self, request: Request, shown: Shown | None, *, form: bool = False) -> None:
        """Refuse what another site's page made a browser send."""
        if shown is None:
            return
        if request.method not in _SAFE and shown.session is not None and not form:
            self.check_form(request, shown.session, request.headers.get(CSRF_HEADER, ""))

    def check_form(self, request: Request, session: Session | None, said: str) -> None:
        """Refuse a form that is not from a page of ours, in this very browser."""
        check_origin(request, self._public)
        if not self.sessions.is_csrf(request, session, said):
            raise Refused(403, "csrf", _CSRF)

    def find(self, shown: Shown | None, slug: str | None) -> Caller:
        """Return who that is, on a board or on none; for a thread, as it asks the database."""
        if shown is None:
            return PUBLIC
        try:
            return self.boards.by_hash(shown.hashed, slug)
        except NotAllowed:
            raise Unknown from None

    def guest(self, request: Request, shown: Shown | None, slug: str | None) -> Caller:
        """Return the same for a page, which everybody may see."""
        try:
            return self.home(shown)[0] if slug is None else self.find(shown, slug)
        except Unknown:
            if "authorization" in request.headers:
                raise
            return PUBLIC

    def home(self, shown: Shown | None) -> tuple[Caller, str | None]:
        """Return who that is, and the slug of the one board that the token is for; a thread's."""
        if shown is None:
            return PUBLIC, None
        slug = self.boards.boards_of(shown.hashed)
        return self.find(shown, slug), slug

    def failed(self, request: Request, shown: Shown | None) -> Refused:
        """Count a token that is not good, and return the answer: to wait, if there were too many.

        Good ones are never made to wait: many people may come from one address, and 256 bits need
        no guard against guessing.
        """
        if shown is None or shown.session is None:  # a session of ours has only ended
            try:
                self._failures.check(address_of(request))
            except Refused as wait:
                return wait
            self._failures.spend(address_of(request))
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
        raise Refused(403, "csrf", _CSRF)


def is_token(given: str, token: str | None) -> bool:
    """Tell whether a header bears a token of the server's own."""
    scheme, _, said = given.partition(" ")
    if token is None or scheme.lower() != "bearer":
        return False
    return hmac.compare_digest(said.strip().encode("utf-8", "replace"), token.encode())


def is_organiser(caller: Caller) -> bool:
    """Tell whether somebody runs all boards."""
    return caller.role >= Role.ORGANISER
