"""Checks of a board's folder before the board opens."""

from ladderboard.board._check._report import Report, check_board

__all__ = ["Report", "check_board"]
