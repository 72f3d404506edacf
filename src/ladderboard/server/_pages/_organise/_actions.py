"""What the organiser's forms do: each is one verb of the board room."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from ladderboard.board import Role, allow
from ladderboard.errors import InvalidSetting
from ladderboard.server._pages._organise._amendments import changes_in
from ladderboard.server._problems import Refused
from ladderboard.server._sandbox import sandbox

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ladderboard.board import Board, Caller

    Form = Mapping[str, str]


Verb = TypeVar("Verb")
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
    allow(caller, "run")
    return _verb(_BOARD, form)(found, caller, form)


def do_to_team(found: Board, caller: Caller, team: str, form: Form) -> Done | Made:
    """Do what a form on the page of a team asks for."""
    allow(caller, "run")
    return _verb(_TEAM, form)(found, caller, team)


def _verb(verbs: Mapping[str, Verb], form: Form) -> Verb:
    verb = verbs.get(form.get("do", ""))
    if verb is None:
        raise Refused(400, "form", "There is no such form here.")
    return verb


def _pause(found: Board, caller: Caller, _: Form) -> Done:
    found.amending.pause(caller)
    return Done("paused")


def _resume(found: Board, caller: Caller, form: Form) -> Done:
    typed = form.get("charge", "").strip()
    if typed and not re.fullmatch("[0-9]{1,15}", typed):
        raise InvalidSetting("The questions to charge must be a whole number, 0 or more.")
    charge = int(typed) if typed else None
    found.amending.resume(caller, charge)
    return Done("charged" if charge else "resumed")


def _show(found: Board, caller: Caller, form: Form) -> Done:
    wanted = form.get("visibility", "")
    changed = found.amending.amend(caller, {"visibility": wanted})
    return Done(changed.visibility)


def _amend(found: Board, caller: Caller, form: Form) -> Done:
    changes = changes_in(form, found.rules.describe())
    if not changes:
        return Done("unchanged")
    found.amending.amend(caller, changes)
    return Done("amended")


def _close(found: Board, caller: Caller, form: Form) -> Done:
    if form.get("name", "").strip() != found.slug:
        raise InvalidSetting(
            f"To close the board for good, type its name: {found.slug}. Nothing was changed."
        )
    found.finishing.close(caller, sandbox=sandbox)
    return Done("closed")


def _add(found: Board, caller: Caller, form: Form) -> Made:
    made = found.seats.add(caller, form.get("name", ""))
    return Made("team", made.token, made.name)


def _invite(found: Board, caller: Caller, form: Form) -> Made:
    typed = form.get("days", "").strip() or "7"
    if not re.fullmatch(r"[0-9]{1,4}(\.[0-9]{1,4})?", typed):
        raise InvalidSetting("How long an invitation is good must be a number of days, such as 7.")
    return Made("invitation", found.seats.invite(caller, days=float(typed)))


def _trust(found: Board, caller: Caller, form: Form) -> Made:
    role = form.get("role", "")
    if role not in {"evaluator", "organiser"}:
        raise InvalidSetting("A token without a team is for an evaluator or an organiser.")
    return Made(role, found.seats.trust(caller, Role[role.upper()]))


def _end(found: Board, caller: Caller, form: Form) -> Done:
    found.seats.end_token(caller, form.get("token", ""))
    return Done("ended")


def _rotate(found: Board, caller: Caller, team: str) -> Made:
    made = found.seats.rotate(caller, team)
    return Made("team", made.token, made.name)


def _revoke(found: Board, caller: Caller, team: str) -> Done:
    found.seats.revoke(caller, team)
    return Done("revoked")


def _disqualify(found: Board, caller: Caller, team: str) -> Done:
    found.seats.disqualify(caller, team)
    return Done("disqualified")


def _reinstate(found: Board, caller: Caller, team: str) -> Done:
    found.seats.disqualify(caller, team, reinstate=True)
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
