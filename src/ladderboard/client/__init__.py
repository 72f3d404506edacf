"""Boards on a server from Python, over HTTP.

:class:`Client` submits to boards and reads them; :class:`AsyncClient` is the same with ``await``.
Responses are dataclasses. A refusal raises the exception that the server raised. After a network
failure a submission is sent again under the same idempotency key, and every answer is kept as a
receipt.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ladderboard.errors import MissingDependency

if TYPE_CHECKING:
    from ladderboard.board import (
        BestRelease,
        BoardInfo,
        BoardPhase,
        BoardRecord,
        BoardTerms,
        FileLimits,
        FinalRanking,
        FinalRankingRow,
        LeaderboardRow,
        LedgerHead,
        LimitStatus,
        MetricBound,
        MetricDisplay,
        RateLimit,
        ReplyDisplay,
        SubmissionInfo,
        TeamCredentials,
        TeamInvitation,
        TeamMember,
        TeamMembers,
        TeamRef,
        TeamStatus,
    )
    from ladderboard.client._async_client import AsyncClient
    from ladderboard.client._client import BoardGuard, Client
    from ladderboard.client._config import (
        Config,
        change_config,
        find_access,
        parse_address,
        read_config,
        split_board,
    )
    from ladderboard.client._models import SubmissionResult
    from ladderboard.client._receipts import StoredReceipt

__all__ = [
    "AsyncClient",
    "BestRelease",
    "BoardGuard",
    "BoardInfo",
    "BoardPhase",
    "BoardRecord",
    "BoardTerms",
    "Client",
    "Config",
    "FileLimits",
    "FinalRanking",
    "FinalRankingRow",
    "LeaderboardRow",
    "LedgerHead",
    "LimitStatus",
    "MetricBound",
    "MetricDisplay",
    "RateLimit",
    "ReplyDisplay",
    "StoredReceipt",
    "SubmissionInfo",
    "SubmissionResult",
    "TeamCredentials",
    "TeamInvitation",
    "TeamMember",
    "TeamMembers",
    "TeamRef",
    "TeamStatus",
    "change_config",
    "find_access",
    "parse_address",
    "read_config",
    "split_board",
]
# The module of each name; all others are documents of ``ladderboard.board``. A name is imported
# when it is first used: shell completion reads the config file on every key, and must not wait for
# httpx.
_MODULE_OF = {
    "find_access": "_config",
    "parse_address": "_config",
    "split_board": "_config",
    "AsyncClient": "_async_client",
    "Config": "_config",
    "change_config": "_config",
    "read_config": "_config",
    "BoardGuard": "_client",
    "StoredReceipt": "_receipts",
    "Client": "_client",
    "SubmissionResult": "_models",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        place = _MODULE_OF.get(name)
        module = import_module("ladderboard.board" if place is None else f"{__name__}.{place}")
    except ModuleNotFoundError as error:
        if error.name != "httpx":
            raise
        message = "The client needs httpx: pip install 'ladderboard[client]'."
        raise MissingDependency(message) from error
    value = getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
