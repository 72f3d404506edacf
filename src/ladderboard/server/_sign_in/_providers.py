"""Clients of providers: they make the authorization URL, and turn a code into an identity.

Authlib makes the requests of OAuth 2.0 and checks the claims of ID tokens; joserfc checks their
signatures. Both are imported when somebody signs in.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from ladderboard.board import VerifiedIdentity
from ladderboard.server._problems import RequestRefused

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from authlib.integrations.httpx_client import AsyncOAuth2Client

    from ladderboard.server._settings import Provider
    from ladderboard.server._sign_in._flow import StartedSignIn

_TIMEOUT_SECONDS = 10.0
_LEEWAY_SECONDS = 60
_METADATA_SECONDS = 3600
# A provider's public keys only: with HS256 the client's secret would be the key.
_ALGORITHMS = (
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA",
)  # fmt: skip
_MAX_SUBJECT_LENGTH = 255


class ProviderClient(ABC):
    """A client of one provider."""

    scope: str
    has_id_tokens = True

    def __init__(self, provider: Provider, clock: Callable[[], int]) -> None:
        self.provider, self.clock = provider, clock
        self._secret = provider.read_secret()

    def session(self, redirect_uri: str | None = None) -> AsyncOAuth2Client:
        """Return a client of OAuth 2.0 for one exchange."""
        from authlib.integrations.httpx_client import AsyncOAuth2Client  # noqa: PLC0415

        return AsyncOAuth2Client(
            client_id=self.provider.client_id,
            client_secret=self._secret,
            token_endpoint_auth_method=self.authentication_method(),
            scope=self.scope,
            redirect_uri=redirect_uri,
            code_challenge_method="S256",
            timeout=_TIMEOUT_SECONDS,
        )

    def authentication_method(self) -> str:
        """Return how the client proves itself when it exchanges a code."""
        return "none" if self._secret is None else "client_secret_basic"

    async def authorization_url(self, started: StartedSignIn, redirect_uri: str) -> str:
        """Return the URL that the browser is sent to."""
        endpoint = await self.authorization_endpoint()
        nonce = {"nonce": started.nonce} if self.has_id_tokens else {}
        async with self.session(redirect_uri) as session:
            url, _ = session.create_authorization_url(
                endpoint, state=started.state, code_verifier=started.verifier, **nonce
            )
        return str(url)

    async def identify(
        self, started: StartedSignIn, answer: Mapping[str, str], redirect_uri: str
    ) -> VerifiedIdentity:
        """Return the person that a code stands for; refuse a code or token that is not valid."""
        import httpx  # noqa: PLC0415
        from authlib.common.errors import AuthlibBaseError  # noqa: PLC0415
        from joserfc.errors import JoseError  # noqa: PLC0415

        try:
            return await self.exchange(started, answer, redirect_uri)
        except (AuthlibBaseError, JoseError, KeyError, TypeError, ValueError) as error:
            raise self.refusal() from error
        except httpx.HTTPError as error:
            raise self.unavailable() from error

    def refusal(self) -> RequestRefused:
        """Return the refusal of an answer that is not valid, the same whatever is wrong with it."""
        return RequestRefused(
            403, "sign_in", f"The answer of {self.provider.title} is not valid. Sign in again."
        )

    def unavailable(self) -> RequestRefused:
        """Return the refusal if the provider does not answer."""
        return RequestRefused(
            502, "sign_in", f"{self.provider.title} does not answer. Try again later."
        )

    async def fetch_json(self, url: str) -> Any:
        """Return a JSON document of the provider."""
        import httpx  # noqa: PLC0415

        async with httpx.AsyncClient(timeout=_TIMEOUT_SECONDS) as client:
            response = await client.get(url)
            response.raise_for_status()
            return response.json()

    @abstractmethod
    async def authorization_endpoint(self) -> str:
        """Return the URL where people sign in."""

    @abstractmethod
    async def exchange(
        self, started: StartedSignIn, answer: Mapping[str, str], redirect_uri: str
    ) -> VerifiedIdentity:
        """Return the person that a code stands for."""

    def verified(self, subject: Any, name: Any, mail: Any) -> VerifiedIdentity:
        """Return an identity of this provider."""
        subject = str(subject)
        if not 0 < len(subject) <= _MAX_SUBJECT_LENGTH or not subject.isprintable():
            raise ValueError("the subject is not usable")
        return VerifiedIdentity(
            self.provider.name,
            self.provider.issuer,
            subject,
            name if isinstance(name, str) else "",
            mail if isinstance(mail, str) and mail.count("@") == 1 else None,
        )


class OpenIdClient(ProviderClient):
    """A client of a provider of OpenID Connect, which is discovered by its issuer."""

    scope = "openid email profile"

    def __init__(self, provider: Provider, clock: Callable[[], int]) -> None:
        super().__init__(provider, clock)
        self._metadata: dict[str, Any] = {}
        self._metadata_time = 0
        self._keys: Any = None

    async def metadata(self) -> dict[str, Any]:
        """Return the provider's description of itself, at most an hour old."""
        import httpx  # noqa: PLC0415

        age = self.clock() - self._metadata_time
        if not self._metadata or not 0 <= age < _METADATA_SECONDS:
            issuer = self.provider.issuer
            try:
                document = await self.fetch_json(
                    f"{issuer.rstrip('/')}/.well-known/openid-configuration"
                )
            except (httpx.HTTPError, ValueError) as error:
                raise self.unavailable() from error
            if not isinstance(document, dict) or document.get("issuer") != issuer:
                raise self.refusal()
            self._metadata, self._metadata_time = document, self.clock()
        return self._metadata

    async def authorization_endpoint(self) -> str:
        """Return the URL where people sign in."""
        return str((await self.metadata())["authorization_endpoint"])

    async def exchange(
        self, started: StartedSignIn, answer: Mapping[str, str], redirect_uri: str
    ) -> VerifiedIdentity:
        """Return the person that a code stands for: the subject of a valid ID token."""
        metadata = await self.metadata()
        if answer.get("iss", self.provider.issuer) != self.provider.issuer:
            raise self.refusal()  # the answer of another provider (RFC 9207)
        async with self.session(redirect_uri) as session:
            token = await session.fetch_token(
                metadata["token_endpoint"], code=answer["code"], code_verifier=started.verifier
            )
            claims = await self._read_id_token(token, started.nonce)
            if "email" not in claims and "userinfo_endpoint" in metadata:
                response = await session.get(metadata["userinfo_endpoint"])
                response.raise_for_status()
                user = response.json()
                if user["sub"] != claims["sub"]:
                    raise self.refusal()
                claims = {**user, **claims}
        mail = claims.get("email") if claims.get("email_verified") is True else None
        name = claims.get("name") or claims.get("preferred_username")
        return self.verified(claims["sub"], name, mail)

    async def _read_id_token(self, token: Mapping[str, Any], nonce: str) -> dict[str, Any]:
        """Return the claims of an ID token with a valid signature, issued to us, for this nonce."""
        from authlib.oidc.core import CodeIDToken  # noqa: PLC0415
        from joserfc.errors import BadSignatureError, InvalidKeyIdError  # noqa: PLC0415

        try:
            decoded = await self._verify_signature(token["id_token"])
        except (BadSignatureError, InvalidKeyIdError):
            self._keys = None  # the provider may have changed its keys
            decoded = await self._verify_signature(token["id_token"])
        claims = CodeIDToken(
            decoded.claims,
            decoded.header,
            {
                "iss": {"essential": True, "value": self.provider.issuer},
                "aud": {"essential": True, "value": self.provider.client_id},
                "nonce": {"essential": True, "value": nonce},
            },
            {
                "nonce": nonce,
                "client_id": self.provider.client_id,
                "access_token": token["access_token"],
            },
        )
        claims.validate(now=self.clock(), leeway=_LEEWAY_SECONDS)
        return dict(claims)

    async def _verify_signature(self, id_token: str) -> Any:
        """Return a token whose signature is by one of the provider's keys."""
        from joserfc import jwt  # noqa: PLC0415
        from joserfc.jwk import KeySet  # noqa: PLC0415

        metadata = await self.metadata()
        if self._keys is None:
            self._keys = await self.fetch_json(metadata["jwks_uri"])
        used = metadata.get("id_token_signing_alg_values_supported", ["RS256"])
        algorithms = [name for name in _ALGORITHMS if name in used]
        return jwt.decode(id_token, KeySet.import_key_set(self._keys), algorithms=algorithms)


class GitHubClient(ProviderClient):
    """A client of GitHub, which has OAuth 2.0 and an API but no ID tokens.

    The subject is the number of the user: names can be changed and taken by others.
    """

    scope = "read:user user:email"
    has_id_tokens = False

    def authentication_method(self) -> str:
        """Return how the client proves itself when it exchanges a code."""
        return "client_secret_post"

    async def authorization_endpoint(self) -> str:
        """Return the URL where people sign in."""
        return f"{self.provider.issuer}/login/oauth/authorize"

    async def exchange(
        self, started: StartedSignIn, answer: Mapping[str, str], redirect_uri: str
    ) -> VerifiedIdentity:
        """Return the person that a code stands for: the user of the API."""
        async with self.session(redirect_uri) as session:
            await session.fetch_token(
                f"{self.provider.issuer}/login/oauth/access_token",
                code=answer["code"],
                code_verifier=started.verifier,
                headers={"Accept": "application/json"},
            )
            documents = []
            for path in ("/user", "/user/emails"):
                response = await session.get(
                    self.provider.api + path, headers={"Accept": "application/json"}
                )
                response.raise_for_status()
                documents.append(response.json())
        user, mails = documents
        primary = (mail["email"] for mail in mails if mail["primary"] and mail["verified"])
        return self.verified(
            int(user["id"]), user.get("name") or user["login"], next(primary, None)
        )


def make_client(provider: Provider, clock: Callable[[], int]) -> ProviderClient:
    """Return the client of a provider."""
    return (GitHubClient if provider.kind == "github" else OpenIdClient)(provider, clock)
