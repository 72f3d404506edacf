"""Who may do what: the one table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ladderboard.board._people import Role
from ladderboard.errors import NotAllowed

if TYPE_CHECKING:
    from ladderboard.board._people import Caller
    from ladderboard.board._rules import Rules

__all__ = ["ACTIONS", "allow"]

ACTIONS = {
    "look": Role.PUBLIC,
    "register": Role.PUBLIC,
    "submit": Role.TEAM,
    "choose": Role.TEAM,
    "own": Role.TEAM,
    "rotate own token": Role.TEAM,
    "see everything": Role.EVALUATOR,
    "teams": Role.ORGANISER,
    "tokens": Role.ORGANISER,
    "run": Role.ORGANISER,
}
"""The least role that each action needs."""


_SCORES = (
    "This board takes scores, and only its evaluators hand them in; a team cannot submit. Ask its "
    "organiser how your model is evaluated."
)


def allow(caller: Caller, action: str, rules: Rules | None = None) -> None:
    """Refuse what somebody may not do, on a board with these rules if it depends on them.

    Whoever may choose the scores may choose the best: teams hand in predictions only.
    """
    if caller.role < ACTIONS[action]:
        who = ACTIONS[action].name.lower()
        article = "an" if who[0] in "aeiou" else "a"
        raise NotAllowed(f"This needs {article} {who}'s token.")
    if action in {"choose", "own", "rotate own token"} and caller.team is None:
        raise NotAllowed("This is for a team, with the team's own token.")
    scores = action == "submit" and rules is not None and rules.takes == "scores"
    if scores and caller.role < Role.EVALUATOR:
        raise NotAllowed(_SCORES)
