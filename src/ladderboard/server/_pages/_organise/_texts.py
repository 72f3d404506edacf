"""Texts of the organiser's pages: what needs attention, what happened, and each setting's value."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from markupsafe import Markup

from ladderboard._formatting import (
    format_count,
    format_fixed,
    format_list,
    format_size,
    format_time,
    format_utc,
    parse_number,
    rough_duration,
    shared_decimals,
)
from ladderboard.server._pages._wording import (
    board_state,
    count,
    exact_duration,
    is_over,
    parse_time,
    time_element,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ladderboard.board import DisplayRules, Rules

_DAY = 86_400
_NEAR_DEADLINE = 3 * _DAY
_QUIET = 7 * _DAY
_MUCH_USED = 0.8  # of the budget, or of the room for files
_BLOCK_ENTRIES = 100  # entries of the ledger that are read at once


class Attention(NamedTuple):
    """Something that needs the organiser: a sentence, and a link to act.

    ``path`` follows that of the board's page.
    """

    sentence: str
    action: str
    path: str


_FIRST_TEAMS = {
    "open": (
        "No teams yet. Share the address of the board: anyone can register.",
        "Open its page",
        "",
    ),
    "invited": (
        "No teams yet. Send an invitation to each.",
        "Invite a team",
        "/organise/invitations",
    ),
    "organiser": (
        "No teams yet. Add each one and send it its token.",
        "Add a team",
        "/organise/teams#add",
    ),
    "sign_in": ("No teams yet. Share the address of the board.", "Open its page", ""),
}


def find_attention(
    board: Mapping[str, Any],
    budget: Mapping[str, int],
    *,
    waiting: int,
    invited: int,
    failing: int,
    room: tuple[int, int],
    quiet_since: int,
    now: int,
) -> list[Attention]:
    """Return what needs the organiser of a board, the most urgent first.

    ``waiting`` requests wait for a decision, ``invited`` teams have not joined yet, ``failing``
    webhooks failed last; ``room`` are the bytes of files that are stored and allowed;
    ``quiet_since`` is the time of the last submission.

    >>> board = {"status": "open", "phase": "main", "deadline": "1970-01-02T00:00:00Z",
    ...     "phases": [], "ladder": "board", "registration": "open"}
    >>> budget = {"questions": 100, "used": 85, "remaining": 15, "registered": 4, "teams": 4}
    >>> quiet = {"failing": 0, "room": (0, 1), "quiet_since": 0, "now": 0}
    >>> for item in find_attention(board, budget, waiting=2, invited=0, **quiet):
    ...     print(item.sentence)
    2 requests to join wait for your decision.
    The deadline is in 1 day.
    85% of the submissions are used: 15 left.
    All 4 places for teams are taken.
    """
    if is_over(board) and board["status"] != "closing":
        return []
    items = _find_state(board, now)
    if waiting:
        verb = "waits" if waiting == 1 else "wait"
        noun = "request" if waiting == 1 else "requests"
        sentence = f"{waiting:,} {noun} to join {verb} for your decision."
        items.append(Attention(sentence, "Decide", "/organise/people"))
    is_running = board["status"] == "open" and board["phase"] is not None
    if is_running and board["deadline"] is not None:
        left = parse_time(board["deadline"]) - now
        if 0 < left <= _NEAR_DEADLINE:
            sentence = f"The deadline is in {rough_duration(left)}."
            items.append(Attention(sentence, "Change it", "/organise/settings/times"))
    items += _find_shortages(board, budget, room)
    if not budget["registered"] and invited:
        sentence = f"No teams yet. Not used so far: {count(invited, 'invitation')}."
        items.append(Attention(sentence, "See the invitations", "/organise/invitations"))
    elif not budget["registered"]:
        items.append(Attention(*_FIRST_TEAMS[board["registration"]]))
    elif is_running and now - quiet_since >= _QUIET:
        sentence = f"No submission for {rough_duration(now - quiet_since)}."
        items.append(Attention(sentence, "See the activity", "/organise/activity"))
    if failing:
        plural = "y" if failing == 1 else "ies"
        sentence = f"The last deliver{plural} of {count(failing, 'webhook')} failed."
        items.append(Attention(sentence, "See why", "/organise/settings/webhooks"))
    return items


def _find_state(board: Mapping[str, Any], now: int) -> list[Attention]:
    """Return what the state of a board asks for."""
    if board["status"] == "paused":
        sentence = "The board is paused: it takes no submissions."
        return [Attention(sentence, "Resume it", "/organise#resume")]
    if board["status"] == "restored":
        sentence = "The board was restored from a copy and takes no submissions yet."
        return [Attention(sentence, "Resume it", "/organise#resume")]
    if board["status"] == "closing":
        sentence = "Closing the board was interrupted."
        return [Attention(sentence, "Close it again", "/organise/settings/close")]
    if board_state(board, now).label == "deadline passed":
        sentence = "The deadline has passed. Close the board to publish the final ranking."
        return [Attention(sentence, "Close it", "/organise/settings/close")]
    return []


def _find_shortages(
    board: Mapping[str, Any], budget: Mapping[str, int], room: tuple[int, int]
) -> list[Attention]:
    """Return what is used up, or soon will be: submissions, places, room for files."""
    items = []
    if not budget["remaining"]:
        sentence = f"All {format_count(budget['questions'], 'submission')} are used."
        items.append(Attention(sentence, "Allow more", "/organise/settings/limits"))
    elif budget["used"] >= _MUCH_USED * budget["questions"]:
        percent = 100 * budget["used"] // budget["questions"]
        sentence = f"{percent}% of the submissions are used: {budget['remaining']:,} left."
        items.append(Attention(sentence, "Allow more", "/organise/settings/limits"))
    if budget["registered"] >= budget["teams"]:
        sentence = f"All {budget['teams']:,} places for teams are taken."
        is_fixed = board["ladder"] == "team" and board["registration"] == "open"
        action = (
            ("See the teams", "/organise/teams")
            if is_fixed
            else ("Add places", "/organise/settings/limits")
        )
        items.append(Attention(sentence, *action))
    stored, allowed = room
    if stored >= _MUCH_USED * allowed:
        sentence = f"Submitted files take {format_size(stored)} of {format_size(allowed)}."
        items.append(Attention(sentence, "Allow more", "/organise/settings/files"))
    return items


class Event(NamedTuple):
    """An entry of the ledger in words; ``team`` is the team that it is about, if any."""

    number: int
    time: str
    team: Mapping[str, Any] | None
    text: str


def describe_events(
    read: Callable[..., list[bytes]],
    *,
    before: int,
    limit: int,
    display: DisplayRules,
    teams: Mapping[str, Mapping[str, Any]],
) -> tuple[list[Event], int | None]:
    """Return events before an entry of the ledger, the newest first, and where the next page is.

    ``read`` is :meth:`View.ledger`; ``teams`` are the known teams by their ids.
    """
    entries: list[dict[str, Any]] = []
    while before > 0 and len(entries) <= limit:
        first = max(before - _BLOCK_ENTRIES, 0)
        block = map(json.loads, reversed(read(first=first, limit=before - first)))
        entries += [entry for entry in block if _describe_entry(entry, display) is not None]
        before = first
    older = entries[limit]["number"] + 1 if len(entries) > limit else None
    values = [entry.get("value") for entry in entries[:limit] if entry.get("improved")]
    scores = [parse_number(display.text(value)) for value in values if value is not None]
    decimals = shared_decimals(scores, display.digits)
    events = []
    for entry in entries[:limit]:
        team_id, text = entry.get("asker"), _describe_entry(entry, display, decimals) or ""
        team = None if team_id is None else teams.get(team_id, {"id": team_id, "name": team_id})
        events.append(Event(entry["number"], format_time(entry["time"]), team, text))
    return events, older


_EVENT_TEXTS = {
    "opened": "Board created",
    "paused": "Board paused",
    "closed": "Board closed",
    "moved": "Board moved to another server",
    "disqualified": "Disqualified",
    "reinstated": "Reinstated",
    "accepted": "Accepted the terms",
    "merged": "Merged into another team",
    "resumed": "Board resumed",
    "restored": "Board restored from a copy",
    "appointed": "Person {person} became an organiser",
    "dismissed": "Person {person} no longer organises the board",
}


def _describe_change(rule: str, value: Any) -> str:
    name = {"phases": "dates", "questions": "submissions", "loss": "metric"}.get(rule, rule)
    name = name.replace("_", " ")
    if rule == "phases" and value and value[-1]["end"] is not None:
        return f"{name} (deadline {format_utc(parse_time(value[-1]['end']), up=True)})"
    return f"{name} {value:,}" if type(value) is int else name


def _describe_entry(
    entry: Mapping[str, Any], display: DisplayRules, decimals: int = 0
) -> str | None:
    """Return an entry of the ledger in words; None for one that is of no interest to an organiser.

    >>> from ladderboard.board import DisplayRules
    >>> accuracy = DisplayRules("accuracy", shown_as="complement")
    >>> _describe_entry({"kind": "question", "improved": True, "value": 0.25}, accuracy)
    'New best: accuracy 0.75'
    >>> _describe_entry({"kind": "question", "improved": True, "value": 0.1}, accuracy, decimals=2)
    'New best: accuracy 0.90'
    >>> _describe_entry({"kind": "amended", "changes": {"phases": [], "questions": 900}}, accuracy)
    'Rules changed: dates, submissions 900'
    >>> phases = [{"name": "main", "start": None, "end": "2027-01-31T12:00:00Z"}]
    >>> _describe_entry({"kind": "amended", "changes": {"phases": phases}}, accuracy)
    'Rules changed: dates (deadline 2027-01-31 12:00 UTC)'
    >>> _describe_entry({"kind": "ladder", "ladder": 3}, accuracy) is None
    True
    """
    kind = entry["kind"]
    if kind == "question" and "metric" not in entry:
        if not entry["improved"]:
            return "No measurable improvement"
        if entry["value"] is None:
            return "New best"
        score = display.text(entry["value"])
        decimals = max(decimals, len(score.partition(".")[2]))
        return f"New best: {display.name} {format_fixed(parse_number(score), decimals)}"
    if kind == "amended":
        if "labels" in entry["changes"]:
            return "Labels corrected"
        changes = [_describe_change(*change) for change in entry["changes"].items()]
        return f"Rules changed: {', '.join(changes)}"
    text = _EVENT_TEXTS.get(kind)
    if text is not None and entry.get("charged"):
        text += f"; {count(entry['charged'], 'submission')} taken off the budget"
    return text and text.format(person=entry.get("person"))


SECTION_TITLES = {
    "texts": "Title and description",
    "times": "Deadline",
    "limits": "Submissions and places",
    "registration": "Registration and finals",
    "visibility": "Who sees what",
    "terms": "Terms and organisers",
    "files": "Submitted files",
    "access": "Organisers and evaluators",
    "webhooks": "Webhooks",
    "copy": "Copy of the board",
    "close": "Close the board",
}
"""The settings, each with a page; their order is that of the list."""
_REGISTRATION = {
    "open": "Anyone can register a team",
    "invited": "Teams need an invitation",
    "organiser": "You add the teams",
    "sign_in": "People sign in to register",
}
_VISIBILITY = {
    "public": "Everybody sees standings and names",
    "anonymous": "Everybody sees standings, without names",
    "frozen": "Others see the standings as they were when you froze them",
    "hidden": "Only you see the standings",
}


class Setting(NamedTuple):
    """A row of the settings: the key of its page, its name, its value, and what the link says."""

    section: str
    title: str
    value: str
    action: str


def describe_settings(
    board: Mapping[str, Any],
    rules: Rules,
    *,
    tokens: Sequence[str],
    webhooks: Sequence[Mapping[str, Any]],
) -> list[Setting]:
    """Return the settings of a board with their values; what cannot change has no action.

    ``tokens`` are the roles of all valid tokens.
    """
    staff = [
        count(tokens.count(role), f"{role} token")
        for role in ("organiser", "evaluator")
        if role in tokens
    ]
    failing = sum(webhook["delivered"] is False for webhook in webhooks)
    values = {
        "texts": rules.title,
        "times": _describe_times(board),
        "limits": _describe_limits(board),
        "registration": _describe_registration(board),
        "visibility": _VISIBILITY[board["visibility"]],
        "terms": _describe_terms(rules),
        "files": f"Up to {format_size(rules.files.bytes)}, {count(rules.files.rows, 'row')} each",
        "access": format_list(staff) if staff else "No tokens for this board alone",
        "webhooks": f"{count(len(webhooks), 'webhook')}, {failing} failing"
        if failing
        else count(len(webhooks), "webhook").capitalize(),
        "copy": "One encrypted file with everything",
    }
    actions = {"copy": "Download", "access": "Manage", "webhooks": "Manage"}
    return [
        Setting(
            section,
            SECTION_TITLES[section],
            value,
            actions.get(section, "Edit") if can_change(board, section) else "",
        )
        for section, value in values.items()
    ]


def can_change(board: Mapping[str, Any], section: str) -> bool:
    """Tell whether a setting can change in the board's state.

    >>> can_change({"status": "closed"}, "times"), can_change({"status": "closed"}, "visibility")
    (False, True)
    """
    if section in {"access", "webhooks", "copy"}:
        return True
    if section == "visibility":
        return board["status"] != "moved"
    if section == "close":
        return board["status"] not in {"closed", "moved"}
    return not is_over(board)


def _describe_times(board: Mapping[str, Any]) -> str:
    phases = board["phases"]
    several = f"{len(phases)} phases; " if len(phases) > 1 else ""
    if board["deadline"] is None:
        return f"{several}no deadline" if several else "No deadline"
    return Markup("{}{} {}").format(
        several, "until" if several else "Until", time_element(board["deadline"])
    )


def _describe_limits(board: Mapping[str, Any]) -> str:
    """Return how many submissions are allowed.

    >>> window = {"questions": 5, "seconds": 86_400}
    >>> board = {"questions": 1500, "teams": 40, "per_team": 37, "window": window}
    >>> _describe_limits(board)
    '1,500 submissions, 40 teams; a team may make 37, and 5 in any 24 hours'
    """
    window = board["window"]
    in_all = f"{count(board['questions'], 'submission')}, {count(board['teams'], 'team')}"
    text = f"{in_all}; a team may make {board['per_team']:,}"
    if window is None:
        return text
    return f"{text}, and {window['questions']:,} in any {exact_duration(window['seconds'])}"


def _describe_registration(board: Mapping[str, Any]) -> str:
    finals = board["finals"]
    selections = 1 if finals is None else finals["selections"]
    selected = f"{'up to ' if selections > 1 else ''}{format_count(selections, 'submission')}"
    return (
        f"{_REGISTRATION[board['registration']]}; a team selects {selected} for the final ranking"
    )


def _describe_terms(rules: Rules) -> str:
    terms = "No terms" if rules.terms is None else "Teams accept terms"
    names = format_list(rules.organisers)
    return f"{terms}; organised by {names}" if names else f"{terms}; no organisers named"
