"""Uploads: bodies of submissions as they come in."""

from ladderboard.server._uploads._body import BodyLimits, ReceivedBody, receive_body
from ladderboard.server._uploads._spool import Spool

__all__ = ["BodyLimits", "ReceivedBody", "Spool", "receive_body"]
