"""The configuration of a server: where it listens and how it serves."""

from __future__ import annotations

import ipaddress
import os
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TextIO

from ladderboard import _settings
from ladderboard.board import is_shared
from ladderboard.client import parse_address
from ladderboard.errors import InvalidSetting
from ladderboard.server._rate_limits import Rate

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ladderboard.server._config import ResolvedSettings


_FAILURES, _REGISTRATIONS, _INVALID = Rate(30, 10.0), Rate(10, 60.0), Rate(30, 20.0)
_COPIED = (
    "spool",
    "threads",
    "body_seconds",
    "session_seconds",
    "address_connections",
)
_RATES = ("failures", "registrations", "invalid")


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How boards are served.

    Parameters
    ----------
    hosts
        Host names of the server, besides IP addresses and ``localhost``.
    url
        The public URL, for links on the pages; taken from the request if None. Its path, as in
        ``https://example.org/ladder``, becomes the ``prefix`` of all links.
    secure
        Whether cookies are sent over TLS only; if None, when the request came over TLS.
    spool
        A folder for bodies that are too large for memory.
    threads
        How many requests each process handles at once.
    body_seconds
        The time limit of an upload.
    session_seconds
        The lifetime of a sign-in on the pages.
    address_connections
        How many connections a client address may have; behind a proxy, concurrent requests.
    failures, registrations, invalid
        Rate limits of failed tokens and registrations per address, and of invalid files per team.
    metrics_token
        A token for ``/metrics``, besides the organiser's.
    log_client
        Whether the log contains client addresses.
    log
        The stream of the log; standard error if None.
    timer
        Measures durations; for tests.
    """

    hosts: frozenset[str] = frozenset()
    url: str | None = None
    secure: bool | None = None
    spool: Path | None = None
    threads: int = 32
    body_seconds: float = 300.0
    session_seconds: int = 12 * 3600
    address_connections: int = 100
    failures: Rate = _FAILURES
    registrations: Rate = _REGISTRATIONS
    invalid: Rate = _INVALID
    metrics_token: str | None = field(default=None, repr=False)
    log_client: bool = False
    log: TextIO | None = None
    timer: Callable[[], float] = time.perf_counter
    prefix: str = field(init=False, default="")

    def __post_init__(self) -> None:
        public = None if self.url is None else parse_address(self.url)
        _settings.set_frozen(
            self,
            url=None if public is None else public.url,
            prefix="" if public is None else public.prefix,
            hosts=frozenset(host.lower() for host in self.hosts),
            threads=_settings.integer("threads", self.threads, at_least=1, at_most=1000),
            body_seconds=_settings.number("body_seconds", self.body_seconds, above=0),
            address_connections=_settings.integer(
                "address_connections", self.address_connections, at_least=1
            ),
            session_seconds=_settings.integer("session_seconds", self.session_seconds, at_least=1),
        )


@dataclass(frozen=True, kw_only=True)
class ServerConfig:
    """Where and how boards are served.

    Parameters
    ----------
    database
        A path, ``sqlite:///path`` or ``postgresql+psycopg://...``.
    key_file
        The key that encrypts the secrets in the database.
    host, port
        The address to listen on.
    workers
        How many processes serve; more than 1 needs PostgreSQL.
    parsers
        How many processes parse submissions, per worker.
    proxies
        Addresses or networks of reverse proxies whose ``X-Forwarded-For`` and ``-Proto`` headers
        are trusted, separated by commas; none if None.
    settings
        Everything else.
    """

    database: str = field(repr=False)  # it may hold a password
    key_file: Path | None = None
    host: str = "127.0.0.1"
    port: int = 8000
    workers: int = 1
    parsers: int = 2
    proxies: str | None = None
    settings: Settings = field(default_factory=Settings)

    def __post_init__(self) -> None:
        workers = _settings.integer("workers", self.workers, at_least=1, at_most=256)
        if workers > 1 and not is_shared(self.database):
            raise InvalidSetting(
                "workers must be 1 on SQLite, which allows one writing process; for more, use "
                "PostgreSQL: --database postgresql+psycopg://..."
            )
        if self.proxies is not None:
            _check_proxies(self.proxies)
        if workers > 1 and os.name != "posix":
            raise InvalidSetting(
                "workers must be 1 on Windows, where processes cannot share a port."
            )
        _settings.set_frozen(
            self,
            workers=workers,
            parsers=_settings.integer("parsers", self.parsers, at_least=1, at_most=256),
        )


def _check_proxies(proxies: str) -> None:
    """Refuse anything but a list of addresses and networks.

    A name would never match an address, and "*" would trust everybody.

    >>> _check_proxies("127.0.0.1, ::1, 10.0.0.0/24")
    """
    for proxy in proxies.split(","):
        try:
            valid = ipaddress.ip_network(proxy.strip()).prefixlen > 0  # 0 would trust everybody
        except ValueError:
            valid = False
        if not valid:
            raise InvalidSetting(
                "proxy must be addresses like 127.0.0.1 or networks like 10.0.0.0/24, separated by "
                f"commas; got {_settings.safe_repr(proxy.strip())}."
            )


def make_server_config(resolved: ResolvedSettings, by_url: Settings) -> ServerConfig:
    """Return the configuration of a server; ``by_url`` holds the settings that follow from url."""
    copied = {name: resolved[f"serve.{name}"] for name in _COPIED}
    rates: dict[str, Any] = {name: Rate(*resolved[f"serve.{name}"]) for name in _RATES}
    settings = replace(
        by_url,
        hosts=by_url.hosts | frozenset(resolved["serve.hosts"]),
        secure=by_url.secure if resolved["serve.secure"] is None else resolved["serve.secure"],
        metrics_token=resolved.metrics_token(),
        log_client=resolved["serve.log_client"],
        **copied,
        **rates,
    )
    return ServerConfig(
        database=resolved["database"],
        key_file=resolved["key_file"],
        host=resolved["serve.host"],
        port=resolved["serve.port"],
        workers=resolved["serve.workers"],
        parsers=resolved["serve.parsers"],
        proxies=",".join(resolved["serve.proxy"]) or None,
        settings=settings,
    )
