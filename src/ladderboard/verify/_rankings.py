"""Check the rankings at the close: the standings, and the finals on the private split."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from ladderboard.bounds import MAX_COMPARED_MODELS, mean_ranks, rank_ranges
from ladderboard.errors import BrokenLedger
from ladderboard.ledger import Commitment, digest, parse_strict_json
from ladderboard.losses import display_risk
from ladderboard.verify._chain import has_exact_keys, is_release_value, same_encoding

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from ladderboard.holdout import AlignedPredictions, Scorer
    from ladderboard.losses import Loss
    from ladderboard.verify._history import HistoryChecker, LedgerRules, MetricRule
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
_LAST_BITS = 1e-9  # what logarithms of other machines and other solvers may change of an interval


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
    if early := history.without_terms - {row["team"] for row in rows if row["baseline"]}:
        raise BrokenLedger(f"Team {min(early)!r:.40} asked before it accepted the terms.")
    # A board that was closed before its baselines were asked has fewer.
    if not baselines <= known or (set(names) - baselines) & known:
        raise BrokenLedger("The baselines in the standings differ from those in the rules.")
    if len(teams) - len(baselines) > history.rules.board["teams"]:
        raise BrokenLedger("The standings list more teams than the rules allow.")


def _check_standing_ranks(history: HistoryChecker, rows: RankingRows) -> None:
    """Refuse values that were never released, and ranks that do not follow from them."""
    ranked = [row for row in rows if not (row["baseline"] or row["disqualified"])]
    ranks = _standing_ranks(history, ranked)
    for row in rows:
        team, stands = row["team"], history.best_at_close.get(row["team"], (None, None))
        released = same_encoding([row["released"], row["since"]], list(stands))
        if not released or row["disqualified"] is not (team in history.disqualified_at_close):
            raise BrokenLedger(f"The standings of team {team!r:.40} differ from its releases.")
        if not same_encoding(row["rank"], ranks.get(team)):
            raise BrokenLedger(f"The rank of team {team!r:.40} does not follow from the releases.")


def _standing_ranks(history: HistoryChecker, rows: RankingRows) -> dict[str, int]:
    """Return the ranks by the first metric, or by the mean of the ranks in all live ones."""
    live = history.rules.live_metrics[1:] if history.rules.ranks_by_mean else []
    values = {
        row["team"]: [
            row["released"],
            *(history.best_by_metric.get((row["team"], number)) for number in live),
        ]
        for row in rows
    }
    losses = {
        team: [math.inf if value is None else value for value in released]
        for team, released in values.items()
        if any(value is not None for value in released)
    }
    means = mean_ranks(list(losses.values()), list(losses))
    ranked = sorted(means)
    return {team: 1 + bisect_left(ranked, mean) for team, mean in zip(losses, means, strict=True)}


def _is_standing(row: dict[str, Any], named: bool) -> bool:
    flag = type(row["baseline"]) is bool
    return flag and type(row["team"]) is str and _is_name(row["name"], named or row["baseline"])


def _is_name(name: Any, named: bool) -> bool:
    """Return whether this is a name, or nothing for a team that the ledger does not name."""
    return type(name) is str if named else name is None


def check_finals(
    history: HistoryChecker,
    text: str | None,
    standings: RankingRows | None,
    losses: Sequence[Loss | None],
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
    metrics, deciding = history.rules.metrics, history.rules.final_metric
    fields = fields | ({"metrics"} if len(metrics) > 1 else set())
    fields = fields | ({"mean_rank"} if deciding is None else set())
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
    for number, loss in enumerate(losses):
        if loss is not None:
            _check_final_display(rows, metrics, number, loss, decides=number == (deciding or 0))
    return finals


def _is_final(row: dict[str, Any], named: bool) -> bool:
    numbers = (row["score"], row["low"], row["high"], row.get("mean_rank", 1.0))
    return all(number is not None and is_release_value(number) for number in numbers) and (
        type(row["baseline"]) is bool
        and has_exact_keys(row["team"], {"id", "name"})
        and all(type(text) is str for text in (row["team"]["id"], row["submission"]))
        and _is_name(row["team"]["name"], named or row["baseline"])
        and _is_rank_range(row)
        and all(
            has_exact_keys(metric, {"name", "score", "display"})
            and metric["score"] is not None
            and is_release_value(metric["score"])
            for metric in row.get("metrics", ())
        )
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


def _deciding(row: dict[str, Any]) -> float:
    """Return the number that a row is ranked by."""
    decides: float = row.get("mean_rank", row["score"])
    return decides


def _same_interval(stated: Sequence[object], actual: Sequence[float]) -> bool:
    """Tell whether two intervals are equal, apart from the last bits of their computed ends."""
    return all(
        isinstance(one, float | int) and abs(one - other) <= _LAST_BITS
        for one, other in zip(stated, actual, strict=True)
    )


def _check_final_ranks(rows: RankingRows, standings: RankingRows | None) -> None:
    """Refuse ranks that do not follow from scores; baselines have no rank."""
    all_scores = [_deciding(row) for row in rows]
    if all_scores != sorted(all_scores):
        raise BrokenLedger("The final ranking is not sorted by score.")
    teams = [row for row in rows if not row["baseline"]]
    before = {row["team"]["id"]: row["public_rank"] for row in teams}
    if standings is not None:  # older versions committed to no standings
        ranks = {row["team"]: row["rank"] for row in standings}
        before = {team: ranks[team] for team in before}
    public_ranks = sorted(rank for rank in before.values() if rank is not None)
    scores = [_deciding(row) for row in teams]
    for row in rows:
        rank = public = move = None
        if not row["baseline"]:
            rank = 1 + bisect_left(scores, _deciding(row))
            public = before[row["team"]["id"]]
            public = None if public is None else 1 + bisect_left(public_ranks, public)
            move = None if public is None else public - rank
        if not same_encoding([row["rank"], row["public_rank"], row["move"]], [rank, public, move]):
            team = row["team"]["id"]
            raise BrokenLedger(
                f"The final rank of team {team!r:.40} does not follow from its score."
            )


def _check_final_display(
    rows: RankingRows, metrics: list[MetricRule], number: int, loss: Loss, *, decides: bool
) -> None:
    """Refuse a displayed number of a metric that does not follow from its score."""
    metric = metrics[number]
    unit = loss.display_unit(metric.form)
    for row in rows:
        stored = [row] if decides else []
        if len(metrics) > 1:
            stored.append(row["metrics"][number])
            if row["metrics"][number]["name"] != metric.title:
                raise BrokenLedger("The final ranking names other metrics than the rules.")
        for entry in stored:
            shown = display_risk(metric.form, entry["score"], unit)
            if not same_encoding(entry["display"], round(shown, metric.digits)):
                team = row["team"]["id"]
                raise BrokenLedger(
                    f"The displayed number of team {team!r:.40} is not its final score."
                )


class _ScoredFile(NamedTuple):
    """A selected file of a team, and its risk by every metric; NaN for a custom one."""

    team: str
    risks: list[float]


class FinalsChecker:
    """Scores the selected files on the private split, and checks the finals against them."""

    def __init__(self) -> None:
        self._files: dict[str, _ScoredFile] = {}
        self._compared: list[tuple[str, NDArray[np.float32]]] = []

    def score_selected(
        self,
        team: str,
        file: SubmittedFile,
        submission: AlignedPredictions,
        risks: RiskChecker,
        rules: LedgerRules,
    ) -> None:
        """Score a file that a team selected for the finals, by every metric."""
        scorers = risks.find_final_scorers()
        if scorers[0] is None or file.id in self._files:
            raise BrokenLedger(
                "A file is selected twice for the final ranking, or without private rows."
            )
        scored = [None if scorer is None else scorer.score(submission) for scorer in scorers]
        self._files[file.id] = _ScoredFile(
            team, [math.nan if result is None else result.risk for result in scored]
        )
        deciding = rules.final_metric
        if deciding is None or len(self._compared) > MAX_COMPARED_MODELS:
            return
        scorer, result = scorers[deciding], scored[deciding]
        if scorer is not None and result is not None:
            self._compared.append((team, scorer.contributions(result)))

    def check(self, final: dict[str, Any], history: HistoryChecker, risks: RiskChecker) -> None:
        """Refuse a final ranking that does not follow from files and labels."""
        deciding = history.rules.final_metric
        scorer = risks.find_final_scorers()[deciding or 0]
        if scorer is None:
            if risks.find_final_scorers()[0] is None:
                raise BrokenLedger("The bundle has a final ranking but no private rows.")
            return  # a custom metric decides
        selected = Counter(file.team for file in self._files.values())
        rules = history.rules.board["finals"]
        max_selections = 1 if rules is None else rules["selections"]
        within_limit = all(
            selected[row["team"]["id"]] <= (1 if row["baseline"] else max_selections)
            for row in final["rows"]
        )
        effective_n, models = int(scorer.grouping.effective_n), len(self._files)
        if not within_limit or not same_encoding(
            [final["n"], final["selected"]], [effective_n, models]
        ):
            raise BrokenLedger("The final ranking does not match the selected files.")
        self._check_scores(final, deciding, scorer)
        self._check_rank_ranges(final)

    def _check_scores(self, final: dict[str, Any], deciding: int | None, scorer: Scorer) -> None:
        """Refuse scores, intervals and mean ranks that are not those of a team's best file."""
        keys = {id_: file.risks[deciding or 0] for id_, file in self._files.items()}
        if deciding is None:
            files = self._files.values()
            if any(math.isnan(risk) for file in files for risk in file.risks):
                return  # a custom metric has a part in the ranks
            baselines = {row["team"]["id"] for row in final["rows"] if row["baseline"]}
            teams = [None if file.team in baselines else file.team for file in files]
            ranks = mean_ranks([file.risks for file in files], teams)
            keys = dict(zip(self._files, ranks, strict=True))
        best: dict[str, float] = {}
        for id_, (team, _) in self._files.items():
            best[team] = min(keys[id_], best.get(team, keys[id_]))
        for row in final["rows"]:
            team, file = row["team"]["id"], self._files.get(row["submission"])
            if team not in best:
                raise BrokenLedger("The final ranking does not match the selected files.")
            if file is None or file.team != team or keys[row["submission"]] != best[team]:
                raise BrokenLedger(
                    f"The final score of team {team!r:.40} does not match its files."
                )
            risk = file.risks[deciding or 0]
            interval = scorer.fresh_interval(risk, models=len(keys), beta=final["beta"])
            stated = [row["score"], _deciding(row)]
            stated += [metric["score"] for metric in row.get("metrics", ())]
            actual = [risk, best[team]]
            actual += file.risks if "metrics" in row else []
            if not _same_interval([row["low"], row["high"]], interval) or any(
                one != other and not math.isnan(other)
                for one, other in zip(stated, actual, strict=True)
            ):
                raise BrokenLedger(
                    f"The final score of team {team!r:.40} does not match its files."
                )

    def _check_rank_ranges(self, final: dict[str, Any]) -> None:
        """Refuse rank ranges that do not follow from files and labels.

        Their critical values are simulated, so they are compared with slightly wider and slightly
        narrower ranges.
        """
        rows = [row for row in final["rows"] if not row["baseline"] and "ranks" in row]
        if not self._compared and any(row["ranks"] is not None for row in rows):
            raise BrokenLedger("The final ranking has rank ranges, though no metric decides it.")
        if len(self._compared) > MAX_COMPARED_MODELS or not rows or not self._compared:
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
