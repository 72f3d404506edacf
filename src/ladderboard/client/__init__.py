"""The same verbs from Python, over HTTP.

A :class:`Client` submits to the boards of a server and reads them; an :class:`AsyncClient` does the
same where it is awaited. What is said is typed, what is refused is raised as the exception that the
server raised itself, what breaks on the way is sent again under the same key, and every answer
leaves a receipt.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ladderboard.client._access import find_access
    from ladderboard.client._address import read_address, split_board
    from ladderboard.client._async import AsyncClient
    from ladderboard.client._config import Config, change_config, read_config
    from ladderboard.client._guard import BoardGuard
    from ladderboard.client._receipts import Receipt
    from ladderboard.client._replies import (
        Best,
        Board,
        Bound,
        Display,
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
        Team,
        TeamName,
        Window,
    )
    from ladderboard.client._submitted import DisplayedReply, Submitted
    from ladderboard.client._sync import Client

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
    "find_access": "_access",
    "read_address": "_address",
    "split_board": "_address",
    "AsyncClient": "_async",
    "Config": "_config",
    "change_config": "_config",
    "read_config": "_config",
    "BoardGuard": "_guard",
    "Receipt": "_receipts",
    "DisplayedReply": "_submitted",
    "Submitted": "_submitted",
    "Client": "_sync",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f"{__name__}.{_HOMES.get(name, '_replies')}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
