"""What an attacker could gain on a board, played on labels that are coin flips."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from ladderboard.mechanisms import Exact, ShakyLadder, mechanism

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ladderboard.analysts import Analyst
    from ladderboard.board._board import Board
    from ladderboard.board._check._advice import BoardPromise
    from ladderboard.mechanisms import Mechanism

MAX_EXAMPLES, MAX_QUESTIONS = 10_000, 2_000
"""Seconds, not minutes: a larger board is tried at this size."""

_CURVE_POINTS = 7
_MAX_SPAN = 64  # times as many questions at the end of a curve as at its beginning, at most
_MIN_QUESTIONS = 10  # questions from which a curve begins, where there are plenty
# Games of one attack at one number of questions: many where they are short, or luck would show.
_MAX_GAMES, _MIN_GAMES = 20, 3
_WORK_PER_POINT = (
    4_000  # questions: about three seconds for all attacks on a fast core, whatever n is
)
_WORK_PER_GAME = 60  # questions that a game costs as much as before its first
_REPETITIONS = 3
_MAX_ABSTENTION = 0.2  # a class that is more common is of little use to the abstaining attack


@dataclass(frozen=True, kw_only=True)
class Target:
    """A board as an attacker meets it. All of it is public.

    Parameters
    ----------
    worth
        How many independent examples the holdout is worth.
    questions, per_team
        How many questions there are, and how many of them one team may ask.
    ladders
        How many ladders there can be.
    mechanism
        What answers, as it describes itself.
    calibrated
        Whether its settings were made for this size, so that a smaller game needs others.
    """

    worth: int
    questions: int
    per_team: int
    ladders: int
    mechanism: Mapping[str, Any]
    calibrated: bool

    @classmethod
    def of(cls, board: Board) -> Target:
        """Return what the first entry of a board's ledger and its rules of now say."""
        opening, rules = board.book.opening, board.rules
        return cls(
            worth=opening["rules"]["worth"],
            questions=rules.questions,
            per_team=rules.per_team,
            ladders=rules.ladders,
            mechanism=opening["mechanism"],
            calibrated=rules.mechanism is None,
        )

    def describe(self) -> dict[str, Any]:
        """Return everything, JSON-able."""
        return asdict(self)

    @property
    def n(self) -> int:
        """How many examples are played with."""
        return min(self.worth, MAX_EXAMPLES)

    @property
    def most(self) -> int:
        """How many questions the longest game has."""
        return min(self.questions, MAX_QUESTIONS)

    @property
    def sizes(self) -> list[int]:
        """The questions of each point of the curve: evenly spread in ratio, and a team's own.

        >>> ladder = {"mechanism": "ladder", "step": 0.01, "grid": None}
        >>> kind = {"ladders": 1, "mechanism": ladder, "calibrated": False}
        >>> Target(worth=300, questions=100, per_team=50, **kind).sizes
        [10, 15, 22, 32, 46, 50, 68, 100]
        >>> Target(worth=300, questions=3, per_team=3, **kind).sizes
        [1, 2, 3]
        """
        largest = self.most
        smallest = max(largest // _MAX_SPAN, min(_MIN_QUESTIONS, largest // 6), 1)
        steps = [
            smallest * (largest / smallest) ** (step / (_CURVE_POINTS - 1))
            for step in range(_CURVE_POINTS)
        ]
        return sorted({round(step) for step in steps} | {min(self.per_team, largest)})

    def played(self) -> Mechanism:
        """Return what answers in the games; refuse one that is not known by its name."""
        declared = mechanism(self.mechanism)
        if self.calibrated and (self.n, self.most) != (self.worth, self.questions):
            return ShakyLadder.calibrated(n=self.n, questions=self.most, teams=self.ladders)
        return declared

    def games(self, questions: int) -> int:
        """Return how often each attack is played with so many questions."""
        return min(max(_WORK_PER_POINT // (questions + _WORK_PER_GAME), _MIN_GAMES), _MAX_GAMES)

    def work(self, questions: int) -> int:
        """Return how much work one attack on one mechanism is, compared with others."""
        return self.games(questions) * (questions + _WORK_PER_GAME)


@dataclass(frozen=True)
class AttackResult:
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


def play_attacks(
    promise: BoardPromise, *, calibrated: bool, abstention: float | None = None, seed: int = 0
) -> list[AttackResult]:
    """Play the majority attack, and the strongest ones there are, against a board's mechanism.

    ``abstention`` is how often the prediction that is wrong most surely is right, None where there
    is no such prediction. Where the board is larger than what is played, settings that were
    calibrated for it are taken for the smaller size.
    """
    # A server that plays no attack loads neither the analysts nor the arena.
    from ladderboard.analysts import AbstainingAttack, MajorityAttack, ShiftedMajority, SybilAttack  # noqa: PLC0415
    from ladderboard.arena import run  # noqa: PLC0415

    n = min(promise.worth, MAX_EXAMPLES)
    questions = min(promise.questions, MAX_QUESTIONS)
    mechanism = promise.mechanism
    if calibrated and (n, questions) != (promise.worth, promise.questions):
        mechanism = ShakyLadder.calibrated(n=n, questions=questions, teams=promise.ladders)
    accounts = min(promise.ladders, questions)
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


def play_attacks_on_target(
    target: Target, *, seed: int = 0, told: Callable[[float], None] | None = None
) -> list[dict[str, Any]]:
    """Play every attack at every size against a board and against exact scores.

    Returns for each number of questions how many games were played and, by the attack's name, how
    much better its last model looked than it was: the mean against the ``board``, with its standard
    ``error``, and against ``exact`` scores. ``told`` is called with the part that is done, again
    and again. The same seed gives the same numbers.
    """
    from ladderboard.arena import run  # noqa: PLC0415 - see attacks_on

    answering = {"board": target.played(), "exact": Exact()}
    total = sum(
        target.work(size) * len(_make_attacks(target, size)) * len(answering)
        for size in target.sizes
    )
    done, points = 0, []
    for questions in target.sizes:
        games, gains = target.games(questions), {}
        for attack in _make_attacks(target, questions):
            biases = {}
            for name, each in answering.items():
                rows = run(
                    {name: each},
                    {attack.name: attack},
                    n=target.n,
                    k=questions,
                    repetitions=games,
                    seed=seed,
                )
                biases[name] = [row.bias for row in rows]
                done += target.work(questions)
                if told is not None:
                    told(done / total)
            means = {name: sum(values) / games for name, values in biases.items()}
            gains[attack.name] = {**means, "error": _standard_error(biases["board"])}
        points.append({"questions": questions, "games": games, "attacks": gains})
    return points


def _make_attacks(target: Target, questions: int) -> list[Analyst]:
    """Return who attacks with so many questions; with several ladders, also with many accounts."""
    from ladderboard.analysts import MajorityAttack, ShiftedMajority, SybilAttack  # noqa: PLC0415

    attacks: list[Analyst] = [MajorityAttack(), ShiftedMajority()]
    if target.ladders > 1:
        attacks.append(SybilAttack(accounts=min(target.ladders, questions)))
    return attacks


def _standard_error(values: list[float]) -> float:
    """Return the standard error of a mean."""
    mean = sum(values) / len(values)
    return math.sqrt(sum((value - mean) ** 2 for value in values) / (len(values) - 1) / len(values))
