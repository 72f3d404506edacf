"""Choosing a Ladder before the data: the grid whose certificate is narrowest.

Finer cells round less and reveal more. Candidates are all grids 1/J, with a step of half a cell, up
to J = 999, and beyond that J with three significant digits, which loses less than one part in
100,000. The set is the same for every n and every number of questions, so the error falls with n
and grows with questions as for a single Ladder, and the search is fast enough for plans.

*Why half a cell.* Before the data the interval's half length is (max(η, γ/2) + γ/2)/2 +
√(nats/(2n)), with the largest price over all b. For a least drop of D = rγ the least step is (r -
½)γ (a unit of 1e-12 included, by the strict comparison), and then the first part is D/2. For D =
1/J the grid γ = D itself, r = 1, has N = J values; a finer one with γ = D/r has N' ≥ r(J-1) + 1,
and N' - (b-1)(r-1) ≥ J + (r-1)(J-b) ≥ J, so more sequences. So among drops of 1/J a step of half
a cell is best, and `best_ladder` tries J = 1, 2, … (from 200 on in steps of a hundredth) until
the second part alone exceeds the best sum or the first is below a part in a thousand of it.
Between two such drops a finer grid can be a little better: by 0.1% at n = k = 1,000, and not at
all at the other sizes we tried (n from 100 to 100,000).
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from ladderboard.bounds._certify import certificate, read_beta, read_count
from ladderboard.bounds._counting import ChangeHistory, TranscriptWeights
from ladderboard.mechanisms import UNITS, Ladder, Setup

if TYPE_CHECKING:
    from ladderboard.bounds._certificate import Certificate
    from ladderboard.mechanisms import Transcript

CELL_COUNTS = (
    *range(1, 1000),
    *(digits * 10**e for e in range(1, 10) for digits in range(100, 1000)),
)
# Rounding error of float sums; a grid is skipped only if it is worse by more.
_FLOAT_TOLERANCE = 1e-12
_GRID_FINE_ENOUGH = 1000  # half a cell is then less than a thousandth of the other part


@dataclass(frozen=True)
class LadderRequirements:
    """What a Ladder must satisfy.

    Parameters
    ----------
    questions
        How many questions are allowed.
    beta
        The failure probability.
    changes
        The number of visible changes; None for the worst case before the data.
    """

    questions: int
    beta: float
    changes: int | None = None


@lru_cache(maxsize=16_384)
def ladder_with(cells: int) -> Ladder:
    """Return the Ladder with this many cells and a step of half a cell.

    >>> ladder_with(20)
    Ladder(step=0.025, grid=0.05)
    """
    cell = -(-UNITS // cells)  # rounded up, so that there are no more points than this
    return Ladder(step=(cell // 2) / UNITS, grid=cell / UNITS)


@lru_cache(maxsize=16_384)
def _transcript_of_ladder(ladder: Ladder) -> Transcript:
    return ladder.transcript(Setup(1, 0.0, 1.0))


@lru_cache(maxsize=65_536)
def _price(ladder: Ladder, requirements: LadderRequirements) -> tuple[float, float, float]:
    """Return nats and the interval of the deviation; for a Ladder neither depends on n.

    Of the two ends the lower is further away: it has the larger price and the step.
    """
    transcript = _transcript_of_ladder(ladder)
    nats = TranscriptWeights(requirements.questions, requirements.beta).nats(
        transcript, ChangeHistory(requirements.questions, requirements.changes)
    )
    return nats.every, *transcript.deviation.interval(requirements.questions, requirements.beta)


def ladder_error(n: int, ladder: Ladder, requirements: LadderRequirements) -> float:
    """Return ``certificate(...).error``, faster.

    >>> ladder = Ladder(step=0.01, grid=0.005)
    >>> round(ladder_error(10_000, ladder, LadderRequirements(1_000, 0.05, changes=5)), 4)
    0.0665
    """
    nats, low, high = _price(ladder, requirements)
    return min(math.sqrt(nats / n / 2) + max(high, -low), 1.0)


@lru_cache(maxsize=4096)
def choose_ladder(
    n: int, requirements: LadderRequirements, enough: float = 0.0
) -> tuple[float, Ladder]:
    """Return the least error and its Ladder; or the first Ladder with an error below ``enough``.

    Branch and bound: the sample part falls and the price grows with the number of cells, so the
    first price and the last sample part are a lower bound for a whole range of grids.

    >>> error, ladder = choose_ladder(10_000, LadderRequirements(1_000, 0.05))
    >>> round(error, 4), ladder
    (0.0989, Ladder(step=0.026315789474, grid=0.052631578948))
    """
    last = len(CELL_COUNTS) - 1
    best = (math.inf, 0)
    stretches = [(0.0, 0, last)]
    while stretches:
        bound, first, end = heapq.heappop(stretches)
        if bound * (1 - _FLOAT_TOLERANCE) > best[0] or (
            enough and bound * (1 - _FLOAT_TOLERANCE) > enough
        ):
            break
        middle = (first + end) // 2
        for low, high in ((first, middle), (middle + 1, end)):
            if low > high:
                continue
            ladder = ladder_with(CELL_COUNTS[low])
            best = min(best, (ladder_error(n, ladder, requirements), low))
            if best[0] <= enough:
                return best[0], ladder
            if low < high:
                nats, *_ = _price(ladder, requirements)
                # The sample part is half a cell on either side: step and rounding are as large.
                bound = math.sqrt(nats / n / 2) + 0.5 / CELL_COUNTS[high]
                heapq.heappush(stretches, (bound, low, high))
    return best[0], ladder_with(CELL_COUNTS[best[1]])


def nonadaptive_error(n: int, questions: int, beta: float = 0.05) -> float:
    """Return the error of a holdout if all models are chosen before the first answer.

    sqrt(ln(2k/beta) / (2n)), by Hoeffding's inequality and a union bound. Adaptivity can only
    add to it, so it is a lower limit for certificates without a released value.

    >>> round(nonadaptive_error(n=10_000, questions=1_000), 3)
    0.023
    """
    n, questions = read_count("n", n), read_count("questions", questions)
    return math.sqrt(math.log(2 * questions / read_beta(beta)) / (2 * n))


def best_ladder(n: int, questions: int, beta: float = 0.05) -> tuple[Ladder, Certificate]:
    """Return the Ladder whose worst case before the data is least, and that certificate.

    Among Ladders with a grid of 1/J and a step of half a cell, which are the best there are up to a
    part in a thousand.

    >>> ladder, found = best_ladder(n=10_000, questions=1_000)
    >>> ladder, round(found.error, 3)
    (Ladder(step=0.026315789474, grid=0.052631578948), 0.099)
    """
    n, questions, beta = read_count("n", n), read_count("questions", questions), read_beta(beta)
    requirements = LadderRequirements(questions, beta)
    best = math.inf, ladder_with(1)
    points = 1
    while True:  # terminates: the cell falls below any fraction of the rest
        ladder = ladder_with(points)
        best = min(best, (ladder_error(n, ladder, requirements), ladder), key=lambda pair: pair[0])
        # More points cost more nats, so this part alone only grows from here on.
        reach = math.sqrt(_price(ladder, requirements)[0] / n / 2)
        if reach >= best[0] or points * reach > _GRID_FINE_ENOUGH:
            return best[1], certificate(n, questions, None, best[1], beta)
        points += max(1, points // 100)
