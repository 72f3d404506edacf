"""Bodies: predictions as they come in, streamed, never more than there is room for."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Self

from ladderboard.server._problems import RequestRefused

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from types import TracebackType

    from starlette.requests import Request

MAX_BYTES = 2**28
_SMALL_PART = 16  # parts of the limit: what is no larger than one is read beside others
_COMPRESSED_PREFIXES = (b"\x1f\x8b", b"PK", b"PAR1", b"ARROW1")
_PATIENCE = 60.0  # seconds without a byte


class MemoryBudget:
    """How many bytes may be held, for one body and for all that come in at once.

    Parameters
    ----------
    most
        How large a body may be, packed and unpacked.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._free = 2 * max_bytes
        self._large = asyncio.Lock()

    @asynccontextmanager
    async def slot(self, data: bytes) -> AsyncGenerator[None, None]:
        """Let predictions be read that take little; of those that may take much, one at a time.

        How much is in something packed, nobody can tell beforehand: a thousand times its size.
        """
        if len(data) <= self._max_bytes // _SMALL_PART and not data.startswith(
            _COMPRESSED_PREFIXES
        ):
            yield
            return
        async with self._large:
            yield

    def open_body(self) -> _BodyReader:
        """Return a place for one body, to be entered."""
        return _BodyReader(self)

    def check(self, size: int) -> None:
        """Refuse a body that is too large."""
        if size > self._max_bytes:
            raise RequestRefused(
                413,
                "too_large",
                f"Predictions are larger than {self._max_bytes} bytes, which is the limit here.",
            )

    def reserve(self, count: int) -> None:
        """Take some room, or refuse."""
        if count > self._free:
            raise RequestRefused(
                503,
                "busy",
                "Too many predictions come in at once; send them again.",
                {"Retry-After": "1"},
            )
        self._free -= count

    def release(self, count: int) -> None:
        """Make room again."""
        self._free += count


class _BodyReader:
    """One body, whose room is given back at the end of the ``with`` block."""

    def __init__(self, budget: MemoryBudget) -> None:
        self._budget = budget
        self._received = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._budget.release(self._received)
        self._received = 0

    async def read(self, request: Request) -> bytes:
        """Read it whole, or refuse what is too large or too slow."""
        length = request.headers.get("content-length", "")
        if length.isdecimal():  # that it is no lie the server below us checks
            self._budget.check(int(length[:20]))
        parts: list[bytes] = []
        stream = request.stream()
        try:
            while part := await self._next(stream):
                self._budget.check(self._received + len(part))
                self._budget.reserve(len(part))
                self._received += len(part)
                parts.append(part)
        finally:
            await stream.aclose()
        return b"".join(parts)

    async def _next(self, stream: AsyncGenerator[bytes, None]) -> bytes:
        try:
            async with asyncio.timeout(_PATIENCE):
                return await anext(stream, b"")
        except TimeoutError:
            raise RequestRefused(
                408, "too_slow", "The rest of the predictions never came."
            ) from None
