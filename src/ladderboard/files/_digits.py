"""Digits: whole numbers of up to eight, read eight at a time.

A CSV file of nothing but whole numbers, such as ids 0..n-1 and classes, is common, and splitting it
into fields costs more than reading the numbers. Here the eight bytes before each separator are
taken as one word, what is left of the number is masked out, and the digits are added up in pairs,
fours and eights by three multiplications.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["read_digits"]

_STEP = 2**19  # a block and what is made of it fit a cache
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
    if start < 8 or separator >= "0":
        return None
    if not data.endswith(b"\n"):
        data += b"\n"
    blocks = []
    while start < len(data):
        end = data.rfind(b"\n", start, start + _STEP) + 1
        if not end:
            return None
        blocks.append((start, end))
        start = end
    marks = [ord(separator)] * (width - 1) + [ord("\n")]
    if len(blocks) < 4:
        parts = [_block(data, marks, each) for each in blocks]
    else:  # NumPy lets threads run side by side
        with ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool:
            parts = list(pool.map(partial(_block, data, marks), blocks))
    found = [each for each in parts if each is not None]
    if len(found) < len(parts):
        return None
    return [np.concatenate(each) for each in zip(*found, strict=True)]


def _block(data: bytes, marks: list[int], block: tuple[int, int]) -> list[NDArray[np.int64]] | None:
    """Read the columns of some whole lines, each ended by its mark."""
    start, end = block
    width = len(marks)
    characters = np.frombuffer(data, np.uint8)
    words = np.ndarray((len(data) - 7,), "<u8", buffer=data, strides=(1,))
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
        column = _column(characters, words, stops, stops - last)
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
) -> list[NDArray[np.int64]] | None:
    """Read columns that are one digit wide but for the first: they stand at known places."""
    start, end = block
    here = characters[start:end]
    lines = np.flatnonzero(here == ord("\n"))
    if np.count_nonzero(here < ord("0")) != len(lines) * len(marks):
        return None
    if lines[0] < 2 * len(marks) - 1:  # too short, and places would be before the block
        return None
    lines += start
    columns = []
    for place in range(1, len(marks)):
        at = lines - 2 * (len(marks) - place)
        if (characters[at] != marks[0]).any():
            return None
        at += 1
        digits = characters[at]
        if digits.min() < ord("0"):
            return None
        columns.append(digits.astype(np.int64) - ord("0"))
    ends = lines - 2 * (len(marks) - 1)
    first = _column(characters, words, ends, ends - np.append(start - 1, lines[:-1]))
    return None if first is None else [first, *columns]


def _column(
    data: NDArray[np.uint8],
    words: NDArray[np.uint64],
    ends: NDArray[np.int64],
    steps: NDArray[np.int64],
) -> NDArray[np.int64] | None:
    """Return the numbers that end where ``ends`` says, so many steps after the one before."""
    longest = steps.max()
    if longest > 9 or steps.min() < 2:
        return None
    if longest == 2:
        return data[ends - 1].astype(np.int64) - ord("0")
    word = words[ends - 8]
    word &= _MASKS[steps]
    high = word >> _WORD(8)
    word *= _WORD(10)
    word += high
    high = word >> _WORD(16)
    word &= _PAIRS
    word *= _MILLIONS
    high &= _PAIRS
    high *= _HUNDREDS
    word += high
    word >>= _WORD(32)
    return word.view(np.int64)
