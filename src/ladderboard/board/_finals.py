"""Closing a board: selected submissions, the final ranking and the bundle to verify."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ladderboard._atomic_file import absolute_path
from ladderboard._formatting import format_count, format_time
from ladderboard.board._access import check_permission
from ladderboard.board._board import STANDINGS_KEY
from ladderboard.board._folder import make_scorers, split_mask
from ladderboard.board._people import forget_erased
from ladderboard.board._repository import (
    ENDED_STATUSES,
    clear_chosen,
    find_submission,
    find_submission_by_entry,
    find_team,
    iter_submissions_by_entry,
    list_chosen,
    list_finalists,
    list_submissions,
    list_teams,
    read_board,
    read_board_and_team,
    to_json,
    update_board,
    update_submission,
)
from ladderboard.board._rules import round_for_display, to_metric
from ladderboard.board._standings import rank_by_mean
from ladderboard.board._submissions import open_stored_predictions, read_secret_side
from ladderboard.board._webhooks import queue_event
from ladderboard.bounds import MAX_COMPARED_MODELS, RankComparison, compare_teams, mean_ranks
from ladderboard.errors import InvalidSetting, NotFound, NotOpen
from ladderboard.holdout import iter_decrypted_entries, write_bundle_opening
from ladderboard.ledger import (
    Commitment,
    ScoredQuestion,
    decode,
    digest,
    encode,
    write_bundle,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from ladderboard.board._access import Caller
    from ladderboard.board._board import BoardContext
    from ladderboard.board._model import BoardRow, SubmissionRow, TeamRow
    from ladderboard.board._rules import Rules
    from ladderboard.board._standings import FurtherValues
    from ladderboard.board._submissions import Sandbox
    from ladderboard.bounds import RankRange
    from ladderboard.ledger import (
        BookTransaction,
        BundleWriter,
        ChainHead,
        Entry,
        GateSecret,
        ReadView,
        SecretSide,
        WriteView,
    )

_PAGE_ROWS = 1000
_CHUNK_BYTES = 2**20
_COMPARISON_KEY = "comparison of the finals"


class _Finalist(NamedTuple):
    """A submission in the final ranking."""

    team: str
    baseline: str | None
    """The name of a baseline; the ledger commits to no names of teams, which can be erased."""
    submission: SubmissionRow


class _Candidates(NamedTuple):
    """The submissions of a team from which its finalists are chosen."""

    team: TeamRow
    submissions: list[SubmissionRow]


class BoardCloser:
    """Selects submissions for the final ranking, and closes one board."""

    def __init__(self, board: BoardContext) -> None:
        self._board = board

    def select_submissions(self, caller: Caller, submissions: Sequence[str]) -> None:
        """Select a team's submissions for the final ranking, replacing its earlier selection."""
        check_permission(caller, "choose")
        selected_ids = list(dict.fromkeys(submissions))

        def replace_selection(transaction: BookTransaction) -> None:
            view = transaction.view
            row, _ = read_board_and_team(view, caller.team or 0, caller.sender)
            if row.status in ENDED_STATUSES:
                raise NotOpen("The board is closed. Selections cannot change.")
            limit = self._board.rules_of(row).selections
            if len(selected_ids) > limit:
                raise InvalidSetting(
                    f"At most {format_count(limit, 'submission')} can be selected, not "
                    f"{len(selected_ids)}. The selection is unchanged."
                )
            numbers = []
            for submission in selected_ids:
                selected = find_submission(view, submission)
                if selected is None or selected.team != caller.team:
                    raise NotFound("There is no such submission.")
                numbers.append((selected.team, selected.number))
            clear_chosen(view, caller.team or 0)
            for team, number in numbers:
                update_submission(view, team, number, chosen=True)

        self._board.queue.run(replace_selection)

    def close(self, caller: Caller, *, sandbox: Sandbox | None = None) -> dict[str, Any] | None:
        """Close the board for good; score each team's finalists once on the private split.

        These are the submissions that the team selected. If it selected none, its best by exact
        public score take part. Returns the final ranking; None without a private split.
        ``sandbox`` parses uploaded files that an older version stored. An interrupted close can be
        repeated: selections stay locked, and scores come out the same.
        """
        check_permission(caller, "run")
        board = self._board

        def lock(transaction: BookTransaction) -> None:
            view = transaction.view
            row = read_board(view)
            if row.status in {"closed", "moved"}:
                raise NotOpen(f"The board is {row.status}.")
            update_board(view, status="closing")

        board.queue.run(lock)
        with board.reading() as view:
            row = read_board(view)
            rules = board.rules_of(row)
            candidates = _read_candidates(view)
            ranks = _public_ranks(board, view)
            now = board.book.environment.current_time(view)
        entrants = []
        if board.epoch_of(row).ranked:
            entrants = self._choose_finalists(row, rules, candidates, sandbox=sandbox)
        final, comparison = self._score_finalists(row, rules, entrants, ranks, now, sandbox=sandbox)
        salt = board.book.environment.salt()

        def record_close(transaction: BookTransaction) -> None:
            view = transaction.view
            now = read_board(view)
            if now.status == "closed":
                return
            current = (_read_candidates(view), _public_ranks(board, view))
            if now.epoch != row.epoch or current != (candidates, ranks):
                raise NotOpen("The board changed while it was being closed. Close it again.")
            _mark_finalists(view, entrants)
            forget_erased(board.book, view)
            final_json = None if final is None else to_json(final)
            standings = Commitment("standings", list_final_standings(board, view), salt)
            summary = {"standings": standings.hash.hex()}
            if final is not None:
                summary["finals"] = digest("finals", final_json).hex()
            transaction.close(**summary)
            opening = encode({"salt": standings.salt, "content": standings.content})
            board.book.store_encrypted(view, STANDINGS_KEY, opening)
            board.book.store_encrypted(view, _COMPARISON_KEY, comparison)
            visibility = "public" if now.visibility == "frozen" else now.visibility
            update_board(
                view,
                status="closed",
                final=final_json,
                amended=now.amended + 1,
                visibility=visibility,
            )
            queue_event(board, transaction, "closed")
            if final is not None:
                queue_event(board, transaction, "results")

        board.queue.run(record_close)
        names = {team.id: team.name for team, _ in candidates}
        for ranked in [] if final is None else final["rows"]:  # the ledger has no names of teams
            ranked["team"]["name"] = names[ranked["team"]["id"]]
        return final

    def _choose_finalists(
        self,
        row: BoardRow,
        rules: Rules,
        candidates: list[_Candidates],
        *,
        sandbox: Sandbox | None,
    ) -> list[_Finalist]:
        """Return each team's candidates with the best exact public scores, the earliest of equals.

        Exact scores may decide, because the public rows are spent at the close. Files that were
        lost take no part, unless the team has no others.
        """
        board, finalists = self._board, []
        scorer = board.scorer_of(row)
        with open_stored_predictions(board, row, sandbox) as read:

            def public_risk(submission: SubmissionRow) -> float:
                if submission.epoch == row.epoch:
                    return read_secret_side(board, submission.entry).risk
                return scorer.score(read(submission)).risk  # labels were corrected since

            for team, submissions in candidates:
                limit = rules.selections if team.kind == "team" else 1
                compared = [stored for stored in submissions if stored.place] or submissions
                if len(compared) > limit:
                    compared = sorted(compared, key=public_risk)[:limit]
                baseline = _baseline_name(team)
                finalists += [_Finalist(team.id, baseline, submission) for submission in compared]
        return finalists

    def _score_finalists(
        self,
        row: BoardRow,
        rules: Rules,
        entrants: list[_Finalist],
        ranks: dict[str, int],
        now: int,
        *,
        sandbox: Sandbox | None,
    ) -> tuple[dict[str, Any] | None, bytes]:
        """Return the final ranking, and which teams were found to be ahead of which."""
        board = self._board
        table = board.epoch_of(row).table
        private = split_mask(table, "private")
        if private is None or not private.any():
            return None, b""
        scorers, deciding = make_scorers(table, rules, "private"), rules.final_metric_number
        scorer = scorers[deciding or 0]
        compares = not scorer.loss.at_close_only  # nothing is known about single examples
        effective_n = int(scorer.grouping.effective_n)
        risks: list[list[float]] = []
        compared: list[tuple[str, NDArray[np.float32]]] = []
        few = sum(finalist.baseline is None for finalist in entrants) <= MAX_COMPARED_MODELS
        with open_stored_predictions(board, row, sandbox) as read:
            for finalist in entrants:
                submission = read(finalist.submission)
                scored = [metric.score(submission) for metric in scorers]
                risks.append([result.risk for result in scored])
                if compares and few and finalist.baseline is None and deciding is not None:
                    compared.append((finalist.team, scorer.contributions(scored[deciding])))
        if deciding is None:
            teams = [finalist.team if finalist.baseline is None else None for finalist in entrants]
            keys = mean_ranks(risks, teams)
        else:
            keys = [values[deciding] for values in risks]
        best: dict[str, int] = {}
        for index, finalist in enumerate(entrants):
            if finalist.team not in best or keys[index] < keys[best[finalist.team]]:
                best[finalist.team] = index
        rows = []
        for index in sorted(best.values(), key=keys.__getitem__):
            finalist, risk = entrants[index], risks[index][deciding or 0]
            interval = scorer.fresh_interval(risk, models=len(entrants), beta=rules.beta)
            final_row = _final_row(rules, finalist, risk, interval, ranks.get(finalist.team))
            if rules.metrics:
                final_row["metrics"] = [
                    metric.serialize(value)
                    for metric, value in zip(rules.all_metrics, risks[index], strict=True)
                ]
            if deciding is None:
                final_row["mean_rank"] = keys[index]
            rows.append(final_row)
        comparison = _set_rank_ranges(rows, compared, rules.beta)
        rank_finals(rows)
        final = {
            "board": board.slug,
            "closed": format_time(now),
            "n": effective_n,
            "selected": len(entrants),
            "beta": rules.beta,
            "rows": rows,
        }
        return final, comparison


def _final_row(
    rules: Rules, finalist: _Finalist, risk: float, interval: tuple[float, float], rank: int | None
) -> dict[str, Any]:
    low, high = interval
    return {
        "rank": None,
        "team": {"id": finalist.team, "name": finalist.baseline},
        "baseline": finalist.baseline is not None,
        "score": risk,
        "low": low,
        "high": high,
        "display": round_for_display(rules.final_display, risk),
        "submission": finalist.submission.id,
        "public_rank": rank,
        "move": None,
        "ranks": None,
        "band": None,
    }


def _set_rank_ranges(
    rows: list[dict[str, Any]], compared: list[tuple[str, NDArray[np.float32]]], beta: float
) -> bytes:
    """Set the ranks that the data allow each team, and its band; baselines have none.

    Returns which teams are ahead of which, to be stored; empty if they were not compared. The
    ledger commits to the ranges of all teams, and a team can be disqualified at any time.
    """
    if not compared:
        return b""
    teams = list(dict.fromkeys(team for team, _ in compared))
    comparison = compare_teams(
        [contributions for _, contributions in compared],
        teams=[teams.index(team) for team, _ in compared],
        beta=beta,
    )
    _set_ranges(rows, dict(zip(teams, comparison.ranges(), strict=True)))
    return encode({"teams": teams, "ahead": np.packbits(comparison.ahead).tobytes()})


def _set_ranges(rows: list[dict[str, Any]], ranges: Mapping[str, RankRange]) -> None:
    for row in rows:
        if not row["baseline"]:
            best, worst, band = ranges[row["team"]["id"]]
            row["ranks"], row["band"] = [best, worst], band


def rank_remaining(
    board: BoardContext, view: ReadView, rows: list[dict[str, Any]], *, removed: int
) -> None:
    """Rank a final ranking from which this many disqualified teams were removed."""
    known = removed and view.get_value(_COMPARISON_KEY) is not None  # not by older versions
    content = board.book.read_encrypted(_COMPARISON_KEY) if known else b""
    if content:
        stored = decode(content)
        teams, count = stored["teams"], len(stored["teams"])
        bits = np.unpackbits(np.frombuffer(stored["ahead"], dtype=np.uint8), count=count**2)
        ahead = bits.reshape(count, count).astype(np.bool_)
        left = [row["team"]["id"] for row in rows if not row["baseline"]]
        places = [teams.index(team) for team in left]
        comparison = RankComparison(
            ahead[np.ix_(places, places)], np.arange(len(left), dtype=float)
        )
        _set_ranges(rows, dict(zip(left, comparison.ranges(), strict=True)))
        removed = 0
    rank_finals(rows, removed=removed)


def rank_finals(rows: list[dict[str, Any]], *, removed: int = 0) -> None:
    """Set ranks, equal ones for equal scores, and how far each team moved.

    Both ranks count only the teams in the rows: ``removed`` teams were disqualified. Where it is
    not known which teams they were ahead of, every range of ranks begins that much earlier.
    """
    teams = [row for row in rows if not row["baseline"]]
    public = sorted(row["public_rank"] for row in teams if row["public_rank"] is not None)
    last, rank = None, 0
    for counted, row in enumerate(teams, start=1):
        if row["public_rank"] is not None:
            row["public_rank"] = public.index(row["public_rank"]) + 1
        decides = row.get("mean_rank", row["score"])
        if decides != last:
            last, rank = decides, counted
        row["rank"] = rank
        if removed and row.get("ranks") is not None:
            low, high = row["ranks"]
            row["ranks"] = [max(low - removed, 1), min(high, len(teams))]
        if row["public_rank"] is not None:
            row["move"] = row["public_rank"] - rank
    bands = sorted({row["band"] for row in teams if row.get("band") is not None})
    for row in teams:
        if row.get("band") is not None:  # they count those that are left
            row["band"] = bands.index(row["band"]) + 1


def serialize_final_row(row: dict[str, Any], rules: Rules) -> dict[str, Any]:
    """Return a row of the final ranking, which is stored in losses, in the board's metrics."""
    display = rules.final_display
    low, high = sorted((display.metric_value(row["low"]), display.metric_value(row["high"])))
    score = to_metric(display, row["score"])
    # Boards that were closed by an older version have no ranges.
    ranges = {"ranks": row.get("ranks"), "band": row.get("band")}
    metrics = [
        {
            **stored,
            "score": to_metric(metric.display, stored["score"]),
            "loss": stored["score"],
            "digits": metric.display.digits,
        }
        for metric, stored in zip(rules.all_metrics, row.get("metrics", ()), strict=False)
        if metric.display != display
    ]
    converted = {"score": score, "loss": row["score"], "low": low, "high": high}
    further = {"metrics": metrics, "mean_rank": row.get("mean_rank")}
    return {**row, **converted, **ranges, **further}


def has_useful_intervals(final: dict[str, Any], rules: Rules) -> bool:
    """Return whether to show the intervals of a final ranking: not if even the narrowest is wide.

    The rows are those of ``serialize_final_row``.
    """
    display = rules.final_display
    return any(display.is_narrow(row["low"], row["high"]) for row in final["rows"])


def list_final_standings(board: BoardContext, view: ReadView) -> list[dict[str, Any]]:
    """Return all teams' standings in order of registration, as the close commits to them.

    A rank is 1 plus the number of teams with a lower release, or a lower mean rank where that
    decides. Baselines, disqualified teams and teams without a release have none. Only baselines
    have a name, which is in the rules anyway.
    """
    teams = list_teams(view)
    row = read_board(view)
    further: FurtherValues = {}
    if board.rules_of(row).ranks_by_mean:
        further = board.further_values(view, row)
    ranked = {
        team.id: (team.released, *further.get(team.id, ()))
        for team in teams
        if team.kind == "team" and not team.disqualified
    }
    ranks = rank_by_mean(ranked, set())  # of one metric, the rank in it
    return [
        {
            "team": team.id,
            "name": _baseline_name(team),
            "baseline": team.kind == "baseline",
            "disqualified": team.disqualified,
            "rank": ranks[team.id].rank if team.id in ranks else None,
            "released": team.released,
            "since": team.since,
        }
        for team in teams
    ]


def _baseline_name(team: TeamRow) -> str | None:
    return team.name if team.kind == "baseline" else None


def _read_candidates(view: ReadView) -> list[_Candidates]:
    """Return each team's selected submissions, or all of them if it selected none, oldest first."""
    return [
        _Candidates(
            team,
            list_chosen(view, team.number)
            or list_submissions(view, team.number, before=None, limit=team.used)[::-1],
        )
        for team in list_teams(view)
    ]


def _mark_finalists(view: WriteView, finalists: list[_Finalist]) -> None:
    """Record which submissions took part: they alone stay selected."""
    for team in {finalist.submission.team for finalist in finalists}:
        clear_chosen(view, team)
    for finalist in finalists:
        submission = finalist.submission
        update_submission(view, submission.team, submission.number, chosen=True)


def _list_finalist_ids(view: ReadView, rules: Rules) -> set[str]:
    """Return the ids of the submissions in the final ranking of a closed board."""
    finalists = set()
    for team in list_teams(view):
        selected = len(list_chosen(view, team.number))
        count = min(selected or rules.selections, rules.selections) if team.kind == "team" else 1
        finalists |= {submission.id for submission in list_finalists(view, team.number, count)}
    return finalists


def _public_ranks(board: BoardContext, view: ReadView) -> dict[str, int]:
    standings = list_final_standings(board, view)
    return {row["team"]: row["rank"] for row in standings if row["rank"] is not None}


def write_board_bundle(
    board: BoardContext, to: Path | str, *, labels: bool = False, submissions: bool = False
) -> ChainHead:
    """Write a closed board with its secrets into a new file, and return the ledger's head.

    The file is readable by its owner only, appears when it is complete, and never replaces
    another. It holds the noise key, every risk and every draw, so an open board is refused.

    Parameters
    ----------
    labels
        Include the labels; otherwise they stay secret.
    submissions
        Include the submitted predictions.
    """
    path = absolute_path(to)
    with board.reading() as view:
        row = read_board(view)
        if not view.chain_state().closed:
            raise NotOpen(
                f"{board.slug} is {row.status}; its bundle can be written when it is closed, "
                "because published scores reveal the labels."
            )
        epochs = row.epoch + 1 if labels else 0
        standings = board.read_final_standings(view)
        nameless = standings is not None and not board.names_in_ledger(view)
        with write_bundle(path, bundle_format=2 if nameless else 1) as bundle:
            head = write_bundle_opening(
                bundle, board.book, view, of="board", epochs=epochs, submissions=submissions
            )
            if submissions:
                _write_entries_with_files(bundle, board, view, row)
            else:
                for entry, secret in iter_decrypted_entries(board.book, view):
                    bundle.write_entry(entry.encoded, secret)
            if standings is not None:
                bundle.write_record("standings", standings)
            if row.final is not None:
                bundle.write_record("finals", row.final)
            if nameless:
                teams = (team for team in list_teams(view) if team.kind == "team")
                bundle.write_record("teams", {team.id: team.name for team in teams})
            bundle.finish()
    return head


def _write_entries_with_files(
    bundle: BundleWriter, board: BoardContext, view: ReadView, row: BoardRow
) -> None:
    """Write each entry, and after it the file that it was scored for."""
    selected: set[str] = set()
    if row.final is not None:
        selected = _list_finalist_ids(view, board.rules_of(row))
    files = iter_submissions_by_entry(view)
    file = next(files, None)
    for number, (entry, secret) in enumerate(iter_decrypted_entries(board.book, view)):
        bundle.write_entry(entry.encoded, secret)
        if file is not None and file.entry == number:
            _write_submitted_file(bundle, board, file, selected=file.id in selected)
            file = next(files, None)
        elif secret is not None and row.epoch and "metric" not in entry.read():
            later = _find_replayed_file(board, view, row, entry, secret)
            if later is not None:
                _write_submitted_file(bundle, board, later, selected=False)


def _find_replayed_file(
    board: BoardContext,
    view: ReadView,
    row: BoardRow,
    entry: Entry,
    secret: SecretSide | GateSecret,
) -> SubmissionRow | None:
    """Return the file of an entry whose submission was asked again after a label correction.

    The submission's row names the later entry. That entry is found by its key on the ladder of a
    later epoch.
    """
    team = find_team(view, entry.read()["asker"])
    for epoch in range(1, row.epoch + 1):
        ladder = board.ladder_of(replace(row, epoch=epoch), team.id)
        question = ScoredQuestion(secret.submission, 0, ladder=ladder, asker=team.id)
        number = view.find_by_dedupe_key(board.book.dedupe_key(question))
        submission = None if number is None else find_submission_by_entry(view, number)
        if submission is not None:
            return submission
    return None


def _write_submitted_file(
    bundle: BundleWriter, board: BoardContext, file: SubmissionRow, *, selected: bool
) -> None:
    if not file.place:  # it was lost before the board was restored here
        return
    with board.store.get(file.place) as body:
        digest, size = hashlib.sha256(), 0
        while part := body.read(_CHUNK_BYTES):
            digest.update(part)
            size += len(part)
        body.seek(0)
        fields = {"id": file.id, "format": file.format, "size": size, "sha256": digest.digest()}
        bundle.write_record("file", {**fields, "selected": selected})
        while part := body.read(_CHUNK_BYTES):
            bundle.write_record("part", part)
