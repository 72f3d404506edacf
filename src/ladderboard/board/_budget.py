"""A board's budget, for whoever runs it: what was used, what is reserved, what is nobody's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ladderboard.board._limits import shares

if TYPE_CHECKING:
    from ladderboard.board._rules import Rules
    from ladderboard.board._tables import BoardRow
    from ladderboard.ledger import At

__all__ = ["describe_budget"]


def describe_budget(rules: Rules, row: BoardRow, at: At) -> dict[str, int]:
    """Return where the questions of a board went, and where those that are left may go.

    ``used`` are those that were ``asked`` and those that were ``charged`` after a restore. Of those
    asked, ``baselines`` and ``replayed`` (after labels were corrected) were nobody's. A team has
    ``share`` questions of its own; of the ``pool`` teams have taken ``pooled``.
    """
    used = at.asked + at.charged
    share, pool = shares(rules, row, at)
    return {
        "questions": rules.questions,
        "used": used,
        "remaining": max(rules.questions - used, 0),
        "asked": at.asked,
        "charged": at.charged,
        "baselines": rules.asked_baselines,
        "replayed": row.replayed,
        "share": share,
        "pool": pool,
        "pooled": min(row.pooled, pool),
        "teams": rules.teams,
        "registered": row.teams,
    }
