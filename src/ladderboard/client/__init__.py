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
    from ladderboard.client._address import read_address, split_board
    from ladderboard.client._async_client import AsyncClient
    from ladderboard.client._client import BoardGuard, Client
    from ladderboard.client._config import Config, change_config, find_access, read_config
    from ladderboard.client._models import (
        Best,
        Board,
        Bound,
        Display,
        DisplayedReply,
        Files,
        Finalist,
        Finals,
        Head,
        Limit,
        NewTeam,
        Phase,
        Record,
        Standing,
        Submission,
        Submitted,
        Team,
        TeamName,
        Window,
    )
    from ladderboard.client._receipts import Receipt

__all__ = [
    "AsyncClient",
    "Best",
    "Board",
    "BoardGuard",
    "Bound",
    "Client",
    "Config",
    "Display",
    "DisplayedReply",
    "Files",
    "Finalist",
    "Finals",
    "Head",
    "Limit",
    "NewTeam",
    "Phase",
    "Receipt",
    "Record",
    "Standing",
    "Submission",
    "Submitted",
    "Team",
    "TeamName",
    "Window",
    "change_config",
    "find_access",
    "read_address",
    "read_config",
    "split_board",
]
# Where names live; all others are what a server says. A name is loaded when it is first used: the
# command line looks for kept boards while somebody types, and needs no HTTP for that.
_HOMES = {
    "find_access": "_config",
    "read_address": "_address",
    "split_board": "_address",
    "AsyncClient": "_async_client",
    "Config": "_config",
    "change_config": "_config",
    "read_config": "_config",
    "BoardGuard": "_client",
    "Receipt": "_receipts",
    "Client": "_client",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        module = import_module(f"{__name__}.{_HOMES.get(name, '_models')}")
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
