"""Rankings again: the standings at the close, and the finals on the private split."""

from __future__ import annotations

import json
from bisect import bisect_left
from typing import TYPE_CHECKING, Any

from ladderboard.bounds import untouched
from ladderboard.errors import BrokenLedger
from ladderboard.ledger import Commitment, digest

if TYPE_CHECKING:
    from ladderboard.holdout import Submission
    from ladderboard.verify._risks import File, Risks
    from ladderboard.verify._walk import Walk

__all__ = ["Selected", "check_finals_text", "check_standings"]

_STANDINGS = "The standings in the bundle are not"


def check_standings(walk: Walk, held: dict[str, Any] | None) -> list[dict[str, Any]] | None:
    """Return the rows of the standings, or refuse those that do not follow from the entries."""
    shown = (walk.closed or {}).get("standings")
    if held is None or shown is None:
        if held is not None or shown is not None:
            raise BrokenLedger(f"{_STANDINGS} there, or nothing commits to them.")
        return None
    rows: list[dict[str, Any]] = held["content"]
    if Commitment("standings", rows, held["salt"]).hash.hex() != shown:
        raise BrokenLedger(f"{_STANDINGS} those that were committed to at the close.")
    teams = {row["team"]: row for row in rows}
    if len(teams) != len(rows):
        raise BrokenLedger(f"{_STANDINGS} right: a team is in them twice.")
    if missing := set(walk.teams_at_close) - set(teams):
        raise BrokenLedger(f"{_STANDINGS} whole: team {min(missing)!r:.40} is missing.")
    told = walk.rules["board"]["baselines"]
    baselines = {each["name"] for each in told if each.get("file") is not None}
    if any(row["baseline"] is not (row["name"] in baselines) for row in rows):
        raise BrokenLedger(f"{_STANDINGS} right: their baselines are not those of the rules.")
    ranked = sorted(row["released"] for row in rows if _is_ranked(row))
    for team, row in teams.items():
        stands = walk.teams_at_close.get(team, (None, None))
        out = team in walk.out_then
        if (row["released"], row["since"]) != stands or row["disqualified"] is not out:
            raise BrokenLedger(f"{_STANDINGS} what was released: team {team!r:.40} differs.")
        rank = 1 + bisect_left(ranked, row["released"]) if _is_ranked(row) else None
        if row["rank"] != rank:
            raise BrokenLedger(f"{_STANDINGS} ranked by releases: team {team!r:.40} differs.")
    return rows


def _is_ranked(row: dict[str, Any]) -> bool:
    return not (row["baseline"] or row["disqualified"] or row["released"] is None)


def check_finals_text(walk: Walk, text: str | None) -> dict[str, Any] | None:
    """Return the final ranking, or refuse one that was not committed to."""
    shown = (walk.closed or {}).get("finals")
    if text is None and shown is None:
        return None
    if text is None or digest("finals", text).hex() != shown:
        raise BrokenLedger("The final ranking is not the one that was committed to at the close.")
    read: dict[str, Any] = json.loads(text)
    return read


class Selected:
    """The best of what each team selected, on the private split."""

    def __init__(self) -> None:
        self._best: dict[str, tuple[float, set[str]]] = {}
        self.count = 0

    def add(self, team: str, file: File, submission: Submission, risks: Risks) -> None:
        """Score a file that was in the final ranking."""
        scorer = risks.scorer(len(risks.tables) - 1, "private")
        if scorer is None:
            return
        risk = scorer.score(submission).risk
        self.count += 1
        best, ids = self._best.get(team, (risk, set()))
        if risk <= best:
            self._best[team] = (risk, {*(ids if risk == best else ()), file.id})

    def check(self, final: dict[str, Any], rows: list[dict[str, Any]] | None, risks: Risks) -> None:
        """Refuse a final ranking that does not follow from files and labels."""
        scorer = risks.scorer(len(risks.tables) - 1, "private")
        if scorer is None:
            raise BrokenLedger("There is a final ranking, and there are no private rows.")
        grouping = scorer.grouping
        worth, weighted = int(grouping.effective_n), grouping.weight is not None
        said = {row["team"]["id"]: row for row in final["rows"]}
        counted = (final["n"], final["selected"])
        if counted != (worth, self.count) or said.keys() != self._best.keys():
            raise BrokenLedger("The final ranking is not of the files that were selected.")
        for team, (risk, ids) in self._best.items():
            row = said[team]
            low, high = untouched(
                worth, risk, among=self.count, beta=final["beta"], weighted=weighted
            )
            told = (row["score"], row["low"], row["high"])
            if told != (risk, low, high) or row["submission"] not in ids:
                raise BrokenLedger(f"The final score of team {team!r:.40} is not that of its file.")
        scores = [row["score"] for row in final["rows"]]
        if scores != sorted(scores):
            raise BrokenLedger("The final ranking is not in the order of its scores.")
        self._check_ranks([row for row in final["rows"] if not row["baseline"]], rows)

    def _check_ranks(self, teams: list[dict[str, Any]], rows: list[dict[str, Any]] | None) -> None:
        """Refuse ranks that do not follow from scores: both are among who is in the ranking."""
        before = {row["team"]["id"]: row["public_rank"] for row in teams}
        if rows is not None:  # else it was closed before standings were committed to
            stood = {row["team"]: row["rank"] for row in rows}
            before = {team: stood.get(team) for team in before}
        known = sorted(each for each in before.values() if each is not None)
        scores = sorted(row["score"] for row in teams)
        for row in teams:
            team = row["team"]["id"]
            rank = 1 + bisect_left(scores, row["score"])
            public = before[team]
            public = None if public is None else 1 + bisect_left(known, public)
            move = None if public is None else public - rank
            if (row["rank"], row["public_rank"], row["move"]) != (rank, public, move):
                raise BrokenLedger(f"The final rank of team {team!r:.40} is not that of its score.")
