"""Receiving uploads: decompressed and limited, into memory or the spool."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from ladderboard import _settings
from ladderboard.errors import InvalidPredictions
from ladderboard.server._content_types import declared_format
from ladderboard.server._problems import RequestRefused
from ladderboard.server._uploads._gzip import Gunzip, MaybeGunzip
from ladderboard.server._uploads._multipart import InvalidForm, MultipartForm

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import TracebackType

    from starlette.requests import Request

    from ladderboard.server._uploads._spool import Spool, SpooledBody

_OVERHEAD = 2**16  # bytes that a form or compression may add
_CLOSE = {"Connection": "close"}  # otherwise the rest of the body would be read
_YIELD_EVERY = 4  # pieces after which other tasks run


@dataclass(frozen=True)
class BodyLimits:
    """The limits of a body: bytes, compressed and decompressed, and seconds for the upload."""

    bytes: int = 2**28
    seconds: float = 300.0

    def __post_init__(self) -> None:
        _settings.set_frozen(
            self,
            bytes=_settings.integer("bytes", self.bytes, at_least=1),
            seconds=_settings.number("seconds", self.seconds, above=0),
        )


class PayloadTooLarge(RequestRefused):
    """A body is larger than allowed."""

    def __init__(self, limit: int) -> None:
        message = f"Predictions are larger than {limit} bytes, which is the limit here."
        super().__init__(413, "too_large", message, _CLOSE)


class ReceivedBody:
    """A complete body.

    ``content`` is its bytes, or the file that holds them until the end of the ``async with`` block;
    ``size`` is its decompressed size; ``format`` and ``message`` are None if not given.
    """

    def __init__(
        self,
        draft: SpooledBody,
        content: bytes | Path,
        file_format: str | None,
        message: str | None,
    ) -> None:
        self._draft = draft
        self.content = content
        self.size = draft.size
        self.format = file_format
        self.message = message

    def discard(self) -> None:
        """Remove the file; may be called repeatedly."""
        self._draft.discard()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.discard()


async def receive_body(request: Request, limits: BodyLimits, spool: Spool) -> ReceivedBody:
    """Return the predictions in a request: raw or in a form, gzipped or not.

    Raises
    ------
    RequestRefused
        The body is too large (413), too slow (408), of the wrong type (415), an invalid form (400),
        or there is no space for it (503, 507).
    InvalidPredictions
        The body is compressed and damaged.
    ClientDisconnect
        The client has gone. In all cases the spooled file is removed.
    """
    kind = request.headers.get("content-type", "")
    form = (
        MultipartForm(kind)
        if kind.partition(";")[0].strip().lower() == "multipart/form-data"
        else None
    )
    file_format = None if form is not None else declared_format(request)
    body = _BodyDecoder(form, gzipped=_is_gzipped(request), limit=limits.bytes)
    length = request.headers.get("content-length", "")
    if length.isdecimal() and int(length[:20]) > limits.bytes + _OVERHEAD:
        raise PayloadTooLarge(limits.bytes)
    draft = spool.new_body()
    try:
        async with asyncio.timeout(limits.seconds):
            await _receive_chunks(request, body, draft, limits.bytes)
            message = None if form is None else form.message
            content = await draft.finish()
    except BaseException as error:
        draft.discard()
        if isinstance(error, TimeoutError):
            rule = "The upload took too long."
            raise RequestRefused(408, "too_slow", rule, _CLOSE) from None
        raise
    return ReceivedBody(draft, content, file_format if form is None else form.format, message)


async def _receive_chunks(
    request: Request, body: _BodyDecoder, draft: SpooledBody, limit: int
) -> None:
    pieces = 0
    failure: Exception | None = None
    stream = request.stream()
    try:
        async for part in stream:
            body.count(part)
            if failure is not None:
                continue
            try:
                for piece in body.feed(part):
                    if draft.size + len(piece) > limit:
                        raise PayloadTooLarge(limit)
                    await draft.write(piece)
                    pieces += 1
                    if not pieces % _YIELD_EVERY:
                        await asyncio.sleep(0)
            except (InvalidForm, InvalidPredictions) as error:
                # Many clients read the response only after sending everything.
                failure = error
                draft.discard()
    finally:
        await stream.aclose()
    if failure is not None:
        raise failure
    for piece in body.end():
        await draft.write(piece)


def _is_gzipped(request: Request) -> bool:
    coding = request.headers.get("content-encoding", "").strip().lower()
    if coding not in {"", "identity", "gzip"}:
        raise RequestRefused(415, "content_type", "Send the body plain, or packed with gzip.")
    return coding == "gzip"


class _BodyDecoder:
    """Decodes the layers around a file: gzip, a form, and gzip again."""

    def __init__(self, form: MultipartForm | None, *, gzipped: bool, limit: int) -> None:
        self._limit = limit
        self._received = self._unpacked = 0
        self._gunzip = Gunzip() if gzipped else None
        self._form = form
        self._file = MaybeGunzip(gzipped=gzipped and form is None)

    def count(self, data: bytes) -> None:
        """Count received bytes; refuse too many."""
        self._received += len(data)
        if self._received > self._limit + _OVERHEAD:
            raise PayloadTooLarge(self._limit)

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield the file's parts in some more bytes, and an empty one to let other tasks run."""
        for plain in [data] if self._gunzip is None else self._gunzip.feed(data):
            # The rest of a form counts as well.
            self._unpacked += len(plain)
            if self._unpacked > self._limit + _OVERHEAD:
                raise PayloadTooLarge(self._limit)
            for part in [plain] if self._form is None else self._form.feed(plain):
                yield from self._file.feed(part)
            yield b""

    def end(self) -> Iterator[bytes]:
        """Refuse a truncated body; yield what is left of the file."""
        if self._gunzip is not None:
            self._gunzip.end()
        if self._form is not None:
            self._form.end()
        rest = self._file.end()
        if rest:
            yield rest
