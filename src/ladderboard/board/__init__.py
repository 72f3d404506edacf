"""The organiser's rules.

Teams, phases, limits, finals and standings; no HTTP. A board is a folder: :func:`read_folder` reads
it, :class:`Rules` says who may ask what and when, :func:`check_board` tries it out before anybody
sees it. :class:`Boards` keeps boards in a database; a :class:`Board` answers submissions, and what
anybody may see of it is a :class:`View`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ladderboard.board._access import PUBLIC, Caller, Role, allow, check_text, token_hash
from ladderboard.board._access import fold as fold
from ladderboard.board._amendments import changes_between as changes_between
from ladderboard.board._amendments import differences as differences
from ladderboard.board._amendments import labels_changed as labels_changed
from ladderboard.board._amendments import read_corrected as read_corrected
from ladderboard.board._board import Board
from ladderboard.board._boards import Boards, is_shared, open_boards
from ladderboard.board._boards import ask_baselines as ask_baselines
from ladderboard.board._boards import has_words as has_words
from ladderboard.board._boards import open_storage as open_storage
from ladderboard.board._check import Report, Target, check_board
from ladderboard.board._check import play_target as play_target
from ladderboard.board._finals import write_board_bundle
from ladderboard.board._folder import BoardFolder, read_folder
from ladderboard.board._folder import write_example as write_example
from ladderboard.board._folder import write_huggingface as write_huggingface
from ladderboard.board._limits import Left, Limit
from ladderboard.board._rules import (
    Baseline,
    Display,
    FileLimits,
    Finals,
    Phase,
    Rules,
    Window,
    read_rules,
)
from ladderboard.board._rules import read_yaml as read_yaml
from ladderboard.board._store import DatabaseStore, FolderStore, MixedStore, Prepared, Store
from ladderboard.board._submissions import Answer, Parse, Sent
from ladderboard.board._tables import PART as PART
from ladderboard.board._tables import SERVER as SERVER
from ladderboard.board._tables import kept_sample as kept_sample
from ladderboard.board._teams import NewTeam
from ladderboard.board._view import View

if TYPE_CHECKING:
    from ladderboard.board._backup import Backup as Backup
    from ladderboard.board._backup import Checked as Checked
    from ladderboard.board._backup import Kept as Kept
    from ladderboard.board._backup import Since as Since
    from ladderboard.board._backup import back_up as back_up
    from ladderboard.board._backup import check_backup as check_backup
    from ladderboard.board._backup import check_place as check_place
    from ladderboard.board._backup import dump_board, restore_board
    from ladderboard.board._backup import find_backup as find_backup
    from ladderboard.board._backup import forget_old as forget_old
    from ladderboard.board._backup import restore_backup as restore_backup
    from ladderboard.board._backup import since as since

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
    "open_boards",
    "read_folder",
    "read_rules",
    "restore_board",
    "token_hash",
    "write_board_bundle",
]

# Loaded when they are asked for: a server needs them seldom.
_BACKUP = {
    "Backup",
    "Checked",
    "Kept",
    "Since",
    "back_up",
    "check_backup",
    "check_place",
    "dump_board",
    "find_backup",
    "forget_old",
    "restore_backup",
    "restore_board",
    "since",
}


def __getattr__(name: str) -> Any:
    if name not in _BACKUP:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}._backup"), name)
