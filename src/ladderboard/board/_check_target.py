"""A target: a board as an attacker meets it, and the games that are played against it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from ladderboard.mechanisms import ShakyLadder, mechanism

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ladderboard.board._board import Board
    from ladderboard.mechanisms import Mechanism

__all__ = ["MOST_EXAMPLES", "MOST_QUESTIONS", "Target"]

MOST_EXAMPLES, MOST_QUESTIONS = 10_000, 2_000
"""Seconds, not minutes: a larger board is tried at this size."""

_POINTS = 7
_SPAN = 64  # times as many questions at the end of a curve as at its beginning, at most
_FEWEST = 10  # questions from which a curve begins, where there are plenty
# Games of one attack at one number of questions: many where they are short, or luck would show.
_GAMES, _FEW_GAMES = 20, 3
_WORK = 4_000  # questions: about three seconds for all attacks on a fast core, whatever n is
_ANYWAY = 60  # questions that a game costs as much as before its first


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
        return min(self.worth, MOST_EXAMPLES)

    @property
    def most(self) -> int:
        """How many questions the longest game has."""
        return min(self.questions, MOST_QUESTIONS)

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
        most = self.most
        least = max(most // _SPAN, min(_FEWEST, most // 6), 1)
        steps = [least * (most / least) ** (at / (_POINTS - 1)) for at in range(_POINTS)]
        return sorted({round(each) for each in steps} | {min(self.per_team, most)})

    def played(self) -> Mechanism:
        """Return what answers in the games; refuse one that is not known by its name."""
        made = mechanism(self.mechanism)
        if self.calibrated and (self.n, self.most) != (self.worth, self.questions):
            return ShakyLadder.calibrated(n=self.n, questions=self.most, teams=self.ladders)
        return made

    def games(self, questions: int) -> int:
        """Return how often each attack is played with so many questions."""
        return min(max(_WORK // (questions + _ANYWAY), _FEW_GAMES), _GAMES)

    def work(self, questions: int) -> int:
        """Return how much work one attack on one mechanism is, compared with others."""
        return self.games(questions) * (questions + _ANYWAY)
