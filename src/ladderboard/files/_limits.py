"""Limits: how large a file may be."""

from __future__ import annotations

from dataclasses import dataclass

from ladderboard import _settings

__all__ = ["Limits"]


@dataclass(frozen=True)
class Limits:
    """How large a file may be, in bytes after decompression, in rows and in columns.

    Examples
    --------
    >>> Limits(bytes=1e6).bytes
    1000000
    """

    bytes: int = 2**30
    rows: int = 50_000_000
    columns: int = 10_000

    def __post_init__(self) -> None:
        _settings.settle(
            self,
            bytes=_settings.whole("bytes", self.bytes, at_least=1),
            rows=_settings.whole("rows", self.rows, at_least=1),
            columns=_settings.whole("columns", self.columns, at_least=1),
        )
