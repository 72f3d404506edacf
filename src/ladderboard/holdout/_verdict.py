"""A gate's verdict on a candidate, and the public state of a gate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from ladderboard._formatting import format_confidence, format_count

if TYPE_CHECKING:
    from ladderboard.bounds import Outcome, TestForm

OUTCOMES: tuple[Outcome, ...] = ("better", "not_worse", "cannot_tell", "worse")


@dataclass(frozen=True)
class Verdict:
    """A gate's answer about a candidate; prints as a few sentences.

    Parameters
    ----------
    outcome
        ``"better"``, ``"not_worse"`` (by more than the margin), ``"cannot_tell"``, or ``"worse"``
        if the gate was created with it.
    look
        The number of the look, from 1; 0 if none was used, because the predictions are the
        incumbent's own.
    remaining
        How many looks are left.
    differing
        On how many examples the two models' predictions differ; None for scores, where that number
        is data.
    needed
        The wins minus losses that "better" needed at this look, with zero-one loss. None if no
        number would have been enough, or with another loss.
    needed_not_worse
        The wins minus losses that "not worse" needed; it may be negative.
    margin
        The margin of "not worse".
    incumbent
        The number of the incumbent, from 1.
    nats
        The price of the look, which rises with the looks and verdicts before it.
    beta
        The probability with which any verdict of the gate may be false.
    again
        Whether the same look was taken before, so that this one is free.
    """

    outcome: Outcome
    look: int
    remaining: int
    differing: int | None = None
    needed: int | None = None
    needed_not_worse: int | None = None
    margin: float = 0.0
    incumbent: int = 1
    nats: float = 0.0
    beta: float = 0.05
    again: bool = False

    @property
    def improved(self) -> bool:
        """The same as ``better``, as for the answers of a guard."""
        return self.better

    @property
    def question(self) -> int:
        """The same as ``look``, as for the answers of a guard."""
        return self.look

    @property
    def better(self) -> bool:
        """Whether the candidate is proven better than the incumbent."""
        return self.outcome == "better"

    @property
    def not_worse(self) -> bool:
        """Whether the candidate is proven not worse by more than the margin."""
        return self.outcome in {"better", "not_worse"}

    @property
    def reason(self) -> str:
        """The verdict as sentences."""
        sentences = [f"Same as look {self.look}; not counted."] if self.again else []
        sentences.append(self._describe_outcome())
        if self.outcome == "cannot_tell":
            sentences += self._describe_evidence()
            if not self.margin:
                sentences.append('The margin is 0, so "not worse" means "better".')
        return " ".join([*sentences, f"{format_looks(self.remaining)} left."])

    def _describe_outcome(self) -> str:
        if not self.look:
            return (
                "The predictions are the incumbent's own, so they are not worse. No look was used."
            )
        if self.outcome == "better":
            return "Better than the incumbent."
        if self.outcome == "worse":
            return "Worse than the incumbent."
        if self.outcome == "not_worse":
            return f"Not worse than the incumbent, within the margin of {self.margin:g}."
        return "Cannot tell."

    def _describe_evidence(self) -> list[str]:
        if self.differing is None:
            return []
        if not self.differing:
            return ["The two predict the same on every example."]
        differ = f"The two differ on {format_count(self.differing, 'example')}."
        if self.needed is None:
            return [differ]
        better = f"needed {_format_net_wins(self.needed)} among them."
        if not self.margin or self.needed_not_worse is None:
            return [differ, f'"Better" {better}']
        not_worse = _format_net_wins(self.needed_not_worse)
        return [differ, f'"Not worse" needed {not_worse}; "better" {better}']

    def __bool__(self) -> bool:
        """A verdict has several outcomes, so ``assert gate.check(...)`` is refused."""
        raise TypeError(
            f"A verdict is neither true nor false; this one is {self.outcome!r}. "
            "Use verdict.better or verdict.not_worse."
        )

    def __str__(self) -> str:
        return self.reason

    def describe(self) -> dict[str, Any]:
        """Return all fields as JSON-able values."""
        return {**vars(self), "reason": self.reason}


def _format_net_wins(needed: int) -> str:
    """Return how many wins less losses a verdict needs, as text.

    >>> _format_net_wins(3), _format_net_wins(0), _format_net_wins(-2)
    ('3 more wins than losses', 'as many wins as losses', 'at most 2 more losses than wins')
    """
    if needed > 0:
        return f"{needed} more wins than losses"
    return f"at most {-needed} more losses than wins" if needed else "as many wins as losses"


def format_looks(count: int) -> str:
    """Return a number of looks as text.

    >>> format_looks(1), format_looks(0)
    ('1 look', 'No looks')
    """
    return format_count(count, "look") if count else "No looks"


class LookRecord(NamedTuple):
    """One look of the history."""

    look: int
    incumbent: int
    margin: float
    outcome: Outcome
    differing: int | None
    needed: int | None
    nats: float
    time: int


@dataclass(frozen=True)
class GateStatus:
    """All public information about a gate."""

    n: int
    loss: dict[str, Any]
    looks: int
    remaining: int
    beta: float
    margin: float
    worse: bool
    test: TestForm
    incumbent: int
    next_nats: float | None
    """The price of the next look; None if there is none."""
    closed: bool
    history: tuple[LookRecord, ...]
    commitment: str
    head: str

    @property
    def confidence(self) -> str:
        """The confidence with which all verdicts are right, in percent."""
        return format_confidence(self.beta)

    def count(self, outcome: Outcome) -> int:
        """Return how often a verdict was given."""
        return sum(record.outcome == outcome for record in self.history)

    def describe(self) -> dict[str, Any]:
        """Return all fields as JSON-able values."""
        return {**vars(self), "history": [record._asdict() for record in self.history]}
