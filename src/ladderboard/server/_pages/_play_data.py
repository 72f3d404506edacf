"""What the page Play shows: films of two attacks on three boards, computed once and kept here."""

import json
from collections.abc import Mapping
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

from ladderboard.holdout import unseen
from ladderboard.mechanisms import Mechanism, mechanism

__all__ = [
    "ATTACKS",
    "BOARDS",
    "CHOICES",
    "GAMES",
    "NOISES",
    "Board",
    "Choice",
    "Curve",
    "board_of",
]

_MADE = json.loads((Path(__file__).parent / "play.json").read_text())
_WHOLE = 10_000  # numbers there are ten thousandths
GAMES: int = _MADE["games"]
CHOICES: dict[str, tuple[int, ...]] = {key: tuple(_MADE[key]) for key in ("n", "questions")}
NOISES = {"none": "none", "half": "half", "calibrated": "as calibrated", "double": "double"}
BOARDS = {"exact": "Exact scores", "ladder": "Ladder", "shaky_ladder": "Shaky Ladder"}
ATTACKS = {"shifted_majority": "patient attack", "majority": "majority attack"}
_USUAL = (1_000, 1_000, "calibrated")


class Choice(NamedTuple):
    """Which of the films are shown."""

    n: int
    questions: int
    noise: str

    @classmethod
    def of(cls, typed: Mapping[str, str]) -> tuple["Choice", list[str]]:
        """Return what was chosen, and a sentence for everything that cannot be.

        >>> Choice.of({"n": "4000", "noise": "much"})[1]
        ["There is nothing for noise 'much'; this is as calibrated."]
        """
        found: dict[str, Any] = {}
        said = []
        for key, usual in zip(cls._fields, _USUAL, strict=True):
            known = {word: word for word in NOISES} if key == "noise" else _typed(CHOICES[key])
            found[key] = known.get(typed.get(key, str(usual)))
            if found[key] is None:
                found[key] = usual
                shown = NOISES[usual] if isinstance(usual, str) else f"{usual:,}"
                said.append(f"There is nothing for {key} {typed[key][:20]!r}; this is {shown}.")
        return cls(**found), said


def _typed(numbers: tuple[int, ...]) -> dict[str, Any]:
    return {str(each): each for each in numbers}


class Curve(NamedTuple):
    """An attack on a board, as accuracies.

    ``shown`` is what the board shows if the attack stops at its best moment so far, at each frame;
    ``worth`` what the best model is in truth, ``fits`` how the last vote does on the hidden labels.
    """

    attack: str
    shown: tuple[float, ...]
    fits: float
    worth: float

    @property
    def name(self) -> str:
        """How people call the attack."""
        return ATTACKS[self.attack]

    @property
    def gap(self) -> float:
        """How much better the model looks in the end than it is."""
        return self.shown[-1] - self.worth


class Board(NamedTuple):
    """One board, and both attacks on it."""

    key: str
    mechanism: Mechanism
    patient: Curve
    majority: Curve

    @property
    def name(self) -> str:
        """How people call the board."""
        return BOARDS[self.key]

    @property
    def curves(self) -> tuple[Curve, Curve]:
        """Both attacks."""
        return self.patient, self.majority

    @property
    def unseen(self) -> float:
        """The honest gain below which a better model may not be told; 0 if each is."""
        return unseen(self.mechanism) or 0.0


def board_of(choice: Choice, key: str) -> Board:
    """Return a board as chosen; only the Shaky Ladder has noise to choose."""
    noise = choice.noise if key == "shaky_ladder" else None
    return _boards()[choice.n, choice.questions, key, noise]


@cache
def _boards() -> dict[tuple[int, int, str, str | None], Board]:
    curves: dict[Any, dict[str, Curve]] = {}
    mechanisms: dict[Any, Mechanism] = {}
    for each in _MADE["scenes"]:
        key = each["n"], each["questions"], each["board"], each["noise"]
        shown = tuple(value / _WHOLE for value in accumulate(each["shown"], max))
        curves.setdefault(key, {})[each["attack"]] = Curve(
            each["attack"], shown, each["fits"] / _WHOLE, each["worth"] / _WHOLE
        )
        mechanisms[key] = mechanism(each["mechanism"])
    return {
        key: Board(key[2], mechanisms[key], found["shifted_majority"], found["majority"])
        for key, found in curves.items()
    }
