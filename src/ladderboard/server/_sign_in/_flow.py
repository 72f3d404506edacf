"""A sign-in from the link on a board's page to the provider's answer.

Between the two, a signed cookie holds what the answer must match: provider, board, state, nonce and
the PKCE verifier. So a sign-in ends only in the browser that started it, once, within ten minutes.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import TYPE_CHECKING, NamedTuple

from itsdangerous import BadData, URLSafeSerializer

from ladderboard.errors import NotFound
from ladderboard.server._problems import RequestRefused
from ladderboard.server._sign_in._providers import make_client

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ladderboard.board import Boards, VerifiedIdentity
    from ladderboard.server._settings import Settings
    from ladderboard.server._sign_in._providers import ProviderClient

SIGN_IN_COOKIE = "ladderboard_sign_in"
_SECONDS = 600
_MAX_COOKIE_LENGTH = 2048
_NOT_STARTED = (
    "This sign-in was not started in this browser, or more than ten minutes ago. Start again on "
    "the board's Join page."
)


class StartedSignIn(NamedTuple):
    """A sign-in that waits for the provider's answer."""

    provider: str
    board: str
    state: str
    nonce: str
    verifier: str
    time: int


class SignInFlow:
    """The sign-ins of one server."""

    def __init__(self, boards: Boards, settings: Settings) -> None:
        self._environment = boards.environment
        self._clients: dict[str, ProviderClient] = {
            provider.name: make_client(provider, boards.environment.clock)
            for provider in settings.sign_in
        }
        self._signer = URLSafeSerializer(
            hmac.digest(boards.signing_key(), b"ladderboard sign-in", "sha256"),
            salt=b"ladderboard.sign-in",
            signer_kwargs={"key_derivation": "hmac", "digest_method": hashlib.sha256},
        )

    def titles(self, only: tuple[str, ...] | list[str] = ()) -> dict[str, str]:
        """Return the titles of the providers by name, perhaps of some only."""
        return {
            name: client.provider.title
            for name, client in self._clients.items()
            if not only or name in only
        }

    def _client(self, name: str) -> ProviderClient:
        if name not in self._clients:
            raise NotFound("There is no such provider here.")
        return self._clients[name]

    def _random_text(self) -> str:
        return base64.urlsafe_b64encode(self._environment.salt()).decode().rstrip("=")

    async def start(self, name: str, board: str, redirect_uri: str) -> tuple[str, str]:
        """Start a sign-in; return the provider's URL and the cookie."""
        client = self._client(name)
        state, nonce, verifier = (self._random_text() for _ in range(3))
        started = StartedSignIn(name, board, state, nonce, verifier, self._environment.clock())
        url = await client.authorization_url(started, redirect_uri)
        return url, str(self._signer.dumps(list(started)))

    def read(self, cookie: str, name: str, answer: Mapping[str, str]) -> StartedSignIn:
        """Return the sign-in that an answer belongs to; refuse any other answer."""
        self._client(name)
        try:
            started = StartedSignIn(*self._signer.loads(cookie[:_MAX_COOKIE_LENGTH]))
        except (BadData, TypeError, ValueError):
            raise _refusal() from None
        fresh = 0 <= self._environment.clock() - started.time < _SECONDS
        same_state = hmac.compare_digest(started.state.encode(), answer.get("state", "").encode())
        if not (fresh and same_state and started.provider == name):
            raise _refusal()
        return started

    async def finish(
        self, started: StartedSignIn, answer: Mapping[str, str], redirect_uri: str
    ) -> VerifiedIdentity:
        """Return the person that the provider vouches for."""
        client = self._client(started.provider)
        if "error" in answer or "code" not in answer:
            detail = f"You did not sign in with {client.provider.title}. Nothing changed."
            raise RequestRefused(403, "sign_in", detail)
        return await client.identify(started, answer, redirect_uri)


def _refusal() -> RequestRefused:
    return RequestRefused(403, "sign_in", _NOT_STARTED)
