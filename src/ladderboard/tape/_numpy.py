"""The NumPy twin of the tape: the same interface, fast, for simulation only."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ladderboard.tape._tape import Draws, DrawsMany, Tape, bad_address

if TYPE_CHECKING:
    from ladderboard.tape._laws import Law

# Draws are made a block of questions at a time. The first block is short, so that a short session
# pays little; each further one is twice as long, up to the longest.
_FIRST = 64
_DOUBLINGS = 7
_LONGEST = _FIRST << _DOUBLINGS
_GROWN = _LONGEST - _FIRST  # where blocks stop growing
_KEPT = 32
_PLACES = 2**64
_WORD = 2**32 - 1


class NumpyTape(Tape):
    """A tape that draws from NumPy generators, about a hundred times faster than the real one.

    Draws are still a pure function of (seed, ladder, question, slot, context), so sessions resume
    and replay. Its laws hold up to floating-point numbers, which is enough to simulate and not
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
        self._kept: OrderedDict[_Where, _Block] = OrderedDict()
        self._last = _Block((), -1, 0, [])

    def __getstate__(self) -> dict[str, Any]:
        # Blocks can be drawn again.
        return {**self.__dict__, "_kept": OrderedDict(), "_last": _Block((), -1, 0, [])}

    def draw(
        self, laws: tuple[Law, ...], *, ladder: int, question: int, context: bytes = b""
    ) -> Draws:
        """Draw one number for each law, from a block of questions that is kept for a while."""
        last = self._last
        if laws is last.laws and ladder == last.ladder and type(question) is int and not context:
            at = question - last.first
            if 0 <= at < len(last.rows):
                return last.rows[at]
        _check_place(ladder, question)
        if context:
            words = np.frombuffer(hashlib.sha256(context).digest(), dtype=">u4").tolist()
            spot = (question, *words)
            return tuple(
                law.simulate(self._generator(ladder, slot, spot), 1).tolist()[0]
                for slot, law in enumerate(laws)
            )
        self._last = last = self._block(laws, ladder, question)
        return last.rows[question - last.first]

    def draw_many(self, laws: tuple[Law, ...], *, ladder: int, first: int, count: int) -> DrawsMany:
        """Draw for ``count`` questions from ``first`` on: one array for each law."""
        _check_place(ladder, first)
        parts: list[DrawsMany] = []
        at, end = first, first + count
        while at < end:
            number, start, size = _span(at)
            drawn = self._columns(laws, ladder, number, size)
            parts.append(tuple(column[at - start : end - start] for column in drawn))
            at = start + size
        return tuple(
            np.concatenate([np.empty(0, dtype=law.dtype), *(part[slot] for part in parts)])
            for slot, law in enumerate(laws)
        )

    def _block(self, laws: tuple[Law, ...], ladder: int, question: int) -> _Block:
        """Return the block a question falls into, kept from before or drawn now."""
        number, first, size = _span(question)
        where = (laws, ladder, number)
        block = self._kept.pop(where, None)
        if block is None:
            columns = [column.tolist() for column in self._columns(laws, ladder, number, size)]
            rows = list(zip(*columns, strict=True)) if laws else [()] * size
            block = _Block(laws, ladder, first, rows)
        self._kept[where] = block
        if len(self._kept) > _KEPT:
            self._kept.popitem(last=False)
        return block

    def _columns(self, laws: tuple[Law, ...], ladder: int, number: int, size: int) -> DrawsMany:
        return tuple(
            law.simulate(self._generator(ladder, slot, (number,)), size)
            for slot, law in enumerate(laws)
        )

    def _generator(self, ladder: int, slot: int, spot: tuple[Any, ...]) -> np.random.Generator:
        # Two words for each number, so that no two addresses are spelt alike; spots without and
        # with the eight words of a context differ in length.
        words = (word for each in (ladder, slot, spot[0]) for word in (each >> 32, each & _WORD))
        sequence = np.random.SeedSequence(self._seed, spawn_key=(*words, *spot[1:]))
        return np.random.Generator(np.random.PCG64(sequence))


def _check_place(ladder: int, question: int) -> None:
    if not all(isinstance(each, int) and 0 <= each < _PLACES for each in (ladder, question)):
        raise bad_address()


class _Block(NamedTuple):
    """Draws for consecutive questions of one ladder."""

    laws: tuple[Law, ...]
    ladder: int
    first: int
    rows: list[Draws]


_Where = tuple[tuple["Law", ...], int, int]


def _span(question: int) -> tuple[int, int, int]:
    """Return the block a question falls into: its number, its first question, its size."""
    if question < _GROWN:
        number = (question // _FIRST + 1).bit_length() - 1
        return number, (_FIRST << number) - _FIRST, _FIRST << number
    further = (question - _GROWN) // _LONGEST
    return _DOUBLINGS + further, _GROWN + further * _LONGEST, _LONGEST
