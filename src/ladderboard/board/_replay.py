"""Asking again about what was submitted before labels were corrected."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from ladderboard.board._kept import KeptSubmission, kept_predictions
from ladderboard.board._limits import recount
from ladderboard.board._tables import read_board, read_team
from ladderboard.errors import InvalidSetting
from ladderboard.ledger import Asked

if TYPE_CHECKING:
    from collections.abc import Callable

    from ladderboard.board._board import Board
    from ladderboard.board._kept import Sandbox
    from ladderboard.holdout import Submission
    from ladderboard.ledger import SqlWriting, Turn

__all__ = ["replay"]

# The submission that holds each team's release: its last that improved.
_BEST = (
    "SELECT s.team, s.number, s.entry, s.place, s.format FROM main.submission s "
    "WHERE s.book = ? AND s.epoch = ? AND s.improved = 1 AND NOT EXISTS "
    "(SELECT 1 FROM main.submission t WHERE t.book = s.book AND t.team = s.team "
    "AND (t.epoch > s.epoch OR (t.epoch = s.epoch AND t.improved = 1 AND t.number > s.number))) "
    "ORDER BY s.team"
)
_TOLD = (
    "UPDATE main.submission SET entry = ?, epoch = ?, value = ?, score = ?, improved = ?, "
    "question = ? WHERE book = ? AND team = ? AND number = ?"
)
_STANDS = "UPDATE main.team SET released = ?, since = ? WHERE book = ? AND number = ?"
_COUNTED = "UPDATE main.board SET replayed = replayed + 1 WHERE book = ?"
_BOARD_BEST = "UPDATE main.board SET best = ? WHERE book = ?"
_RECORD = (
    "INSERT INTO main.record (book, entry, epoch, time, team, value) VALUES (?, ?, ?, ?, ?, ?)"
)


def replay(
    board: Board,
    epoch: int,
    *,
    commit: Callable[[], str] | None,
    again: str,
    sandbox: Sandbox | None = None,
) -> int:
    """Begin the next epoch, then ask again what shall be asked again; return how many.

    Without ``commit`` it has begun already, and those teams are left that are not in it yet.
    ``sandbox`` parses files that an older version kept as they came.
    """
    wanted: list[tuple[Any, ...]] = []
    with board.reading() as view:
        row, at = read_board(view), view.at()
        if again == "best":
            wanted = view.run(_BEST, (view.number, epoch))
    rest = board.rules_of(row).questions - at.asked - at.charged
    if len(wanted) > rest:
        raise InvalidSetting(
            f"{len(wanted)} submissions would be asked again, and {rest} questions are left; "
            "raise the budget first."
        )
    with kept_predictions(board, row, sandbox) as read:
        for _, _, *kept in wanted:  # what cannot be read is found before anything changes
            read(KeptSubmission(*kept))
        if commit is not None:
            commit()
        for team, number, *kept in wanted:
            _ask(board, team, number, read(KeptSubmission(*kept)))
    return len(wanted)


def _ask(board: Board, team: int, number: int, submission: Submission) -> None:
    row = board.row()
    scorer = board.scorer_of(row)
    scored = scorer.score(submission)
    wants = board.book.mechanism.needs == "losses"

    def work(turn: Turn) -> None:
        view = cast("SqlWriting", turn.view)
        now, who = read_board(view), read_team(view, team)
        asked = Asked(
            submission=submission.digest,
            risk=scored.risk,
            losses=scorer.by_group(scored) if wants else None,
            broken=scored.broken,
            ladder=board.ladder_of(now, who),
            asker=who.id,
        )
        if board.book.earlier(view, asked) is not None:
            return
        outcome = turn.ask(asked, budget=board.rules_of(now).questions)
        release, time = outcome.release, turn.at.time
        told = (outcome.number, now.epoch, release.value, release.score, int(release.improved))
        view.change(_TOLD, (*told, release.question, view.number, team, number))
        view.change(_COUNTED, (view.number,))
        recount(view, board.rules_of(now), turn.at)
        if release.improved:
            view.change(_STANDS, (release.value, time, view.number, team))
            if release.value is not None and (now.best is None or release.value < now.best):
                view.change(_BOARD_BEST, (release.value, view.number))
                view.change(
                    _RECORD, (view.number, outcome.number, now.epoch, time, team, release.value)
                )

    board.queue.do(work)
