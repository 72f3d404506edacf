"""Boards in files: dumps of one board, and backups of all boards of a database."""

from ladderboard.board._backup._backup import (
    Backup,
    Checked,
    Kept,
    Since,
    back_up,
    check_backup,
    check_place,
    find_backup,
    forget_old,
    restore_backup,
    since,
)
from ladderboard.board._backup._dump import dump_board
from ladderboard.board._backup._restore import restore_board

__all__ = [
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
]
