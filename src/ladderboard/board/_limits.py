"""Limits per team, per window and per board: what is left, and when the next is allowed."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from ladderboard._formatting import format_size, format_time
from ladderboard.board._repository import (
    count_pooled,
    list_submission_times,
    read_board,
    sum_submission_sizes,
    update_board,
)
from ladderboard.errors import BudgetSpent, NotOpen, QuotaExceeded, RateLimited

if TYPE_CHECKING:
    from ladderboard.board._model import BoardRow, TeamRow
    from ladderboard.board._rules import Rules
    from ladderboard.ledger import ChainState, Moment, ReadView, WriteView

_SPENT_MESSAGES = {
    "board": "The board's budget of {0} submissions is used up.",
    "team": "This team has used all its {0} submissions.",
}
_by_remaining = attrgetter("remaining")
_CLOSED_MESSAGES = {
    "paused": "The board is paused. Nothing was counted. Try again later.",
    "restored": "The board was restored and waits for its organiser. Nothing was counted.",
    "closing": "The board is being closed; it takes no more submissions.",
    "closed": "The board is closed; it takes no more submissions.",
    "moved": "The board has moved to another server; ask its organiser where.",
}


class QuotaLimit(NamedTuple):
    """One limit: its name, the questions remaining and allowed, and when a window has the next."""

    name: str
    remaining: int
    allowed: int
    next: int | None = None

    def describe(self) -> dict[str, Any]:
        """Return the limit as JSON-able fields."""
        fields = {"name": self.name, "remaining": self.remaining, "allowed": self.allowed}
        return fields if self.next is None else {**fields, "next": format_time(self.next)}


class Quota(NamedTuple):
    """All limits of a team, the tightest first, and when it may submit next."""

    limits: tuple[QuotaLimit, ...]
    next: int | None

    @property
    def tightest(self) -> QuotaLimit:
        """The limit with the fewest questions remaining."""
        return self.limits[0]


class Shares(NamedTuple):
    """How many questions are reserved for each team, and how many any team may use."""

    share: int
    pool: int


def compute_shares(rules: Rules, row: BoardRow, state: ChainState) -> Shares:
    """Return each team's share and the pool, excluding baselines, charged and replayed questions.

    The shares and the pool add up to what all teams may ask.
    """
    shareable = rules.questions - rules.scored_baseline_count - state.charged - row.replayed
    share = max(min(rules.per_team, shareable // rules.teams), 0)
    return Shares(share, max(shareable - rules.teams * share, 0))


def recount_pooled(view: WriteView, rules: Rules, state: ChainState) -> None:
    """Count again the questions beyond the teams' shares. Call it whenever shares change."""
    share = compute_shares(rules, read_board(view), state).share
    update_board(view, pooled=count_pooled(view, share))


def remaining_quota(
    view: ReadView, rules: Rules, row: BoardRow, team: TeamRow, moment: Moment
) -> Quota:
    """Return how many questions a team has left now, limit by limit.

    Each team's share of the board's budget is reserved for it. Questions beyond the share come
    from a pool, so no team can use up another's share.
    """
    state, now = moment.chain_state, moment.now
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
    if window is not None:  # reads only the last few times
        times = list_submission_times(view, team.number, team.used - window.questions)
        recent_times = [time for time in times if time > now - window.seconds]
        window_left = max(window.questions - len(recent_times), 0)
        following = None if window_left else recent_times[0] + window.seconds
        limits.append(QuotaLimit("window", window_left, window.questions, following))
    limits.sort(key=_by_remaining)
    if any(not limit.remaining and limit.next is None for limit in limits):
        return Quota(tuple(limits), None)
    soonest = max([now, *(limit.next for limit in limits if limit.next is not None)])
    return Quota(tuple(limits), _next_open_time(rules, soonest))


def _next_open_time(rules: Rules, time: int) -> int | None:
    """Return the first time from ``time`` on at which a phase is open; None if there is none."""
    if rules.phase_at(time) is not None:
        return time
    return rules.next_start(time)


def refuse_if_closed(rules: Rules, row: BoardRow, received: int | None) -> None:
    """Raise ``NotOpen`` if the board took no submissions at the time of receipt.

    ``received`` is None for a baseline, which is submitted before the first phase begins.
    """
    sentence = _CLOSED_MESSAGES.get(row.status)
    if sentence is not None:
        raise NotOpen(sentence)
    if received is not None and rules.phase_at(received) is None:
        start = rules.next_start(received)
        if start is None:
            raise NotOpen(f"The deadline was {format_time(rules.deadline or 0)}.")
        raise NotOpen(f"The board opens at {format_time(start)}.")


def refuse_if_over_limit(quota: Quota, clock: int) -> None:
    """Raise ``RateLimited`` or ``BudgetSpent`` past a limit, and name the limit.

    ``clock`` is the clock's own time, even if it is before the last entry: the caller must wait
    until that clock reaches the end of the window.
    """
    for limit in quota.limits:
        if limit.remaining:
            continue
        if limit.next is not None:
            wait = max(limit.next - clock, 1)
            raise RateLimited(
                f"This team has used its {limit.allowed} submissions for now. The next is at "
                f"{format_time(limit.next)}.",
                wait=wait,
            )
        raise BudgetSpent(_SPENT_MESSAGES[limit.name].format(limit.allowed))


class StoredBytes:
    """Counts the stored bytes of each team's submissions; each row is read once.

    Rows are only added, so a cached sum stays right for the submissions that it counted.
    """

    def __init__(self) -> None:
        self._sums: dict[int, tuple[int, int]] = {}

    def team_total(self, view: ReadView, team: TeamRow, *, cache: bool) -> int:
        """Return a team's sum; ``cache`` caches it. Do not, if rows may be rolled back."""
        count, stored = self._sums.get(team.number, (0, 0))
        if count > team.used:  # another process restored an older copy
            count = stored = 0
        if count < team.used:
            stored += sum_submission_sizes(view, team.number, count, team.used)
        if cache:
            self._sums[team.number] = (team.used, stored)
        return stored

    def add(self, team: int, number: int, size: int) -> None:
        """Count a submission that was committed, if it follows the last one that was counted."""
        count, stored = self._sums.get(team, (0, 0))
        if number == count + 1:
            self._sums[team] = (number, stored + size)


def refuse_if_storage_full(
    rules: Rules, row: BoardRow, team: TeamRow, stored: int, size: int
) -> None:
    """Raise ``QuotaExceeded`` if a team's or the board's stored files would grow too large.

    Each team has its own quota, so none can use up the others' space.
    """
    quota = rules.team_quota
    if team.kind == "team" and stored + size > quota:
        raise QuotaExceeded(
            f"This team's stored predictions take {format_size(stored)} of its "
            f"{format_size(quota)}; these would need {format_size(size)} more. No question was "
            "used. Ask the organiser to raise files: {team_quota: ...}."
        )
    if row.stored + size > rules.files.quota:
        raise QuotaExceeded(
            "The board's storage for submissions is full. No question was used. Ask the organiser "
            "to raise files: {quota: ...}."
        )


def redact_quota(quota: Quota, team: TeamRow, share: int) -> Quota:
    """Return a team's quota without what would reveal how often others submitted.

    The pool depends on the others; the team's own share does not.
    """
    share_left = max(share - team.used, 0)
    limits = [
        limit._replace(remaining=share_left, allowed=share) if limit.name == "board" else limit
        for limit in quota.limits
    ]
    limits.sort(key=_by_remaining)
    return Quota(tuple(limits), quota.next)


def serialize_budget(rules: Rules, row: BoardRow, state: ChainState) -> dict[str, int]:
    """Return used and remaining submissions: the teams' shares, the pool and the baselines.

    ``used`` is ``asked`` plus ``charged``, which a restore adds. Of those asked, ``baselines`` and
    ``replayed`` (after labels were corrected) count against no team. Each team has ``share``
    reserved questions; teams have taken ``pooled`` of the ``pool``.
    """
    used = state.asked + state.charged
    share, pool = compute_shares(rules, row, state)
    return {
        "questions": rules.questions,
        "used": used,
        "remaining": max(rules.questions - used, 0),
        "asked": state.asked,
        "charged": state.charged,
        "baselines": rules.scored_baseline_count,
        "replayed": row.replayed,
        "share": share,
        "pool": pool,
        "pooled": min(row.pooled, pool),
        "teams": rules.teams,
        "registered": row.teams,
    }
