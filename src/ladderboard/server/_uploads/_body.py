"""Receiving uploads: decompressed and limited, into memory or the spool; their content types."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple, Self

from ladderboard import _settings
from ladderboard._formatting import format_size
from ladderboard.errors import DiskFull, InvalidPredictions, storage_error
from ladderboard.files import GZIP_MAGIC, Gunzip
from ladderboard.server._problems import RequestRefused

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

    from starlette.requests import Request

    from ladderboard.server._uploads._multipart import MultipartForm

_IN_MEMORY = 2**20  # bytes; larger bodies go to a file
_WRITE_BYTES = 2**18
_OVERHEAD = 2**16  # bytes that a form or compression may add
_MAX_RATIO = 200  # decompressed per compressed byte; constant predictions for 50 classes have 86
_CLOSE = {"Connection": "close"}  # otherwise the rest of the body would be read
_YIELD_EVERY = 4  # pieces after which other tasks run


_TYPES = {
    "text/csv": "csv",
    "text/tab-separated-values": "tsv",
    "application/vnd.apache.parquet": "parquet",
    "application/x-parquet": "parquet",
    "application/vnd.apache.arrow.file": "arrow",
    "application/x-ndjson": "jsonl",
    "application/jsonl": "jsonl",
    "application/x-npy": "npy",
    "application/octet-stream": None,
    "": None,
}
CONTENT_TYPES = tuple(content_type for content_type in _TYPES if content_type)
_LISTED = ", ".join(CONTENT_TYPES)


class InvalidForm(RequestRefused):
    """A form is invalid."""

    def __init__(self, rule: str) -> None:
        super().__init__(400, "form", rule)


class BodyLimits(NamedTuple):
    """The limits of a body: bytes, compressed and decompressed, and seconds for the upload."""

    bytes: int = 2**28
    seconds: float = 300.0


class PayloadTooLarge(RequestRefused):
    """A body is larger than allowed."""

    def __init__(self, limit: int) -> None:
        message = f"The file is larger than {format_size(limit)}, the limit of this board."
        super().__init__(413, "too_large", message, _CLOSE)


class Spool:
    """A private folder for bodies that are too large for memory.

    Parameters
    ----------
    path
        The folder; created if missing.
    max_bytes
        The total size limit of all bodies in it.
    min_free
        How many bytes of the disk must stay free.
    """

    def __init__(self, path: Path | str, *, max_bytes: int = 2**33, min_free: int = 2**29) -> None:
        self.path = Path(path)
        self._available = _settings.integer("max_bytes", max_bytes, at_least=0)
        self._min_free = _settings.integer("min_free", min_free, at_least=0)
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise storage_error(error, f"The folder {path} cannot be created") from None

    def open_file(self) -> BinaryIO:
        """Return a new file without a name: it is gone when it is closed, or after a crash."""
        try:
            return tempfile.TemporaryFile(dir=self.path)
        except OSError as error:
            raise storage_error(error, f"A file in {self.path} cannot be created") from None

    def reserve(self, count: int) -> None:
        """Reserve space, or refuse."""
        if count > self._available:
            raise RequestRefused(
                503,
                "busy",
                "Too many uploads at once; send the predictions again.",
                {"Retry-After": "5", "Connection": "close"},
            )
        self.check_disk(count)
        self._available -= count

    def release(self, count: int) -> None:
        """Free reserved space."""
        self._available += count

    def check_disk(self, count: int) -> None:
        """Refuse bytes that would fill the disk."""
        try:
            free = shutil.disk_usage(self.path).free
        except OSError as error:
            raise storage_error(error, f"The folder {self.path} cannot be used") from None
        if free < self._min_free + count:
            raise DiskFull(
                f"The disk of {self.path} has {free} bytes left, which is too few: "
                f"{self._min_free + count} are needed."
            )


class ReceivedBody:
    """A body: in memory while it is small, then in a file until the ``async with`` block ends.

    ``size`` is its decompressed size; ``format`` and ``message`` are None if not given.
    """

    def __init__(self, spool: Spool) -> None:
        self.size = 0
        self.format: str | None = None
        self.message: str | None = None
        self._spool = spool
        self._buffer = bytearray()
        self._file: BinaryIO | None = None
        self._reserved = 0

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.discard()

    @property
    def content(self) -> bytes | BinaryIO:
        """All bytes, or the open file that holds them."""
        return bytes(self._buffer) if self._file is None else self._file

    async def write(self, data: bytes) -> None:
        """Add some bytes."""
        self._buffer += data
        self.size += len(data)
        if self.size > _IN_MEMORY and len(self._buffer) >= _WRITE_BYTES:
            await self._flush()

    async def finish(self) -> None:
        """Write what is left of a large body."""
        if self.size > _IN_MEMORY:
            await self._flush()

    def discard(self) -> None:
        """Remove the file and free its space; may be called repeatedly."""
        file, self._file = self._file, None
        if file is not None:
            with suppress(OSError):  # it is full
                file.close()
        self._spool.release(self._reserved)
        self._reserved = 0

    async def _flush(self) -> None:
        """Write the buffer to the file in a thread, since a disk may be slow."""
        chunk, self._buffer = self._buffer, bytearray()
        self._spool.reserve(len(chunk))
        self._reserved += len(chunk)
        if self._file is None:
            self._file = self._spool.open_file()
        try:
            await asyncio.to_thread(_write, self._file, chunk)
        except OSError as error:
            message = f"A file in {self._spool.path} cannot be written"
            raise storage_error(error, message) from None


def _write(file: BinaryIO, data: bytearray) -> None:
    file.write(data)
    file.flush()


def declared_format(request: Request) -> str | None:
    """Return the format that the headers declare; None if it must be detected.

    Types that a web form can send without a CORS preflight are not in the list.
    """
    media_type, _, parameters = request.headers.get("content-type", "").partition(";")
    media_type = media_type.strip().lower()
    charset = parameters.partition("charset=")[2].split(";")[0].strip(' "').lower()
    if media_type not in _TYPES:
        raise RequestRefused(
            415, "content_type", f"Send predictions with a Content-Type of {_LISTED}."
        )
    if charset not in {"", "utf-8", "utf8", "us-ascii"}:
        raise RequestRefused(415, "content_type", "Send text as UTF-8.")
    _is_gzipped(request)  # refuses other codings; gzip is detected by its bytes
    return _TYPES[media_type]


def open_form(request: Request) -> MultipartForm | None:
    """Return a parser for the form in a request; None if the body is the file itself."""
    kind = request.headers.get("content-type", "")
    if kind.partition(";")[0].strip().lower() != "multipart/form-data":
        return None
    from ladderboard.server._uploads._multipart import MultipartForm  # noqa: PLC0415 - optional

    return MultipartForm(kind)


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
    form = open_form(request)
    file_format = None if form is not None else declared_format(request)
    decoder = _BodyDecoder(form, gzipped=_is_gzipped(request), limit=limits.bytes)
    length = request.headers.get("content-length", "")
    if length.isdecimal() and int(length[:20]) > limits.bytes + _OVERHEAD:
        raise PayloadTooLarge(limits.bytes)
    received = ReceivedBody(spool)
    try:
        async with asyncio.timeout(limits.seconds):
            await _receive_chunks(request, decoder, received, limits.bytes)
            await received.finish()
        received.format = file_format if form is None else form.format
        received.message = None if form is None else form.message
    except BaseException as error:
        received.discard()
        if isinstance(error, TimeoutError):
            rule = "The upload took too long."
            raise RequestRefused(408, "too_slow", rule, _CLOSE) from None
        raise
    return received


async def _receive_chunks(
    request: Request, decoder: _BodyDecoder, received: ReceivedBody, limit: int
) -> None:
    pieces = 0
    failure: Exception | None = None
    stream = request.stream()
    try:
        async for part in stream:
            decoder.count(part)
            if failure is not None:
                continue
            try:
                for piece in decoder.feed(part):
                    if received.size + len(piece) > limit:
                        raise PayloadTooLarge(limit)
                    await received.write(piece)
                    pieces += 1
                    if not pieces % _YIELD_EVERY:
                        await asyncio.sleep(0)
            except (InvalidForm, InvalidPredictions) as error:
                # Many clients read the response only after sending everything.
                failure = error
                received.discard()
    finally:
        await stream.aclose()
    if failure is not None:
        raise failure
    await received.write(decoder.end())


def _is_gzipped(request: Request) -> bool:
    """Tell whether the body is declared as gzip; refuse other codings."""
    coding = request.headers.get("content-encoding", "").strip().lower()
    if coding not in {"", "identity", "gzip"}:
        raise RequestRefused(415, "content_type", "Send the body plain, or packed with gzip.")
    return coding == "gzip"


class _BodyDecoder:
    """Decodes the layers around a file: gzip of the request, a form, and gzip of the file."""

    def __init__(self, form: MultipartForm | None, *, gzipped: bool, limit: int) -> None:
        self._limit = limit
        self._received = self._unpacked = 0
        self._gunzip = Gunzip(max_ratio=_MAX_RATIO) if gzipped else None
        self._form = form
        self._file_start: bytes | None = b""  # until it is known whether the file is gzipped
        self._file_gunzip: Gunzip | None = None

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
                yield from self._feed_file(part)
            yield b""

    def _feed_file(self, data: bytes) -> Iterator[bytes]:
        """Yield the content of a file, decompressed if it starts like gzip."""
        if self._file_start is not None:
            data = self._file_start + data
            if len(data) < len(GZIP_MAGIC):
                self._file_start = data
                return
            self._file_start = None
            if data.startswith(GZIP_MAGIC):
                self._file_gunzip = Gunzip(max_ratio=_MAX_RATIO)
        if self._file_gunzip is None:
            yield data
        else:
            yield from self._file_gunzip.feed(data)

    def end(self) -> bytes:
        """Refuse a truncated body; return the bytes of a file too short to be gzip."""
        for layer in (self._gunzip, self._form, self._file_gunzip):
            if layer is not None:
                layer.end()
        return self._file_start or b""
