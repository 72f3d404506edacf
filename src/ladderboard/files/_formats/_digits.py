"""Fast reading of CSV files that hold only integers of up to eight digits.

Such files, with ids 0..n-1 and classes, are common, and splitting them into fields costs more than
parsing the numbers. Here the eight bytes before each separator are read as one word, the bytes left
of the number are masked out, and the digits are summed in pairs, fours and eights by three
multiplications.
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


_BLOCK_BYTES = 2**19  # a block and its intermediate results fit into a CPU cache
_MAX_LINE = 2**17  # bytes that are still parsed line by line
_WORD = np.uint64
# Indexed by the number of digits plus one: keeps the low four bits of that many last bytes.
_MASKS = np.array([0, *(0x0F0F0F0F0F0F0F0F >> 8 * (8 - n) << 8 * (8 - n) for n in range(9))], _WORD)
_PAIRS = _WORD(0x000000FF000000FF)
_HUNDREDS, _MILLIONS = _WORD(0x0000271000000001), _WORD(0x000F424000000064)


def read_digits(
    data: bytes, start: int, separator: str, width: int
) -> list[NDArray[np.int64]] | None:
    r"""Return the columns of lines that hold only digits; None if they hold anything else.

    >>> [column.tolist() for column in read_digits(b"a header,b\n12,0\n7,1\n", 11, ",", 2)]
    [[12, 7], [0, 1]]
    """
    blocks: list[Columns] = []
    for block in iter_digit_blocks(data, start, separator, width):
        if block is None:
            return None
        blocks.append(block)
    return [np.concatenate(column, dtype=np.int64) for column in zip(*blocks, strict=True)] or None


def iter_digit_blocks(
    data: bytes, start: int, separator: str, width: int
) -> Iterator[Columns | None]:
    """Yield the columns of such lines in blocks of some thousand rows; None for anything else."""
    if separator >= "0" or sys.byteorder != "little":
        yield None
        return
    separator_bytes = [ord(separator)] * (width - 1) + [ord("\n")]
    # The fast path needs complete words, and one before the first line. The few lines at either
    # end are parsed one by one.
    head = start if start >= 8 else data.find(b"\n", 7) + 1 or len(data)
    tail = max(head, data.rfind(b"\n", head, len(data) // 8 * 8) + 1)
    if start < head:
        yield _read_lines(data[start:head], separator, width)
    while head < tail:
        end = data.rfind(b"\n", head, min(head + _BLOCK_BYTES, tail)) + 1
        if not end:  # the line is too long
            yield None
            return
        yield _read_block(data, separator_bytes, (head, end))
        head = end
    if tail < len(data):
        yield _read_lines(data[tail:], separator, width)


def _read_lines(lines: bytes, separator: str, width: int) -> Columns | None:
    """Parse a few lines, one by one."""
    if len(lines) > _MAX_LINE:
        return None
    rows = [line.split(separator.encode()) for line in lines.removesuffix(b"\n").split(b"\n")]
    if any(len(row) != width for row in rows):
        return None
    if not all(re.fullmatch(rb"[0-9]{1,8}", field) for row in rows for field in row):
        return None
    return list(np.array([[int(field) for field in row] for row in rows], dtype=np.int64).T)


def _read_block(data: bytes, separators: list[int], block: tuple[int, int]) -> Columns | None:
    """Parse the columns of complete lines; ``separators`` has the byte after each column."""
    start, end = block
    width = len(separators)
    characters = np.frombuffer(data, np.uint8)
    words = np.frombuffer(data, _WORD, len(data) // 8)
    characters_read = characters[start:end]
    if characters_read.max() > ord("9"):
        return None
    ends = np.flatnonzero(characters_read < ord("0"))
    if len(ends) % width:
        return None
    ends += start
    previous_ends = np.append(start - 1, ends[width - 1 : -1 : width])  # ends of previous lines
    columns = []
    for column_index, separator_byte in enumerate(separators):
        column_ends = ends[column_index::width]
        column = _parse_numbers(words, column_ends, column_ends - previous_ends)
        if column is None or (characters[column_ends] != separator_byte).any():
            return None
        columns.append(column)
        previous_ends = column_ends
    return columns


def _parse_numbers(
    words: NDArray[np.uint64], ends: NDArray[np.int64], steps: NDArray[np.int64]
) -> NDArray[np.int64] | None:
    """Return the numbers that end at ``ends``; ``steps`` are distances to the previous separator.

    The eight bytes before each end are combined from two aligned words, which takes a quarter of
    the time of unaligned reads.
    """
    if steps.max() > 9 or steps.min() < 2:
        return None
    start = ends - 8
    bits = (start & 7).view(_WORD)
    bits <<= _WORD(3)
    start >>= 3
    word, high = words.take(start), words[1:].take(start)
    word >>= bits
    np.subtract(_WORD(64), bits, out=bits)
    high <<= bits  # a shift by all 64 bits gives 0
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
