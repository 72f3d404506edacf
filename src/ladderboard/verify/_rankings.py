"""Check the rankings at the close: the standings, and the finals on the private split."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from ladderboard.bounds import MAX_COMPARED_MODELS, rank_ranges
from ladderboard.errors import BrokenLedger
from ladderboard.ledger import Commitment, digest, parse_strict_json
from ladderboard.losses import display_risk
from ladderboard.verify._strict import has_exact_keys, is_release_value, same_encoding

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ladderboard.holdout import AlignedPredictions
    from ladderboard.losses import Loss
    from ladderboard.verify._history import HistoryChecker
    from ladderboard.verify._risks import RiskChecker, SubmittedFile

_STANDING_FIELDS = {"team", "name", "baseline", "disqualified", "rank", "released", "since"}
_TIME = "%Y-%m-%dT%H:%M:%SZ"
_FINALS_FIELDS = {"board", "closed", "n", "selected", "beta", "rows"}
_FINAL_FIELDS = {
    "rank", "team", "baseline", "score", "low", "high", "display", "submission", "public_rank",
    "move", "ranks", "band",
}  # fmt: skip
_EARLIER_FINAL_FIELDS = _FINAL_FIELDS - {"ranks", "band"}  # before there were rank ranges
_SIMULATION_ERROR = 0.03  # of the critical value of a comparison


RankingRows = list[dict[str, Any]]


def check_standings(
    history: HistoryChecker, standings: dict[str, Any] | None, names: dict[str, str] | None
) -> RankingRows | None:
    """Return the rows of the standings; refuse rows that do not follow from the entries.

    ``names`` are those that the bundle holds beside them: the ledger commits to teams by their ids.
    In bundles of format 1 it is None, and the standings hold the names.
    """
    shown = (history.closed or {}).get("standings")
    if standings is None or shown is None:
        if standings is not None or shown is not None:
            raise BrokenLedger(
                "The standings are missing from the bundle, or from the closing entry."
            )
        return None
    rows: RankingRows = standings["content"]
    if Commitment("standings", rows, standings["salt"]).hash.hex() != shown:
        raise BrokenLedger("The standings do not match their commitment in the closing entry.")
    named = names is None
    if not all(has_exact_keys(row, _STANDING_FIELDS) and _is_standing(row, named) for row in rows):
        raise BrokenLedger("The standings have a malformed row.")
    _check_standing_teams(history, rows)
    if names is not None and names.keys() != {row["team"] for row in rows if not row["baseline"]}:
        raise BrokenLedger("The bundle names other teams than those in the standings.")
    _check_standing_ranks(history, rows)
    return rows


def _check_standing_teams(history: HistoryChecker, rows: RankingRows) -> None:
    """Refuse a duplicate or missing team, and a team that is declared a baseline."""
    teams, names = [row["team"] for row in rows], [row["name"] for row in rows if row["name"]]
    if len(set(teams)) != len(teams) or len(set(names)) != len(names):
        raise BrokenLedger("The standings list a team or a name twice.")
    if missing := history.questions_by_team.keys() - set(teams):
        raise BrokenLedger(f"Team {min(missing)!r:.40} is missing from the standings.")
    baselines, known = (
        {row["name"] for row in rows if row["baseline"]},
        set(history.rules.baselines),
    )
    # A board that was closed before its baselines were asked has fewer.
    if not baselines <= known or (set(names) - baselines) & known:
        raise BrokenLedger("The baselines in the standings differ from those in the rules.")
    if len(teams) - len(baselines) > history.rules.board["teams"]:
        raise BrokenLedger("The standings list more teams than the rules allow.")


def _check_standing_ranks(history: HistoryChecker, rows: RankingRows) -> None:
    """Refuse values that were never released, and ranks that do not follow from them."""
    ranked = sorted(row["released"] for row in rows if _is_ranked(row))
    for row in rows:
        team, stands = row["team"], history.best_at_close.get(row["team"], (None, None))
        released = same_encoding([row["released"], row["since"]], list(stands))
        if not released or row["disqualified"] is not (team in history.disqualified_at_close):
            raise BrokenLedger(f"The standings of team {team!r:.40} differ from its releases.")
        rank = 1 + bisect_left(ranked, row["released"]) if _is_ranked(row) else None
        if not same_encoding(row["rank"], rank):
            raise BrokenLedger(f"The rank of team {team!r:.40} does not follow from the releases.")


def _is_standing(row: dict[str, Any], named: bool) -> bool:
    flag = type(row["baseline"]) is bool
    return flag and type(row["team"]) is str and _is_name(row["name"], named or row["baseline"])


def _is_name(name: Any, named: bool) -> bool:
    """Return whether this is a name, or nothing for a team that the ledger does not name."""
    return type(name) is str if named else name is None


def _is_ranked(row: dict[str, Any]) -> bool:
    return not (row["baseline"] or row["disqualified"] or row["released"] is None)


def check_finals(
    history: HistoryChecker,
    text: str | None,
    standings: RankingRows | None,
    loss: Loss | None,
    *,
    named: bool,
) -> dict[str, Any] | None:
    """Return the final ranking; refuse one without a commitment, or with contradictions.

    ``named`` says whether it names teams, as in bundles of format 1.
    """
    shown = (history.closed or {}).get("finals")
    if text is None and shown is None:
        return None
    if text is None or digest("finals", text).hex() != shown:
        raise BrokenLedger("The final ranking does not match its commitment in the closing entry.")
    finals = parse_strict_json(text)
    rows = finals["rows"]
    fields = _FINAL_FIELDS if any("ranks" in row for row in rows) else _EARLIER_FINAL_FIELDS
    if not has_exact_keys(finals, _FINALS_FIELDS) or not all(
        has_exact_keys(row, fields) and _is_final(row, named) for row in rows
    ):
        raise BrokenLedger("The final ranking is malformed.")
    board = history.rules.board
    if not same_encoding([finals["board"], finals["beta"]], [board["slug"], board["beta"]]):
        raise BrokenLedger("The final ranking belongs to another board.")
    when = datetime.strptime(finals["closed"], _TIME).replace(tzinfo=UTC).timestamp()
    if not history.last_question_time <= when <= (history.closed or {})["time"]:
        raise BrokenLedger("The final ranking has another closing time than the ledger.")
    _check_final_teams(history, rows, standings)
    _check_final_ranks(rows, standings)
    if loss is not None:
        form = board["display"]["as"]
        _check_final_display(rows, board["display"], loss.display_unit(form))
    return finals


def _is_final(row: dict[str, Any], named: bool) -> bool:
    numbers = (row["score"], row["low"], row["high"])
    return all(number is not None and is_release_value(number) for number in numbers) and (
        type(row["baseline"]) is bool
        and has_exact_keys(row["team"], {"id", "name"})
        and all(type(text) is str for text in (row["team"]["id"], row["submission"]))
        and _is_name(row["team"]["name"], named or row["baseline"])
        and _is_rank_range(row)
    )


def _is_rank_range(row: dict[str, Any]) -> bool:
    ranks, band = row.get("ranks"), row.get("band")
    if ranks is None or band is None:
        return ranks is None and band is None
    numbers = [*ranks, band] if type(ranks) is list else []
    return len(numbers) == 3 and all(type(number) is int for number in numbers)


def _check_final_teams(
    history: HistoryChecker, rows: RankingRows, standings: RankingRows | None
) -> None:
    """Refuse a duplicate or missing team, and a name that differs from the standings."""
    teams = [row["team"]["id"] for row in rows]
    if len(set(teams)) != len(teams) or set(teams) != history.questions_by_team.keys():
        raise BrokenLedger("The final ranking lists other teams than those that asked.")
    known = {row["team"]: (row["name"], row["baseline"]) for row in standings or ()}
    for row in rows if standings is not None else ():
        if (row["team"]["name"], row["baseline"]) != known[row["team"]["id"]]:
            raise BrokenLedger(
                "The final ranking differs from the standings in a team's name or kind."
            )


def _check_final_ranks(rows: RankingRows, standings: RankingRows | None) -> None:
    """Refuse ranks that do not follow from scores; baselines have no rank."""
    all_scores = [row["score"] for row in rows]
    if all_scores != sorted(all_scores):
        raise BrokenLedger("The final ranking is not sorted by score.")
    teams = [row for row in rows if not row["baseline"]]
    before = {row["team"]["id"]: row["public_rank"] for row in teams}
    if standings is not None:  # older versions committed to no standings
        ranks = {row["team"]: row["rank"] for row in standings}
        before = {team: ranks[team] for team in before}
    public_ranks = sorted(rank for rank in before.values() if rank is not None)
    scores = [row["score"] for row in teams]
    for row in rows:
        rank = public = move = None
        if not row["baseline"]:
            rank = 1 + bisect_left(scores, row["score"])
            public = before[row["team"]["id"]]
            public = None if public is None else 1 + bisect_left(public_ranks, public)
            move = None if public is None else public - rank
        if not same_encoding([row["rank"], row["public_rank"], row["move"]], [rank, public, move]):
            team = row["team"]["id"]
            raise BrokenLedger(
                f"The final rank of team {team!r:.40} does not follow from its score."
            )


def _check_final_display(rows: RankingRows, display: dict[str, Any], unit: float) -> None:
    """Refuse a displayed number that does not follow from the score."""
    for row in rows:
        shown = display_risk(display["as"], row["score"], unit)
        if not same_encoding(row["display"], round(shown, display["digits"])):
            team = row["team"]["id"]
            raise BrokenLedger(f"The displayed number of team {team!r:.40} is not its final score.")


class FinalsChecker:
    """Scores the selected files on the private split, and checks the finals against them."""

    def __init__(self) -> None:
        self._best: dict[str, tuple[float, set[str]]] = {}
        self._files: set[str] = set()
        self._compared: list[tuple[str, NDArray[np.float32]]] = []
        self._selected_by_team: Counter[str] = Counter()

    def score_selected(
        self, team: str, file: SubmittedFile, submission: AlignedPredictions, risks: RiskChecker
    ) -> None:
        """Score a file that a team selected for the finals."""
        scorer = risks.find_scorer(len(risks.tables) - 1, "private")
        if scorer is None or file.id in self._files:
            raise BrokenLedger(
                "A file is selected twice for the final ranking, or without private rows."
            )
        scored = scorer.score(submission)
        risk = scored.risk
        self._files.add(file.id)
        if len(self._compared) <= MAX_COMPARED_MODELS:
            self._compared.append((team, scorer.contributions(scored)))
        self._selected_by_team[team] += 1
        best, ids = self._best.get(team, (risk, set()))
        if risk <= best:
            self._best[team] = (risk, {*(ids if risk == best else ()), file.id})

    def check(self, final: dict[str, Any], history: HistoryChecker, risks: RiskChecker) -> None:
        """Refuse a final ranking that does not follow from files and labels."""
        scorer = risks.find_scorer(len(risks.tables) - 1, "private")
        if scorer is None:
            raise BrokenLedger("The bundle has a final ranking but no private rows.")
        grouping = scorer.grouping
        effective_n = int(grouping.effective_n)
        models = self._selected_by_team.total()
        rules = history.rules.board["finals"]
        max_selections = 1 if rules is None else rules["selections"]
        within_limit = all(
            self._selected_by_team[row["team"]["id"]] <= (1 if row["baseline"] else max_selections)
            for row in final["rows"]
        )
        if not within_limit or not same_encoding(
            [final["n"], final["selected"]], [effective_n, models]
        ):
            raise BrokenLedger("The final ranking does not match the selected files.")
        for row in final["rows"]:
            team = row["team"]["id"]
            if team not in self._best:
                raise BrokenLedger("The final ranking does not match the selected files.")
            risk, ids = self._best[team]
            interval = scorer.fresh_interval(risk, models=models, beta=final["beta"])
            if (row["score"], row["low"], row["high"]) != (risk, *interval) or (
                row["submission"] not in ids
            ):
                raise BrokenLedger(
                    f"The final score of team {team!r:.40} does not match its files."
                )
        self._check_rank_ranges(final)

    def _check_rank_ranges(self, final: dict[str, Any]) -> None:
        """Refuse rank ranges that do not follow from files and labels.

        Their critical values are simulated, so they are compared with slightly wider and slightly
        narrower ranges.
        """
        rows = [row for row in final["rows"] if not row["baseline"] and "ranks" in row]
        if len(self._compared) > MAX_COMPARED_MODELS or not rows:
            return
        teams = {row["team"]["id"]: row for row in rows}
        compared = [(team, losses) for team, losses in self._compared if team in teams]
        numbers = {
            team: number for number, team in enumerate(dict.fromkeys(t for t, _ in compared))
        }
        wide, narrow = (
            rank_ranges(
                [losses for _, losses in compared],
                teams=[numbers[team] for team, _ in compared],
                beta=final["beta"],
                slack=slack,
            )
            for slack in (_SIMULATION_ERROR, -_SIMULATION_ERROR)
        )
        for team, number in numbers.items():
            best, worst = teams[team]["ranks"] or (0, 0)
            low, high = wide[number], narrow[number]
            ranks = low.best <= best <= high.best and high.worst <= worst <= low.worst
            if not ranks or (low.band == high.band != teams[team]["band"]):
                raise BrokenLedger(f"The rank range of team {team!r:.40} does not match the files.")
