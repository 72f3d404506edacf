"""The growing ladder, and what it can release."""

from ladderboard.mechanisms._growing._ladder import PROTECTIONS, GrowingLadder

__all__ = ["PROTECTIONS", "GrowingLadder"]
