"""Probes: analysts that try to make a mechanism's updates stray from the risk.

A probe is a generator of risks, in numbers of examples got wrong; it is sent the value that stands
after each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    import numpy as np

__all__ = ["PROBES"]


def _descend(n: int, questions: int, rng: np.random.Generator) -> Generator[int, float, None]:
    """Improve with every question, by a random amount: as many updates as a step allows."""
    left = sorted(rng.integers(0, n // 2 + 1, questions).tolist())
    while left:
        yield left.pop()


def _creep(n: int, _questions: int, rng: np.random.Generator) -> Generator[int, float, None]:
    """Improve on what stands by twice as much each time, until it is told; then start again."""
    told = yield int(rng.integers(n // 4, n // 2 + 1))
    while True:
        told_before, gain = told, 1
        while told == told_before:
            told = yield max(min(round(told_before * n), n) - gain, 0)
            gain = min(2 * gain, n)


def _leap(n: int, _questions: int, rng: np.random.Generator) -> Generator[int, float, None]:
    """Find a gain that is told, and go on by such gains at random: any residue on a grid occurs."""
    told = yield int(rng.integers(n // 2, n + 1))
    gain = 1.0
    while True:
        told_before = told
        told = yield min(max(round(told_before * n - gain * rng.uniform(1, 2)), 0), n)
        if told == told_before:
            gain = min(2 * gain, n)


def _insist(n: int, _questions: int, rng: np.random.Generator) -> Generator[int, float, None]:
    """Ask about one model again and again: an update is then luck in the noise."""
    yield n
    wrong = int(rng.integers(n // 4, n // 2 + 1))
    while True:
        yield wrong


def _guess(n: int, _questions: int, rng: np.random.Generator) -> Generator[int, float, None]:
    """Ask about random guesses, as the majority attack does."""
    while True:
        yield int(rng.binomial(n, 0.5))


PROBES: dict[str, Callable[[int, int, np.random.Generator], Generator[int, float, None]]] = {
    "descend": _descend,
    "creep": _creep,
    "leap": _leap,
    "insist": _insist,
    "guess": _guess,
}
