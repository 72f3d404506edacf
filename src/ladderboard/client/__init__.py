"""The same verbs from Python, over HTTP.

A :class:`Client` submits to the boards of a server and reads them; an :class:`AsyncClient` does the
same where it is awaited. What is said is typed, what is refused is raised as the exception that the
server raised itself, what breaks on the way is sent again under the same key, and every answer
leaves a receipt.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ladderboard.errors import MissingDependency

if TYPE_CHECKING:
    from ladderboard.client._address import parse_address, split_board
    from ladderboard.client._async_client import AsyncClient
    from ladderboard.client._client import BoardGuard, Client
    from ladderboard.client._config import Config, change_config, find_access, read_config
    from ladderboard.client._models import (
        BestRelease,
        BoardInfo,
        BoardPhase,
        BoardRecord,
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
        SubmissionResult,
        TeamCredentials,
        TeamRef,
        TeamStatus,
    )
    from ladderboard.client._receipts import StoredReceipt

__all__ = [
    "AsyncClient",
    "BestRelease",
    "BoardGuard",
    "BoardInfo",
    "BoardPhase",
    "BoardRecord",
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
    "TeamRef",
    "TeamStatus",
    "change_config",
    "find_access",
    "parse_address",
    "read_config",
    "split_board",
]
# Where names live; all others are what a server says. A name is loaded when it is first used: the
# command line looks for kept boards while somebody types, and needs no HTTP for that.
_MODULE_OF = {
    "find_access": "_config",
    "parse_address": "_address",
    "split_board": "_address",
    "AsyncClient": "_async_client",
    "Config": "_config",
    "change_config": "_config",
    "read_config": "_config",
    "BoardGuard": "_client",
    "StoredReceipt": "_receipts",
    "Client": "_client",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        module = import_module(f"{__name__}.{_MODULE_OF.get(name, '_models')}")
    except ModuleNotFoundError as error:
        if error.name != "httpx":
            raise
        message = "The client needs httpx: pip install 'ladderboard[client]'."
        raise MissingDependency(message) from error
    found = getattr(module, name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
