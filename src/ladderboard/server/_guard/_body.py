"""Request bodies of a guard: streamed within a memory budget."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Self

from ladderboard.server._problems import RequestRefused

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from types import TracebackType

    from starlette.requests import Request

    from ladderboard.server._uploads import MultipartForm

MAX_BYTES = 2**28
_SMALL_PART = 16  # bodies up to this fraction of the limit are read concurrently
_COMPRESSED_PREFIXES = (b"\x1f\x8b", b"PK", b"PAR1", b"ARROW1")
_TIMEOUT_SECONDS = 60.0  # seconds without data


class MemoryBudget:
    """Limits the memory of one body, and of all bodies that are received at once.

    Parameters
    ----------
    max_bytes
        The size limit of a body, compressed and decompressed.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._free = 2 * max_bytes
        self._large = asyncio.Lock()

    @asynccontextmanager
    async def slot(self, data: bytes) -> AsyncGenerator[None, None]:
        """Let small bodies be parsed at once, and large or compressed ones one at a time.

        A compressed body may hold a thousand times its size.
        """
        if len(data) <= self._max_bytes // _SMALL_PART and not data.startswith(
            _COMPRESSED_PREFIXES
        ):
            yield
            return
        async with self._large:
            yield

    def open_body(self) -> _BodyReader:
        """Return a reader for one body, a context manager."""
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
        """Reserve memory, or refuse."""
        if count > self._free:
            raise RequestRefused(
                503,
                "busy",
                "Too many uploads at once; send the predictions again.",
                {"Retry-After": "1"},
            )
        self._free -= count

    def release(self, count: int) -> None:
        """Free reserved memory."""
        self._free += count


class _BodyReader:
    """Reads one body; its memory is freed at the end of the ``with`` block."""

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

    async def read(self, request: Request, form: MultipartForm | None = None) -> bytes:
        """Return the whole body, or the file in its form; refuse one too large or too slow."""
        length = request.headers.get("content-length", "")
        if length.isdecimal():  # uvicorn checks that the body has this length
            self._budget.check(int(length[:20]))
        parts: list[bytes] = []
        stream = request.stream()
        try:
            while part := await self._next(stream):
                self._budget.check(self._received + len(part))
                self._budget.reserve(len(part))
                self._received += len(part)
                parts.extend([part] if form is None else form.feed(part))
        finally:
            await stream.aclose()
        if form is not None:
            form.end()
        return b"".join(parts)

    async def _next(self, stream: AsyncGenerator[bytes, None]) -> bytes:
        try:
            async with asyncio.timeout(_TIMEOUT_SECONDS):
                return await anext(stream, b"")
        except TimeoutError:
            raise RequestRefused(408, "too_slow", "The upload stalled.") from None
