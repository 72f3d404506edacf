"""Uploads: bodies of submissions as they come in."""

from ladderboard.server._uploads._body import BodyLimits, Spool, receive_body

__all__ = ["BodyLimits", "Spool", "receive_body"]
