"""The organiser's forms: what stands in their fields, and the verb of the board that each is."""

from __future__ import annotations

import hashlib
import json
import re
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from ladderboard.board import Role, check_permission
from ladderboard.errors import InvalidSetting
from ladderboard.server._problems import RequestRefused
from ladderboard.server._sandbox import sandbox

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ladderboard.board import Board, Caller

    Form = Mapping[str, str]

Verb = TypeVar("Verb")

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
_DONE = {
    "paused": "The board is paused. It takes no questions until you resume it.",
    "resumed": "The board takes questions again.",
    "charged": "The board takes questions again; those that may have been lost are charged.",
    "public": "Everybody sees the standings, with names.",
    "anonymous": "Everybody sees the standings; teams go without names.",
    "frozen": "The board is frozen: others see it as it stands now, whatever comes.",
    "hidden": "The board is hidden: others see no standings.",
    "amended": "The rules are amended, and the ledger says what changed.",
    "unchanged": "Nothing differed, so nothing was changed.",
    "closed": "The board is closed for good.",
    "ended": "The token has ended, with every session that came by it.",
    "revoked": "The team's token has ended, with every session that came by it.",
    "disqualified": "The team is disqualified: it is no longer shown. Nothing else has changed.",
    "reinstated": "The team is shown again.",
}
"""What is said after a form was done; an address holds the word only."""
_STATES = {
    "paused": ("status", "paused"),
    "resumed": ("status", "open"),
    "charged": ("status", "open"),
    "closed": ("status", "closed"),
    **{each: ("visibility", each) for each in ("public", "anonymous", "frozen", "hidden")},
}


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
        raise RequestRefused(400, "form", "There is no such form here.")
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


GROUPS: dict[str, tuple[tuple[str, ...], Callable[[Mapping[str, str], set[str]], dict[str, Any]]]]
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


def said_of(word: str, board: Mapping[str, Any]) -> str | None:
    """Return what is said after a form was done, unless the board is not so: links may lie.

    >>> said_of("closed", {"status": "open"}) is None
    True
    """
    key, state = _STATES.get(word, ("", None))
    return _DONE.get(word) if board.get(key) == state else None


class Done(NamedTuple):
    """Something was done: the word for it."""

    word: str


class Made(NamedTuple):
    """A token was made: for whom, and the token, which is shown in this one reply."""

    what: str
    token: str
    name: str = ""


def do_on_board(found: Board, caller: Caller, form: Form) -> Done | Made:
    """Do what a form on the organiser's page asks for."""
    check_permission(caller, "run")
    return _verb(_BOARD, form)(found, caller, form)


def do_to_team(found: Board, caller: Caller, team: str, form: Form) -> Done | Made:
    """Do what a form on the page of a team asks for."""
    check_permission(caller, "run")
    return _verb(_TEAM, form)(found, caller, team)


def _verb(verbs: Mapping[str, Verb], form: Form) -> Verb:
    verb = verbs.get(form.get("do", ""))
    if verb is None:
        raise RequestRefused(400, "form", "There is no such form here.")
    return verb


def _pause(found: Board, caller: Caller, _: Form) -> Done:
    found.amendments.pause(caller)
    return Done("paused")


def _resume(found: Board, caller: Caller, form: Form) -> Done:
    typed = form.get("charge", "").strip()
    if typed and not re.fullmatch("[0-9]{1,15}", typed):
        raise InvalidSetting("The questions to charge must be a whole number, 0 or more.")
    charge = int(typed) if typed else None
    found.amendments.resume(caller, charge)
    return Done("charged" if charge else "resumed")


def _show(found: Board, caller: Caller, form: Form) -> Done:
    wanted = form.get("visibility", "")
    changed = found.amendments.amend(caller, {"visibility": wanted})
    return Done(changed.visibility)


def _amend(found: Board, caller: Caller, form: Form) -> Done:
    changes = changes_in(form, found.rules.describe())
    if not changes:
        return Done("unchanged")
    found.amendments.amend(caller, changes)
    return Done("amended")


def _close(found: Board, caller: Caller, form: Form) -> Done:
    if form.get("name", "").strip() != found.slug:
        raise InvalidSetting(
            f"To close the board for good, type its name: {found.slug}. Nothing was changed."
        )
    found.closer.close(caller, sandbox=sandbox)
    return Done("closed")


def _add(found: Board, caller: Caller, form: Form) -> Made:
    made = found.teams.create(caller, form.get("name", ""))
    return Made("team", made.token, made.name)


def _invite(found: Board, caller: Caller, form: Form) -> Made:
    typed = form.get("days", "").strip() or "7"
    if not re.fullmatch(r"[0-9]{1,4}(\.[0-9]{1,4})?", typed):
        raise InvalidSetting("How long an invitation is good must be a number of days, such as 7.")
    return Made("invitation", found.teams.invite(caller, days=float(typed)))


def _trust(found: Board, caller: Caller, form: Form) -> Made:
    role = form.get("role", "")
    if role not in {"evaluator", "organiser"}:
        raise InvalidSetting("A token without a team is for an evaluator or an organiser.")
    return Made(role, found.teams.issue_staff_token(caller, Role[role.upper()]))


def _end(found: Board, caller: Caller, form: Form) -> Done:
    found.teams.revoke_token(caller, form.get("token", ""))
    return Done("ended")


def _rotate(found: Board, caller: Caller, team: str) -> Made:
    made = found.teams.rotate_token(caller, team)
    return Made("team", made.token, made.name)


def _revoke(found: Board, caller: Caller, team: str) -> Done:
    found.teams.revoke_team_tokens(caller, team)
    return Done("revoked")


def _disqualify(found: Board, caller: Caller, team: str) -> Done:
    found.teams.disqualify(caller, team)
    return Done("disqualified")


def _reinstate(found: Board, caller: Caller, team: str) -> Done:
    found.teams.disqualify(caller, team, reinstate=True)
    return Done("reinstated")


_BOARD: dict[str, Callable[[Board, Caller, Form], Done | Made]] = {
    "pause": _pause,
    "resume": _resume,
    "show": _show,
    "amend": _amend,
    "close": _close,
    "add": _add,
    "invite": _invite,
    "trust": _trust,
    "end": _end,
}
_TEAM: dict[str, Callable[[Board, Caller, str], Done | Made]] = {
    "rotate": _rotate,
    "revoke": _revoke,
    "disqualify": _disqualify,
    "reinstate": _reinstate,
}
