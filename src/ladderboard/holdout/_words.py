"""The sentences of replies. They are true under noise, and tell no more than the release does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from ladderboard.holdout._meter import unseen

if TYPE_CHECKING:
    from ladderboard.holdout._meter import Meter
    from ladderboard.mechanisms import Release

__all__ = ["UNDECLARED", "Losses", "Shown", "left", "sentence"]

UNDECLARED = (
    "A prediction that is not a class is accepted, and surely wrong. An attacker who uses that "
    "keeps about 1.5 times as much as one who knows half of the labels (the abstaining attack)."
)
"""What it costs that classes are not declared."""


class Shown(Protocol):
    """How values and gains are written."""

    def text(self, loss: float | None) -> str:
        """Write a loss."""

    def gain_text(self, gain: float | None, best: float | None) -> str | None:
        """Write a gain in loss over the best so far; None where there is none to speak of."""


class Losses:
    """Writes losses as they are."""

    def text(self, loss: float | None) -> str:
        """Write a loss."""
        return "-" if loss is None else f"{loss:.6g}"

    def gain_text(self, gain: float | None, best: float | None) -> str | None:
        """Write a gain."""
        return None if gain is None else f"{gain:.2g}"


def sentence(
    release: Release,
    meter: Meter,
    *,
    again: bool,
    remaining: int | None = None,
    shown: Shown | None = None,
) -> str:
    """Return a reply's one sentence; in the past tense if it repeats an earlier answer.

    ``remaining`` is how many questions are left where there is a tighter limit than the meter's;
    ``shown`` writes values and gains in the unit that people are shown, losses if it is None.
    """
    shown = Losses() if shown is None else shown
    if again:
        said = [
            f"The same predictions were asked before, as question {release.question}",
            f"then {_lower('; '.join(_told(release, shown, ('became', 'stayed', 'was'))))}",
            "no question is spent now",
        ]
    else:
        said = _told(release, shown, ("is now", "stays", "is"))
        gain = shown.gain_text(unseen(meter.mechanism), release.value)
        if not release.improved and gain is not None:
            said.append(f"gains below about {gain} may go unseen")
    rest = meter.remaining if remaining is None else remaining
    return f"{'; '.join([*said, left(rest)])}."


def _told(release: Release, shown: Shown, verbs: tuple[str, str, str]) -> list[str]:
    moved, stayed, be = verbs
    if release.value is None:
        if release.improved:
            return ["The best improved", "its value is told at the close"]
        return [f"The best {stayed} what it was"]
    best = f"The best {moved if release.improved else stayed} {shown.text(release.value)}"
    if release.score is None or release.score == release.value:
        return [best]
    return [f"This model {be} said to be at {shown.text(release.score)}", _lower(best)]


def _lower(said: str) -> str:
    return f"{said[0].lower()}{said[1:]}"


def left(remaining: int) -> str:
    """Return how many questions are left, in words."""
    return f"{remaining or 'no'} question{'' if remaining == 1 else 's'} left"
