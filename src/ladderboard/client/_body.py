"""Bodies: predictions as they are sent, from their start as often as need be."""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from ladderboard.holdout import pack

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

__all__ = ["Body", "make_body"]

_PIECE = 2**16


@dataclass(frozen=True)
class Body:
    """Bytes with their media type; ``progress`` hears how many of how many were sent."""

    data: bytes = field(repr=False)
    kind: str
    progress: Callable[[int, int], object] | None = field(default=None, repr=False)

    @property
    def digest(self) -> str:
        """The SHA-256 of the bytes."""
        return sha256(self.data).hexdigest()

    def pieces(self) -> Iterator[bytes]:
        """Yield all of it, from the start."""
        size = len(self.data)
        for at in range(0, size, _PIECE):
            yield self.data[at : at + _PIECE]
            if self.progress is not None:
                self.progress(min(at + _PIECE, size), size)

    async def async_pieces(self) -> AsyncIterator[bytes]:
        """Yield the same, for those who wait."""
        for each in self.pieces():
            yield each


def make_body(
    predictions: Any,
    format: str | None = None,  # noqa: A002 - the word people use
    progress: Callable[[int, int], object] | None = None,
) -> Body:
    """Return predictions as they are sent: a file as it is, a table or an array packed."""
    return Body(*pack(predictions, format), progress)
