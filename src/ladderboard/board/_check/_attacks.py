"""Attacks on a board's mechanism, played on labels that are coin flips."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from ladderboard.mechanisms import Exact

if TYPE_CHECKING:
    from ladderboard.analysts import Analyst
    from ladderboard.board._check._advice import BoardPromise

MAX_EXAMPLES, MAX_QUESTIONS = 10_000, 2_000
"""A larger board is played at this size, which takes seconds."""

_REPETITIONS = 3
_MAX_ABSTENTION = 0.2  # the abstaining attack needs a class at least as rare


@dataclass(frozen=True)
class AttackResult:
    """The mean difference between how good an attacker's last model looked and how good it was.

    ``gain`` is for the board's mechanism, ``exact`` for exact scores. ``n`` and ``questions`` are
    the size of the games.
    """

    name: str
    n: int
    questions: int
    repetitions: int
    gain: float
    exact: float

    @property
    def sentence(self) -> str:
        """The result in words."""
        return (
            f"{self.name}: looks {max(self.gain, 0):.3f} better than it is; against exact scores "
            f"{max(self.exact, 0):.3f}."
        )

    def describe(self) -> dict[str, Any]:
        """Return everything, JSON-able."""
        return asdict(self)


def play_attacks(
    promise: BoardPromise, *, abstention: float | None = None, seed: int = 0
) -> list[AttackResult]:
    """Play the majority attack and the strongest other ones against a board's mechanism.

    ``abstention`` is how often the prediction that is most surely wrong is right; None if there is
    no such prediction.
    """
    # Imported here so that a server that plays no attack does not load them.
    from ladderboard.analysts import AbstainingAttack, MajorityAttack, ShiftedMajority, SybilAttack  # noqa: PLC0415
    from ladderboard.arena import run  # noqa: PLC0415

    n = min(promise.effective_n, MAX_EXAMPLES)
    questions = min(promise.questions, MAX_QUESTIONS)
    mechanism = promise.mechanism
    accounts = min(promise.resolution.accounts, questions)
    strongest = SybilAttack(accounts=accounts) if accounts > 1 else ShiftedMajority()
    analysts: dict[str, Analyst] = {"majority": MajorityAttack(), strongest.name: strongest}
    if abstention is not None and abstention <= _MAX_ABSTENTION:
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
        biases = [row.bias for row in rows if (row.analyst, row.mechanism) == (analyst, against)]
        return sum(biases) / len(biases)

    return [
        AttackResult(name, n, questions, _REPETITIONS, mean(name, "board"), mean(name, "exact"))
        for name in analysts
    ]
