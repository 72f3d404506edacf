"""CSV: what people call it. The dialect, the first line, and whether that is a header."""

from __future__ import annotations

import codecs
import csv
import re
from typing import TYPE_CHECKING

from ladderboard.files._problems import Refusal, listed, refuse

if TYPE_CHECKING:
    from ladderboard.files._limits import Limits

__all__ = ["clean", "first_line", "split"]

_LONGEST_LINE = 2**22
_SEPARATORS = ("\t", ";", "|", ",")
_LOOKED_AT = 20
_SEP_LINE = rb"sep=(.)"


def clean(data: bytes, refusal: Refusal) -> bytes:
    """Return text as UTF-8 without a byte-order mark, lines ended by a line feed."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        try:
            data = data.decode("utf-16").encode()
        except UnicodeError:
            refuse(refusal, "encoding", "The file begins as UTF-16 text but does not go on so.")
    data = data.removeprefix(codecs.BOM_UTF8)
    if not data.isascii():
        _check_utf8(data, refusal)
    at = data.find(b"\0")
    if at >= 0:
        said = f"The file is no text: byte {at} is zero. Send UTF-8 text, or name the format."
        refuse(refusal, "encoding", said)
    if b"\r" in data:
        unix = data.replace(b"\r\n", b"\n")
        # Line ends of old Macs are clear only where there are no others.
        data = unix if b"\n" in unix else unix.replace(b"\r", b"\n")
    if data.endswith((b"\n\n", b" ", b"\t\n", b" \n")) or data.startswith(b"\n"):
        data = data.rstrip(b" \n").lstrip(b"\n")
    if not data or data.isspace():
        refuse(refusal, "empty", "The file is empty.")
    return data


def _check_utf8(data: bytes, refusal: Refusal) -> None:
    decoder = codecs.getincrementaldecoder("utf-8")()
    step = 2**24
    for at in range(0, len(data), step):
        try:
            decoder.decode(data[at : at + step], final=at + step >= len(data))
        except UnicodeDecodeError as error:
            # What a chunk begins with may be the end of a character that was held over.
            where = at + error.start - (len(error.object) - len(data[at : at + step]))
            said = f"The text must be UTF-8; byte {where} is not. Save the file as UTF-8."
            refuse(refusal, "encoding", said)


def first_line(
    data: bytes, separator: str | None, limits: Limits, refusal: Refusal
) -> tuple[str, list[str], int]:
    """Return the separator, the fields of the first line, and where that line begins."""
    start = 0
    line = _line(data, 0, refusal)
    told = re.fullmatch(_SEP_LINE, line.strip()) if line.lstrip().startswith(b"sep=") else None
    if told and separator is None:  # as Excel writes it
        separator, start = told[1].decode(errors="replace"), len(line) + 1
        line = _line(data, start, refusal)
        if not separator.isascii() or not separator.isprintable() or separator in "\"'":
            refuse(refusal, "separator", "The file names a separator that cannot be one.")
    text = line.decode()
    if separator is None:
        separator = _sniff(text, data[start : start + 2**16])
    if text.count(separator) >= limits.columns:
        said = f"There are more than {limits.columns} columns, which is the limit."
        refuse(refusal, "too_many_columns", said)
    fields = split(text, separator)
    if fields is None:
        refuse(refusal, "quotes", "The first line holds a quote that is not closed on it.")
    return separator, fields, start


def split(line: str, separator: str) -> list[str] | None:
    """Return the fields of one line, None if its quotes are odd."""
    try:
        (fields,) = csv.reader([line], delimiter=separator, strict=True, skipinitialspace=True)
    except (csv.Error, ValueError):
        return None
    return fields


def _line(data: bytes, start: int, refusal: Refusal) -> bytes:
    end = data.find(b"\n", start, start + _LONGEST_LINE)
    if end < 0:
        if len(data) - start > _LONGEST_LINE:
            said = f"The first line is longer than {_LONGEST_LINE} bytes; is the file CSV?"
            refuse(refusal, "line_too_long", said)
        end = len(data)
    return data[start:end]


def _sniff(first: str, head: bytes) -> str:
    """Return the separator: one that is in the first line, as often in the next few."""
    bare = re.sub(r'"[^"]*"', "", first) if '"' in first else first
    there = [each for each in _SEPARATORS if each in bare]
    if len(there) == 1:
        return there[0]
    lines = head.decode(errors="replace").split("\n")[:_LOOKED_AT]
    lines = [re.sub(r'"[^"]*"', "", each) for each in lines[: max(1, len(lines) - 1)] if each]
    for each in there:
        if len({line.count(each) for line in lines}) == 1:
            return each
    return there[0] if there else ","


def header_unclear(fields: list[str], refusal: Refusal, why: str) -> None:
    """Refuse a first line that may be a header or may be none."""
    refuse(refusal, "header", f"{why} The first line is {listed(fields)}.")
