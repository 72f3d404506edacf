"""The organiser's rules.

Teams, phases, limits, finals and standings; no HTTP. A board is a folder: :func:`read_folder` reads
it, :class:`Rules` says who may ask what and when, :func:`check_board` tries it out before anybody
sees it. :class:`Boards` keeps boards in a database; a :class:`Board` answers submissions, and what
anybody may see of it is a :class:`View`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ladderboard.board._access import allow
from ladderboard.board._answer import Answer
from ladderboard.board._board import Board
from ladderboard.board._boards import Boards
from ladderboard.board._check import Report, check_board
from ladderboard.board._check_target import Target
from ladderboard.board._database import is_shared, open_boards
from ladderboard.board._desk import Sent
from ladderboard.board._folder import BoardFolder, read_folder
from ladderboard.board._kept import Parse
from ladderboard.board._limits import Left, Limit
from ladderboard.board._people import PUBLIC, Caller, Role, check_text, token_hash
from ladderboard.board._rules import Rules, read_rules
from ladderboard.board._rules_parts import (
    Baseline,
    Display,
    FileLimits,
    Finals,
    Phase,
    Window,
)
from ladderboard.board._seats import NewTeam
from ladderboard.board._store import Prepared, Store
from ladderboard.board._store_database import DatabaseStore
from ladderboard.board._store_folder import FolderStore
from ladderboard.board._store_mixed import MixedStore
from ladderboard.board._view import View
from ladderboard.board._words import moment

if TYPE_CHECKING:
    from ladderboard.board._bundle import write_board_bundle
    from ladderboard.board._dump import dump_board
    from ladderboard.board._restore import restore_board

__all__ = [
    "PUBLIC",
    "Answer",
    "Baseline",
    "Board",
    "BoardFolder",
    "Boards",
    "Caller",
    "DatabaseStore",
    "Display",
    "FileLimits",
    "Finals",
    "FolderStore",
    "Left",
    "Limit",
    "MixedStore",
    "NewTeam",
    "Parse",
    "Phase",
    "Prepared",
    "Report",
    "Role",
    "Rules",
    "Sent",
    "Store",
    "Target",
    "View",
    "Window",
    "allow",
    "check_board",
    "check_text",
    "dump_board",
    "is_shared",
    "moment",
    "open_boards",
    "read_folder",
    "read_rules",
    "restore_board",
    "token_hash",
    "write_board_bundle",
]

_SELDOM = {
    "dump_board": "_dump",
    "restore_board": "_restore",
    "write_board_bundle": "_bundle",
}


def __getattr__(name: str) -> Any:
    if name not in _SELDOM:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_SELDOM[name]}"), name)
