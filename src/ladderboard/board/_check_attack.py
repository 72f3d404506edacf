"""What an attacker could gain, tried out on labels that are coin flips."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from ladderboard.analysts import AbstainingAttack, MajorityAttack, ShiftedMajority, SybilAttack
from ladderboard.arena import run
from ladderboard.board._check_target import MOST_EXAMPLES, MOST_QUESTIONS
from ladderboard.mechanisms import Exact, ShakyLadder

if TYPE_CHECKING:
    from ladderboard.analysts import Analyst
    from ladderboard.board._check_promise import Promise

__all__ = ["Attack", "attacks_on"]

_REPETITIONS = 3
_RARE = 0.2  # a class that is more common is of little use to the abstaining attack


@dataclass(frozen=True)
class Attack:
    """How much better an attacker's last model looked than it was, on average.

    ``gain`` is against the board's mechanism, ``exact`` against plain scores. ``n`` and
    ``questions`` are the size it was played at.
    """

    name: str
    n: int
    questions: int
    repetitions: int
    gain: float
    exact: float

    @property
    def sentence(self) -> str:
        """The outcome in words."""
        return (
            f"{self.name}: looks {max(self.gain, 0):.3f} better than it is; against exact scores "
            f"{max(self.exact, 0):.3f}."
        )

    def describe(self) -> dict[str, Any]:
        """Return everything, JSON-able."""
        return asdict(self)


def attacks_on(
    promise: Promise, *, calibrated: bool, abstention: float | None = None, seed: int = 0
) -> list[Attack]:
    """Play the majority attack, and the strongest ones there are, against a board's mechanism.

    ``abstention`` is how often the prediction that is wrong most surely is right, None where there
    is no such prediction. Where the board is larger than what is played, settings that were
    calibrated for it are taken for the smaller size.
    """
    n = min(promise.worth, MOST_EXAMPLES)
    questions = min(promise.questions, MOST_QUESTIONS)
    mechanism = promise.mechanism
    if calibrated and (n, questions) != (promise.worth, promise.questions):
        mechanism = ShakyLadder.calibrated(n=n, questions=questions, teams=promise.ladders)
    accounts = min(promise.ladders, questions)
    strongest = SybilAttack(accounts=accounts) if accounts > 1 else ShiftedMajority()
    analysts: dict[str, Analyst] = {"majority": MajorityAttack(), strongest.name: strongest}
    if abstention is not None and abstention <= _RARE:
        analysts["abstaining"] = AbstainingAttack(rare=abstention)
    rows = run(
        {"board": mechanism, "exact": Exact()},
        analysts,
        n=n,
        k=questions,
        repetitions=_REPETITIONS,
        seed=seed,
    )

    def mean(analyst: str, against: str) -> float:
        some = [row.bias for row in rows if (row.analyst, row.mechanism) == (analyst, against)]
        return sum(some) / len(some)

    return [
        Attack(name, n, questions, _REPETITIONS, mean(name, "board"), mean(name, "exact"))
        for name in analysts
    ]
