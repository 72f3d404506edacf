"""The bytes of a file, with size limits, decompression and format detection; and its problems.

Text from a file is shown through ``repr`` and shortened, so that a message stays short and contains
no control character, terminal escape or change of writing direction.
"""

from __future__ import annotations

import io
import os
import re
import stat
import zlib
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

import numpy as np

from ladderboard import _settings
from ladderboard._formatting import format_count
from ladderboard.errors import InvalidInput, InvalidPredictions, Problem

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray


ErrorClass = type[InvalidInput]

SHOWN = 10
_PLAIN_CHARS = 60
# A file of ten thousand columns may have a problem in each one.
_MAX_PROBLEMS = 100
_MAX_MESSAGES = 20


class NamedBytes(io.BytesIO):
    """The bytes of a file, with its name, which may determine the format."""

    def __init__(self, name: str, data: bytes) -> None:
        super().__init__(data)
        self.name = name


class RowNames(Protocol):
    """An object that names rows in messages; ``noun`` is the kind of name, "id" or "row"."""

    noun: str

    def names_of(self, rows: NDArray[np.int64]) -> list[Any]:
        """Return the names of some rows."""


class Problems:
    """Collects problems, and raises one refusal for all of them."""

    def __init__(self, error_class: ErrorClass) -> None:
        self.error_class = error_class
        self.items: list[Problem] = []

    def add(
        self,
        code: str,
        message: str,
        *,
        column: str | None = None,
        count: int = 1,
        ids: Sequence[str] = (),
    ) -> None:
        """Record one problem."""
        shortened = column if column is None else _shorten(column)
        self.items.append(
            Problem(code, shortened, count, tuple(map(_shorten, ids[:SHOWN])), message)
        )

    def add_rows(
        self,
        code: str,
        rule: str,
        bad: NDArray[Any],
        rows: RowNames,
        *,
        column: str | None = None,
        count: int | None = None,
    ) -> None:
        """Record the rows that break a rule, if any: ``bad`` is a mask, or row numbers.

        ``rule`` is a sentence about a row, or one word for its name: "unknown".
        """
        positions = np.flatnonzero(bad) if bad.dtype == np.bool_ else bad
        if not len(positions):
            return
        count = count or len(positions)
        names = rows.names_of(positions[:SHOWN])
        shown = ", ".join(name if rows.noun == "row" else _plain_name(name) for name in names)
        more = count > SHOWN
        shown += ", ..." if more else ""
        message = (
            f"{format_count(count, f'{rule} {rows.noun}')}: {shown}{'' if more else '.'}"
            if rule.islower() and rule.isalpha()
            else f"{rule}: {format_count(count, rows.noun)} ({shown})."
        )
        self.add(code, message, column=column, count=count, ids=[str(name) for name in names])

    def refuse_if_any(self) -> None:
        """Raise the refusal that lists every problem, if there is one."""
        if self.items:
            raise self.make_refusal()

    def make_refusal(self) -> InvalidInput:
        """Return the exception that lists every problem."""
        lines = [problem.message for problem in self.items[:_MAX_MESSAGES]]
        if len(self.items) > _MAX_MESSAGES:
            lines.append(f"And {len(self.items) - _MAX_MESSAGES} more.")
        text = lines[0]
        if len(lines) > 1:
            heading = f"{len(self.items)} problems were found:"
            text = "\n".join([heading, *(f"- {line}" for line in lines)])
        return self.error_class(text, problems=tuple(self.items[:_MAX_PROBLEMS]))


def refuse(
    error_class: ErrorClass, code: str, message: str, *, column: str | None = None
) -> NoReturn:
    """Raise a refusal with a single problem, which makes further checks pointless."""
    raise single_refusal(error_class, code, message, column=column)


def single_refusal(
    error_class: ErrorClass, code: str, message: str, *, column: str | None = None
) -> InvalidInput:
    """Return the exception for a single problem, to be raised from the error that showed it."""
    problems = Problems(error_class)
    problems.add(code, message, column=column)
    return problems.make_refusal()


def format_names(names: Iterable[Any]) -> str:
    """Return names as shown in a message: the first ten, each shortened.

    >>> format_names(["a", "b"])
    "'a', 'b'"
    """
    all_names = list(names)
    ellipsis = ", ..." if len(all_names) > SHOWN else ""
    return ", ".join(map(_settings.safe_repr, all_names[:SHOWN])) + ellipsis


def _plain_name(name: Any) -> str:
    """Return an id for a list in a sentence, quoted only if it would be misread.

    >>> _plain_name("img_7"), _plain_name("a, b"), _plain_name(3)
    ('img_7', "'a, b'", '3')
    """
    plain = isinstance(name, str) and re.fullmatch(r"\w[\w/:+-]*(\.[\w/:+-]+)*", name)
    return name if plain and len(name) <= _PLAIN_CHARS else _settings.safe_repr(name)


def _shorten(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:80]}..."


GZIP_MAGIC = b"\x1f\x8b"
PACKED_TWICE = "The file is packed twice; pack it once."
_PIECE_BYTES = 2**18
_MAX_MEMBERS = 10_000  # each may be empty, but costs time
_FREE_BYTES = 2**22  # the ratio is checked beyond these


class Gunzip:
    """Decompresses the consecutive members of a gzip file, and refuses anything else.

    Parameters
    ----------
    error_class
        The exception of a refusal.
    max_ratio
        How many bytes may come out for each byte that goes in, beyond the first 4 MiB.

    Examples
    --------
    >>> import gzip
    >>> gunzip = Gunzip()
    >>> b"".join(gunzip.feed(gzip.compress(b"id,") + gzip.compress(b"prediction")))
    b'id,prediction'
    >>> gunzip.end()
    """

    def __init__(
        self, error_class: ErrorClass = InvalidPredictions, *, max_ratio: int | None = None
    ) -> None:
        self._error_class, self._max_ratio = error_class, max_ratio
        self._stream = zlib.decompressobj(31)
        self._members = 0
        self._inside = False
        self._pending = b""  # the first byte of a member, perhaps
        self._start = b""  # the first bytes of what came out
        self._packed = self._unpacked = 0

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield decompressed pieces; their total can be a thousand times larger than the data."""
        self._packed += len(data)
        data = self._pending + data
        self._pending = b""
        while data:
            if not self._inside:
                if len(data) < len(GZIP_MAGIC) and GZIP_MAGIC.startswith(data):
                    self._pending = data
                    return
                self._begin_member(data)
            try:
                piece = self._stream.decompress(data, _PIECE_BYTES)
            except zlib.error:
                refuse(self._error_class, "damaged", "The gzip file is damaged.")
            if piece:
                self._check(piece)
                yield piece
            self._inside = not self._stream.eof
            data = self._stream.unconsumed_tail if self._inside else self._stream.unused_data

    def end(self) -> None:
        """Refuse a truncated file."""
        if self._inside or self._pending or not self._members:
            refuse(self._error_class, "damaged", "The gzip file is cut off.")

    def _begin_member(self, data: bytes) -> None:
        """Begin a new member; refuse data that is not one."""
        if not data.startswith(GZIP_MAGIC):
            fault = "is followed by something else" if self._members else "is damaged"
            refuse(self._error_class, "damaged", f"The gzip file {fault}.")
        self._members += 1
        if self._members > _MAX_MEMBERS:
            rule = f"The gzip file has more than {_MAX_MEMBERS} members."
            refuse(self._error_class, "damaged", rule)
        self._stream = zlib.decompressobj(31)
        self._inside = True

    def _check(self, piece: bytes) -> None:
        """Refuse a file inside that is gzipped again, or far larger than its gzip file."""
        self._unpacked += len(piece)
        if len(self._start) < len(GZIP_MAGIC):
            self._start += piece[: len(GZIP_MAGIC)]
            if self._start.startswith(GZIP_MAGIC):
                refuse(self._error_class, "packed", PACKED_TWICE)
        ratio = self._max_ratio
        if ratio is not None and self._unpacked > _FREE_BYTES + ratio * self._packed:
            rule = f"The file is more than {ratio} times as large as its gzip file; send it plain."
            refuse(self._error_class, "packed", rule)


FORMATS = ("csv", "tsv", "parquet", "arrow", "jsonl", "npy")
_ALIASES = {
    "txt": "csv", "tab": "tsv", "pq": "parquet", "feather": "arrow", "ipc": "arrow",
    "ndjson": "jsonl", "json lines": "jsonl",
}  # fmt: skip
_MAGIC = {b"PAR1": "parquet", b"ARROW1": "arrow", b"\x93NUMPY": "npy"}
_ZIP, _ZSTD = b"PK\x03\x04", b"\x28\xb5\x2f\xfd"
_UNSUPPORTED_COMPRESSION = {
    _ZSTD: "zstd",
    b"BZh": "bzip2",
    b"\xfd7zXZ\x00": "xz",
    b"7z\xbc\xaf\x27\x1c": "7z",
    b"\x04\x22\x4d\x18": "lz4",
}
_CHUNK_BYTES = 2**20


@dataclass(frozen=True)
class Limits:
    """The maximum size of a file: bytes after decompression, rows and columns.

    Examples
    --------
    >>> Limits(bytes=1e6).bytes
    1000000
    """

    bytes: int = 2**30
    rows: int = 50_000_000
    columns: int = 10_000

    def __post_init__(self) -> None:
        _settings.set_frozen(
            self,
            bytes=_settings.integer("bytes", self.bytes, at_least=1),
            rows=_settings.integer("rows", self.rows, at_least=1),
            columns=_settings.integer("columns", self.columns, at_least=1),
        )


def detect_format(data: bytes, name: str, declared: str | None) -> str:
    """Return the format of a file's bytes.

    >>> detect_format(b"PAR1...", "predictions.csv", None), detect_format(b"a,b", "p.tsv", None)
    ('parquet', 'tsv')
    """
    if declared is not None:
        normalized = declared.strip().lower().lstrip(".") if isinstance(declared, str) else declared
        known = _ALIASES.get(normalized, normalized)
        return known if known in FORMATS else _settings.choice("format", known, FORMATS)
    for magic, detected in _MAGIC.items():
        if data.startswith(magic):
            return detected
    suffix = PurePath(name).suffix.lower().lstrip(".")
    detected = _ALIASES.get(suffix, suffix)
    return detected if detected in {"csv", "tsv", "jsonl"} else "csv"


def is_file_like(source: Any) -> bool:
    """Return whether a source is a path, bytes, or an object with a ``read`` method."""
    return isinstance(source, str | os.PathLike | bytes | bytearray | memoryview) or callable(
        getattr(source, "read", None)
    )


def read_source(source: Any, limits: Limits, error_class: ErrorClass) -> tuple[bytes, str]:
    """Return all bytes of a source, still compressed, and its name, if it has one."""
    if isinstance(source, bytes | bytearray | memoryview):
        data, name = bytes(source), ""
    elif isinstance(source, str | os.PathLike):
        data, name = _read_path(source, limits, error_class), os.fsdecode(source)
    else:
        data, name = _read_stream(source, limits, error_class), getattr(source, "name", "")
    if len(data) > limits.bytes:
        _refuse_too_large(limits, error_class)
    return data, name if isinstance(name, str) else ""


def decompress(
    data: bytes, name: str, limits: Limits, error_class: ErrorClass
) -> tuple[bytes, str]:
    """Return the contents of a gzip file, or of a zip of one file, and its inner name."""
    if data.startswith(GZIP_MAGIC):
        data, name = _gunzip(data, limits, error_class), name.removesuffix(".gz")
    elif data.startswith((_ZIP, b"PK\x05\x06")):
        data, name = _unzip(data, limits, error_class)
    else:
        _refuse_unsupported_compression(data, error_class)
        return data, name
    if data.startswith((GZIP_MAGIC, _ZIP)):
        refuse(error_class, "packed", PACKED_TWICE)
    _refuse_unsupported_compression(data, error_class)
    return data, name


def _refuse_unsupported_compression(data: bytes, error_class: ErrorClass) -> None:
    for magic, packer in _UNSUPPORTED_COMPRESSION.items():
        if data.startswith(magic):
            rule = f"The file is packed with {packer}; send it plain, or packed with gzip or zip."
            refuse(error_class, "packed", rule)


def _refuse_too_large(limits: Limits, error_class: ErrorClass) -> None:
    rule = f"The file is larger than {limits.bytes} bytes after unpacking, which is the limit."
    refuse(error_class, "too_many_bytes", rule)


def _read_path(path: Any, limits: Limits, error_class: ErrorClass) -> bytes:
    """Read a regular file; opening does not block, even for a pipe without a writer."""
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        with os.fdopen(descriptor, "rb") as file:  # checked before it is read
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                file_type = (
                    "a folder, not a file" if stat.S_ISDIR(status.st_mode) else "not a regular file"
                )
                refuse(
                    error_class, "not_a_file", f"{format_names([_base_name(path)])} is {file_type}."
                )
            if status.st_size > limits.bytes:
                _refuse_too_large(limits, error_class)
            # One byte more than expected, so that a file that has grown is noticed.
            return file.read(min(status.st_size, limits.bytes) + 1)
    except error_class:
        raise
    except (OSError, ValueError) as error:
        name = format_names([_base_name(path)])
        if isinstance(error, FileNotFoundError):
            refuse(error_class, "not_a_file", f"There is no file {name}.")
        reason = getattr(error, "strerror", None) or "its name cannot be used"
        refuse(error_class, "not_a_file", f"{name} could not be opened: {reason}.")


def _base_name(path: Any) -> str:
    return Path(os.fsdecode(path)).name or os.fsdecode(path)


def _read_stream(source: Any, limits: Limits, error_class: ErrorClass) -> bytes:
    parts: list[bytes] = []
    remaining = limits.bytes + 1
    try:
        while remaining > 0:
            part = source.read(min(remaining, _CHUNK_BYTES))
            if isinstance(part, str):
                part = part.encode()
            if not part:
                break
            parts.append(bytes(part))
            remaining -= len(part)
    except Exception as error:  # a foreign file object may raise anything
        message = "The open file could not be read."
        raise single_refusal(error_class, "not_a_file", message) from error
    return b"".join(parts)


def _gunzip(data: bytes, limits: Limits, error_class: ErrorClass) -> bytes:
    gunzip = Gunzip(error_class)
    pieces: list[bytes] = []
    size = 0
    for piece in gunzip.feed(data):
        size += len(piece)
        if size > limits.bytes:
            _refuse_too_large(limits, error_class)
        pieces.append(piece)
    gunzip.end()
    return b"".join(pieces)


def _unzip(data: bytes, limits: Limits, error_class: ErrorClass) -> tuple[bytes, str]:
    import zipfile  # noqa: PLC0415 - few files are zips, and a cold start is short

    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = [
                member
                for member in archive.infolist()
                if not member.is_dir() and not member.filename.startswith("__MACOSX/")
            ]
            if any(member.filename.startswith("xl/") for member in members):
                refuse(error_class, "packed", "This is an Excel workbook; save it as CSV.")
            if len(members) != 1:
                rule = f"A zip must hold one file; this one holds {len(members)}: "
                names = format_names(member.filename for member in members[:11])
                refuse(error_class, "packed", f"{rule}{names or 'none'}.")
            (member,) = members
            if member.flag_bits & 1:
                refuse(error_class, "packed", "The zip is encrypted; send it without a password.")
            if member.compress_type not in {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}:
                refuse(error_class, "packed", "The zip must use no compression but deflate.")
            with archive.open(member) as file:
                unpacked = file.read(limits.bytes + 1)
    except error_class:
        raise
    except Exception as error:  # zipfile raises a dozen types for a damaged file
        raise single_refusal(error_class, "damaged", "The zip is damaged.") from error
    if len(unpacked) > limits.bytes:
        _refuse_too_large(limits, error_class)
    return unpacked, member.filename
