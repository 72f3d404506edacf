"""A server as its settings want it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ladderboard.server._limits import Rate
from ladderboard.server._run import Serving

if TYPE_CHECKING:
    from ladderboard.server._config._found import Found
    from ladderboard.server._options import Settings

__all__ = ["make_serving"]

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


def make_serving(found: Found, by_url: Settings) -> Serving:
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
    return Serving(
        database=found["database"],
        key_file=found["key_file"],
        host=found["serve.host"],
        port=found["serve.port"],
        workers=found["serve.workers"],
        parsers=found["serve.parsers"],
        proxies=",".join(found["serve.proxy"]) or None,
        settings=settings,
    )
