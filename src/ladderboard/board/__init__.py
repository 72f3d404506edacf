"""Boards: teams, phases, limits, finals and standings, without HTTP.

A board is described by a folder: :func:`read_folder` reads it, :class:`Rules` holds its settings,
:func:`check_board` checks it before it opens. :class:`Boards` stores boards in a database. A
:class:`Board` answers submissions; a :class:`View` returns what one caller may see of it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ladderboard.board._access import PUBLIC, Caller, Role, check_permission, check_text, hash_token
from ladderboard.board._access import comparable_name as comparable_name
from ladderboard.board._amendments import compare_with_folder as compare_with_folder
from ladderboard.board._amendments import count_changed_labels as count_changed_labels
from ladderboard.board._amendments import diff_rules as diff_rules
from ladderboard.board._amendments import read_corrected_labels as read_corrected_labels
from ladderboard.board._board import Board
from ladderboard.board._boards import Boards, is_shared, open_boards
from ladderboard.board._boards import open_storage as open_storage
from ladderboard.board._boards import submit_baselines as submit_baselines
from ladderboard.board._check import Report, check_board
from ladderboard.board._finals import write_board_bundle
from ladderboard.board._folder import BoardFolder, read_folder
from ladderboard.board._folder import import_huggingface as import_huggingface
from ladderboard.board._folder import write_example_board as write_example_board
from ladderboard.board._limits import Quota, QuotaLimit
from ladderboard.board._rules import (
    Baseline,
    DisplayRules,
    FileRules,
    FinalsRules,
    PhaseRules,
    RateLimitRules,
    Rules,
    read_rules,
)
from ladderboard.board._rules import read_yaml as read_yaml
from ladderboard.board._store import (
    DatabaseStore,
    FolderStore,
    MixedStore,
    PreparedFile,
    SubmissionStore,
)
from ladderboard.board._submissions import IncomingSubmission, ParseSubmission, SubmissionAnswer
from ladderboard.board._tables import BOARD_SCHEMA as BOARD_SCHEMA
from ladderboard.board._tables import SERVER_BOOK as SERVER_BOOK
from ladderboard.board._tables import sample_key as sample_key
from ladderboard.board._teams import TeamWithToken
from ladderboard.board._view import View

if TYPE_CHECKING:
    from ladderboard.board._backup import BackedUpBoard as BackedUpBoard
    from ladderboard.board._backup import Backup as Backup
    from ladderboard.board._backup import BackupCheck as BackupCheck
    from ladderboard.board._backup import BackupGap as BackupGap
    from ladderboard.board._backup import back_up as back_up
    from ladderboard.board._backup import check_backup as check_backup
    from ladderboard.board._backup import check_backup_folder as check_backup_folder
    from ladderboard.board._backup import compare_with_database as compare_with_database
    from ladderboard.board._backup import dump_board, restore_board
    from ladderboard.board._backup import find_backup as find_backup
    from ladderboard.board._backup import prune_backups as prune_backups
    from ladderboard.board._backup import restore_backup as restore_backup

__all__ = [
    "PUBLIC",
    "Baseline",
    "Board",
    "BoardFolder",
    "Boards",
    "Caller",
    "DatabaseStore",
    "DisplayRules",
    "FileRules",
    "FinalsRules",
    "FolderStore",
    "IncomingSubmission",
    "MixedStore",
    "ParseSubmission",
    "PhaseRules",
    "PreparedFile",
    "Quota",
    "QuotaLimit",
    "RateLimitRules",
    "Report",
    "Role",
    "Rules",
    "SubmissionAnswer",
    "SubmissionStore",
    "TeamWithToken",
    "View",
    "check_board",
    "check_permission",
    "check_text",
    "dump_board",
    "hash_token",
    "is_shared",
    "open_boards",
    "read_folder",
    "read_rules",
    "restore_board",
    "write_board_bundle",
]

# Loaded on first use: a server seldom needs them.
_BACKUP = {
    "Backup",
    "BackupCheck",
    "BackedUpBoard",
    "BackupGap",
    "back_up",
    "check_backup",
    "check_backup_folder",
    "dump_board",
    "find_backup",
    "prune_backups",
    "restore_backup",
    "restore_board",
    "compare_with_database",
}


def __getattr__(name: str) -> Any:
    if name not in _BACKUP:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}._backup"), name)
