"""Reads the bytes of a file, with size limits, decompression and format detection."""

from __future__ import annotations

import io
import os
import stat
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

from ladderboard import _settings
from ladderboard.files._gzip import GZIP_MAGIC, PACKED_TWICE, Gunzip
from ladderboard.files._problems import ErrorClass, format_names, refuse, single_refusal

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
        return _settings.choice("format", _ALIASES.get(normalized, normalized), FORMATS)
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
        reason = getattr(error, "strerror", None) or "its name cannot be used"
        refuse(
            error_class,
            "not_a_file",
            f"{format_names([_base_name(path)])} could not be opened: {reason}.",
        )


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
