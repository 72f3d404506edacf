"""Dumps of one board, and backups of all boards of a database."""

from ladderboard.board._backup._backup import (
    BackedUpBoard,
    Backup,
    BackupCheck,
    BackupGap,
    back_up,
    check_backup,
    check_backup_folder,
    compare_with_database,
    find_backup,
    prune_backups,
    restore_backup,
)
from ladderboard.board._backup._dump import dump_board
from ladderboard.board._backup._restore import restore_board

__all__ = [
    "BackedUpBoard",
    "Backup",
    "BackupCheck",
    "BackupGap",
    "back_up",
    "check_backup",
    "check_backup_folder",
    "compare_with_database",
    "dump_board",
    "find_backup",
    "prune_backups",
    "restore_backup",
    "restore_board",
]
