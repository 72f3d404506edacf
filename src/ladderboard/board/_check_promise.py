"""What a board will promise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ladderboard._formatting import format_confidence, round_up
from ladderboard.bounds import NONE, TYPICAL, certificate
from ladderboard.errors import InvalidSetting
from ladderboard.holdout import unseen
from ladderboard.mechanisms import Calibrated, ShakyLadder

if TYPE_CHECKING:
    from ladderboard.board._folder import BoardFolder
    from ladderboard.board._rules import Display, Rules
    from ladderboard.bounds import Certificate
    from ladderboard.mechanisms import Mechanism

__all__ = ["Promise", "promise_of", "says_something"]

_EACH = 3  # so often each of many ladders is likely to be seen to move; one alone: TYPICAL
_KNOWN = 0.5  # every risk is within 0.5 of 0.5


@dataclass(frozen=True)
class Promise:
    """What can be promised at the end of the budget.

    ``n`` counts independent rows or groups, ``worth`` what they are worth under weights;
    ``changes`` is how many are supposed for ``likely``; ``worst`` supposes nothing, and ``likely``
    is the same where so many cannot be. ``unseen`` is the gain below which a better model may not
    be told of, None where any is. ``baseline`` is the risk of the best constant prediction or
    file that the board has; it is the organiser's secret.
    """

    n: int
    worth: int
    questions: int
    ladders: int
    mechanism: Mechanism
    changes: int | None
    likely: Certificate
    worst: Certificate
    unseen: float | None
    display: Display
    baseline: float | None

    @property
    def hollow(self) -> bool:
        """Whether it says no more than is known without any data."""
        return self.none or _error(self.likely) >= _KNOWN

    @property
    def none(self) -> bool:
        """Whether nothing can be promised for this mechanism, however many labels there are."""
        return self.likely.theorem == NONE

    @property
    def sentences(self) -> list[str]:
        """The promise in words."""
        if self.none:
            return [f"Nothing can be promised. {self.likely.assumptions[0]}"]
        if self.likely.vacuous:
            size = f"{self.worth:,} examples and {self.questions:,} questions"
            told = f"{self.mechanism.name} tells too much for {size}"
            return [f"Nothing is promised that was not known beforehand: {told}."]
        sure = format_confidence(self.likely.beta)
        ends = (
            f"With probability {sure} the true {self._name} of the best model lies "
            f"{self._reach(self.worst)} what is shown at the end of the budget, whatever happens"
        )
        if self.changes is not None:
            ends += f"; {self._reach(self.likely)} it, if the board moved {self.changes:,} times"
        gain = self.display.gain_text(self.unseen, self.baseline)
        said = f"A gain below about {gain} in {self.display.name} may go unseen."
        measured = self._measured
        return [
            f"{ends}.",
            *([] if measured is None else [measured]),
            *([] if gain is None else [said]),
        ]

    @property
    def _name(self) -> str:
        """What an interval is about: the metric, or of a root the loss, whose unit is fixed."""
        return "loss" if self.display.shown_as == "root" else self.display.name

    @property
    def _measured(self) -> str | None:
        """Say how far the answers were from the truth in games, where the settings come from them.

        The games are about answers that are right or wrong.
        """
        origin = getattr(self.mechanism, "origin", None)
        if not isinstance(origin, Calibrated) or origin.beyond or self.display.unit != 1.0:
            return None
        return (
            "Measured, not promised: "
            f"{round_up(origin.error, 3)} away from the truth on average, over "
            "games against attackers. `ladderboard plan` has the same figures for other sizes."
        )

    def _reach(self, bound: Certificate) -> str:
        """Say how far below and above what is shown the truth lies, in the metric's own unit."""
        below, above = max(-bound.low, 0), max(bound.high, 0)
        if self.display.shown_as == "complement":
            below, above = above, below
        unit = self.display.unit if self.display.shown_as == "scaled" else 1.0
        return f"between {round_up(unit * below, 2)} below and {round_up(unit * above, 2)} above"

    def describe(self) -> dict[str, Any]:
        """Return everything, JSON-able."""
        return {
            "n": self.n,
            "worth": self.worth,
            "questions": self.questions,
            "ladders": self.ladders,
            "mechanism": self.mechanism.describe(),
            "changes": self.changes,
            "likely": self.likely.describe(),
            "worst": self.worst.describe(),
            "unseen": self.unseen,
            "hollow": self.hollow,
        }


def promise_of(folder: BoardFolder, baseline: float | None = None) -> Promise:
    """Return what a board can promise before its first question."""
    rules, worth = folder.rules, folder.worth
    mechanism = rules.mechanism_for(worth)
    asked = rules.questions, rules.ladders, rules.beta
    worst, likely, changes = _at_end(mechanism, worth, *asked, zero_one=folder.zero_one)
    n = folder.part("public").grouping.n
    return Promise(
        n=n,
        worth=worth,
        questions=rules.questions,
        ladders=rules.ladders,
        mechanism=mechanism,
        changes=changes,
        likely=likely,
        worst=worst,
        unseen=unseen(mechanism),
        display=rules.display,
        baseline=baseline,
    )


def says_something(rules: Rules, n: int, questions: int, teams: int, *, zero_one: bool) -> bool:
    """Tell whether so many examples, questions and teams would promise more than is known."""
    ladders = 1 if rules.ladder == "board" else teams + rules.asked_baselines
    mechanism = rules.mechanism
    if mechanism is None:
        mechanism = ShakyLadder.calibrated(n=n, questions=questions, teams=ladders)
    _, likely, _ = _at_end(mechanism, n, questions, ladders, rules.beta, zero_one=zero_one)
    return likely.theorem != NONE and _error(likely) < _KNOWN


def _at_end(
    mechanism: Mechanism, n: int, questions: int, ladders: int, beta: float, *, zero_one: bool
) -> tuple[Certificate, Certificate, int | None]:
    """Return what holds at the end at worst, what likely, and for how many changes."""
    each = TYPICAL if ladders == 1 else _EACH * ladders
    changes, opened = min(each, questions), min(ladders, questions)

    counted: Any = {"ladders": None, "opened": opened, "amendable": True, "zero_one": zero_one}

    def at_end(changes: int | None) -> Certificate:
        return certificate(n, questions, changes, mechanism, beta, **counted)

    worst = at_end(None)
    try:
        return worst, at_end(changes), changes
    except InvalidSetting:  # a coarse ladder cannot change so often: suppose the worst
        return worst, worst, None


def _error(bound: Certificate) -> float:
    return _KNOWN if bound.error is None else bound.error
