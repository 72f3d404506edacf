"""Standings a page at a time, the best over time with its certificate, and teams' activity."""

from __future__ import annotations

import base64
import binascii
import hmac
import json
import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from ladderboard._formatting import format_time
from ladderboard.board._repository import (
    count_better_teams,
    count_by_team,
    count_by_time,
    find_standing,
    is_tied,
    list_ranked_teams,
    list_thinned_records,
    list_unranked_teams,
    submission_period,
)
from ladderboard.board._rules import round_release
from ladderboard.bounds import mean_ranks
from ladderboard.errors import InvalidSetting
from ladderboard.holdout import Meter

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ladderboard.board._board import BoardContext
    from ladderboard.board._model import BoardRow
    from ladderboard.board._repository import StandingRow
    from ladderboard.board._rules import DisplayRules
    from ladderboard.bounds import Certificate
    from ladderboard.ledger import ChainState, ReadView
    from ladderboard.mechanisms import Mechanism, VisibleChange

MAX_PAGE_ROWS = 1000  # rows of a page
_MAC_BYTES = 12


class TeamStanding(NamedTuple):
    """A team with its rank, which is None for baselines and for teams without a release.

    ``tied`` is whether another team has the same rank, on this page or another. ``mean_rank`` is
    the mean of its ranks in all live metrics, None where the first metric decides.
    """

    rank: int | None
    tied: bool
    team: StandingRow
    mean_rank: float | None = None


class StandingsPage(NamedTuple):
    """Some rows, and the cursor of the next page; None after the last."""

    rows: list[TeamStanding]
    next: str | None


class _PagePosition(NamedTuple):
    """Where a page ended: teams counted, the last rank and value, and the last row."""

    counted: int
    rank: int
    ranked: float
    released: float | None
    since: int
    number: int


FurtherValues = Mapping[str, tuple[float | None, ...]]
"""The released values of the further live metrics, by the team's id."""
_ALL_ROWS = 2**62
_START = _PagePosition(0, 0, -1.0, -1.0, -1, -1)


def read_standings(
    view: ReadView,
    *,
    as_frozen: bool,
    limit: int = 100,
    cursor: str | None = None,
    mac: Callable[[str], bytes],
    further: FurtherValues | None = None,
) -> StandingsPage:
    """Return a page of the standings: the current ones, or those at the freeze (``as_frozen``).

    Equal releases have equal ranks; disqualified teams are left out. The cursor holds the ranks
    counted so far, so it carries a MAC: a forged link cannot move a team up. With ``further``, the
    values of the further live metrics, the mean of the ranks in all of them decides.
    """
    if not 1 <= limit <= MAX_PAGE_ROWS:
        raise InvalidSetting(f"limit must be between 1 and {MAX_PAGE_ROWS}.")
    position = _START if cursor is None else _decode_cursor(cursor, mac)
    if further is not None:
        return _page_by_mean_rank(view, further, position, limit, as_frozen=as_frozen, mac=mac)
    rows: list[TeamStanding] = []
    if position.released is not None:
        after = (position.released, position.since, position.number)
        teams = list_ranked_teams(view, as_frozen=as_frozen, after=after, limit=limit + 1)
        for team in teams[:limit]:
            position = _next_rank(position, team)
            rank = position.rank if team.kind == "team" else None
            rows.append(TeamStanding(rank, tied=False, team=team))
        rows = _flag_ties(view, rows, as_frozen=as_frozen)
        if len(teams) > limit:
            return StandingsPage(rows, _encode_cursor(position, mac))
        position = position._replace(released=None, since=-1, number=-1)
    missing = limit - len(rows)
    teams = list_unranked_teams(view, as_frozen=as_frozen, after=position.number, limit=missing + 1)
    for team in teams[:missing]:
        position = position._replace(number=team.number)
        rows.append(TeamStanding(None, tied=False, team=team))
    return StandingsPage(rows, _encode_cursor(position, mac) if len(teams) > missing else None)


def _page_by_mean_rank(
    view: ReadView,
    further: FurtherValues,
    position: _PagePosition,
    limit: int,
    *,
    as_frozen: bool,
    mac: Callable[[str], bytes],
) -> StandingsPage:
    """Return a page of the standings by mean rank, which needs the releases of all teams."""
    last = position.released, position.since, position.number
    ranked = _rank_all_by_mean(view, further, as_frozen=as_frozen)
    rows = [row for row in ranked if _mean_rank_key(row) > last]
    page = rows[:limit]
    if len(rows) <= limit:
        return StandingsPage(page, None)
    mean, since, number = _mean_rank_key(page[-1])
    position = _PagePosition(0, 0, mean, mean, since, number)
    return StandingsPage(page, _encode_cursor(position, mac))


def _rank_all_by_mean(
    view: ReadView, further: FurtherValues, *, as_frozen: bool
) -> list[TeamStanding]:
    """Return all rows, ordered by mean rank."""
    first = _START.ranked, _START.since, _START.number
    teams = list_ranked_teams(view, as_frozen=as_frozen, after=first, limit=_ALL_ROWS)
    teams += list_unranked_teams(view, as_frozen=as_frozen, after=_START.number, limit=_ALL_ROWS)
    releases = {team.id: (team.released, *further.get(team.id, ())) for team in teams}
    ranks = rank_by_mean(releases, {team.id for team in teams if team.kind != "team"})
    counts = Counter(rank.rank for rank in ranks.values())
    rows = []
    for team in teams:
        mean, rank = ranks.get(team.id, (None, None))
        rows.append(TeamStanding(rank, rank is not None and counts[rank] > 1, team, mean))
    rows.sort(key=_mean_rank_key)
    return rows


def _mean_rank_key(row: TeamStanding) -> tuple[float, int, int]:
    """Return what rows are sorted by: teams without a release come last, as they registered."""
    mean = math.inf if row.mean_rank is None else row.mean_rank
    return mean, 0 if row.mean_rank is None else row.team.since or 0, row.team.number


class MeanRank(NamedTuple):
    """The mean of a team's ranks in several metrics, and its rank by it; baselines have none."""

    mean: float
    rank: int | None


def rank_by_mean(
    releases: Mapping[str, tuple[float | None, ...]], baselines: set[str]
) -> dict[str, MeanRank]:
    """Return the mean ranks of all teams that have a release in at least one metric.

    ``releases`` are the losses of each team, one for each metric; a missing one comes last in it.

    >>> rank_by_mean({"a": (0.1, 0.4), "b": (0.2, 0.3), "c": (0.3, None), "d": (None, None)}, {"c"})
    {'a': MeanRank(mean=1.5, rank=1), 'b': MeanRank(mean=1.5, rank=1), 'c': MeanRank(mean=3.0,
    rank=None)}
    """
    losses = {
        team: [math.inf if value is None else value for value in values]
        for team, values in releases.items()
        if any(value is not None for value in values)
    }
    teams = [None if team in baselines else team for team in losses]
    means = mean_ranks(list(losses.values()), teams)
    ranked = sorted(mean for mean, team in zip(means, teams, strict=True) if team is not None)
    return {
        team: MeanRank(mean, None if team in baselines else 1 + bisect_left(ranked, mean))
        for team, mean in zip(losses, means, strict=True)
    }


def read_team_standing(
    view: ReadView,
    number: int,
    baselines: Sequence[str],
    *,
    as_frozen: bool,
    further: FurtherValues | None = None,
) -> TeamStanding | None:
    """Return the row of one team with its rank; None if it is not in the standings.

    ``baselines`` are the comparable names of the baselines that were submitted.
    """
    if further is not None:
        rows = _rank_all_by_mean(view, further, as_frozen=as_frozen)
        return next((row for row in rows if row.team.number == number), None)
    team = find_standing(view, number, as_frozen=as_frozen)
    if team is None or team.released is None or team.kind != "team":
        return None if team is None else TeamStanding(None, tied=False, team=team)
    rank = 1 + count_better_teams(view, team.released, baselines, as_frozen=as_frozen)
    return TeamStanding(rank, is_tied(view, team.released, as_frozen=as_frozen), team)


def _next_rank(position: _PagePosition, team: StandingRow) -> _PagePosition:
    """Return the position after a team with a release; baselines are not counted for ranks."""
    number, released, since = team.number, team.released or 0.0, team.since or 0
    if team.kind != "team":
        return position._replace(released=released, since=since, number=number)
    counted = position.counted + 1
    rank = position.rank if released == position.ranked else counted
    return _PagePosition(counted, rank, released, released, since, number)


def _flag_ties(view: ReadView, rows: list[TeamStanding], *, as_frozen: bool) -> list[TeamStanding]:
    """Return the rows with ties marked, also ties with teams on neighbouring pages."""
    teams = [row for row in rows if row.rank is not None]
    rank_counts = Counter(team.rank for team in teams)
    tied = {rank for rank, count in rank_counts.items() if count > 1}
    for row in (*teams[:1], *teams[-1:]):
        if row.rank not in tied and is_tied(view, row.team.released, as_frozen=as_frozen):
            tied.add(row.rank)
    return [row._replace(tied=True) if row.rank in tied else row for row in rows]


def _encode_cursor(position: _PagePosition, mac: Callable[[str], bytes]) -> str:
    payload = json.dumps(position)
    return (
        base64.urlsafe_b64encode(mac(payload)[:_MAC_BYTES] + payload.encode()).decode().rstrip("=")
    )


def _decode_cursor(cursor: str, mac: Callable[[str], bytes]) -> _PagePosition:
    try:
        padded = cursor.encode("ascii") + b"=" * (-len(cursor) % 4)
        read = base64.b64decode(padded, b"-_", validate=True)
        payload = read[_MAC_BYTES:].decode("ascii")
        if not hmac.compare_digest(mac(payload)[:_MAC_BYTES], read[:_MAC_BYTES]):
            raise ValueError
        return _PagePosition(*json.loads(payload))
    except (binascii.Error, TypeError, ValueError):
        raise InvalidSetting("Invalid cursor. Start without one.") from None


MAX_POINTS = 100  # points besides the last
_OWN_FIELDS = ("number", "time", "loss", "display", "improved")

_CERTIFICATE_RULES = (
    "questions", "beta", "worth", "weighted", "declared", "zero_one", "corrected", "promise",
    "answers", "further", "proven",
)  # fmt: skip
_PROMISES = {"promise", "further"}
Values = tuple[tuple[str, Any], ...]
MAX_BINS = 60
_MAX_TEAMS = 100

_HOUR, _DAY = 3600, 86_400
_BIN_WIDTHS = (
    *(60, 120, 300, 600, 900, 1800),
    *(_HOUR, 2 * _HOUR, 3 * _HOUR, 6 * _HOUR, 12 * _HOUR),
    *(_DAY, 2 * _DAY, 4 * _DAY, 7 * _DAY, 14 * _DAY, 28 * _DAY),
)


class RecordHistory(NamedTuple):
    """Records, each with the state of the book right after it, and their total number."""

    records: list[tuple[ChainState, float]]
    total: int


class CurrentState(NamedTuple):
    """The book's state, the time, the best value shown, and the best of all teams."""

    chain_state: ChainState
    time: int
    best: float | None
    best_of_all: float | None


def read_records(view: ReadView, epoch: int, state: ChainState) -> RecordHistory:
    """Return the records of an epoch up to a state of the book, thinned if there are many."""
    records, total = list_thinned_records(view, epoch, state.entries, MAX_POINTS)
    states = view.chain_states_at([entry + 1 for entry, _ in records])
    values = [value for _, value in records]
    return RecordHistory(list(zip(states, values, strict=True)), total)


def serialize_history(
    board: BoardContext, row: BoardRow, past: RecordHistory, now: CurrentState
) -> dict[str, Any]:
    """Return the points of a chart: one for each record, and one for now.

    Half of a certificate's beta is for the declared budget and half for any number of questions,
    so it holds at all times, also after an amendment. The last bound is about the best of all
    models, including those of disqualified teams, which are not shown.
    """
    display = board.rules_of(row).display
    meter = board.meter(row, now.chain_state)
    rules = _certificate_rules(meter)
    changes = meter.changes()

    def point(state: ChainState, best: tuple[float, float]) -> dict[str, Any]:
        known = (
            state.changes + state.charged if isinstance(changes, int) else changes[: state.changes]
        )
        return _cached_point(meter.mechanism, rules, display, state, best, changes=known)

    points = [point(state, (value, value)) for state, value in past.records]
    if now.best is not None and now.best_of_all is not None:
        last = point(now.chain_state, (now.best, now.best_of_all))
        points.append({**last, "time": format_time(now.time), "entry": None})
    return {
        "display": display.describe(),
        "beta": meter.rules["beta"],
        "points": points,
        "records": past.total,
        "thinned": len(past.records) < past.total,
    }


def serialize_own_history(
    display: DisplayRules, submissions: list[dict[str, Any]], now: int | None, *, thinned: bool
) -> dict[str, Any]:
    """Return the points of a team's own chart from its serialized submissions."""
    return {
        "now": None if now is None else format_time(now),
        "display": display.describe(),
        "points": [
            {
                **{key: submission[key] for key in _OWN_FIELDS},
                "shown": round_release(display, submission["score_loss"]),
            }
            for submission in submissions
        ],
        "thinned": thinned,
    }


@lru_cache(maxsize=4096)
def _cached_point(
    mechanism: Mechanism,
    rules: Values,
    display: DisplayRules,
    state: ChainState,
    best: tuple[float, float],
    *,
    changes: int | tuple[VisibleChange, ...],
) -> dict[str, Any]:
    """Return a point of the chart; it is cached, so callers must not change it.

    ``best`` holds the value shown and the value that the bound is about.
    """
    released, best_of_all = best
    low, high, vacuous = _interval(
        _certificate(mechanism, rules, _without_position(state), best_of_all, changes), best_of_all
    )
    return {
        "time": format_time(state.time),
        "entry": state.entries - 1,
        "used": state.asked + state.charged,
        "released": released,
        "display": round_release(display, released),
        "bound": {
            "least": best_of_all,
            "low": low,
            "high": high,
            "vacuous": vacuous,
            "display": _round_interval(display, low, high),
        },
    }


def cached_certificate(meter: Meter, released: float | None) -> Certificate:
    """Return a meter's certificate from a cache that holds while nothing changes."""
    return _certificate(
        meter.mechanism,
        _certificate_rules(meter),
        _without_position(meter.chain_state),
        released,
        meter.changes(),
    )


def _certificate_rules(meter: Meter) -> Values:
    """Return the rules that a certificate depends on, hashable: promises become JSON."""
    rules = {name: meter.rules[name] for name in _CERTIFICATE_RULES if name in meter.rules}
    for name in _PROMISES & rules.keys():
        rules[name] = json.dumps(rules[name])
    return tuple(rules.items())


def _without_position(state: ChainState) -> ChainState:
    """Clear the fields that a certificate does not depend on, for the cache key."""
    return state._replace(entries=0, head=b"", time=0, closed=False)


@lru_cache(maxsize=4096)
def _certificate(
    mechanism: Mechanism,
    rules: Values,
    state: ChainState,
    released: float | None,
    changes: int | tuple[VisibleChange, ...],
) -> Certificate:
    """Return a certificate; it depends on public values only, so caching reveals nothing."""
    read_rules = dict(rules)
    for name in _PROMISES & read_rules.keys():
        read_rules[name] = json.loads(read_rules[name])
    meter = Meter(mechanism, read_rules, state)
    if not isinstance(changes, int):
        meter = replace(meter, read_changes=lambda: changes)
    return meter.certificate(released)


def _interval(certificate: Certificate, released: float) -> tuple[float, float, bool]:
    """Return the ends of a certificate in losses, and whether it is vacuous."""
    centre, (smallest, largest) = released if certificate.differences else 0.0, certificate.span
    low, high = max(centre + certificate.low, smallest), min(centre + certificate.high, largest)
    return low, high, certificate.vacuous or (low, high) == certificate.span


def _round_interval(display: DisplayRules, low: float, high: float) -> dict[str, float]:
    """Return an interval in the metric, rounded outwards so that it stays true."""
    smallest, largest = map(float, display.format_interval(low, high))
    return {"low": smallest, "high": largest}


def read_activity(view: ReadView) -> dict[str, Any]:
    """Return the most active teams, the total of the others, and counts in bins of time.

    Only the counts over time include baselines.
    """
    teams = count_by_team(view, _MAX_TEAMS)
    bins = _count_in_bins(view)
    questions = sum(time_bin["questions"] for time_bin in bins)
    unlisted = teams[0].questions_of_all - sum(team.questions for team in teams) if teams else 0
    return {
        "questions": questions,
        "teams": [
            {
                "team": {"id": team.team, "name": team.name},
                "disqualified": bool(team.disqualified),
                "questions": team.questions,
                "improved": team.improved,
                "last": format_time(team.last),
            }
            for team in teams
        ],
        "others": {
            "teams": teams[0].teams - len(teams) if teams else 0,
            "questions": unlisted,
        },
        "bins": bins,
    }


def _count_in_bins(view: ReadView) -> list[dict[str, Any]]:
    period = submission_period(view)
    if period is None:
        return []
    first, last = period
    start, width = choose_bins(first, last)
    counts_by_bin = count_by_time(view, start, width)
    return [
        {
            "start": format_time(start + bin_number * width),
            "end": format_time(start + (bin_number + 1) * width),
            "questions": counts_by_bin.get(bin_number, (0, 0))[0],
            "improved": counts_by_bin.get(bin_number, (0, 0))[1],
        }
        for bin_number in range((last - start) // width + 1)
    ]


def choose_bins(first: int, last: int) -> tuple[int, int]:
    """Return the start and width of the bins: at most ``MAX_BINS``, with round ends.

    >>> choose_bins(90, 3000)
    (60, 60)
    >>> choose_bins(0, 100 * 86_400)
    (0, 172800)
    """
    for width in _BIN_WIDTHS:
        start = first - first % width
        if (last - start) // width < MAX_BINS:
            return start, width
    width = _DAY * (1 + (last - first) // (_DAY * (MAX_BINS - 1)))
    return first - first % _DAY, width
