"""Amendments: what may change after the start, what may not, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ladderboard.board._rules import Rules
    from ladderboard.board._rules_keys import Noted

__all__ = ["check_amendment", "merged"]

# Why a key is fixed from the first question on.
_FIXED = {
    "slug": "it is the board's address, and tokens belong to it",
    "loss": "releases under two losses cannot be compared, and the commitment names this one",
    "mechanism": "what was promised holds for the mechanism that the commitment names",
    "beta": "certificates that were told have this probability of being false",
    "ladder": "releases of one ladder say nothing about those of another",
    "baselines": "they were asked at the start, and counted",
}
_FIXED_DISPLAY = ("direction", "as")
# What they are when nothing is said may be another thing than what people were promised.
_MUST_STAY = ("display", "visibility", "registration")
_MAPPINGS = ("display", "finals", "files", "window")


def merged(before: Rules, changes: Mapping[str, Any], noted: Noted) -> dict[str, Any]:
    """Return the description with changes put in; what may not be changed is noted."""
    after = before.describe()
    for key, value in changes.items():
        if key in _FIXED:
            noted.add("fixed", f"{key} cannot change: {_FIXED[key]}.", key=key)
        elif value is None and key in _MUST_STAY:
            noted.add("bad_value", f"{key} cannot be left out; say what it shall be.", key=key)
        else:
            after[key] = _put(key, after.get(key), value)
    display = changes.get("display")
    for key in _FIXED_DISPLAY:
        if isinstance(display, dict) and key in display:
            said = "people have seen numbers the other way round"
            noted.add("fixed", f"display.{key} cannot change: {said}.", key=f"display.{key}")
    if "phases" not in changes:
        # One start and one end are those of the first phase and of the last.
        for key, at in (("start", 0), ("end", -1)):
            if key in changes:
                after["phases"][at] = {**after["phases"][at], key: after.pop(key)}
    return after


def _put(key: str, before: Any, value: Any) -> Any:
    """Return a key's value after a change; of a mapping only what was typed changes."""
    if key not in _MAPPINGS or not isinstance(value, dict):
        return value
    kept = dict(before or {})
    if key == "window" and any(each != "questions" for each in value):
        kept.pop("seconds", None)  # it may be typed in another unit
    return {**kept, **value}


def check_amendment(before: Rules, after: Rules, used: int | None, noted: Noted) -> None:
    """Note a budget below what was used, and fewer teams than were promised a share."""
    least = before.questions if used is None else used
    if after.questions < least:
        rule = f"at least {least}, " + ("what it was" if used is None else "what was used")
        noted.add("bad_value", f"questions must be {rule}; got {after.questions}.", key="questions")
    if after.teams < before.teams:
        noted.add(
            "bad_value",
            f"teams must be at least {before.teams}, what it was: each was promised a share; "
            f"got {after.teams}.",
            key="teams",
        )
    if after.teams > before.teams and after.ladder == "team":
        noted.add(
            "bad_value",
            f"teams must stay {before.teams}: each has a ladder, and so many are what this board's "
            f"mechanism was calibrated for; got {after.teams}.",
            key="teams",
        )
