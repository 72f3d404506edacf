"""What a team has left, when it may submit again, and where a board's questions went."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from ladderboard._formatting import format_size, format_time
from ladderboard.board._tables import read_board
from ladderboard.errors import BudgetSpent, NotOpen, QuotaExceeded, RateLimited

if TYPE_CHECKING:
    from collections.abc import Callable

    from ladderboard.board._rules import Rules
    from ladderboard.board._tables import BoardRow, TeamRow
    from ladderboard.ledger import ChainState, SqlReadView, SqlWriteView

_SUBMISSION_TIMES = (
    "SELECT time FROM main.submission WHERE book = ? AND team = ? AND number > ? ORDER BY number"
)
_SUM_STORED_BYTES = (
    "SELECT COALESCE(SUM(size), 0) FROM main.submission "
    "WHERE book = ? AND team = ? AND number > ? AND number <= ?"
)
_RECOUNT_POOLED = (
    "UPDATE main.board SET pooled = (SELECT COALESCE(SUM(used - ?), 0) FROM main.team "
    "WHERE main.team.book = ? AND kind = 'team' AND used > ?) WHERE book = ?"
)
_SPENT_MESSAGES = {
    "board": "The board's budget of {0} questions is spent.",
    "team": "This team has asked all its {0} questions.",
}
_by_remaining = attrgetter("remaining")
_CLOSED_MESSAGES = {
    "paused": "The board is paused; nothing was asked. Try again later.",
    "restored": "The board was restored and waits for its organiser; nothing was asked.",
    "closing": "The board is being closed; it takes no more submissions.",
    "closed": "The board is closed; it takes no more submissions.",
    "moved": "The board has moved to another server; ask its organiser where.",
}


class QuotaLimit(NamedTuple):
    """One limit: its name, how many are left of how many, and for a window when the next is."""

    name: str
    remaining: int
    allowed: int
    next: int | None = None

    def describe(self) -> dict[str, Any]:
        """Return it, JSON-able."""
        fields = {"name": self.name, "remaining": self.remaining, "allowed": self.allowed}
        return fields if self.next is None else {**fields, "next": format_time(self.next)}


class Quota(NamedTuple):
    """All limits of a team, the tightest first, and when the next question may come."""

    limits: tuple[QuotaLimit, ...]
    next: int | None

    @property
    def tightest(self) -> QuotaLimit:
        """The one that is felt first."""
        return self.limits[0]


class Shares(NamedTuple):
    """How many questions are reserved for each team, and how many are nobody's."""

    share: int
    pool: int


def compute_shares(rules: Rules, row: BoardRow, at: ChainState) -> Shares:
    """Return what there is to share: not what was charged, nor what was asked again by nobody.

    The shares and the pool add up to what teams may ask in all.
    """
    shareable = rules.questions - rules.asked_baselines - state.charged - row.replayed
    share = max(min(rules.per_team, shareable // rules.teams), 0)
    return Shares(share, max(shareable - rules.teams * share, 0))


def recount_pooled(view: SqlWriteView, rules: Rules, at: ChainState) -> None:
    """Count anew what teams asked beyond their shares: to be done whenever shares change."""
    share = compute_shares(rules, read_board(view), at).share
    view.execute(_RECOUNT_POOLED, (share, view.book_id, share, view.book_id))


def remaining_quota(
    view: SqlReadView, rules: Rules, row: BoardRow, team: TeamRow, *, at: ChainState, now: int
) -> Quota:
    """Return what a team has left now.

    Each team's share of the board's budget is its own. What it may ask beyond that comes out of
    a pool, so nobody can use up what belongs to others.
    """
    budget_left = max(rules.questions - state.asked - state.charged, 0)
    if team.kind == "baseline":  # its one question is reserved
        return Quota(
            (QuotaLimit("board", min(budget_left, max(1 - team.used, 0)), rules.questions),), now
        )
    share, pool = compute_shares(rules, row, state)
    reserved = max(share - team.used, 0) + max(pool - row.pooled, 0)
    limits = [
        QuotaLimit("team", max(rules.per_team - team.used, 0), rules.per_team),
        QuotaLimit("board", min(budget_left, reserved), rules.questions),
    ]
    window = rules.window
    if window is not None:  # no more than its last few times are looked at
        rows = view.query(
            _SUBMISSION_TIMES, (view.book_id, team.number, team.used - window.questions)
        )
        since = [each[0] for each in rows if each[0] > now - window.seconds]
        rest = max(window.questions - len(since), 0)
        following = None if rest else since[0] + window.seconds
        limits.append(QuotaLimit("window", rest, window.questions, following))
    limits.sort(key=_by_remaining)
    if any(not limit.remaining and limit.next is None for limit in limits):
        return Quota(tuple(limits), None)
    soonest = max([now, *(limit.next for limit in limits if limit.next is not None)])
    return Quota(tuple(limits), _next_open_time(rules, soonest))


def _next_open_time(rules: Rules, time: int) -> int | None:
    """Return the first moment from ``time`` on at which a phase is open."""
    if rules.phase_at(time) is not None:
        return time
    return rules.next_start(time)


def refuse_if_closed(rules: Rules, row: BoardRow, received: int | None) -> None:
    """Refuse a question that came when the board takes none; the time of receipt decides.

    ``received`` is None for a baseline, which is asked before the first phase begins.
    """
    sentence = _CLOSED_MESSAGES.get(row.status)
    if sentence is not None:
        raise NotOpen(sentence)
    if received is not None and rules.phase_at(received) is None:
        start = rules.next_start(received)
        if start is None:
            raise NotOpen(f"The deadline was {format_time(rules.deadline or 0)}.")
        raise NotOpen(f"The board opens at {format_time(start)}.")


def refuse_if_over_limit(quota: Quota, clock: Callable[[], int]) -> None:
    """Refuse a question past a limit, and name the limit.

    ``clock`` returns the time as the clock shows it, even where that is before the last entry: the
    wait lasts until this clock has come to the end of the window.
    """
    for limit in quota.limits:
        if limit.remaining:
            continue
        if limit.next is not None:
            wait = max(limit.next - clock(), 1)
            raise RateLimited(
                f"This team has asked its {limit.allowed} questions for now; the next is at "
                f"{format_time(limit.next)}.",
                wait=wait,
            )
        raise BudgetSpent(_SPENT_MESSAGES[limit.name].format(limit.allowed))


class StoredBytes:
    """How many bytes are kept of each team's submissions; rows that were summed are not read again.

    Rows are only ever added, so a sum holds for as many submissions as it was made of.
    """

    def __init__(self) -> None:
        self._sums: dict[int, tuple[int, int]] = {}

    def of(self, view: SqlReadView, team: TeamRow, *, remember: bool) -> int:
        """Return the sum for a team; ``remember`` it, but not what may be rolled back."""
        count, stored = self._sums.get(team.number, (0, 0))
        if count > team.used:  # another process restored an older state
            count = stored = 0
        if count < team.used:
            values = (view.book_id, team.number, count, team.used)
            stored += int(view.query(_SUM_STORED_BYTES, values)[0][0])
        if remember:
            self._sums[team.number] = (team.used, stored)
        return stored


def refuse_if_storage_full(
    rules: Rules, row: BoardRow, team: TeamRow, stored: int, size: int
) -> None:
    """Refuse predictions for which a team, or the board, has no room left.

    Each team has a quota of its own, so that none can take the room of others.
    """
    quota = rules.team_quota
    if team.kind == "team" and stored + size > quota:
        raise QuotaExceeded(
            f"The predictions kept for this team take up {format_size(stored)} of its "
            f"{format_size(quota)}; these would need {format_size(size)} more. No question was "
            "used. Ask the organiser to raise files: {team_quota: ...}."
        )
    if row.stored + size > rules.files.quota:
        raise QuotaExceeded(
            "The board has no room left for submissions. No question was used. Ask the organiser "
            "to raise files: {quota: ...}."
        )


def redact_quota(quota: Quota, team: TeamRow, share: int) -> Quota:
    """Return what a team may know it has left while it must not know what others asked.

    What the pool holds depends on them; its own share does not.
    """
    share_left = max(share - team.used, 0)
    limits = [
        limit._replace(remaining=share_left, allowed=share) if limit.name == "board" else limit
        for limit in quota.limits
    ]
    limits.sort(key=_by_remaining)
    return Quota(tuple(limits), quota.next)


def serialize_budget(rules: Rules, row: BoardRow, at: ChainState) -> dict[str, int]:
    """Return where the questions of a board went, and where those that are left may go.

    ``used`` are those that were ``asked`` and those that were ``charged`` after a restore. Of those
    asked, ``baselines`` and ``replayed`` (after labels were corrected) were nobody's. A team has
    ``share`` questions of its own; of the ``pool`` teams have taken ``pooled``.
    """
    used = state.asked + state.charged
    share, pool = compute_shares(rules, row, state)
    return {
        "questions": rules.questions,
        "used": used,
        "remaining": max(rules.questions - used, 0),
        "asked": state.asked,
        "charged": state.charged,
        "baselines": rules.asked_baselines,
        "replayed": row.replayed,
        "share": share,
        "pool": pool,
        "pooled": min(row.pooled, pool),
        "teams": rules.teams,
        "registered": row.teams,
    }
