"""Uploads: bodies of submissions as they come in."""

from ladderboard.server._uploads._body import BodyLimits, Received, receive
from ladderboard.server._uploads._spool import Spool

__all__ = ["BodyLimits", "Received", "Spool", "receive"]
