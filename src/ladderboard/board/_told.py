"""Rows of the tables as they are told: submissions to their team, teams to the organiser."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ladderboard.board._rules import displayed, metric_of, moment

if TYPE_CHECKING:
    from ladderboard.board._rules import Baseline, Display, Rules
    from ladderboard.ledger import Receipt

__all__ = ["SUBMISSION", "TEAM", "tell_baseline", "tell_submission", "tell_team"]

SUBMISSION = (
    "number, id, entry, time, message, size, chosen, epoch, value, score, improved, question"
)
"""The columns that ``tell_submission`` takes."""
TEAM = (
    "number, id, name, kind, disqualified, made, used, last, released, (SELECT "
    "COALESCE(SUM(s.size), 0) FROM main.submission s "
    "WHERE s.book = main.team.book AND s.team = main.team.number)"
)
"""The columns that ``tell_team`` takes."""


def tell_submission(
    rules: Rules,
    row: tuple[Any, ...],
    *,
    veiled: bool,
    sender: bool,
    receipt: Receipt | None = None,
) -> dict[str, Any]:
    """Return a submission; ``veiled``, without what would tell how often others asked.

    ``sender`` says whether it goes to who may have sent it. Evaluators send a team's scores, and
    how many bytes those took may tell how many were good; the digest in a ``receipt`` would tell
    whether a guess at them is right.
    """
    number, own, entry, time, message, size, chosen, epoch, value, score, improved, asked = row
    if veiled:  # entries are numbered over all teams, and so may questions be
        entry = None
        if rules.ladder == "board":
            asked, value = number, value if improved else None
    if not sender:
        message, size = "", None
    told = {
        "id": own,
        "number": number,
        "entry": entry,
        "time": moment(time),
        "message": message,
        "size": size,
        "selected": bool(chosen),
        "epoch": epoch,
        "released": metric_of(rules.display, value),
        "loss": value,
        "score": metric_of(rules.display, score),
        "score_loss": score,
        "improved": bool(improved),
        "question": asked,
        "display": displayed(rules.display, value),
    }
    if receipt is not None:
        shown = receipt.veiled() if veiled else receipt
        told["receipt"] = shown.describe() if sender else None
    return told


def tell_team(row: tuple[Any, ...], display: Display) -> dict[str, Any]:
    """Return a team as its organiser sees it."""
    number, team, name, kind, disqualified, made, used, last, released, stored = row
    return {
        "number": number,
        "id": team,
        "name": name,
        "kind": kind,
        "disqualified": bool(disqualified),
        "made": moment(made),
        "submissions": used,
        "last": None if last is None else moment(last),
        "released": metric_of(display, released),
        "loss": released,
        "stored": int(stored),
    }


def tell_baseline(each: Baseline, display: Display) -> dict[str, Any]:
    """Return a baseline, with what people are shown where it is a number from elsewhere."""
    if each.value is None:
        return each.describe()
    shown = displayed(display, each.value)
    return {
        "name": each.name,
        "value": metric_of(display, each.value),
        "loss": each.value,
        "display": shown,
        "source": each.source,
    }
