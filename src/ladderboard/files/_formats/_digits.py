"""Digits: whole numbers of up to eight, read eight at a time.

A CSV file of nothing but whole numbers, such as ids 0..n-1 and classes, is common, and splitting it
into fields costs more than reading the numbers. Here the eight bytes before each separator are
taken as one word, what is left of the number is masked out, and the digits are added up in pairs,
fours and eights by three multiplications.
"""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    Columns = list[NDArray[Any]]


_STEP = 2**19  # a block and what is made of it fit a cache
_FEW = 2**17  # no line of digits is longer
_WORD = np.uint64
# By one more than the number of digits: the low four bits of the last so many bytes.
_MASKS = np.array([0, *(0x0F0F0F0F0F0F0F0F >> 8 * (8 - n) << 8 * (8 - n) for n in range(9))], _WORD)
_PAIRS = _WORD(0x000000FF000000FF)
_HUNDREDS, _MILLIONS = _WORD(0x0000271000000001), _WORD(0x000F424000000064)


def read_digits(
    data: bytes, start: int, separator: str, width: int
) -> list[NDArray[np.int64]] | None:
    r"""Return the columns of lines that hold only digits; None if there is anything else.

    >>> [each.tolist() for each in read_digits(b"a header,b\n12,0\n7,1\n", 11, ",", 2)]
    [[12, 7], [0, 1]]
    """
    parts: list[Columns] = []
    for piece in pieces(data, start, separator, width):
        if piece is None:
            return None
        parts.append(piece)
    return [np.concatenate(each, dtype=np.int64) for each in zip(*parts, strict=True)] or None


def pieces(data: bytes, start: int, separator: str, width: int) -> Iterator[Columns | None]:
    """Yield the columns of such lines in pieces of some thousands; None at anything else."""
    if separator >= "0" or sys.byteorder != "little":
        yield None
        return
    marks = [ord(separator)] * (width - 1) + [ord("\n")]
    # Words that are whole, and one before the first line; the few other lines are read by hand.
    head = start if start >= 8 else data.find(b"\n", 7) + 1 or len(data)
    tail = max(head, data.rfind(b"\n", head, len(data) // 8 * 8) + 1)
    if start < head:
        yield _few(data[start:head], separator, width)
    while head < tail:
        end = data.rfind(b"\n", head, min(head + _STEP, tail)) + 1
        if not end:  # a line that is much too long
            yield None
            return
        yield _block(data, marks, (head, end))
        head = end
    if tail < len(data):
        yield _few(data[tail:], separator, width)


def _few(lines: bytes, separator: str, width: int) -> Columns | None:
    """Read a few lines, one by one."""
    if len(lines) > _FEW:
        return None
    rows = [line.split(separator.encode()) for line in lines.removesuffix(b"\n").split(b"\n")]
    if any(len(row) != width for row in rows):
        return None
    if not all(re.fullmatch(rb"[0-9]{1,8}", field) for row in rows for field in row):
        return None
    return list(np.array([[int(field) for field in row] for row in rows], dtype=np.int64).T)


def _block(data: bytes, marks: list[int], block: tuple[int, int]) -> Columns | None:
    """Read the columns of some whole lines, each ended by its mark."""
    start, end = block
    width = len(marks)
    characters = np.frombuffer(data, np.uint8)
    words = np.frombuffer(data, _WORD, len(data) // 8)
    here = characters[start:end]
    if here.max() > ord("9"):
        return None
    narrow = _narrow(characters, words, marks, block)
    if narrow is not None:
        return narrow
    ends = np.flatnonzero(here < ord("0"))
    if len(ends) % width:
        return None
    ends += start
    last = np.append(start - 1, ends[width - 1 : -1 : width])  # where the line before ended
    columns = []
    for place, mark in enumerate(marks):
        stops = ends[place::width]
        column = _column(words, stops, stops - last)
        if column is None or (characters[stops] != mark).any():
            return None
        columns.append(column)
        last = stops
    return columns


def _narrow(
    characters: NDArray[np.uint8],
    words: NDArray[np.uint64],
    marks: list[int],
    block: tuple[int, int],
) -> Columns | None:
    """Read columns that are one digit wide but for the first: they stand at known places."""
    start, end = block
    here = characters[start:end]
    mask = here == ord("\n")
    lines = np.flatnonzero(mask)
    if np.count_nonzero(np.less(here, ord("0"), out=mask)) != len(lines) * len(marks):
        return None
    wide = 2 * (len(marks) - 1)
    if lines[0] < wide + 1 or start < wide:  # places would be before the block, or the data
        return None
    columns = []
    for back in range(wide, 0, -2):
        if (characters[start - back :].take(lines) != marks[0]).any():
            return None
        digits = characters[start - back + 1 :].take(lines)
        if digits.min() < ord("0"):
            return None
        digits -= np.uint8(ord("0"))
        columns.append(digits)
    steps = np.empty_like(lines)
    steps[0] = lines[0] + 1
    np.subtract(lines[1:], lines[:-1], out=steps[1:])
    steps -= wide
    lines += start - wide
    first = _column(words, lines, steps)
    return None if first is None else [first, *columns]


def _column(
    words: NDArray[np.uint64], ends: NDArray[np.int64], steps: NDArray[np.int64]
) -> NDArray[np.int64] | None:
    """Return the numbers that end where ``ends`` says, so many steps after the one before.

    The eight bytes before each end are put together from two words that are whole, which takes a
    quarter of the time of a view of words that begin anywhere.
    """
    if steps.max() > 9 or steps.min() < 2:
        return None
    at = ends - 8
    bits = (at & 7).view(_WORD)
    bits <<= _WORD(3)
    at >>= 3
    word, high = words.take(at), words[1:].take(at)
    word >>= bits
    np.subtract(_WORD(64), bits, out=bits)
    high <<= bits  # by all 64 it leaves nothing
    word |= high
    word &= _MASKS.take(steps, out=bits, mode="clip")
    np.right_shift(word, _WORD(8), out=high)
    word *= _WORD(10)
    word += high
    np.right_shift(word, _WORD(16), out=high)
    word &= _PAIRS
    word *= _MILLIONS
    high &= _PAIRS
    high *= _HUNDREDS
    word += high
    word >>= _WORD(32)
    return word.view(np.int64)
