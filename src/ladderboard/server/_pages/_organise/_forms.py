"""The forms of amendments: what stands in their fields, and what somebody has changed there."""

from __future__ import annotations

import hashlib
import json
import re
from typing import TYPE_CHECKING, Any

from ladderboard.errors import InvalidSetting
from ladderboard.server._problems import Refused

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

UNITS = {"days": 86_400, "hours": 3600, "minutes": 60, "seconds": 1}
"""What the length of a window may be said in, and seconds of each."""
_ROWS = 20  # phases in a form
_GONE = (
    "These rules were amended since this page was made. What stands now is beside each field that "
    "differs: look at it, and send the form again if you still want yours."
)
_PARTS = {
    "display": ("name", "digits"),
    "finals": ("selections",),
    "files": ("bytes", "rows", "seconds", "quota", "team_quota"),
}
GROUPS: dict[str, tuple[tuple[str, ...], Callable[[Mapping[str, str], set[str]], dict[str, Any]]]]


def filled(rules: Mapping[str, Any]) -> dict[str, str]:
    """Return what the fields of all forms hold, from rules as they describe themselves.

    >>> filled({"phases": [], "window": {"questions": 5, "seconds": 7200}})["window_length"]
    '2'
    """
    fields = {
        name: "" if rules.get(name) is None else str(rules[name])
        for name in ("title", "description", "questions", "teams", "per_team", "registration")
    }
    for part, names in _PARTS.items():
        held = rules.get(part) or {}
        fields |= {f"{part}_{name}": str(held.get(name, "")) for name in names}
    window = rules.get("window")
    unit = "days" if window is None else _unit(window["seconds"])
    length = "" if window is None else str(window["seconds"] // UNITS[unit])
    questions = "" if window is None else str(window["questions"])
    fields |= {"window_questions": questions, "window_length": length, "window_unit": unit}
    for at, phase in enumerate(rules["phases"]):
        fields |= {f"phase_{at}_{name}": phase[name] or "" for name in ("name", "start", "end")}
    return fields


def _unit(seconds: int) -> str:
    """Return the largest unit in which a length is a whole number."""
    return next(name for name, each in UNITS.items() if seconds % each == 0)


def digest_of(group: str, fields: Mapping[str, str]) -> str:
    """Return what tells whether a form's fields were others when it was made."""
    held = sorted((name, value) for name, value in fields.items() if _is_in(group, name))
    return hashlib.sha256(json.dumps(held).encode()).hexdigest()[:16]


def _is_in(group: str, name: str) -> bool:
    return name.startswith("phase_") if group == "times" else name in GROUPS[group][0]


def changes_in(form: Mapping[str, str], rules: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys of rules that differ in a form from what they are, with their new values."""
    group, now = form.get("group", ""), filled(rules)
    if group not in GROUPS:
        raise Refused(400, "form", "There is no such form here.")
    told = {name: _tidy(value) for name, value in form.items() if _is_in(group, name)}
    differ = {name for name, value in told.items() if value != _tidy(now.get(name, ""))}
    if not differ:
        return {}
    if form.get("seen") != digest_of(group, now):
        raise InvalidSetting(_GONE)
    return GROUPS[group][1]({**now, **told}, differ)


def _tidy(text: str) -> str:
    return text.replace("\r\n", "\n").strip()


def _whole(name: str, text: str) -> int | None:
    """Return a number that was typed; nothing for nothing.

    >>> _whole("questions", "1,000")
    1000
    """
    plain = re.sub("[ ,_]", "", text)
    if not plain:
        return None
    if not re.fullmatch("[0-9]{1,15}", plain):
        raise InvalidSetting(f"{name} must be a whole number, such as 1000.")
    return int(plain)


def _need(name: str, text: str) -> int:
    number = _whole(name, text)
    if number is None:
        raise InvalidSetting(f"{name} must be a whole number, such as 1000; it cannot be empty.")
    return number


def _limits(fields: Mapping[str, str], differ: set[str]) -> dict[str, Any]:
    changes: dict[str, Any] = {
        name: _need(name, fields[name]) for name in ("questions", "teams") if name in differ
    }
    if "per_team" in differ:
        changes["per_team"] = _whole("per_team", fields["per_team"])
    if any(name.startswith("window_") for name in differ):
        changes["window"] = _window(fields)
    return changes


def _window(fields: Mapping[str, str]) -> dict[str, int] | None:
    questions = _whole("window", fields["window_questions"])
    length = _whole("window", fields["window_length"])
    if questions is None and length is None:
        return None
    if questions is None or length is None or fields["window_unit"] not in UNITS:
        raise InvalidSetting("window needs a number of questions and a length, or neither.")
    return {"questions": questions, fields["window_unit"]: length}


def _texts(fields: Mapping[str, str], differ: set[str]) -> dict[str, Any]:
    changes: dict[str, Any] = {
        name: fields[name] or None for name in ("title", "description") if name in differ
    }
    display: dict[str, Any] = {}
    if "display_name" in differ:
        display["name"] = fields["display_name"]
    if "display_digits" in differ:
        display["digits"] = _need("display.digits", fields["display_digits"])
    return {**changes, "display": display} if display else changes


def _people(fields: Mapping[str, str], differ: set[str]) -> dict[str, Any]:
    changes: dict[str, Any] = {}
    if "registration" in differ:
        changes["registration"] = fields["registration"]
    if "finals_selections" in differ:
        many = _whole("finals.selections", fields["finals_selections"])
        changes["finals"] = None if many is None else {"selections": many}
    return changes


def _files(fields: Mapping[str, str], differ: set[str]) -> dict[str, Any]:
    """Return limits of files; a size may be typed with a unit, as in ``board.yaml``."""
    sizes = {name.partition("_")[2]: fields[name] for name in differ}
    return {
        "files": {
            name: int(text) if re.fullmatch("[0-9]{1,16}", text) else text or None
            for name, text in sizes.items()
        }
    }


def _times(fields: Mapping[str, str], _: set[str]) -> dict[str, Any]:
    """Return all phases: those of which anything is left."""
    rows = []
    for at in range(_ROWS):
        row = {name: fields.get(f"phase_{at}_{name}", "") for name in ("name", "start", "end")}
        if any(row.values()):
            rows.append({name: value for name, value in row.items() if value})
    return {"phases": rows or None}


GROUPS = {
    "times": ((), _times),
    "limits": (
        ("questions", "teams", "per_team", "window_questions", "window_length", "window_unit"),
        _limits,
    ),
    "texts": (("title", "description", "display_name", "display_digits"), _texts),
    "people": (("registration", "finals_selections"), _people),
    "files": (tuple(f"files_{name}" for name in _PARTS["files"]), _files),
}
"""The forms: their fields (those of phases are as many as there are phases), and who reads them."""
