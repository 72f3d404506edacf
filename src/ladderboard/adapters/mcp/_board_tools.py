"""The tools on a board as an agent reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ladderboard.adapters.mcp._tools import (
    IMPROVEMENTS,
    LABELS,
    MEANING,
    REASON,
    RELEASED,
    REMAINING,
    WINNER,
    Tool,
    predictions,
    reply,
    said,
)

if TYPE_CHECKING:
    from ladderboard.adapters.mcp._folder import Folder

__all__ = ["BUDGET", "STANDING", "submit_tool"]

_DISPLAY = said("object", "The same in the board's own metric: name, direction, released.")
_NEXT = said("string", "When the next submission may come; null where none ever may.", maybe=True)


def submit_tool(folder: Folder | None) -> Tool:
    """Return the tool that asks."""
    return Tool(
        name="submit",
        title="Submit a model's predictions to the board",
        description="Submit one model's predictions to the board, in the name of your team. Costs "
        f"one question of the team's budget, if it is answered. {MEANING}",
        takes={
            **predictions(folder),
            "message": said(
                "string", "Your own note on the model, kept by the board, to find the winner by."
            ),
        },
        gives=reply(
            display=_DISPLAY,
            number=said("integer", "The number of the submission among those of your team."),
            next_submission_at=_NEXT,
        ),
        asks=True,
    )


STANDING = Tool(
    name="standing",
    title="Where your team stands",
    description="Costs no question. Your team's best so far and its place, which submission "
    "improved last (the model to report), and what predictions must look like. The place is by "
    "what was released; it says nothing about the model that you sent last.",
    gives={
        "reason": REASON,
        "status": said("string", "Whether the board is open, and if not, what else."),
        "released": RELEASED,
        "display": _DISPLAY,
        "rank": said("integer", "Your team's place; null if it is hidden or none.", maybe=True),
        "teams": said("integer", "How many teams there are.", maybe=True),
        "best": said("number", "The best release of all teams, as a loss.", maybe=True),
        "submissions": said("integer", "How many of your team were answered."),
        "winner": WINNER,
        "improvements": IMPROVEMENTS,
        **LABELS,
        "deadline": said("string", "Until when the board answers.", maybe=True),
    },
)

BUDGET = Tool(
    name="budget",
    title="How many submissions are left",
    description="Costs no question. How many submissions your team has left now, under which "
    "limits, and when the next may come.",
    gives={
        "reason": REASON,
        "questions": said("integer", "How many your team is allowed over the whole time."),
        "used": said("integer", "How many of your team were answered."),
        "remaining": REMAINING,
        "open": said("boolean", "Whether a submission is answered now."),
        "limits": {
            "type": "array",
            "description": "Every limit, and what is left of it.",
            "items": {"type": "object"},
        },
        "next_submission_at": _NEXT,
    },
)
