"""The providers that people can sign in with: OpenID Connect, and GitHub."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ladderboard import _settings
from ladderboard.errors import InvalidSetting

_NAME = re.compile("[a-z][a-z0-9_-]{0,31}")
_PRESETS: dict[str, dict[str, str]] = {
    "github": {"title": "GitHub", "kind": "github", "issuer": "https://github.com"},
    "google": {"title": "Google", "issuer": "https://accounts.google.com"},
}
_MAX_SECRET_BYTES = 4096


class Provider(BaseModel):
    """A provider: its issuer, and the client that is registered there.

    GitHub does not offer OpenID Connect: its API at ``api`` says who signed in.
    """

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid", hide_input_in_errors=True)

    name: str
    title: str = Field(min_length=1, max_length=64)
    kind: Literal["oidc", "github"] = "oidc"
    issuer: str
    api: str = "https://api.github.com"
    client_id: str = Field(min_length=1)
    client_secret: str | None = Field(None, min_length=1, repr=False)
    client_secret_file: str | None = None

    def read_secret(self) -> str | None:
        """Return the client's secret; None for a public client."""
        if self.client_secret_file is None:
            return self.client_secret
        path = Path(self.client_secret_file).expanduser()
        try:
            with path.open("rb") as opened:
                content = opened.read(_MAX_SECRET_BYTES)
        except OSError as error:
            raise InvalidSetting(
                f"sign_in.{self.name}.client_secret_file is {path}, which cannot be read: "
                f"{error.strerror}."
            ) from None
        return content.partition(b"\n")[0].decode("latin-1").strip()


class Providers(tuple[Provider, ...]):
    """All providers, in the order in which they are shown."""

    __slots__ = ()

    def get(self, name: str) -> Provider | None:
        """Return a provider by its name."""
        return next((provider for provider in self if provider.name == name), None)


def read_providers(value: Any) -> Providers:
    """Return providers from tables by name, or from the same as JSON text.

    >>> google = {"client_id": "1", "client_secret_file": "google.secret"}
    >>> [(provider.title, provider.issuer) for provider in read_providers({"google": google})]
    [('Google', 'https://accounts.google.com')]
    >>> read_providers({"university": {"client_id": "1"}})
    Traceback (most recent call last):
    ...
    ladderboard.errors.InvalidSetting: sign_in.university.issuer is missing.
    """
    if isinstance(value, Providers):
        return value
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            raise InvalidSetting("it must be JSON") from None
    if isinstance(value, tuple) and not value:
        return Providers()
    if not isinstance(value, dict) or not all(isinstance(table, dict) for table in value.values()):
        raise InvalidSetting("it must be a table for each provider")
    return Providers(_read_provider(name, table) for name, table in value.items())


def _read_provider(name: str, table: dict[str, Any]) -> Provider:
    if not _NAME.fullmatch(name):
        raise InvalidSetting(
            "the name of a provider must be 1 to 32 letters a to z, digits, _ and -, and begin "
            "with a letter"
        )
    try:
        provider = Provider(**{"title": name, **_PRESETS.get(name, {}), **table, "name": name})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        key = f"sign_in.{name}.{'.'.join(map(str, first['loc']))}"
        message = "is missing" if first["type"] == "missing" else f"is wrong: {first['msg']}"
        raise InvalidSetting(f"{key} {message}.") from None
    if provider.client_secret is not None and provider.client_secret_file is not None:
        raise InvalidSetting(f"sign_in.{name} has both client_secret and client_secret_file.")
    for key in ("issuer", "api"):
        if not _is_safe(getattr(provider, key)):
            raise InvalidSetting(
                f"sign_in.{name}.{key} must begin with https://, except for a loopback address."
            )
    return provider


def _is_safe(url: str) -> bool:
    """Return whether a URL has TLS, or leads to this machine."""
    parts = urlsplit(url)
    if parts.scheme == "https":
        return bool(parts.hostname)
    return parts.scheme == "http" and _settings.is_loopback(parts.hostname or "")
