"""Checks of a board's folder before the board opens."""

from ladderboard.board._check._attacks import Target, play_attacks_on_target
from ladderboard.board._check._report import Report, check_board

__all__ = ["Report", "Target", "check_board", "play_attacks_on_target"]
