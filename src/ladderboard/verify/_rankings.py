"""The rankings at the close: the standings, and the finals on the private split."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from ladderboard.bounds import fresh_sample_interval
from ladderboard.errors import BrokenLedger
from ladderboard.ledger import Commitment, digest, parse_strict_json
from ladderboard.verify._strict import has, same, tells_value

if TYPE_CHECKING:
    from ladderboard.holdout import Submission
    from ladderboard.losses import Loss
    from ladderboard.verify._history import Walk
    from ladderboard.verify._risks import File, Risks

_STANDINGS = "The standings in the bundle are not"
_STANDING_FIELDS = {"team", "name", "baseline", "disqualified", "rank", "released", "since"}
_FINALS = "The final ranking is not"
_TIME = "%Y-%m-%dT%H:%M:%SZ"
_FINALS_FIELDS = {"board", "closed", "n", "selected", "beta", "rows"}
_FINAL_FIELDS = {
    "rank", "team", "baseline", "score", "low", "high", "display", "submission", "public_rank",
    "move",
}  # fmt: skip


Rows = list[dict[str, Any]]


def check_standings(walk: Walk, held: dict[str, Any] | None) -> Rows | None:
    """Return the rows of the standings, or refuse those that do not follow from the entries."""
    shown = (walk.closed or {}).get("standings")
    if held is None or shown is None:
        if held is not None or shown is not None:
            raise BrokenLedger(f"{_STANDINGS} there, or nothing commits to them.")
        return None
    rows: Rows = held["content"]
    if Commitment("standings", rows, held["salt"]).hash.hex() != shown:
        raise BrokenLedger(f"{_STANDINGS} those that were committed to at the close.")
    if not all(has(row, _STANDING_FIELDS) and _is_standing(row) for row in rows):
        raise BrokenLedger(f"{_STANDINGS} right: there is a row that we do not write.")
    _check_standing_teams(walk, rows)
    _check_standing_ranks(walk, rows)
    return rows


def _check_standing_teams(walk: Walk, rows: Rows) -> None:
    """Refuse a team that comes twice or is missing, and one that passes for a baseline."""
    teams, names = [row["team"] for row in rows], {row["name"] for row in rows}
    if len(set(teams)) != len(teams) or len(names) != len(teams):
        raise BrokenLedger(f"{_STANDINGS} right: a team is in them twice, or its name.")
    if missing := walk.askers.keys() - set(teams):
        raise BrokenLedger(f"{_STANDINGS} whole: team {min(missing)!r:.40} is missing.")
    baselines, known = {row["name"] for row in rows if row["baseline"]}, set(walk.rules.baselines)
    others = names - baselines
    # A board that was closed before its baselines were asked has fewer.
    if not baselines <= known or others & known:
        raise BrokenLedger(f"{_STANDINGS} right: their baselines are not those of the rules.")
    if len(others) > walk.rules.board["teams"]:
        raise BrokenLedger(f"{_STANDINGS} right: there are more teams than there may be.")


def _check_standing_ranks(walk: Walk, rows: Rows) -> None:
    """Refuse a release that was not said, and a rank that is not by releases."""
    ranked = sorted(row["released"] for row in rows if _is_ranked(row))
    for row in rows:
        team, stands = row["team"], walk.teams_at_close.get(row["team"], (None, None))
        released = same([row["released"], row["since"]], list(stands))
        if not released or row["disqualified"] is not (team in walk.out_then):
            raise BrokenLedger(f"{_STANDINGS} what was released: team {team!r:.40} differs.")
        rank = 1 + bisect_left(ranked, row["released"]) if _is_ranked(row) else None
        if not same(row["rank"], rank):
            raise BrokenLedger(f"{_STANDINGS} ranked by releases: team {team!r:.40} differs.")


def _is_standing(row: dict[str, Any]) -> bool:
    texts = type(row["team"]) is str and type(row["name"]) is str
    return texts and type(row["baseline"]) is bool


def _is_ranked(row: dict[str, Any]) -> bool:
    return not (row["baseline"] or row["disqualified"] or row["released"] is None)


def check_finals(
    walk: Walk, text: str | None, standings: Rows | None, loss: Loss | None
) -> dict[str, Any] | None:
    """Return the final ranking, or refuse one that was not committed to, or contradicts itself."""
    shown = (walk.closed or {}).get("finals")
    if text is None and shown is None:
        return None
    if text is None or digest("finals", text).hex() != shown:
        raise BrokenLedger(f"{_FINALS} the one that was committed to at the close.")
    told = parse_strict_json(text)
    rows = told["rows"]
    if not has(told, _FINALS_FIELDS) or not all(
        has(row, _FINAL_FIELDS) and _is_final(row) for row in rows
    ):
        raise BrokenLedger(f"{_FINALS} as we write it.")
    board = walk.rules.board
    if not same([told["board"], told["beta"]], [board["slug"], board["beta"]]):
        raise BrokenLedger(f"{_FINALS} of this board.")
    when = datetime.strptime(told["closed"], _TIME).replace(tzinfo=UTC).timestamp()
    if not walk.last_asked <= when <= (walk.closed or {})["time"]:
        raise BrokenLedger(f"{_FINALS} of the time of the close.")
    _check_final_teams(walk, rows, standings)
    _check_final_ranks(rows, standings)
    if loss is not None:
        _check_final_display(rows, board["display"], loss.unit)
    return told


def _is_final(row: dict[str, Any]) -> bool:
    numbers = (row["score"], row["low"], row["high"])
    return all(each is not None and tells_value(each) for each in numbers) and (
        type(row["baseline"]) is bool
        and has(row["team"], {"id", "name"})
        and all(type(each) is str for each in (*row["team"].values(), row["submission"]))
    )


def _check_final_teams(walk: Walk, rows: Rows, standings: Rows | None) -> None:
    """Refuse a team that comes twice, one that is missing, and one under another's name."""
    teams = [row["team"]["id"] for row in rows]
    if len(set(teams)) != len(teams) or set(teams) != walk.askers.keys():
        raise BrokenLedger(f"{_FINALS} of the teams that asked.")
    known = {row["team"]: (row["name"], row["baseline"]) for row in standings or ()}
    for row in rows if standings is not None else ():
        if (row["team"]["name"], row["baseline"]) != known[row["team"]["id"]]:
            raise BrokenLedger(f"{_FINALS} of the teams as they are in the standings.")


def _check_final_ranks(rows: Rows, standings: Rows | None) -> None:
    """Refuse ranks that do not follow from scores: both are among who is in the ranking."""
    every = [row["score"] for row in rows]
    if every != sorted(every):
        raise BrokenLedger(f"{_FINALS} in the order of its scores.")
    teams = [row for row in rows if not row["baseline"]]
    before = {row["team"]["id"]: row["public_rank"] for row in teams}
    if standings is not None:  # else it was closed before standings were committed to
        stood = {row["team"]: row["rank"] for row in standings}
        before = {team: stood[team] for team in before}
    known = sorted(each for each in before.values() if each is not None)
    scores = [row["score"] for row in teams]
    for row in rows:
        rank = public = move = None
        if not row["baseline"]:
            rank = 1 + bisect_left(scores, row["score"])
            public = before[row["team"]["id"]]
            public = None if public is None else 1 + bisect_left(known, public)
            move = None if public is None else public - rank
        if not same([row["rank"], row["public_rank"], row["move"]], [rank, public, move]):
            team = row["team"]["id"]
            raise BrokenLedger(f"The final rank of team {team!r:.40} is not that of its score.")


def _check_final_display(rows: Rows, display: dict[str, Any], unit: float) -> None:
    """Refuse a number that people were shown, if it is not that of the score."""
    for row in rows:
        shown = _shown(row["score"], display["as"], unit)
        if not same(row["display"], round(shown, display["digits"])):
            team = row["team"]["id"]
            raise BrokenLedger(f"What is shown for team {team!r:.40} is not its final score.")


def _shown(loss: float, way: str, unit: float) -> float:
    """Return a loss as people are shown it; ``unit`` is the loss's own."""
    if way == "complement":
        return 1 - loss
    if way == "scaled":
        return loss * unit
    return math.sqrt(max(loss, 0) * unit) if way == "root" else loss


class Selected:
    """The best of what each team selected, on the private split."""

    def __init__(self) -> None:
        self._best: dict[str, tuple[float, set[str]]] = {}
        self._files: set[str] = set()
        self._many: Counter[str] = Counter()

    def add(self, team: str, file: File, submission: Submission, risks: Risks) -> None:
        """Score a file that was in the final ranking."""
        scorer = risks.scorer(len(risks.tables) - 1, "private")
        if scorer is None or file.id in self._files:
            raise BrokenLedger(f"{_FINALS} possible: a file is selected twice, or for nothing.")
        risk = scorer.score(submission).risk
        self._files.add(file.id)
        self._many[team] += 1
        best, ids = self._best.get(team, (risk, set()))
        if risk <= best:
            self._best[team] = (risk, {*(ids if risk == best else ()), file.id})

    def check(self, final: dict[str, Any], walk: Walk, risks: Risks) -> None:
        """Refuse a final ranking that does not follow from files and labels."""
        scorer = risks.scorer(len(risks.tables) - 1, "private")
        if scorer is None:
            raise BrokenLedger("There is a final ranking, and there are no private rows.")
        grouping = scorer.grouping
        worth, weighted = int(grouping.effective_n), grouping.weight is not None
        among = self._many.total()
        rules = walk.rules.board["finals"]
        most = 1 if rules is None else rules["selections"]
        few = all(self._many[row["team"]["id"]] <= (1 if row["baseline"] else most)
                  for row in final["rows"])  # fmt: skip
        if not few or not same([final["n"], final["selected"]], [worth, among]):
            raise BrokenLedger(f"{_FINALS} of the files that were selected.")
        for row in final["rows"]:
            team = row["team"]["id"]
            if team not in self._best:
                raise BrokenLedger(f"{_FINALS} of the files that were selected.")
            risk, ids = self._best[team]
            ends = fresh_sample_interval(
                worth, risk, among=among, beta=final["beta"], weighted=weighted
            )
            if (row["score"], row["low"], row["high"]) != (risk, *ends) or (
                row["submission"] not in ids
            ):
                raise BrokenLedger(f"The final score of team {team!r:.40} is not that of its file.")
