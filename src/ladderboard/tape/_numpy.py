"""The NumPy twin of the tape: the same interface, fast, for simulation only."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ladderboard.tape._tape import Draws, DrawsMany, Tape, invalid_address

if TYPE_CHECKING:
    from ladderboard.tape._tape import Law

# Draws are made a block of questions at a time. The first block is short, so that a short session
# pays little; each further one is twice as long, up to the longest.
_FIRST_BLOCK = 64
_DOUBLINGS = 7
_LONGEST_BLOCK = _FIRST_BLOCK << _DOUBLINGS
_GROWTH_ENDS_AT = _LONGEST_BLOCK - _FIRST_BLOCK  # where blocks stop growing
_CACHED_BLOCKS = 32
_ADDRESSES = 2**64
_WORD_MASK = 2**32 - 1


class NumpyTape(Tape):
    """A tape that draws from NumPy generators, about a hundred times faster than ``Tape``.

    Draws are still a pure function of (seed, ladder, question, slot, context), so sessions resume
    and replay. Its laws hold up to floating-point precision, which is enough to simulate and not
    enough to hide a risk.

    Parameters
    ----------
    seed
        A whole number; without one it comes from the operating system.

    Examples
    --------
    >>> from ladderboard.tape import DiscreteGaussian
    >>> laws = (DiscreteGaussian(1000),)
    >>> tape = NumpyTape(seed=7)
    >>> one_by_one = [tape.draw(laws, ladder=0, question=q)[0] for q in (1, 2, 3)]
    >>> one_by_one == tape.draw_many(laws, ladder=0, first=1, count=3)[0].tolist()
    True
    """

    def __init__(self, *, seed: int | None = None) -> None:
        super().__init__(seed=seed)
        self._seed = int.from_bytes(self._key, "big") if seed is None else seed
        self._seeded = True
        self._kept: OrderedDict[_BlockKey, _Block] = OrderedDict()
        self._last = _Block((), -1, 0, [])

    def __getstate__(self) -> dict[str, Any]:
        # Cached blocks are left out: they can be drawn again.
        return {**self.__dict__, "_kept": OrderedDict(), "_last": _Block((), -1, 0, [])}

    def draw(
        self, laws: tuple[Law, ...], *, ladder: int, question: int, context: bytes = b""
    ) -> Draws:
        """Draw one number for each law, from a cached block of questions."""
        last = self._last
        if laws is last.laws and ladder == last.ladder and type(question) is int and not context:
            offset = question - last.first
            if 0 <= offset < len(last.rows):
                return last.rows[offset]
        _check_address(ladder, question)
        if context:
            words = np.frombuffer(hashlib.sha256(context).digest(), dtype=">u4").tolist()
            suffix = (question, *words)
            return tuple(
                law.simulate(self._generator(ladder, slot, suffix), 1).tolist()[0]
                for slot, law in enumerate(laws)
            )
        self._last = last = self._block(laws, ladder, question)
        return last.rows[question - last.first]

    def draw_many(self, laws: tuple[Law, ...], *, ladder: int, first: int, count: int) -> DrawsMany:
        """Draw for ``count`` questions from ``first`` on: one array for each law."""
        _check_address(ladder, first)
        parts: list[DrawsMany] = []
        start_question, end = first, first + count
        while start_question < end:
            number, block_start, size = _block_of_question(start_question)
            drawn = self._columns(laws, ladder, number, size)
            parts.append(
                tuple(column[start_question - block_start : end - block_start] for column in drawn)
            )
            start_question = block_start + size
        return tuple(
            np.concatenate([np.empty(0, dtype=law.dtype), *(part[slot] for part in parts)])
            for slot, law in enumerate(laws)
        )

    def _block(self, laws: tuple[Law, ...], ladder: int, question: int) -> _Block:
        """Return the block that holds a question, from the cache or drawn now."""
        number, first, size = _block_of_question(question)
        key = (laws, ladder, number)
        block = self._kept.pop(key, None)
        if block is None:
            columns = [column.tolist() for column in self._columns(laws, ladder, number, size)]
            rows = list(zip(*columns, strict=True)) if laws else [()] * size
            block = _Block(laws, ladder, first, rows)
        self._kept[key] = block
        if len(self._kept) > _CACHED_BLOCKS:
            self._kept.popitem(last=False)
        return block

    def _columns(self, laws: tuple[Law, ...], ladder: int, number: int, size: int) -> DrawsMany:
        return tuple(
            law.simulate(self._generator(ladder, slot, (number,)), size)
            for slot, law in enumerate(laws)
        )

    def _generator(self, ladder: int, slot: int, suffix: tuple[Any, ...]) -> np.random.Generator:
        # Two words for each number, so that no two addresses have the same words; addresses with
        # and without the eight words of a context differ in length.
        address_words = (
            word
            for number in (ladder, slot, suffix[0])
            for word in (number >> 32, number & _WORD_MASK)
        )
        sequence = np.random.SeedSequence(self._seed, spawn_key=(*address_words, *suffix[1:]))
        return np.random.Generator(np.random.PCG64(sequence))


def _check_address(ladder: int, question: int) -> None:
    if not all(
        isinstance(number, int) and 0 <= number < _ADDRESSES for number in (ladder, question)
    ):
        raise invalid_address()


class _Block(NamedTuple):
    """Draws for consecutive questions of one ladder."""

    laws: tuple[Law, ...]
    ladder: int
    first: int
    rows: list[Draws]


_BlockKey = tuple[tuple["Law", ...], int, int]


def _block_of_question(question: int) -> tuple[int, int, int]:
    """Return the block that holds a question: its number, its first question, its size."""
    if question < _GROWTH_ENDS_AT:
        number = (question // _FIRST_BLOCK + 1).bit_length() - 1
        return number, (_FIRST_BLOCK << number) - _FIRST_BLOCK, _FIRST_BLOCK << number
    further = (question - _GROWTH_ENDS_AT) // _LONGEST_BLOCK
    return _DOUBLINGS + further, _GROWTH_ENDS_AT + further * _LONGEST_BLOCK, _LONGEST_BLOCK
