"""Uploads: bodies of submissions as they come in."""

from typing import TYPE_CHECKING

from ladderboard.server._uploads._body import (
    CONTENT_TYPES,
    BodyLimits,
    Spool,
    declared_format,
    open_form,
    receive_body,
)

if TYPE_CHECKING:
    from ladderboard.server._uploads._multipart import MultipartForm as MultipartForm

__all__ = ["CONTENT_TYPES", "BodyLimits", "Spool", "declared_format", "open_form", "receive_body"]
