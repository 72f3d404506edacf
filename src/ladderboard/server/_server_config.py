"""What can be set about a server, and where and how it serves."""

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
_SAME = (
    "spool",
    "trials",
    "threads",
    "body_seconds",
    "session_seconds",
    "trial_seconds",
    "address_connections",
)
_RATES = ("failures", "registrations", "invalid")


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How boards are served.

    Parameters
    ----------
    hosts
        Names by which the server is known, besides addresses and ``localhost``.
    url
        What people type to come here, for the pages; what the request says if None. Its path, as in
        ``https://example.org/ladder``, is the ``prefix`` of everything that is said of a place.
    secure
        Whether cookies go over TLS only; where None, if the request came by it.
    spool
        A folder for bodies that are too large for memory.
    trials
        A folder that all processes of this server share, for attacks that are played on an
        organiser's wish; one of its own if None.
    trial_seconds
        How long such games may take.
    threads
        How many requests the board room works on at once.
    body_seconds
        How long a submission may take to come in.
    session_seconds
        How long a page's session lasts.
    address_connections
        How many connections a client address may have, and requests under way behind a proxy.
    failures, registrations, invalid
        Limits on failed tokens and registrations by an address, and on a team's invalid files.
    metrics_token
        Opens ``/metrics``, besides the organiser's.
    log_client
        Whether the log names addresses.
    log
        Where the log goes; standard error if None.
    timer
        What measures durations; for tests.
    """

    hosts: frozenset[str] = frozenset()
    url: str | None = None
    secure: bool | None = None
    spool: Path | None = None
    trials: Path | None = None
    trial_seconds: float = 900.0
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
            hosts=frozenset(each.lower() for each in self.hosts),
            threads=_settings.integer("threads", self.threads, at_least=1, at_most=1000),
            trial_seconds=_settings.number("trial_seconds", self.trial_seconds, above=0),
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
        Encrypts everything secret in it.
    host, port
        Where to listen.
    workers
        How many processes serve; above 1 on PostgreSQL only.
    parsers
        How many processes read submissions, for each of them.
    proxies
        Addresses or networks of reverse proxies whose ``X-Forwarded-For`` and ``-Proto`` are
        believed, with commas between them; none if None.
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
                "workers must be 1 on SQLite, which one process writes; for more, serve from "
                "PostgreSQL: --database postgresql+psycopg://..."
            )
        if self.proxies is not None:
            _check_proxies(self.proxies)
        if workers > 1 and os.name != "posix":
            raise InvalidSetting("workers must be 1 here: only on Unix can processes share a port.")
        _settings.set_frozen(
            self,
            workers=workers,
            parsers=_settings.integer("parsers", self.parsers, at_least=1, at_most=256),
        )


def _check_proxies(listed: str) -> None:
    """Refuse what is no list of addresses and networks.

    A name would be compared with addresses and never fit, and "*" would believe everybody.

    >>> _check_proxies("127.0.0.1, ::1, 10.0.0.0/24")
    """
    for each in listed.split(","):
        try:
            right = ipaddress.ip_network(each.strip()).prefixlen > 0  # or it were all there are
        except ValueError:
            right = False
        if not right:
            raise InvalidSetting(
                "proxy must be addresses like 127.0.0.1 or networks like 10.0.0.0/24, with commas "
                f"between; got {_settings.safe_repr(each.strip())}."
            )


def make_server_config(found: ResolvedSettings, by_url: Settings) -> ServerConfig:
    """Return where and how boards are served; ``by_url`` holds what follows from ``url``."""
    same = {name: found[f"serve.{name}"] for name in _SAME}
    rates: dict[str, Any] = {name: Rate(*found[f"serve.{name}"]) for name in _RATES}
    settings = replace(
        by_url,
        hosts=by_url.hosts | frozenset(found["serve.hosts"]),
        secure=by_url.secure if found["serve.secure"] is None else found["serve.secure"],
        metrics_token=found.metrics_token(),
        log_client=found["serve.log_client"],
        **same,
        **rates,
    )
    return ServerConfig(
        database=found["database"],
        key_file=found["key_file"],
        host=found["serve.host"],
        port=found["serve.port"],
        workers=found["serve.workers"],
        parsers=found["serve.parsers"],
        proxies=",".join(found["serve.proxy"]) or None,
        settings=settings,
    )
