"""The growing ladder, and what it can release."""

from ladderboard.mechanisms._growing._ladder import GrowingLadder

__all__ = ["GrowingLadder"]
