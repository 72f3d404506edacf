"""Before the data: the least error that can be promised, and the Ladder that promises most."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ladderboard.bounds._certify import certificate, read_beta, read_count
from ladderboard.mechanisms import UNITS, Ladder

if TYPE_CHECKING:
    from ladderboard.bounds._certificate import Certificate

__all__ = ["best_ladder", "floor"]

_ENOUGH = 1000  # half a cell is then below a part in a thousand of the other part


def floor(n: int, questions: int, beta: float = 0.05) -> float:
    """Return the error of a holdout asked about models that were all chosen beforehand.

    sqrt(ln(2k/beta) / (2n)), Hoeffding's inequality and a union bound: the floor in that form,
    which certificates have that are not given the released value: peeking can only add to it.

    >>> round(floor(n=10_000, questions=1_000), 3)
    0.023
    """
    n, questions = read_count("n", n), read_count("questions", questions)
    return math.sqrt(math.log(2 * questions / read_beta(beta)) / (2 * n))


def best_ladder(n: int, questions: int, beta: float = 0.05) -> tuple[Ladder, Certificate]:
    """Return the Ladder whose worst case before the data is least, and that certificate.

    Among Ladders with a grid of 1/J and a step of half a cell, which are the best there are up to a
    part in a thousand (docs/explanation/certificates.md, "The best Ladder").

    >>> ladder, found = best_ladder(n=10_000, questions=1_000)
    >>> ladder, round(found.half_width, 3)
    (Ladder(step=0.026315789474, grid=0.052631578948), 0.099)
    """
    n, questions, beta = read_count("n", n), read_count("questions", questions), read_beta(beta)
    best: tuple[Ladder, Certificate] | None = None
    points = 1
    while True:  # ends: the first part of the sum falls below any part of the second
        cell = -(-UNITS // points)  # rounded up, so that there are no more points than this
        ladder = Ladder(step=(cell // 2) / UNITS, grid=cell / UNITS)
        found = certificate(n, questions, None, ladder, beta)
        if best is None or found.half_width < best[1].half_width:
            best = ladder, found
        # More points cost more nats, so this part alone only grows from here on.
        reach = found.generalisation[0]
        if reach >= best[1].half_width or points * reach > _ENOUGH:
            return best
        points += max(1, points // 100)
