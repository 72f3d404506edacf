"""The organiser's forms: the values of their fields, and the action that each one runs."""

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

Action = TypeVar("Action")

WINDOW_UNITS = {"days": 86_400, "hours": 3600, "minutes": 60, "seconds": 1}
"""The units of a window's length, in seconds."""
_MAX_PHASES = 20  # phases in a form
ONLY_PHASE = "main"
"""The name of the phase of a board that has only a start or an end."""
_MAX_INVITATIONS = 100
_AMENDED_MEANWHILE = (
    "The rules changed after you opened this page. Current values are shown next to each field "
    "that differs. Review them and submit the form again."
)
_SECTION_FIELDS = {
    "display": ("name", "digits"),
    "finals": ("selections",),
    "files": ("bytes", "rows", "seconds", "quota", "team_quota"),
}
_DONE_MESSAGES = {
    "paused": "The board is paused. It takes no submissions until you resume it.",
    "resumed": "The board takes submissions again.",
    "charged": "The board takes submissions again; those that may have been lost are taken off the "
    "budget.",
    "public": "Everybody sees the standings, with names.",
    "anonymous": "Everybody sees the standings, without team names.",
    "frozen": "The board is frozen: others keep seeing the current standings.",
    "hidden": "The board is hidden: others see no standings.",
    "amended": "Saved. The public ledger records the change.",
    "unchanged": "No changes.",
    "closed": "The board is closed for good.",
    "ended": "The token is revoked, and its sessions are signed out.",
    "revoked": "The team's token is revoked, and its sessions are signed out.",
    "disqualified": "The team is disqualified: it is no longer shown. Nothing else has changed.",
    "reinstated": "The team is shown again.",
    "approved": "The team is registered.",
    "rejected": "The registration is rejected; the person is shown your reason.",
    "listed": "The people were added to the list.",
    "appointed": "They organise this board now.",
    "dismissed": "They no longer organise this board.",
    "merged": "The teams are merged.",
    "tested": "A test is being sent. Reload the page to see its result.",
    "unsubscribed": "The webhook is removed. Events that waited for it are not sent.",
    "erased": "The name and identity are removed for good. Copies made before keep them.",
}
"""Messages after a form was done; the redirect's URL holds the key only."""
_EXPECTED_STATES = {
    "paused": ("status", "paused"),
    "resumed": ("status", "open"),
    "charged": ("status", "open"),
    "closed": ("status", "closed"),
    **{name: ("visibility", name) for name in ("public", "anonymous", "frozen", "hidden")},
}


def rules_as_fields(rules: Mapping[str, Any]) -> dict[str, str]:
    """Return the values of all form fields for rules, given as ``Rules.describe`` returns them.

    >>> rules = {"phases": [], "window": {"questions": 5, "seconds": 7200}}
    >>> rules_as_fields(rules)["window_length"]
    '2'
    """
    fields = {
        name: "" if rules.get(name) is None else str(rules[name])
        for name in ("title", "description", "questions", "teams", "per_team", "registration")
    }
    fields["terms"] = rules.get("terms") or ""
    fields["organisers"] = "\n".join(rules.get("organisers") or ())
    for section, names in _SECTION_FIELDS.items():
        section_rules = rules.get(section) or {}
        fields |= {f"{section}_{name}": str(section_rules.get(name, "")) for name in names}
    for name in ("files_bytes", "files_quota", "files_team_quota"):
        fields[name] = _with_unit(fields[name])
    fields["files_rows"] = f"{int(fields['files_rows']):,}" if fields["files_rows"] else ""
    window = rules.get("window")
    unit = "days" if window is None else _largest_unit(window["seconds"])
    length = "" if window is None else str(window["seconds"] // WINDOW_UNITS[unit])
    questions = "" if window is None else str(window["questions"])
    fields |= {"window_questions": questions, "window_length": length, "window_unit": unit}
    fields["phase_0_name"] = ONLY_PHASE
    for number, phase in enumerate(rules["phases"]):
        fields |= {f"phase_{number}_{name}": phase[name] or "" for name in ("name", "start", "end")}
    return fields


def _with_unit(size: str) -> str:
    """Return a number of bytes with the largest unit in which it is a whole number.

    >>> _with_unit("100000000"), _with_unit("10737418240"), _with_unit("1001"), _with_unit("")
    ('100 MB', '10 GiB', '1001', '')
    """
    units = ((2**30, "GiB"), (10**9, "GB"), (2**20, "MiB"), (10**6, "MB"), (2**10, "KiB"))
    whole = (f"{int(size) // unit} {name}" for unit, name in units if not int(size or 1) % unit)
    return next(whole, size)


def _largest_unit(seconds: int) -> str:
    """Return the largest unit in which a length is a whole number."""
    return next(name for name, unit_seconds in WINDOW_UNITS.items() if seconds % unit_seconds == 0)


def fields_digest(group: str, fields: Mapping[str, str]) -> str:
    """Return a digest of a form's fields; it tells whether they changed since it was shown."""
    group_fields = sorted(
        (name, value) for name, value in fields.items() if _belongs_to_group(group, name)
    )
    return hashlib.sha256(json.dumps(group_fields).encode()).hexdigest()[:16]


def _belongs_to_group(group: str, name: str) -> bool:
    return name.startswith("phase_") if group == "times" else name in FORM_GROUPS[group][0]


def read_changes(form: Mapping[str, str], rules: Mapping[str, Any]) -> dict[str, Any]:
    """Return the rules that a form changes, with their new values."""
    group, current = form.get("group", ""), rules_as_fields(rules)
    if group not in FORM_GROUPS:
        raise RequestRefused(400, "form", "There is no such form here.")
    typed = {
        name: _normalise_text(value)
        for name, value in form.items()
        if _belongs_to_group(group, name)
    }
    changed = {
        name for name, value in typed.items() if value != _normalise_text(current.get(name, ""))
    }
    if not changed:
        return {}
    if form.get("seen") != fields_digest(group, current):
        raise InvalidSetting(_AMENDED_MEANWHILE)
    return FORM_GROUPS[group][1]({**current, **typed}, changed)


def _normalise_text(text: str) -> str:
    return text.replace("\r\n", "\n").strip()


def _parse_whole_number(name: str, text: str) -> int | None:
    """Return a typed number, or None for an empty field.

    >>> _parse_whole_number("Submissions", "1,000")
    1000
    """
    digits = re.sub("[ ,_]", "", text)
    if not digits:
        return None
    if not re.fullmatch("[0-9]{1,15}", digits):
        raise InvalidSetting(f"{name} must be a whole number, such as 1000.")
    return int(digits)


def _require_whole_number(name: str, text: str) -> int:
    number = _parse_whole_number(name, text)
    if number is None:
        raise InvalidSetting(f"{name} must be a whole number, such as 1000; it cannot be empty.")
    return number


def _read_limits(fields: Mapping[str, str], changed: set[str]) -> dict[str, Any]:
    changes: dict[str, Any] = {
        name: _require_whole_number(label, fields[name])
        for name, label in (("questions", "Submissions in all"), ("teams", "Places for teams"))
        if name in changed
    }
    if "per_team" in changed:
        changes["per_team"] = _parse_whole_number("Submissions of one team", fields["per_team"])
    if any(name.startswith("window_") for name in changed):
        changes["window"] = _read_window(fields)
    return changes


def _read_window(fields: Mapping[str, str]) -> dict[str, int] | None:
    questions = _parse_whole_number("The limit over time", fields["window_questions"])
    length = _parse_whole_number("The length of time", fields["window_length"])
    if questions is None and length is None:
        return None
    if questions is None or length is None or fields["window_unit"] not in WINDOW_UNITS:
        raise InvalidSetting(
            "The limit over time needs a number of submissions and a length, or neither."
        )
    return {"questions": questions, fields["window_unit"]: length}


def _read_texts(fields: Mapping[str, str], changed: set[str]) -> dict[str, Any]:
    changes: dict[str, Any] = {
        name: fields[name] or None for name in ("title", "description") if name in changed
    }
    display: dict[str, Any] = {}
    if "display_name" in changed:
        display["name"] = fields["display_name"]
    if "display_digits" in changed:
        display["digits"] = _require_whole_number("display.digits", fields["display_digits"])
    return {**changes, "display": display} if display else changes


def _read_registration(fields: Mapping[str, str], changed: set[str]) -> dict[str, Any]:
    changes: dict[str, Any] = {}
    if "registration" in changed:
        changes["registration"] = fields["registration"]
    if "finals_selections" in changed:
        selections = _parse_whole_number("finals.selections", fields["finals_selections"])
        changes["finals"] = None if selections is None else {"selections": selections}
    return changes


def _read_terms(fields: Mapping[str, str], changed: set[str]) -> dict[str, Any]:
    changes: dict[str, Any] = {}
    if "terms" in changed:
        changes["terms"] = fields["terms"] or None
    if "organisers" in changed:
        lines = [line.strip() for line in fields["organisers"].splitlines()]
        changes["organisers"] = [line for line in lines if line] or None
    return changes


def _read_file_limits(fields: Mapping[str, str], changed: set[str]) -> dict[str, Any]:
    """Return limits of files; sizes may have a unit, as in ``board.yaml``."""
    limits: dict[str, Any] = {name.partition("_")[2]: fields[name] or None for name in changed}
    for name, text in limits.items():
        digits = re.sub("[ ,_]", "", text or "")
        if re.fullmatch("[0-9]{1,16}", digits):
            limits[name] = int(digits)
    return {"files": limits}


def _read_phases(fields: Mapping[str, str], _: set[str]) -> dict[str, Any]:
    """Return all phases except those whose fields are all empty or as they are without any."""
    rows = []
    for number in range(_MAX_PHASES):
        row = {name: fields.get(f"phase_{number}_{name}", "") for name in ("name", "start", "end")}
        if any(row.values()) and row != {"name": ONLY_PHASE, "start": "", "end": ""}:
            rows.append({name: value for name, value in row.items() if value})
    return {"phases": rows or None}


FORM_GROUPS: dict[
    str, tuple[tuple[str, ...], Callable[[Mapping[str, str], set[str]], dict[str, Any]]]
]
FORM_GROUPS = {
    "times": ((), _read_phases),
    "limits": (
        ("questions", "teams", "per_team", "window_questions", "window_length", "window_unit"),
        _read_limits,
    ),
    "texts": (("title", "description", "display_name", "display_digits"), _read_texts),
    "registration": (("registration", "finals_selections"), _read_registration),
    "terms": (("terms", "organisers"), _read_terms),
    "files": (tuple(f"files_{name}" for name in _SECTION_FIELDS["files"]), _read_file_limits),
}
"""The groups of fields that are amended together, and the function that reads each.

The fields of ``times`` depend on the number of phases.
"""


def done_message(code: str, board: Mapping[str, Any]) -> str | None:
    """Return the message after a form was done, or None if the board's state contradicts it.

    Anybody can make a link with any key.

    >>> done_message("closed", {"status": "open"}) is None
    True
    """
    key, state = _EXPECTED_STATES.get(code, ("", None))
    return _DONE_MESSAGES.get(code) if board.get(key) == state else None


class ActionDone(NamedTuple):
    """An action was done; ``code`` is the key of its message, ``team`` the team to show next.

    ``person`` is the number of the person that was erased.
    """

    code: str
    team: str = ""
    person: int | None = None


class TokenCreated(NamedTuple):
    """A token was created; it is shown once, in the response."""

    kind: str
    token: str
    team_name: str = ""


def run_board_action(board: Board, caller: Caller, form: Form) -> ActionDone | TokenCreated:
    """Run the action of a form on the organiser's page."""
    check_permission(caller, "run")
    return _find_action(_BOARD_ACTIONS, form)(board, caller, form)


def run_team_action(
    board: Board, caller: Caller, team: str, form: Form
) -> ActionDone | TokenCreated:
    """Run the action of a form on the organiser's page of one team."""
    check_permission(caller, "run")
    return _find_action(_TEAM_ACTIONS, form)(board, caller, team, form)


def _find_action(actions: Mapping[str, Action], form: Form) -> Action:
    action = actions.get(form.get("do", ""))
    if action is None:
        raise RequestRefused(400, "form", "There is no such form here.")
    return action


def _pause(board: Board, caller: Caller, _: Form) -> ActionDone:
    board.amendments.pause(caller)
    return ActionDone("paused")


def _resume(board: Board, caller: Caller, form: Form) -> ActionDone:
    typed = form.get("charge", "").strip()
    if typed and not re.fullmatch("[0-9]{1,15}", typed):
        raise InvalidSetting("The submissions to charge must be a whole number, 0 or more.")
    charge = int(typed) if typed else None
    board.amendments.resume(caller, charge)
    return ActionDone("charged" if charge else "resumed")


def _set_visibility(board: Board, caller: Caller, form: Form) -> ActionDone:
    visibility = form.get("visibility", "")
    changed = board.amendments.amend(caller, {"visibility": visibility})
    return ActionDone(changed.visibility)


def _amend(board: Board, caller: Caller, form: Form) -> ActionDone:
    changes = read_changes(form, board.rules.describe())
    if not changes:
        return ActionDone("unchanged")
    warnings = [] if form.get("confirmed") else board.amendments.warnings(changes)
    if warnings:
        raise RequestRefused(409, "confirm", " ".join(warnings))
    board.amendments.amend(caller, changes)
    return ActionDone("amended")


def _close(board: Board, caller: Caller, form: Form) -> ActionDone:
    if form.get("name", "").strip() != board.slug:
        raise InvalidSetting(
            f"To close the board for good, type its name: {board.slug}. Nothing was changed."
        )
    board.closer.close(caller, sandbox=sandbox)
    return ActionDone("closed")


def _add_team(board: Board, caller: Caller, form: Form) -> TokenCreated:
    created = board.teams.create(caller, form.get("name", ""))
    return TokenCreated("team", created.token, created.name)


def _invite(board: Board, caller: Caller, form: Form) -> TokenCreated:
    typed = form.get("days", "").strip()
    if typed and not re.fullmatch(r"[0-9]{1,4}(\.[0-9]{1,4})?", typed):
        raise InvalidSetting("The lifetime of an invitation must be a number of days, such as 7.")
    count = _parse_whole_number("The number of invitations", form.get("count", "")) or 1
    if count > _MAX_INVITATIONS:
        raise InvalidSetting(f"At most {_MAX_INVITATIONS} invitations can be made at once.")
    days = float(typed) if typed else None
    tokens = [board.teams.invite_team(caller, days=days) for _ in range(count)]
    return TokenCreated("invitation", "\n".join(tokens))


def _issue_staff_token(board: Board, caller: Caller, form: Form) -> TokenCreated:
    role = form.get("role", "")
    if role not in {"evaluator", "organiser"}:
        raise InvalidSetting("A token without a team is for an evaluator or an organiser.")
    return TokenCreated(role, board.teams.issue_staff_token(caller, Role[role.upper()]))


def _revoke_token(board: Board, caller: Caller, form: Form) -> ActionDone:
    board.teams.revoke_token(caller, form.get("token", ""))
    return ActionDone("ended")


def _decide(board: Board, caller: Caller, form: Form) -> ActionDone:
    number = _require_whole_number("person", form.get("person", ""))
    if form.get("decision") == "approve":
        board.identities.approve(caller, number)
        return ActionDone("approved")
    board.identities.reject(caller, number, form.get("reason", ""))
    return ActionDone("rejected")


def _erase_person(board: Board, caller: Caller, form: Form) -> ActionDone:
    number = _require_whole_number("person", form.get("person", ""))
    erased = board.erasure.erase_person(caller, number)
    return ActionDone("erased", erased.team or "", number)


def _extend_list(board: Board, caller: Caller, form: Form) -> ActionDone:
    board.identities.extend_list(caller, form.get("people", "").splitlines())
    return ActionDone("listed")


def _set_organiser(board: Board, caller: Caller, form: Form) -> ActionDone:
    number = _require_whole_number("person", form.get("person", ""))
    organiser = form.get("organiser") == "yes"
    board.members.set_organiser(caller, number, organiser=organiser)
    return ActionDone("appointed" if organiser else "dismissed")


def _add_webhook(board: Board, caller: Caller, form: Form) -> TokenCreated:
    events = tuple(name.removeprefix("event_") for name in form if name.startswith("event_"))
    url, kind = form.get("url", "").strip(), form.get("format", "json")
    added = board.webhooks.add(caller, url, events, kind)
    return TokenCreated("webhook", added.secret)


def _change_webhook(board: Board, caller: Caller, form: Form) -> ActionDone:
    """Test or remove a webhook: two buttons of one form."""
    if "test" in form:
        board.webhooks.test(caller, _require_whole_number("webhook", form["test"]))
        return ActionDone("tested")
    board.webhooks.remove(caller, _require_whole_number("webhook", form.get("remove", "")))
    return ActionDone("unsubscribed")


def _rotate_team_token(board: Board, caller: Caller, team: str, _: Form) -> TokenCreated:
    created = board.teams.rotate_token(caller, team)
    return TokenCreated("team", created.token, created.name)


def _revoke_team_tokens(board: Board, caller: Caller, team: str, _: Form) -> ActionDone:
    board.teams.revoke_team_tokens(caller, team)
    return ActionDone("revoked")


def _disqualify(board: Board, caller: Caller, team: str, _: Form) -> ActionDone:
    board.teams.disqualify(caller, team)
    return ActionDone("disqualified")


def _reinstate(board: Board, caller: Caller, team: str, _: Form) -> ActionDone:
    board.teams.disqualify(caller, team, reinstate=True)
    return ActionDone("reinstated")


def _merge_team(board: Board, caller: Caller, team: str, form: Form) -> ActionDone:
    into = form.get("into", "")
    board.members.merge(caller, team, into)
    return ActionDone("merged", into)


def _reject_person(board: Board, caller: Caller, _: str, form: Form) -> ActionDone:
    number = _require_whole_number("person", form.get("person", ""))
    board.identities.reject(caller, number, form.get("reason", ""))
    return ActionDone("rejected")


def _erase_team(board: Board, caller: Caller, team: str, _: Form) -> ActionDone:
    board.erasure.erase_team(caller, team)
    return ActionDone("erased", team)


_BOARD_ACTIONS: dict[str, Callable[[Board, Caller, Form], ActionDone | TokenCreated]] = {
    "pause": _pause,
    "resume": _resume,
    "show": _set_visibility,
    "amend": _amend,
    "close": _close,
    "add": _add_team,
    "invite": _invite,
    "trust": _issue_staff_token,
    "end": _revoke_token,
    "decide": _decide,
    "list": _extend_list,
    "organiser": _set_organiser,
    "subscribe": _add_webhook,
    "webhook": _change_webhook,
    "forget": _erase_person,
}
_TEAM_ACTIONS: dict[str, Callable[[Board, Caller, str, Form], ActionDone | TokenCreated]] = {
    "rotate": _rotate_team_token,
    "revoke": _revoke_team_tokens,
    "disqualify": _disqualify,
    "reinstate": _reinstate,
    "merge": _merge_team,
    "reject": _reject_person,
    "forget": _erase_team,
}
