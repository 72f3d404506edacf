"""The sentences of replies. They are true under noise, and tell no more than the release does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ladderboard.holdout._meter import unseen

if TYPE_CHECKING:
    from ladderboard.holdout._meter import Meter
    from ladderboard.mechanisms import Release

__all__ = ["left", "sentence"]


def sentence(release: Release, meter: Meter, *, again: bool, remaining: int | None = None) -> str:
    """Return a reply's one sentence; in the past tense if it repeats an earlier answer.

    ``remaining`` is how many questions are left where there is a tighter limit than the meter's.
    """
    if again:
        said = [
            f"The same predictions were asked before, as question {release.question}",
            f"then {_lower('; '.join(_told(release, 'became', 'stayed', 'was')))}",
            "no question is spent now",
        ]
    else:
        said = _told(release, "is now", "stays", "is")
        gain = unseen(meter.mechanism)
        if not release.improved and gain is not None:
            said.append(f"gains below about {gain:.2g} may go unseen")
    rest = meter.remaining if remaining is None else remaining
    return f"{'; '.join([*said, left(rest)])}."


def _told(release: Release, moved: str, stayed: str, be: str) -> list[str]:
    if release.value is None:
        if release.improved:
            return ["The best improved", "its value is told at the close"]
        return [f"The best {stayed} what it was"]
    best = f"The best {moved if release.improved else stayed} {release.value:.6g}"
    if release.score is None or release.score == release.value:
        return [best]
    return [f"This model {be} said to be at {release.score:.6g}", _lower(best)]


def _lower(said: str) -> str:
    return f"{said[0].lower()}{said[1:]}"


def left(remaining: int) -> str:
    """Return how many questions are left, in words."""
    return f"{remaining or 'no'} question{'' if remaining == 1 else 's'} left"
