"""Attacks on a board's mechanism, played on labels that are coin flips."""

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
"""A larger board is played at this size, which takes seconds."""

_CURVE_POINTS = 7
_MAX_SPAN = 64  # largest ratio between the last and the first size of a curve
_MIN_QUESTIONS = 10  # the first size of a curve, if there are enough questions
# Games of one attack at one size: many if they are short, because single games vary.
_MAX_GAMES, _MIN_GAMES = 20, 3
_WORK_PER_POINT = (
    4_000  # questions: about three seconds for all attacks on a fast core, whatever n is
)
_WORK_PER_GAME = 60  # questions that a game costs as much as before its first
_REPETITIONS = 3
_MAX_ABSTENTION = 0.2  # the abstaining attack needs a class at least as rare


@dataclass(frozen=True, kw_only=True)
class Target:
    """The public settings of a board that attacks are played against.

    Parameters
    ----------
    effective_n
        The effective number of independent examples in the holdout.
    questions, per_team
        The budget of the board, and of one team.
    ladders
        The largest number of ladders.
    mechanism
        The mechanism's description.
    calibrated
        Whether its settings were calibrated for this size; smaller games are calibrated anew.
    """

    effective_n: int
    questions: int
    per_team: int
    ladders: int
    mechanism: Mapping[str, Any]
    calibrated: bool

    @classmethod
    def from_board(cls, board: Board) -> Target:
        """Return the target for a board, from its first ledger entry and current rules."""
        opening, rules = board.book.opening, board.rules
        return cls(
            effective_n=opening["rules"]["worth"],
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
        """The number of examples in the games."""
        return min(self.effective_n, MAX_EXAMPLES)

    @property
    def max_questions(self) -> int:
        """The number of questions in the longest game."""
        return min(self.questions, MAX_QUESTIONS)

    @property
    def sizes(self) -> list[int]:
        """The number of questions at each point of the curve: geometric steps and ``per_team``.

        >>> ladder = {"mechanism": "ladder", "step": 0.01, "grid": None}
        >>> kind = {"ladders": 1, "mechanism": ladder, "calibrated": False}
        >>> Target(effective_n=300, questions=100, per_team=50, **kind).sizes
        [10, 15, 22, 32, 46, 50, 68, 100]
        >>> Target(effective_n=300, questions=3, per_team=3, **kind).sizes
        [1, 2, 3]
        """
        largest = self.max_questions
        smallest = max(largest // _MAX_SPAN, min(_MIN_QUESTIONS, largest // 6), 1)
        steps = [
            smallest * (largest / smallest) ** (step / (_CURVE_POINTS - 1))
            for step in range(_CURVE_POINTS)
        ]
        return sorted({round(step) for step in steps} | {min(self.per_team, largest)})

    def played(self) -> Mechanism:
        """Return the mechanism of the games; refuse an unknown one."""
        declared = mechanism(self.mechanism)
        if self.calibrated and (self.n, self.max_questions) != (self.effective_n, self.questions):
            return ShakyLadder.calibrated(
                n=self.n, questions=self.max_questions, teams=self.ladders
            )
        return declared

    def games(self, questions: int) -> int:
        """Return the number of games per attack for a number of questions."""
        return min(max(_WORK_PER_POINT // (questions + _WORK_PER_GAME), _MIN_GAMES), _MAX_GAMES)

    def work(self, questions: int) -> int:
        """Return the cost of one attack on one mechanism, for a progress bar."""
        return self.games(questions) * (questions + _WORK_PER_GAME)


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
    promise: BoardPromise, *, calibrated: bool, abstention: float | None = None, seed: int = 0
) -> list[AttackResult]:
    """Play the majority attack and the strongest other ones against a board's mechanism.

    ``abstention`` is how often the prediction that is most surely wrong is right; None if there is
    no such prediction. If the games are smaller than the board, calibrated settings are calibrated
    for the games.
    """
    # Imported here so that a server that plays no attack does not load them.
    from ladderboard.analysts import AbstainingAttack, MajorityAttack, ShiftedMajority, SybilAttack  # noqa: PLC0415
    from ladderboard.arena import run  # noqa: PLC0415

    n = min(promise.effective_n, MAX_EXAMPLES)
    questions = min(promise.questions, MAX_QUESTIONS)
    mechanism = promise.mechanism
    if calibrated and (n, questions) != (promise.effective_n, promise.questions):
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
    target: Target, *, seed: int = 0, on_progress: Callable[[float], None] | None = None
) -> list[dict[str, Any]]:
    """Play every attack at every size against a board's mechanism and against exact scores.

    Returns for each number of questions how many games were played and, by the attack's name, how
    much better its last model looked than it was: the mean against the ``board``, with its standard
    ``error``, and against ``exact`` scores. ``on_progress`` is called with the fraction that is
    done. The same seed gives the same numbers.
    """
    from ladderboard.arena import run  # noqa: PLC0415 - see attacks_on

    answering = {"board": target.played(), "exact": Exact()}
    total = sum(
        target.work(size) * len(_make_attacks(target, size)) * len(answering)
        for size in target.sizes
    )
    work_done, points = 0, []
    for questions in target.sizes:
        games, gains = target.games(questions), {}
        for attack in _make_attacks(target, questions):
            biases = {}
            for name, opponent in answering.items():
                rows = run(
                    {name: opponent},
                    {attack.name: attack},
                    n=target.n,
                    k=questions,
                    repetitions=games,
                    seed=seed,
                )
                biases[name] = [row.bias for row in rows]
                work_done += target.work(questions)
                if on_progress is not None:
                    on_progress(work_done / total)
            means = {name: sum(values) / games for name, values in biases.items()}
            gains[attack.name] = {**means, "error": _standard_error(biases["board"])}
        points.append({"questions": questions, "games": games, "attacks": gains})
    return points


def _make_attacks(target: Target, questions: int) -> list[Analyst]:
    """Return the attacks for a number of questions; several ladders add the Sybil attack."""
    from ladderboard.analysts import MajorityAttack, ShiftedMajority, SybilAttack  # noqa: PLC0415

    attacks: list[Analyst] = [MajorityAttack(), ShiftedMajority()]
    if target.ladders > 1:
        attacks.append(SybilAttack(accounts=min(target.ladders, questions)))
    return attacks


def _standard_error(values: list[float]) -> float:
    """Return the standard error of a mean."""
    mean = sum(values) / len(values)
    return math.sqrt(sum((value - mean) ** 2 for value in values) / (len(values) - 1) / len(values))
