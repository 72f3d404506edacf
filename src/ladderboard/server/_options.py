"""What can be set about a server."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TextIO

from ladderboard import _settings
from ladderboard.client import read_address
from ladderboard.server._limits import Rate

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["Settings"]

_FAILURES, _REGISTRATIONS, _INVALID = Rate(30, 10.0), Rate(10, 60.0), Rate(30, 20.0)


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
        public = None if self.url is None else read_address(self.url)
        _settings.settle(
            self,
            url=None if public is None else public.url,
            prefix="" if public is None else public.prefix,
            hosts=frozenset(each.lower() for each in self.hosts),
            threads=_settings.whole("threads", self.threads, at_least=1, at_most=1000),
            trial_seconds=_settings.number("trial_seconds", self.trial_seconds, above=0),
            body_seconds=_settings.number("body_seconds", self.body_seconds, above=0),
            address_connections=_settings.whole(
                "address_connections", self.address_connections, at_least=1
            ),
            session_seconds=_settings.whole("session_seconds", self.session_seconds, at_least=1),
        )
