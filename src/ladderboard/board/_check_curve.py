"""What an attacker could gain with more and more questions, tried out on coin flips."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ladderboard.analysts import MajorityAttack, ShiftedMajority, SybilAttack
from ladderboard.arena import run
from ladderboard.mechanisms import Exact

if TYPE_CHECKING:
    from collections.abc import Callable

    from ladderboard.analysts import Analyst
    from ladderboard.board._check_target import Target

__all__ = ["play_target"]


def play_target(
    target: Target, *, seed: int = 0, told: Callable[[float], None] | None = None
) -> list[dict[str, Any]]:
    """Play every attack at every size against a board and against exact scores.

    Returns for each number of questions how many games were played and, by the attack's name, how
    much better its last model looked than it was: the mean against the ``board``, with its standard
    ``error``, and against ``exact`` scores. ``told`` is called with the part that is done, again
    and again. The same seed gives the same numbers.
    """
    answering = {"board": target.played(), "exact": Exact()}
    total = sum(
        target.work(each) * len(_attacks(target, each)) * len(answering) for each in target.sizes
    )
    done, points = 0, []
    for questions in target.sizes:
        games, gains = target.games(questions), {}
        for attack in _attacks(target, questions):
            found = {}
            for name, each in answering.items():
                rows = run(
                    {name: each},
                    {attack.name: attack},
                    n=target.n,
                    k=questions,
                    repetitions=games,
                    seed=seed,
                )
                found[name] = [row.bias for row in rows]
                done += target.work(questions)
                if told is not None:
                    told(done / total)
            means = {name: sum(some) / games for name, some in found.items()}
            gains[attack.name] = {**means, "error": _error(found["board"])}
        points.append({"questions": questions, "games": games, "attacks": gains})
    return points


def _attacks(target: Target, questions: int) -> list[Analyst]:
    """Return who attacks with so many questions; with several ladders, also with many accounts."""
    found: list[Analyst] = [MajorityAttack(), ShiftedMajority()]
    if target.ladders > 1:
        found.append(SybilAttack(accounts=min(target.ladders, questions)))
    return found


def _error(some: list[float]) -> float:
    """Return the standard error of a mean."""
    mean = sum(some) / len(some)
    return math.sqrt(sum((each - mean) ** 2 for each in some) / (len(some) - 1) / len(some))
