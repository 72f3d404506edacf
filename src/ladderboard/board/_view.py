"""Views: what one caller may see of a board. All reading goes through them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ladderboard._formatting import format_time
from ladderboard.board._access import (
    Role,
    check_permission,
    comparable_name,
    compute_shares,
    redact_quota,
    remaining_quota,
    serialize_budget,
)
from ladderboard.board._finals import rank_remaining, serialize_final_row
from ladderboard.board._model import (
    BoardInfo,
    BoardRecord,
    DeclaredBaseline,
    Leaderboard,
    LeaderboardRow,
    ListedTeam,
    SubmissionInfo,
    TeamStatus,
    make_document,
)
from ladderboard.board._repository import (
    ENDED_STATUSES,
    best_record,
    best_release,
    find_submission,
    find_team,
    list_baseline_releases,
    list_chosen,
    list_organisers,
    list_records,
    list_submissions,
    list_teams,
    list_teams_with_size,
    read_board,
    read_team,
    submission_period,
)
from ladderboard.board._rules import (
    describe_release,
    round_release,
    serialize_bound,
    serialize_releases,
    serialize_values,
    to_metric,
)
from ladderboard.board._standings import (
    CurrentState,
    cached_certificate,
    read_activity,
    read_records,
    read_standings,
    read_team_standing,
    serialize_history,
    serialize_own_history,
)
from ladderboard.errors import InvalidSetting, NotAllowed, NotFound

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ladderboard.board._access import Caller
    from ladderboard.board._board import BoardContext
    from ladderboard.board._model import BoardRow, SubmissionRow, TeamRow
    from ladderboard.board._rules import Baseline, DisplayRules, Rules
    from ladderboard.board._standings import FurtherValues, TeamStanding
    from ladderboard.bounds import Certificate
    from ladderboard.ledger import ChainState, ReadView, Receipt

_HIDDEN_MESSAGE = "The standings of this board are hidden."
_MAX_PAGE_ROWS = 1000


class View:
    """What one caller may see of a board.

    While a board is hidden or frozen, teams and the public see its ledger, counts and standings
    only up to a horizon: the first entry of a hidden board, the state at the freeze of a frozen
    one. A team always sees its own submissions.
    """

    def __init__(self, board: BoardContext, caller: Caller) -> None:
        self._board, self._caller = board, caller
        self._sees_everything = caller.role >= Role.EVALUATOR

    def _visible_chain_state(self, view: ReadView, row: BoardRow) -> ChainState:
        """Return the latest state of the book that the caller may see."""
        if self._sees_everything or row.visibility in {"public", "anonymous"}:
            return view.chain_state()
        return view.chain_state_at(row.horizon if row.visibility == "frozen" else 1)

    def _is_hidden(self, row: BoardRow) -> bool:
        return row.visibility == "hidden" and not self._sees_everything

    def _is_frozen(self, row: BoardRow) -> bool:
        return row.visibility == "frozen" and not self._sees_everything

    def summary(self) -> dict[str, Any]:
        """Return the board's rules, status, best release and certificate."""
        board = self._board
        with board.reading() as view:
            row = read_board(view)
            state, now = (
                self._visible_chain_state(view, row),
                board.book.environment.current_time(view),
            )
            best, best_of_all = self._best(view, row, state)
            rules, opening = board.rules_of(row), board.book.opening
            people = [] if rules.sign_in is None else list_organisers(view)
        meter = board.meter(row, state)
        hidden = self._is_hidden(row)
        phase = rules.phase_at(now)
        described = rules.describe()
        del described["files"]
        values = {
            **described,
            "slug": board.slug,
            "baselines": [
                serialize_baseline(baseline, rules.display) for baseline in rules.baselines
            ],
            "status": row.status,
            "visibility": row.visibility,
            "n": opening["n"],
            "rows": opening["rules"]["rows"],
            "kind": opening["rules"]["kind"],
            "takes": rules.takes,
            "metrics": [metric.summarize() for metric in rules.metrics],
            "leaderboard_metric": rules.leaderboard_metric,
            "final_metric": rules.final_metric,
            "mechanism": opening["mechanism"],
            "phase": None if phase is None else phase.name,
            "files": {"bytes": rules.files.bytes, "rows": rules.files.rows},
            "play": rules.play,
            "data": {"members": rules.data.members},
            "listing": rules.listing,
            "prizes": [prize.describe() for prize in rules.prizes],
            "sign_in": None if rules.sign_in is None else rules.sign_in.summary(),
            "terms": None if rules.terms is None else rules.terms.version,
            "organisers": [*rules.organisers, *(row.name for row in people if row.name)],
            "used": None if hidden else meter.used,
            "changes": None if hidden else state.changes,
            "registered": None if hidden or self._is_frozen(row) else row.teams,
            "epoch": self._epoch(row),
            "best": describe_release(rules.display, best),
            "bound": None
            if hidden
            else serialize_bound(
                rules.display, cached_certificate(meter, best_of_all), best_of_all
            ),
            "book": board.book.name,
            "commitment": opening["commitment"],
            "head": {"entries": state.entries, "hash": state.head.hex()},
        }
        # Settings that few boards have come before the status.
        return described | make_document(BoardInfo, rules, **values)

    def certificate(self) -> Certificate:
        """Return the certificate for the best of all models."""
        with self._board.reading() as view:
            row = read_board(view)
            state = self._visible_chain_state(view, row)
            return cached_certificate(
                self._board.meter(row, state), self._best(view, row, state)[1]
            )

    def _best(
        self, view: ReadView, row: BoardRow, state: ChainState
    ) -> tuple[float | None, float | None]:
        """Return the best value that is shown, and the best of all, which certificates are about.

        They differ if a team was disqualified: ladders and meter still count it.
        """
        if self._is_hidden(row):
            return None, None
        # A team's best is missing among the records if a team that is not shown had a better one.
        past = (self._epoch(row), state.entries)
        candidates = (
            best_record(view, *past, shown=True),
            best_release(view, as_frozen=self._is_frozen(row)),
        )
        best = min((value for value in candidates if value is not None), default=None)
        return best, best_record(view, *past, shown=False)

    def _epoch(self, row: BoardRow) -> int:
        return row.seen_epoch if self._is_frozen(row) else row.epoch

    def _must_redact(self, row: BoardRow) -> bool:
        """Return whether the activity of others must stay hidden."""
        return self._is_hidden(row) or self._is_frozen(row)

    def leaderboard(self, *, limit: int = 100, cursor: str | None = None) -> dict[str, Any]:
        """Return a page of the standings."""
        with self._board.reading() as view:
            return self._standings_page(view, limit, cursor)

    def standings(self) -> Iterator[dict[str, Any]]:
        """Yield all pages of the standings at one moment; iterate at once, in one thread."""
        cursor = None
        with self._board.reading() as view:
            while True:
                page = self._standings_page(view, _MAX_PAGE_ROWS, cursor)
                yield page
                cursor = page["next"]
                if cursor is None:
                    return

    def _standings_page(self, view: ReadView, limit: int, cursor: str | None) -> dict[str, Any]:
        board = self._board
        row = read_board(view)
        if self._is_hidden(row):
            raise NotAllowed(_HIDDEN_MESSAGE)
        frozen = self._is_frozen(row)
        state = self._visible_chain_state(view, row)
        rules, further = board.rules_of(row), board.further_values(view, row, as_frozen=frozen)
        page = read_standings(
            view,
            as_frozen=frozen,
            limit=limit,
            cursor=cursor,
            mac=lambda payload: board.book.mac("cursor", frozen, payload),
            further=further if rules.ranks_by_mean else None,
        )
        own_id = self._own_team_id(view)
        return make_document(
            Leaderboard,
            page,
            board=board.slug,
            as_of=state.time,
            frozen=frozen,
            ranked_by=rules.leaderboard_metric or rules.display.name,
            rows=[
                self._serialize_standing(row, standing, further, own_id) for standing in page.rows
            ],
            declared=self._declared_baselines(row) if cursor is None else [],
        )

    def score_errors(self, losses: Mapping[str, float]) -> dict[str, float]:
        """Return the standard error of each team's released loss, by the teams' ids."""
        with self._board.reading() as view:
            row = read_board(view)
            state = self._visible_chain_state(view, row)
            return self._board.score_errors(view, state, self._epoch(row), losses)

    def own_standing(self) -> dict[str, Any] | None:
        """Return the row of the caller's team in the standings; None if it has none."""
        if self._caller.team is None:
            return None
        with self._board.reading() as view:
            row = read_board(view)
            if self._is_hidden(row):
                raise NotAllowed(_HIDDEN_MESSAGE)
            frozen, rules = self._is_frozen(row), self._board.rules_of(row)
            further = self._board.further_values(view, row, as_frozen=frozen)
            standing = read_team_standing(
                view,
                self._caller.team,
                _scored_baselines(rules),
                as_frozen=frozen,
                further=further if rules.ranks_by_mean else None,
            )
        if standing is None:
            return None
        return self._serialize_standing(row, standing, further, standing.team.id)

    def _serialize_standing(
        self, row: BoardRow, standing: TeamStanding, further: FurtherValues, own_id: str | None
    ) -> dict[str, Any]:
        rules, team = self._board.rules_of(row), standing.team
        return make_document(
            LeaderboardRow,
            team,
            rank=standing.rank,
            tied=standing.tied,
            team=self._team_ref(row, team.id, team.name, team.kind, own_id),
            baseline=team.kind == "baseline",
            you=team.number == self._caller.team,
            **describe_release(rules.display, team.released),
            submissions=team.used,
            metrics=serialize_values(rules, further.get(team.id)),
            mean_rank=standing.mean_rank,
            proven=None if team.proven is None else bool(team.proven),
        )

    def _team_ref(
        self, row: BoardRow, team_id: str, name: str, kind: str, own_id: str | None
    ) -> dict[str, Any]:
        """Return a team's id, and its name or None if it is not shown; baselines show theirs."""
        visible = (
            row.visibility != "anonymous"
            or self._sees_everything
            or kind == "baseline"
            or team_id == own_id
        )
        return {"id": team_id, "name": name if visible else None}

    def _own_team_id(self, view: ReadView) -> str | None:
        """Return the id of the caller's team, if any."""
        team = self._caller.team
        return None if team is None else read_team(view, team).id

    def _declared_baselines(self, row: BoardRow) -> list[dict[str, Any]]:
        """Return the baselines that are declared values, not files."""
        rules = self._board.rules_of(row)
        declared = (baseline for baseline in rules.baselines if baseline.file is None)
        return [serialize_baseline(baseline, rules.display) for baseline in declared]

    def records(self) -> list[dict[str, Any]]:
        """Return the records: every release that was a new best of the whole board."""
        with self._board.reading() as view:
            row = read_board(view)
            if self._is_hidden(row):
                raise NotAllowed(_HIDDEN_MESSAGE)
            state = self._visible_chain_state(view, row)
            records = list_records(view, self._epoch(row), state.entries)
            own_id = self._own_team_id(view)
        display = self._board.rules_of(row).display
        return [
            make_document(
                BoardRecord,
                record,
                **describe_release(display, record.value),
                proven=record.proven,
                team=self._team_ref(row, team, name, "team", own_id),
            )
            for record, team, name in records
        ]

    def history(self) -> dict[str, Any]:
        """Return the teams' best over time, with the certificate of each time.

        ``baselines`` are the scores of those that were submitted, by name.
        """
        with self._board.reading() as view:
            row = read_board(view)
            if self._is_hidden(row):
                raise NotAllowed(_HIDDEN_MESSAGE)
            state = self._visible_chain_state(view, row)
            stands = self._is_frozen(row) or row.status in ENDED_STATUSES
            now = state.time if stands else self._board.book.environment.current_time(view)
            # Not cached if others' activity is secret: response times would reveal it.
            if self._must_redact(row):
                past = read_records(view, self._epoch(row), state)
            else:
                past = self._board.cached_records(view, row, state)
            best = best_release(view, as_frozen=self._is_frozen(row), baselines=False)
            best_of_all = self._best(view, row, state)[1]
            baselines = list_baseline_releases(
                view, _scored_baselines(self._board.rules_of(row)), as_frozen=self._is_frozen(row)
            )
        display = self._board.rules_of(row).display
        return {
            **serialize_history(
                self._board, row, past, CurrentState(state, now, best, best_of_all)
            ),
            "baselines": {name: round_release(display, value) for name, value in baselines},
        }

    def activity(self) -> dict[str, Any]:
        """Return the number of submissions by team and over time."""
        check_permission(self._caller, "see everything")
        with self._board.reading() as view:
            return read_activity(view)

    def last_submission(self) -> str | None:
        """Return the time of the last submission of any team, None if there is none."""
        check_permission(self._caller, "see everything")
        with self._board.reading() as view:
            period = submission_period(view)
        return None if period is None else format_time(period[1])

    def ledger(self, *, first: int = 0, limit: int = 100) -> list[bytes]:
        """Return ledger entries as they were hashed."""
        if first < 0 or not 1 <= limit <= _MAX_PAGE_ROWS:
            raise InvalidSetting(
                f"first must be 0 or more, and limit between 1 and {_MAX_PAGE_ROWS}."
            )
        with self._board.reading() as view:
            state = self._visible_chain_state(view, read_board(view))
            return list(view.entries(first, min(first + limit, state.entries)))

    def head(self) -> tuple[int, str]:
        """Return the number of visible entries, and the hash of the last one."""
        with self._board.reading() as view:
            state = self._visible_chain_state(view, read_board(view))
        return state.entries, state.head.hex()

    def team(self, team: str | None = None) -> dict[str, Any]:
        """Return a team's release and its limits."""
        board = self._board
        with board.reading() as view:
            row = read_board(view)
            team_row = self._find_visible_team(view, team)
            rules, moment = board.rules_of(row), board.book.environment.moment(view)
            quota = remaining_quota(view, rules, row, team_row, moment)
            gain = board.smallest_visible_gain(view, row, team_row)
            if self._must_redact(row):
                quota = redact_quota(
                    quota, team_row, compute_shares(rules, row, view.chain_state()).share
                )
                gain = 0.0 if rules.ladder == "board" else gain
            best = row.best if rules.ladder == "board" else team_row.released
            values = None
            if rules.ladder == "team":
                values = board.released_by_metric(view, row, team_row.id)
        return make_document(
            TeamStatus,
            team_row,
            **describe_release(rules.display, team_row.released),
            submissions=team_row.used,
            visible_gain=rules.display.metric_gain(gain, best),
            remaining=quota.tightest.remaining,
            limit=quota.tightest.name,
            limits=[limit.describe() for limit in quota.limits],
            next_submission_at=quota.next,
            metrics=serialize_values(rules, values),
        )

    def _find_visible_team(self, view: ReadView, team: str | None) -> TeamRow:
        """Return the caller's own team, or any team for evaluators and organisers."""
        if team is not None and self._sees_everything:
            return find_team(view, team)
        check_permission(self._caller, "own")
        own_row = read_team(view, self._caller.team or 0)
        if team is not None and team != own_row.id:
            raise NotFound("There is no such team.")
        return own_row

    def budget(self) -> dict[str, int]:
        """Return used and remaining submissions: the teams' shares, the pool and the baselines."""
        check_permission(self._caller, "see everything")
        with self._board.reading() as view:
            row, state = read_board(view), view.chain_state()
        return serialize_budget(self._board.rules_of(row), row, state)

    def teams(self, *, limit: int = 100, after: int = 0) -> list[dict[str, Any]]:
        """Return teams after number ``after``, including disqualified ones."""
        check_permission(self._caller, "see everything")
        if after < 0 or not 1 <= limit <= _MAX_PAGE_ROWS:
            raise InvalidSetting(
                f"after must be 0 or more, and limit between 1 and {_MAX_PAGE_ROWS}."
            )
        with self._board.reading() as view:
            teams = list_teams_with_size(view, after, limit)
            display = self._board.rules_of(read_board(view)).display
        return [
            make_document(
                ListedTeam,
                team,
                submissions=team.used,
                released=to_metric(display, team.released),
                loss=team.released,
                stored=stored,
            )
            for team, stored in teams
        ]

    def submissions(
        self, team: str | None = None, *, limit: int = 100, before: int | None = None
    ) -> list[dict[str, Any]]:
        """Return a team's submissions, newest first."""
        if not 1 <= limit <= _MAX_PAGE_ROWS or not 0 <= (before or 0) < 2**62:
            raise InvalidSetting(
                f"limit must be between 1 and {_MAX_PAGE_ROWS}, and before 0 or more."
            )
        with self._board.reading() as view:
            row, team_row = read_board(view), self._find_visible_team(view, team)
            rows = list_submissions(view, team_row.number, before=before, limit=limit)
            return [self._serialize_submission(view, row, submission) for submission in rows]

    def own_history(self, team: str | None = None) -> dict[str, Any]:
        """Return a team's chart of the current epoch, oldest first; of many the newest."""
        with self._board.reading() as view:
            row, team_row = read_board(view), self._find_visible_team(view, team)
            rows = list_submissions(view, team_row.number, before=None, limit=_MAX_PAGE_ROWS)
            now = (
                None
                if row.status in ENDED_STATUSES
                else self._board.book.environment.current_time(view)
            )
            submissions = [
                self._serialize_submission(view, row, submission) for submission in reversed(rows)
            ]
        submissions = [submission for submission in submissions if submission["epoch"] == row.epoch]
        display = self._board.rules_of(row).display
        return serialize_own_history(display, submissions, now, thinned=team_row.used > len(rows))

    def submission(self, submission: str) -> dict[str, Any]:
        """Return one submission with its receipt: the team's own, or any for evaluators."""
        if not self._sees_everything:
            check_permission(self._caller, "own")
        with self._board.reading() as view:
            row = read_board(view)
            known = find_submission(view, submission)
            if known is None or not (self._sees_everything or known.team == self._caller.team):
                raise NotFound("There is no such submission.")
            receipt = self._board.book.read_receipt(view, known.entry)
            return self._serialize_submission(view, row, known, receipt)

    def _serialize_submission(
        self,
        view: ReadView,
        row: BoardRow,
        submission: SubmissionRow,
        receipt: Receipt | None = None,
    ) -> dict[str, Any]:
        rules, redact = self._board.rules_of(row), self._must_redact(row)
        sender = self._sees_everything or rules.takes == "predictions"
        serialized = serialize_submission(
            rules, submission, redact=redact, sender=sender, receipt=receipt
        )
        releases = self._board.further_releases(view, submission.entry)
        if redact and rules.ladder == "board":
            releases = [
                other._replace(value=other.value if other.improved else None) for other in releases
            ]
        return {**serialized, "metrics": serialize_releases(rules, releases)}

    def selections(self) -> list[str]:
        """Return the ids that the caller's team selected; empty if it selected none."""
        with self._board.reading() as view:
            team_row = self._find_visible_team(view, None)
            return [submission.id for submission in list_chosen(view, team_row.number)]

    def finals(self) -> dict[str, Any]:
        """Return the final ranking of a closed board."""
        row = self._board.row()
        if row.final is None or row.status != "closed":
            raise NotFound(
                "This board has no final ranking, because it has no private rows."
                if row.status == "closed"
                else "The final ranking is published when the board is closed."
            )
        if self._is_hidden(row):
            raise NotAllowed(_HIDDEN_MESSAGE)
        final: dict[str, Any] = json.loads(row.final)
        with self._board.reading() as view:
            teams = {team.id: team for team in list_teams(view)}
            own_id = self._own_team_id(view)
            remaining = [row for row in final["rows"] if not teams[row["team"]["id"]].disqualified]
            removed = len(final["rows"]) - len(remaining)
            rank_remaining(self._board, view, remaining, removed=removed)
        rules = self._board.rules_of(row)
        final["metric"] = rules.final_metric or rules.display.name
        final["display"] = rules.final_display.describe()
        final["rows"] = [serialize_final_row(final_row, rules) for final_row in remaining]
        for final_row in final["rows"]:
            team = teams[final_row["team"]["id"]]
            final_row["team"] = self._team_ref(row, team.id, team.name, team.kind, own_id)
        final["prizes"] = [
            {
                **prize.describe(),
                "teams": [row["team"] for row in final["rows"] if prize.is_won_by(row)],
            }
            for prize in rules.prizes
        ]
        return final


def serialize_submission(
    rules: Rules,
    row: SubmissionRow,
    *,
    redact: bool,
    sender: bool,
    receipt: Receipt | None = None,
) -> dict[str, Any]:
    """Serialize a submission; ``redact`` hides fields that reveal others' activity.

    ``sender`` is whether the reader may have sent it. Evaluators send a team's scores: the number
    of bytes may reveal how many were good, and the digest in a ``receipt`` would confirm a guess.
    """
    hidden: dict[str, Any] = {"proven": row.proven}
    value = row.value
    if redact:  # these numbers count all teams
        hidden |= {"entry": None, "proven": None}
        if rules.ladder == "board":
            hidden["question"] = row.number
            value = row.value if row.improved else None
    if not sender:
        hidden |= {"message": "", "size": None}
    if receipt is not None:
        shown = receipt.redacted() if redact else receipt
        hidden["receipt"] = shown.describe() if sender else None
    return make_document(
        SubmissionInfo,
        row,
        selected=row.chosen,
        **describe_release(rules.display, value),
        score=to_metric(rules.display, row.score),
        score_loss=row.score,
        **hidden,
    )


def _scored_baselines(rules: Rules) -> list[str]:
    """Return the comparable names of the baselines that were submitted."""
    return [comparable_name(line.name) for line in rules.baselines if line.file is not None]


def serialize_baseline(baseline: Baseline, display: DisplayRules) -> dict[str, Any]:
    """Serialize a baseline; a declared value comes in the board's metric, too."""
    if baseline.value is None:
        return baseline.describe()
    release = describe_release(display, baseline.value)
    return make_document(DeclaredBaseline, baseline, value=release.pop("released"), **release)
