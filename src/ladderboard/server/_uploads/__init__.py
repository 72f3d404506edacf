"""Uploads: bodies of submissions as they come in."""

from ladderboard.server._uploads._body import (
    CONTENT_TYPES,
    BodyLimits,
    Spool,
    declared_format,
    receive_body,
)

__all__ = ["CONTENT_TYPES", "BodyLimits", "Spool", "declared_format", "receive_body"]
