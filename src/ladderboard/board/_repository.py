"""The database of boards: its tables, and every statement that runs on them.

Functions take the view of an open transaction. A ``ReadView`` or ``WriteView`` is of one board's
book; what belongs to all boards needs a ``TableView``.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from ladderboard.board._model import (
    BOARD,
    CREDENTIAL,
    DATA_FILE,
    DELIVERY,
    IDENTITY,
    RECORD,
    SESSION,
    SUBMISSION,
    TABLES,
    TEAM,
    WEBHOOK,
    BoardRow,
    DataFileRow,
    DeliveryRow,
    IdentityRow,
    RecordRow,
    SessionRow,
    SubmissionRow,
    TeamRow,
    WebhookRow,
    stored_value,
)
from ladderboard.errors import BrokenDump, Conflict, NotAllowed, NotFound
from ladderboard.ledger import (
    STATE_COLUMNS,
    STATE_ENTRIES,
    STATE_JOIN,
    SchemaModule,
    state_statement,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from ladderboard.board._model import CredentialRow, Table
    from ladderboard.ledger import ReadView, TableView, WriteView

    Query = Callable[..., list[tuple[Any, ...]]]
    Statement = tuple[str, tuple[Any, ...]]

Row = TypeVar("Row")
ENDED_STATUSES = {"closing", "closed", "moved"}
"""Statuses in which a board takes no more submissions."""
_AFTER_LAST = 2**62
_PAGE_ROWS = 500
_SIGNING_KEY = "signing key"
_NOT_IN_TEAM = "Your access to this team has ended. Sign in again."

# A released format never changes: neither these statements, nor the columns that the model has in
# it. The next format is a column with a later ``since``, or another tuple of statements.
_INDEXES_AND_SERVER_TABLES = (
    """CREATE INDEX {prefix}team_standing
        ON {on}team (book, disqualified, released, since, number)""",
    """CREATE INDEX {prefix}team_seen
        ON {on}team (book, disqualified, seen_released, seen_since, number)""",
    "CREATE INDEX {prefix}credential_team ON {on}credential (book, team)",
    "CREATE TABLE main.upload (id TEXT PRIMARY KEY, body {blob} NOT NULL)",
    "CREATE TABLE main.server (name TEXT PRIMARY KEY, value {blob} NOT NULL)",
)


def _migrations() -> tuple[tuple[str, ...], ...]:
    """Return the statements of each format; the columns of each come from the model."""
    tables = (*TABLES, SESSION)
    latest = max(column.since for table in tables for column in table.columns.values())
    first, *later = (
        tuple(statement for table in tables for statement in table.migration(number))
        for number in range(1, latest + 1)
    )
    return ((*first, *_INDEXES_AND_SERVER_TABLES), *later)


BOARD_SCHEMA = SchemaModule("board", _migrations())
_DELIVERY_INDEX = "CREATE INDEX {prefix}delivery_due ON {on}delivery (due)"
WEBHOOK_SCHEMA = SchemaModule("webhook", ((WEBHOOK.create(), DELIVERY.create(), _DELIVERY_INDEX),))


def to_json(value: Any) -> str:
    """Return compact JSON with sorted keys, as the database stores it."""
    return json.dumps(value, ensure_ascii=True, separators=(",", ":"), sort_keys=True)


def sample_key(epoch: int) -> str:
    """Return the key under which an epoch's labelled sample is stored."""
    return "sample" if epoch == 0 else f"sample {epoch}"


def is_searchable(text: str) -> bool:
    """Return whether text is safe to use in a database lookup: ASCII without NUL."""
    return isinstance(text, str) and "\0" not in text and text.isascii()


def _select_rows(view: TableView, table: Table[Row], statement: str, *values: Any) -> list[Row]:
    return [table.read(row) for row in view.query(statement, values)]


def insert(view: WriteView, table: Table[Row], row: Row) -> None:
    """Insert a row of the view's board."""
    view.execute(table.insert, (view.book_id, *table.values(row)))


def _update(
    view: WriteView, table: Table[Any], key: tuple[Any, ...], changes: dict[str, Any]
) -> None:
    view.execute(*_update_statement(view, table, key, changes))


def _update_statement(
    view: WriteView, table: Table[Any], key: tuple[Any, ...], changes: dict[str, Any]
) -> Statement:
    values = (*map(stored_value, changes.values()), view.book_id, *key)
    return table.update(tuple(changes)), values


# The board.

_SELECT_BOARD = BOARD.select("WHERE book = ?")


def read_board(view: ReadView) -> BoardRow:
    """Return the view's board."""
    rows = view.query(_SELECT_BOARD, (view.book_id,))
    if not rows:
        raise NotFound("There is no such board.")
    return BOARD.read(rows[0])


def update_board(view: WriteView, **changes: Any) -> None:
    """Change columns of the view's board."""
    _update(view, BOARD, (), changes)


# Teams.

_SELECT_TEAM = TEAM.select("WHERE book = ? AND number = ?")
_SELECT_TEAM_BY_ID = TEAM.select("WHERE book = ? AND id = ?")
_SELECT_TEAM_BY_NAME = TEAM.select("WHERE book = ? AND folded = ?")
_SELECT_TEAMS = TEAM.select("WHERE book = ? ORDER BY number")
_SELECT_TEAMS_BY_PATTERN = TEAM.select("WHERE book = ? AND folded LIKE ? ORDER BY number")
_SELECT_TEAMS_WITH_SIZE = TEAM.select(
    "WHERE t.book = ? AND t.number > ? ORDER BY t.number LIMIT ?",
    alias="t",
    extra="(SELECT COALESCE(SUM(s.size), 0) FROM main.submission s "
    "WHERE s.book = t.book AND s.team = t.number)",
)
_TEAM_OF_BOARD = ", ".join(f"t.{name}" for name in (*TEAM.columns, "book"))
_JOIN_TEAM = "LEFT JOIN main.team t ON t.book = b.book AND t.number = ?"
# A request was authenticated before its body was read: its token may have been revoked since, its
# person may have left, and the number of a team that ended may be that of a new one.
_JOIN_SENDER = (
    "LEFT JOIN main.team t ON t.book = b.book AND t.number = ? AND ("
    "EXISTS (SELECT 1 FROM main.credential c WHERE c.hash = ? "
    "AND c.book = t.book AND c.team = t.number AND c.ended IS NULL) "
    "OR EXISTS (SELECT 1 FROM main.identity i WHERE i.number = ? "
    "AND i.book = t.book AND i.team = t.number AND i.state = 'registered'))"
)
_SELECT_BOARD_AND_TEAM = BOARD.select(
    f"{_JOIN_TEAM} WHERE b.book = ?", alias="b", extra=_TEAM_OF_BOARD
)
_SELECT_BOARD_AND_SENDER = BOARD.select(
    f"{_JOIN_SENDER} WHERE b.book = ?", alias="b", extra=_TEAM_OF_BOARD
)
_NEXT_TEAM_NUMBER = "SELECT COALESCE(MAX(number), 0) + 1 FROM main.team WHERE book = ?"
_DELETE_TEAM = "DELETE FROM main.team WHERE book = ? AND number = ? AND used = 0"
_DELETE_TEAM_CREDENTIALS = "DELETE FROM main.credential WHERE book = ? AND team = ?"
_FREE_IDENTITIES = "UPDATE main.identity SET team = NULL WHERE book = ? AND team = ?"
_FREEZE_STANDINGS = (
    "UPDATE main.team SET seen_used = used, seen_last = last, seen_released = released, "
    "seen_since = since, seen_proven = proven WHERE book = ?"
)
_CLEAR_RELEASES = "UPDATE main.team SET released = NULL, since = NULL, proven = NULL WHERE book = ?"
_SUM_POOLED = (
    "SELECT COALESCE(SUM(used - ?), 0) FROM main.team WHERE book = ? AND kind = 'team' AND used > ?"
)
_BEST_RELEASE = "SELECT MIN({}released) FROM main.team WHERE book = ? AND disqualified = 0{}"


def read_team(view: ReadView, number: int) -> TeamRow:
    """Return a team by its number."""
    return _one_team(view.query(_SELECT_TEAM, (view.book_id, number)))


def find_team(view: ReadView, team: str) -> TeamRow:
    """Return a team by its id."""
    return _one_team(view.query(_SELECT_TEAM_BY_ID, (view.book_id, team)))


class Sender(NamedTuple):
    """Who acts for a team: the hash of its token or of a session, and the person's number."""

    credential: bytes | None
    identity: int | None


def read_board_and_team(
    view: ReadView, number: int, sender: Sender | None = None, *, prefetched: bool = False
) -> tuple[BoardRow, TeamRow]:
    """Return the view's board and one of its teams, by its number.

    Refuse a ``sender`` who does not act for this team any more. Rows may be ``prefetched`` if the
    caller knows what the transaction has changed since.
    """
    query = view.query_prefetched if prefetched else view.query
    rows = query(*board_and_team_statement(view.book_id, number, sender))
    return _split_board_and_team(view, number, rows, sender)


def board_and_team_statement(book: int, number: int, sender: Sender | None) -> Statement:
    """Return the statement of ``read_board_and_team``, to be prefetched."""
    if sender is None:
        return _SELECT_BOARD_AND_TEAM, (number, book)
    return _SELECT_BOARD_AND_SENDER, (number, *sender, book)


def _split_board_and_team(
    view: ReadView, number: int, rows: list[tuple[Any, ...]], sender: Sender | None
) -> tuple[BoardRow, TeamRow]:
    if not rows or rows[0][-1] is None:  # one of them is missing
        row = read_board(view)
        if sender is not None:
            raise NotAllowed(_NOT_IN_TEAM)
        return row, read_team(view, number)
    split = len(BOARD.columns)
    return BOARD.read(rows[0][:split]), TEAM.read(rows[0][split:-1])


def _one_team(rows: list[tuple[Any, ...]]) -> TeamRow:
    if not rows:
        raise NotFound("There is no such team.")
    return TEAM.read(rows[0])


def find_team_by_name(view: ReadView, folded: str) -> TeamRow | None:
    """Return the team with a comparable name."""
    rows = _select_rows(view, TEAM, _SELECT_TEAM_BY_NAME, view.book_id, folded)
    return rows[0] if rows else None


def list_teams(view: ReadView) -> list[TeamRow]:
    """Return all teams in order of registration."""
    return _select_rows(view, TEAM, _SELECT_TEAMS, view.book_id)


def list_teams_with_size(view: ReadView, after: int, limit: int) -> list[tuple[TeamRow, int]]:
    """Return teams after a number, each with the stored bytes of its submissions."""
    rows = view.query(_SELECT_TEAMS_WITH_SIZE, (view.book_id, after, limit))
    return [(TEAM.read(row), int(row[-1])) for row in rows]


def list_teams_with_duplicate_names(view: ReadView) -> list[TeamRow]:
    """Return the teams whose ``folded`` ends in a space and an id, because it was taken."""
    teams = _select_rows(view, TEAM, _SELECT_TEAMS_BY_PATTERN, view.book_id, "% %")
    return [team for team in teams if not team.erased]


def list_erased_teams(view: ReadView) -> list[TeamRow]:
    """Return the teams whose names were erased."""
    return _select_rows(view, TEAM, _SELECT_TEAMS_BY_PATTERN, view.book_id, " %")


def next_team_number(view: ReadView) -> int:
    """Return the number of the next team."""
    return int(view.query(_NEXT_TEAM_NUMBER, (view.book_id,))[0][0])


def update_team(view: WriteView, number: int, **changes: Any) -> None:
    """Change columns of a team."""
    _update(view, TEAM, (number,), changes)


def delete_team(view: WriteView, number: int) -> None:
    """Delete a team that has not submitted, with its tokens and invitations.

    Its number may be given again, so nothing may point to it.
    """
    for statement in (_DELETE_TEAM, _DELETE_TEAM_CREDENTIALS, _FREE_IDENTITIES):
        view.execute(statement, (view.book_id, number))


def freeze_standings(view: WriteView) -> None:
    """Keep the standings as they are for others to see while the board is frozen."""
    view.execute(_FREEZE_STANDINGS, (view.book_id,))


def clear_releases(view: WriteView) -> None:
    """Remove all teams' releases, because labels were corrected."""
    view.execute(_CLEAR_RELEASES, (view.book_id,))


def count_pooled(view: ReadView, share: int) -> int:
    """Return how many questions teams asked beyond their shares."""
    return int(view.query(_SUM_POOLED, (share, view.book_id, share))[0][0])


def best_release(view: ReadView, *, as_frozen: bool, baselines: bool = True) -> float | None:
    """Return the lowest release of the teams that are shown, now or at the freeze."""
    statement = _BEST_RELEASE.format(
        "seen_" if as_frozen else "", "" if baselines else " AND kind = 'team'"
    )
    value: float | None = view.query(statement, (view.book_id,))[0][0]
    return value


# Standings, ordered by release, then time; teams without a release come last, in order of
# registration. A page starts after the last row of the one before, so every page costs the same.


class StandingRow(NamedTuple):
    """A team in the standings: as it is now, or as it was at the freeze."""

    number: int
    id: str
    name: str
    kind: str
    released: float | None
    since: int | None
    used: int
    last: int | None
    proven: bool | None


_STANDING = f"SELECT {', '.join(StandingRow._fields[:4])}, " + ", ".join(
    "{0}" + name for name in StandingRow._fields[4:]
)
_RANKED_TEAMS = (
    _STANDING + " FROM main.team "
    "WHERE book = ? AND disqualified = 0 AND {0}released IS NOT NULL AND {0}released >= ? "
    "AND ({0}released > ? OR {0}since > ? OR ({0}since = ? AND number > ?)) "
    "ORDER BY {0}released, {0}since, number LIMIT ?"
)
_UNRANKED_TEAMS = (
    _STANDING + " FROM main.team "
    "WHERE book = ? AND disqualified = 0 AND {0}released IS NULL AND {0}used IS NOT NULL "
    "AND number > ? ORDER BY number LIMIT ?"
)
_TEAMS_WITH_RELEASE = (
    "SELECT number FROM main.team WHERE book = ? AND disqualified = 0 AND kind = 'team' "
    "AND {0}released = ? LIMIT 2"
)

_STANDING_OF_TEAM = (
    _STANDING + " FROM main.team WHERE book = ? AND disqualified = 0 AND {0}used IS NOT NULL "
    "AND number = ?"
)
# An index has all of the better ones, but not their kind; the few baselines are found by name (the
# signs keep SQLite from going through the better ones again).
_BETTER_STANDINGS = (
    "SELECT COUNT(*) FROM main.team WHERE book = ? AND disqualified = 0 AND {0}released < ?"
)
_BETTER_BASELINES = (
    "SELECT COUNT(*) FROM main.team WHERE book = ? AND +disqualified = 0 AND +{0}released < ? "
    "AND kind = 'baseline' AND folded IN ({1})"
)

_BASELINES = (
    "SELECT name, {0}released FROM main.team WHERE book = ? AND disqualified = 0 "
    "AND {0}released IS NOT NULL AND kind = 'baseline' AND folded IN ({1}) ORDER BY number"
)


def list_ranked_teams(
    view: ReadView, *, as_frozen: bool, after: tuple[float, int, int], limit: int
) -> list[StandingRow]:
    """Return teams with a release, after the release, time and number of another."""
    released, since, number = after
    values = (view.book_id, released, released, since, since, number, limit)
    return list(map(StandingRow._make, view.query(_seen(_RANKED_TEAMS, as_frozen), values)))


def list_unranked_teams(
    view: ReadView, *, as_frozen: bool, after: int, limit: int
) -> list[StandingRow]:
    """Return teams without a release, after a number."""
    values = (view.book_id, after, limit)
    return list(map(StandingRow._make, view.query(_seen(_UNRANKED_TEAMS, as_frozen), values)))


def list_baseline_releases(
    view: ReadView, baselines: Sequence[str], *, as_frozen: bool
) -> list[tuple[str, float]]:
    """Return the name and the release of each scored baseline, by their comparable names."""
    if not baselines:
        return []
    names = ", ".join("?" * len(baselines))
    statement = _BASELINES.format("seen_" if as_frozen else "", names)
    return [(name, value) for name, value in view.query(statement, (view.book_id, *baselines))]


def find_standing(view: ReadView, number: int, *, as_frozen: bool) -> StandingRow | None:
    """Return the row of one team; None if it is not in the standings."""
    rows = view.query(_seen(_STANDING_OF_TEAM, as_frozen), (view.book_id, number))
    return StandingRow._make(rows[0]) if rows else None


def count_better_teams(
    view: ReadView, released: float, baselines: Sequence[str], *, as_frozen: bool
) -> int:
    """Return how many teams have a better release; ``baselines`` are their comparable names."""
    prefix = "seen_" if as_frozen else ""
    values = (view.book_id, released)
    better = view.query(_BETTER_STANDINGS.format(prefix), values)[0][0]
    if better and baselines:
        names = ", ".join("?" * len(baselines))
        statement = _BETTER_BASELINES.format(prefix, names)
        better -= view.query(statement, (*values, *baselines))[0][0]
    return int(better)


def is_tied(view: ReadView, released: float | None, *, as_frozen: bool) -> bool:
    """Return whether several teams have a release."""
    values = (view.book_id, released)
    return len(view.query(_seen(_TEAMS_WITH_RELEASE, as_frozen), values)) > 1


def _seen(statement: str, as_frozen: bool) -> str:
    return statement.format("seen_" if as_frozen else "")


# Submissions.

_SELECT_SUBMISSION = SUBMISSION.select("WHERE book = ? AND id = ?")
_SELECT_BY_ENTRY = SUBMISSION.select("WHERE book = ? AND entry = ?")
_SELECT_SUBMISSIONS = SUBMISSION.select(
    "WHERE book = ? AND team = ? AND number < ? ORDER BY number DESC LIMIT ?"
)
_SELECT_CHOSEN = SUBMISSION.select("WHERE book = ? AND team = ? AND chosen <> 0 ORDER BY number")
_SELECT_BY_ENTRIES = SUBMISSION.select("WHERE book = ? AND entry > ? ORDER BY entry LIMIT ?")
# A close marks all finalists as chosen. On boards that were closed before it did, the latest
# improvements of a team that had selected none took part.
_SELECT_FINALISTS = SUBMISSION.select(
    "WHERE book = ? AND team = ? ORDER BY chosen DESC, improved DESC, number DESC LIMIT ?"
)
# The submission that holds each team's release: its last that improved.
_SELECT_BEST = SUBMISSION.select(
    "WHERE s.book = ? AND s.epoch = ? AND s.improved = 1 AND NOT EXISTS "
    "(SELECT 1 FROM main.submission t WHERE t.book = s.book AND t.team = s.team "
    "AND (t.epoch > s.epoch OR (t.epoch = s.epoch AND t.improved = 1 AND t.number > s.number))) "
    "ORDER BY s.team",
    alias="s",
)
_CLEAR_MESSAGES = (
    "UPDATE main.submission SET message = '' WHERE book = ? AND team = ? AND message <> ''"
)
_CLEAR_CHOSEN = "UPDATE main.submission SET chosen = 0 WHERE book = ? AND team = ? AND chosen <> 0"
_SUBMISSION_TIMES = (
    "SELECT time FROM main.submission WHERE book = ? AND team = ? AND number > ? ORDER BY number"
)
_SUM_SIZES = (
    "SELECT COALESCE(SUM(size), 0) FROM main.submission "
    "WHERE book = ? AND team = ? AND number > ? AND number <= ?"
)


def clear_messages(view: WriteView, team: int) -> None:
    """Remove the messages of all submissions of a team."""
    view.execute(_CLEAR_MESSAGES, (view.book_id, team))


def find_submission(view: ReadView, submission: str) -> SubmissionRow | None:
    """Return a submission by its id."""
    if not is_searchable(submission):
        return None
    rows = _select_rows(view, SUBMISSION, _SELECT_SUBMISSION, view.book_id, submission)
    return rows[0] if rows else None


def find_submission_by_entry(view: ReadView, entry: int) -> SubmissionRow | None:
    """Return the submission that an entry answered last."""
    rows = _select_rows(view, SUBMISSION, _SELECT_BY_ENTRY, view.book_id, entry)
    return rows[0] if rows else None


def list_submissions(
    view: ReadView, team: int, *, before: int | None, limit: int
) -> list[SubmissionRow]:
    """Return a team's submissions before a number, newest first."""
    last = _AFTER_LAST if before is None else min(before, _AFTER_LAST)
    return _select_rows(view, SUBMISSION, _SELECT_SUBMISSIONS, view.book_id, team, last, limit)


def list_chosen(view: ReadView, team: int) -> list[SubmissionRow]:
    """Return the submissions that a team selected for the finals."""
    return _select_rows(view, SUBMISSION, _SELECT_CHOSEN, view.book_id, team)


def list_finalists(view: ReadView, team: int, limit: int) -> list[SubmissionRow]:
    """Return the submissions of a team that took part in the finals of a closed board."""
    return _select_rows(view, SUBMISSION, _SELECT_FINALISTS, view.book_id, team, limit)


_SELECT_RECORD_ENTRY = (
    "SELECT entry FROM main.submission WHERE book = ? AND epoch = ? AND improved = 1 AND value = ? "
    "ORDER BY entry DESC LIMIT 1"
)
_SELECT_TEAM_RECORD_ENTRY = (
    "SELECT entry FROM main.submission WHERE book = ? AND team = ? AND epoch = ? AND improved = 1 "
    "ORDER BY number DESC LIMIT 1"
)


def find_record_entry(view: ReadView, epoch: int, value: float) -> int | None:
    """Return the last entry of an epoch that released this value as a new best."""
    rows = view.query(_SELECT_RECORD_ENTRY, (view.book_id, epoch, value))
    return int(rows[0][0]) if rows else None


def find_team_record_entry(view: ReadView, epoch: int, team: int) -> int | None:
    """Return the last entry of an epoch in which a team improved."""
    rows = view.query(_SELECT_TEAM_RECORD_ENTRY, (view.book_id, team, epoch))
    return int(rows[0][0]) if rows else None


def list_best_submissions(view: ReadView, epoch: int) -> list[SubmissionRow]:
    """Return the submission behind each team's release in an epoch, unless it has a later one."""
    return _select_rows(view, SUBMISSION, _SELECT_BEST, view.book_id, epoch)


def iter_submissions_by_entry(view: ReadView) -> Iterator[SubmissionRow]:
    """Yield all submissions in the order of their entries."""
    last = -1
    while rows := view.query(_SELECT_BY_ENTRIES, (view.book_id, last, _PAGE_ROWS)):
        submissions = [SUBMISSION.read(row) for row in rows]
        yield from submissions
        last = submissions[-1].entry


def record_submission(
    view: WriteView,
    submission: SubmissionRow,
    record: RecordRow | None,
    *,
    file: Sequence[Statement],
    team: dict[str, Any],
    board: dict[str, Any],
) -> None:
    """Insert a submission, its file and the record that it set; change its team and its board."""
    statements: list[Statement] = [
        *file,
        (SUBMISSION.insert, (view.book_id, *SUBMISSION.values(submission))),
        _update_statement(view, TEAM, (submission.team,), team),
        _update_statement(view, BOARD, (), board),
    ]
    if record is not None:
        statements.append((RECORD.insert, (view.book_id, *RECORD.values(record))))
    view.execute_all(statements)


def update_submission(view: WriteView, team: int, number: int, **changes: Any) -> None:
    """Change columns of a submission."""
    _update(view, SUBMISSION, (team, number), changes)


def clear_chosen(view: WriteView, team: int) -> None:
    """Remove a team's selection."""
    view.execute(_CLEAR_CHOSEN, (view.book_id, team))


def list_submission_times(view: ReadView, team: int, after: int) -> list[int]:
    """Return the times of a team's submissions after a number."""
    return [row[0] for row in view.query(_SUBMISSION_TIMES, (view.book_id, team, after))]


def sum_submission_sizes(view: ReadView, team: int, after: int, last: int) -> int:
    """Return the stored bytes of a team's submissions after a number, up to another."""
    return int(view.query(_SUM_SIZES, (view.book_id, team, after, last))[0][0])


# Records.


class NamedRecord(NamedTuple):
    """A record with the id and name of its team."""

    record: RecordRow
    team: str
    name: str


_SHOWN_RECORDS = (
    "JOIN main.team t ON t.book = r.book AND t.number = r.team "
    "WHERE r.book = ? AND r.epoch = ? AND r.entry < ? AND t.disqualified = 0"
)
_SELECT_RECORDS = RECORD.select(
    f"{_SHOWN_RECORDS} ORDER BY r.entry", alias="r", extra="t.id, t.name"
)
_BEST_SHOWN_RECORD = f"SELECT MIN(r.value) FROM main.record r {_SHOWN_RECORDS}"  # noqa: S608
_BEST_RECORD = "SELECT MIN(value) FROM main.record WHERE book = ? AND epoch = ? AND entry < ?"
# Of many records every second, every third and so on, always with the first and the last. The
# choice rarely changes, so most certificates are in the cache.
_THINNED_RECORDS = (
    "SELECT entry, value, records FROM ("  # noqa: S608 - no values
    "SELECT r.entry AS entry, r.value AS value, COUNT(*) OVER () AS records, "
    "ROW_NUMBER() OVER (ORDER BY r.entry) - 1 AS place "
    f"FROM main.record r {_SHOWN_RECORDS} AND t.kind = 'team') AS found "
    "WHERE place = records - 1 "
    "OR place / ((records - 1) / ? + 1) * ((records - 1) / ? + 1) = place ORDER BY entry"
)


def list_records(view: ReadView, epoch: int, entries: int) -> list[NamedRecord]:
    """Return the records among the first ``entries``, but those of disqualified teams."""
    rows = view.query(_SELECT_RECORDS, (view.book_id, epoch, entries))
    return [NamedRecord(RECORD.read(row), *row[-2:]) for row in rows]


def list_thinned_records(
    view: ReadView, epoch: int, entries: int, limit: int
) -> tuple[list[tuple[int, float]], int]:
    """Return entry and value of at most about ``limit`` records of teams, and how many there are.

    Those of baselines are left out.
    """
    rows = view.query(_THINNED_RECORDS, (view.book_id, epoch, entries, limit, limit))
    return [(entry, value) for entry, value, _ in rows], rows[0][2] if rows else 0


def best_record(view: ReadView, epoch: int, entries: int, *, shown: bool) -> float | None:
    """Return the lowest record among the first ``entries``; ``shown`` leaves out some teams."""
    statement = _BEST_SHOWN_RECORD if shown else _BEST_RECORD
    value: float | None = view.query(statement, (view.book_id, epoch, entries))[0][0]
    return value


# Activity.


class TeamActivity(NamedTuple):
    """How often a team submitted, how many teams did, and how often they did together."""

    team: str
    name: str
    disqualified: int
    questions: int
    improved: int
    last: int
    teams: int
    questions_of_all: int


# COUNT instead of SUM, which is not an integer in PostgreSQL.
_COUNT_BY_TEAM = (
    "SELECT t.id, t.name, t.disqualified, COUNT(*), "
    "COUNT(CASE WHEN s.improved <> 0 THEN 1 END), MAX(s.time), COUNT(*) OVER (), "
    "CAST(SUM(COUNT(*)) OVER () AS BIGINT) "
    "FROM main.submission s JOIN main.team t ON t.book = s.book AND t.number = s.team "
    "WHERE s.book = ? AND t.kind = 'team' GROUP BY t.number, t.id, t.name, t.disqualified "
    "ORDER BY COUNT(*) DESC, t.number LIMIT ?"
)
_COUNT_BY_TIME = (
    "SELECT (time - ?) / ? AS bin, COUNT(*), COUNT(CASE WHEN improved <> 0 THEN 1 END) "
    "FROM main.submission WHERE book = ? GROUP BY bin ORDER BY bin"
)
_FIRST_AND_LAST_TIME = "SELECT MIN(time), MAX(time) FROM main.submission WHERE book = ?"


def count_by_team(view: ReadView, limit: int) -> list[TeamActivity]:
    """Return the teams that submitted most, without baselines."""
    return list(map(TeamActivity._make, view.query(_COUNT_BY_TEAM, (view.book_id, limit))))


def submission_period(view: ReadView) -> tuple[int, int] | None:
    """Return the times of the first and the last submission; None if there is none."""
    first, last = view.query(_FIRST_AND_LAST_TIME, (view.book_id,))[0]
    return None if first is None else (first, last)


def count_by_time(view: ReadView, start: int, width: int) -> dict[int, tuple[int, int]]:
    """Return by bin how many submissions there were, and how many improved."""
    rows = view.query(_COUNT_BY_TIME, (start, width, view.book_id))
    return {number: (count, improved) for number, count, improved in rows}


# Credentials: of the view's board, or of all boards, whose book is NULL.


class ValidCredential(NamedTuple):
    """A credential that is valid, with the id of its team."""

    credential: CredentialRow
    team: str | None


class ScopedCredential(NamedTuple):
    """A credential that was not revoked; ``book`` and ``slug`` are None if it is for all boards."""

    credential: CredentialRow
    book: int | None
    slug: str | None


_SELECT_OF_ROLE = CREDENTIAL.select("WHERE hash = ? AND book = ? AND role = ?")
_SELECT_VALID = CREDENTIAL.select(
    "LEFT JOIN main.team t ON t.book = c.book AND t.number = c.team "
    "WHERE c.book = ? AND c.ended IS NULL AND (c.expires IS NULL OR c.expires > ?) "
    "ORDER BY c.made, c.hash",
    alias="c",
    extra="t.id",
)
_SELECT_MEMBER_INVITATIONS = CREDENTIAL.select(
    "WHERE book = ? AND team = ? AND role = 'member' AND ended IS NULL AND expires > ? "
    "ORDER BY made, hash"
)
_SELECT_BY_HASH = CREDENTIAL.select(
    "LEFT JOIN main.board b ON b.book = c.book WHERE c.hash = ? AND c.ended IS NULL",
    alias="c",
    extra="c.book, b.slug",
)
_SELECT_SERVER_ORGANISER = CREDENTIAL.select("WHERE book IS NULL AND role = 'organiser' LIMIT 1")
_END_TEAM_CREDENTIALS = (
    "UPDATE main.credential SET ended = ? "
    "WHERE book = ? AND role = 'team' AND team = ? AND ended IS NULL"
)
_END_ALL_OF_TEAM = (
    "UPDATE main.credential SET ended = ? WHERE book = ? AND team = ? AND ended IS NULL"
)
_MOVE_INVITATIONS = (
    "UPDATE main.credential SET expires = ? "
    "WHERE book = ? AND role = 'invitation' AND ended IS NULL AND expires = ?"
)
_END_SERVER_ORGANISERS = (
    "UPDATE main.credential SET ended = ? "
    "WHERE book IS NULL AND role = 'organiser' AND ended IS NULL"
)


def find_credential_of_role(view: ReadView, hashed: bytes, role: str) -> CredentialRow | None:
    """Return a credential of a role on the view's board, valid or not."""
    rows = _select_rows(view, CREDENTIAL, _SELECT_OF_ROLE, hashed, view.book_id, role)
    return rows[0] if rows else None


def list_valid_credentials(view: ReadView, now: int) -> list[ValidCredential]:
    """Return the valid tokens and invitations of the view's board."""
    rows = view.query(_SELECT_VALID, (view.book_id, now))
    return [ValidCredential(CREDENTIAL.read(row), row[-1]) for row in rows]


def list_member_invitations(view: ReadView, team: int, now: int) -> list[CredentialRow]:
    """Return the valid invitations to a team, oldest first."""
    values = (view.book_id, team, now)
    return _select_rows(view, CREDENTIAL, _SELECT_MEMBER_INVITATIONS, *values)


def update_credential(view: WriteView, hashed: bytes, **changes: Any) -> None:
    """Change columns of a credential of the view's board."""
    _update(view, CREDENTIAL, (hashed,), changes)


def end_team_credentials(view: WriteView, team: int, now: int) -> None:
    """Revoke all tokens of a team."""
    view.execute(_END_TEAM_CREDENTIALS, (now, view.book_id, team))


def end_all_of_team(view: WriteView, team: int, now: int) -> None:
    """Revoke all tokens and invitations of a team."""
    view.execute(_END_ALL_OF_TEAM, (now, view.book_id, team))


def move_invitations(view: WriteView, before: int, after: int) -> None:
    """Let unused invitations for new teams that expire at one time expire at another."""
    view.execute(_MOVE_INVITATIONS, (after, view.book_id, before))


def find_credential(query: Query, hashed: bytes) -> ScopedCredential | None:
    """Return a credential that was not revoked, with the slug of its board."""
    rows = query(_SELECT_BY_HASH, (hashed,))
    if not rows:
        return None
    *row, book, slug = rows[0]
    return ScopedCredential(CREDENTIAL.read(row), book, slug)


def upload_statements(
    slug: str, senders: Iterable[tuple[bytes, tuple[int, int] | None]]
) -> list[Statement]:
    """Return the statements that authorize uploads.

    ``senders`` are the hashes of tokens, each with its team's book and number if these are known.
    """
    statements: list[Statement] = [(_VERSION_BY_SLUG, (slug,))] if is_searchable(slug) else []
    for hashed, team in senders:
        statements.append((_SELECT_BY_HASH, (hashed,)))
        if team is not None:
            sender = Sender(hashed, None)
            statements += [board_and_team_statement(*team, sender), state_statement(team[0])]
    return statements


def has_server_organiser(view: TableView) -> bool:
    """Return whether a token for an organiser of all boards was ever issued."""
    return bool(view.query(_SELECT_SERVER_ORGANISER))


def insert_server_credential(view: TableView, row: CredentialRow) -> None:
    """Insert a credential that is valid on all boards."""
    view.execute(CREDENTIAL.insert, (None, *CREDENTIAL.values(row)))


def end_server_organisers(view: TableView, now: int) -> None:
    """Revoke the tokens of organisers of all boards."""
    view.execute(_END_SERVER_ORGANISERS, (now,))


# Data files.

_SELECT_DATA_FILES = DATA_FILE.select("WHERE book = ? ORDER BY name")
_SELECT_DATA_FILE = DATA_FILE.select("WHERE book = ? AND name = ?")
_DELETE_DATA_FILES = "DELETE FROM main.datafile WHERE book = ?"


def list_data_files(view: ReadView) -> list[DataFileRow]:
    """Return the files for participants by name."""
    return _select_rows(view, DATA_FILE, _SELECT_DATA_FILES, view.book_id)


def find_data_file(view: ReadView, name: str) -> DataFileRow | None:
    """Return a file for participants."""
    rows = _select_rows(view, DATA_FILE, _SELECT_DATA_FILE, view.book_id, name)
    return rows[0] if rows else None


def delete_data_files(view: WriteView) -> None:
    """Remove the rows of all files for participants."""
    view.execute(_DELETE_DATA_FILES, (view.book_id,))


# Identities: people who sign in, and their sessions.


class SignedIn(NamedTuple):
    """The identity behind a session, and the slug of its board."""

    identity: IdentityRow
    expires: int
    slug: str


_SELECT_IDENTITY = IDENTITY.select("WHERE book = ? AND number = ?")
_SELECT_IDENTITY_BY_SUBJECT = IDENTITY.select("WHERE book = ? AND issuer = ? AND subject = ?")
_SELECT_IDENTITIES = IDENTITY.select(
    "WHERE book = ? AND state NOT IN ('listed', 'erased') ORDER BY number"
)
_SELECT_ERASED_IDENTITIES = IDENTITY.select("WHERE book = ? AND state = 'erased' ORDER BY number")
_SELECT_TEAM_IDENTITIES = IDENTITY.select("WHERE book = ? AND team = ? ORDER BY number")
_SELECT_MEMBERS = IDENTITY.select(
    "WHERE book = ? AND team = ? AND state = 'registered' ORDER BY number"
)
_SELECT_ORGANISERS = IDENTITY.select("WHERE book = ? AND role = 'organiser' ORDER BY number")
_MOVE_IDENTITIES = "UPDATE main.identity SET team = ?, role = 'member' WHERE book = ? AND team = ?"
_COUNT_LISTED = "SELECT COUNT(*) FROM main.identity WHERE book = ? AND state = 'listed'"
_NEXT_IDENTITY_NUMBER = "SELECT COALESCE(MAX(number), 0) + 1 FROM main.identity WHERE book = ?"
_SELECT_SIGNED_IN = IDENTITY.select(
    "JOIN main.session s ON s.book = i.book AND s.identity = i.number "
    "JOIN main.board b ON b.book = i.book WHERE s.hash = ?",
    alias="i",
    extra="s.expires, b.slug",
)
_DELETE_SESSION = "DELETE FROM main.session WHERE hash = ?"
_DELETE_EXPIRED_SESSIONS = "DELETE FROM main.session WHERE book = ? AND expires <= ?"
_DELETE_IDENTITY_SESSIONS = "DELETE FROM main.session WHERE book = ? AND identity = ?"


def find_identity(view: ReadView, issuer: str, subject: str) -> IdentityRow | None:
    """Return an identity by its issuer and subject."""
    values = (view.book_id, issuer, subject)
    rows = _select_rows(view, IDENTITY, _SELECT_IDENTITY_BY_SUBJECT, *values)
    return rows[0] if rows else None


def read_identity(view: ReadView, number: int) -> IdentityRow:
    """Return an identity by its number."""
    rows = _select_rows(view, IDENTITY, _SELECT_IDENTITY, view.book_id, number)
    if not rows:
        raise NotFound("There is no such registration.")
    return rows[0]


def list_identities(view: ReadView) -> list[IdentityRow]:
    """Return the people who signed in, in the order in which they came."""
    return _select_rows(view, IDENTITY, _SELECT_IDENTITIES, view.book_id)


def list_team_identities(view: ReadView, team: int) -> list[IdentityRow]:
    """Return everybody who is or was in a team, and the entries of the list that admitted them."""
    return _select_rows(view, IDENTITY, _SELECT_TEAM_IDENTITIES, view.book_id, team)


def list_erased_identities(view: ReadView) -> list[IdentityRow]:
    """Return what is left of people whose names and identities were erased."""
    return _select_rows(view, IDENTITY, _SELECT_ERASED_IDENTITIES, view.book_id)


def list_members(view: ReadView, team: int) -> list[IdentityRow]:
    """Return the people in a team, in the order in which they signed in first."""
    return _select_rows(view, IDENTITY, _SELECT_MEMBERS, view.book_id, team)


def list_organisers(view: ReadView) -> list[IdentityRow]:
    """Return the people who organise the board."""
    return _select_rows(view, IDENTITY, _SELECT_ORGANISERS, view.book_id)


def move_identities(view: WriteView, source: int, target: int) -> None:
    """Move all people of a team to another, as members."""
    view.execute(_MOVE_IDENTITIES, (target, view.book_id, source))


def count_listed(view: ReadView) -> int:
    """Return how many people on the organiser's list have not signed in."""
    return int(view.query(_COUNT_LISTED, (view.book_id,))[0][0])


def insert_identity(view: WriteView, **fields: Any) -> IdentityRow:
    """Insert an identity with the next number, and return it."""
    number = int(view.query(_NEXT_IDENTITY_NUMBER, (view.book_id,))[0][0])
    row = IdentityRow(number=number, **fields)
    insert(view, IDENTITY, row)
    return row


def update_identity(view: WriteView, number: int, **changes: Any) -> None:
    """Change columns of an identity."""
    _update(view, IDENTITY, (number,), changes)


def insert_session(view: WriteView, row: SessionRow) -> None:
    """Insert a session, and delete those of the board that have expired."""
    view.execute(_DELETE_EXPIRED_SESSIONS, (view.book_id, row.made))
    insert(view, SESSION, row)


def find_signed_in(query: Query, hashed: bytes) -> SignedIn | None:
    """Return the identity behind a session."""
    rows = query(_SELECT_SIGNED_IN, (hashed,))
    if not rows:
        return None
    *row, expires, slug = rows[0]
    return SignedIn(IDENTITY.read(row), expires, slug)


def delete_session(view: TableView, hashed: bytes) -> None:
    """End a session."""
    view.execute(_DELETE_SESSION, (hashed,))


def delete_identity_sessions(view: WriteView, number: int) -> None:
    """End all sessions of an identity."""
    view.execute(_DELETE_IDENTITY_SESSIONS, (view.book_id, number))


# Webhooks: subscriptions to a board's events, and the queue of deliveries.

_SELECT_WEBHOOKS = WEBHOOK.select("WHERE book = ? ORDER BY number")
_SELECT_WEBHOOK = WEBHOOK.select("WHERE book = ? AND number = ?")
_COUNT_WEBHOOKS = "SELECT COUNT(*), COALESCE(MAX(number), 0) FROM main.webhook WHERE book = ?"
_COUNT_WAITING = (
    "SELECT webhook, COUNT(*) FROM main.delivery WHERE book = ? AND due IS NOT NULL "
    "GROUP BY webhook"
)
_COUNT_TESTS = (
    "SELECT COUNT(*) FROM main.delivery WHERE book = ? AND webhook = ? AND event = 'test' "
    "AND due IS NOT NULL"
)
_SELECT_LAST = (
    "SELECT webhook, last, delivered, result FROM ("
    "SELECT webhook, last, delivered, result, ROW_NUMBER() OVER "
    "(PARTITION BY webhook ORDER BY last DESC, time DESC, id) AS place "
    "FROM main.delivery WHERE book = ? AND last IS NOT NULL AND result <> '') AS tried "
    "WHERE place = 1"
)
_DELETE_WEBHOOK = (
    "DELETE FROM main.delivery WHERE book = ? AND webhook = ?",
    "DELETE FROM main.webhook WHERE book = ? AND number = ?",
)
_HAS_SUBSCRIPTION = "SELECT 1 FROM main.webhook WHERE book = ? AND events LIKE ? LIMIT 1"
_QUEUE_EVENT = (
    "INSERT INTO main.delivery (book, webhook, id, event, team, time, attempts, due, last, result, "
    "delivered) SELECT book, number, ?, ?, ?, ?, 0, ?, NULL, '', 0 FROM main.webhook "
    "WHERE book = ? AND events LIKE ? ON CONFLICT DO NOTHING"
)
_COUNT_UNQUEUED = (
    "SELECT COUNT(*) FROM main.webhook w WHERE w.book = ? AND w.events LIKE ? AND NOT EXISTS "
    "(SELECT 1 FROM main.delivery d WHERE d.book = w.book AND d.webhook = w.number AND d.id = ?)"
)
_SELECT_DUE = (
    "SELECT d.book, d.webhook, d.id, d.due, w.url FROM main.delivery d "
    "JOIN main.webhook w ON w.book = d.book AND w.number = d.webhook "
    "WHERE d.due <= ? AND d.attempts < 20 ORDER BY d.due, d.time LIMIT ?"
)
# If several servers try, only one changes the row.
_CLAIM = (
    "UPDATE main.delivery SET due = ?, last = ?, attempts = attempts + 1 "
    "WHERE book = ? AND webhook = ? AND id = ? AND due = ?"
)
_SELECT_CLAIMED = DELIVERY.select(
    "JOIN main.webhook w ON w.book = d.book AND w.number = d.webhook "
    "JOIN main.board b ON b.book = d.book WHERE d.book = ? AND d.webhook = ? AND d.id = ?",
    alias="d",
    extra="w.url, w.format, w.secret, b.slug",
)
_RECORD_RESULT = (
    "UPDATE main.delivery SET due = ?, last = ?, result = ?, delivered = ? "
    "WHERE book = ? AND webhook = ? AND id = ? AND attempts = ? AND due IS NOT NULL"
)
_DELETE_OLD_DELIVERIES = "DELETE FROM main.delivery WHERE due IS NULL AND time < ?"
_SUBSCRIBED_OPEN_SLUGS = (
    "SELECT slug FROM main.board b WHERE b.status IN ('open', 'paused') AND EXISTS "
    "(SELECT 1 FROM main.webhook w WHERE w.book = b.book AND w.events LIKE ?)"
)


class DueDelivery(NamedTuple):
    """A delivery that is due, by its key, and where it goes."""

    key: tuple[int, int, str]
    due: int
    url: str


def count_webhooks(view: ReadView) -> tuple[int, int]:
    """Return how many webhooks the view's board has, and the highest number of one."""
    count, last = view.query(_COUNT_WEBHOOKS, (view.book_id,))[0]
    return int(count), int(last)


def list_webhooks(view: ReadView) -> list[tuple[WebhookRow, dict[str, Any]]]:
    """Return the webhooks, each with its last attempt and how many deliveries wait for it."""
    waiting = dict(view.query(_COUNT_WAITING, (view.book_id,)))
    tried = {row[0]: row[1:] for row in view.query(_SELECT_LAST, (view.book_id,))}
    webhooks = []
    for row in _select_rows(view, WEBHOOK, _SELECT_WEBHOOKS, view.book_id):
        last, delivered, result = tried.get(row.number, (None, None, ""))
        delivered = None if delivered is None else delivered != 0
        status = {"last": last, "delivered": delivered, "result": result}
        webhooks.append((row, {**status, "waiting": waiting.get(row.number, 0)}))
    return webhooks


def read_webhook(view: ReadView, number: int) -> WebhookRow:
    """Return a webhook by its number."""
    rows = _select_rows(view, WEBHOOK, _SELECT_WEBHOOK, view.book_id, number)
    if not rows:
        raise NotFound("There is no such webhook.")
    return rows[0]


def is_test_waiting(view: ReadView, webhook: int) -> bool:
    """Return whether a test of a webhook was not sent yet."""
    return view.query(_COUNT_TESTS, (view.book_id, webhook))[0][0] > 0


def delete_webhook(view: WriteView, number: int) -> None:
    """Delete a webhook and its deliveries."""
    for statement in _DELETE_WEBHOOK:
        view.execute(statement, (view.book_id, number))


def is_subscribed(view: ReadView, event: str) -> bool:
    """Return whether a webhook of the view's board gets an event."""
    return bool(view.query(_HAS_SUBSCRIPTION, (view.book_id, f"% {event} %")))


def queue_deliveries(
    view: WriteView, event: str, event_id: str, now: int, team: str | None = None
) -> None:
    """Queue an event once for each webhook that gets it."""
    values = (event_id, event, team, now, now, view.book_id, f"% {event} %")
    view.execute(_QUEUE_EVENT, values)


def is_unqueued(view: ReadView, event: str, event_id: str) -> bool:
    """Return whether an event is not yet queued for a webhook that gets it."""
    return view.query(_COUNT_UNQUEUED, (view.book_id, f"% {event} %", event_id))[0][0] > 0


def list_subscribed_slugs(query: Query, event: str) -> list[str]:
    """Return the slugs of boards that are not closed and have a webhook for an event."""
    return [row[0] for row in query(_SUBSCRIBED_OPEN_SLUGS, (f"% {event} %",))]


def list_due_deliveries(query: Query, now: int, limit: int) -> list[DueDelivery]:
    """Return deliveries that are due, those that have waited longest first."""
    rows = query(_SELECT_DUE, (now, limit))
    return [DueDelivery((book, webhook, id_), due, url) for book, webhook, id_, due, url in rows]


def claim_delivery(
    view: TableView, delivery: DueDelivery, now: int, until: int
) -> tuple[DeliveryRow, str, str, bytes, str] | None:
    """Claim a delivery until a time; return it with its webhook's URL, format and secret, and slug.

    None if another process has claimed it.
    """
    if not view.execute(_CLAIM, (until, now, *delivery.key, delivery.due)):
        return None
    *row, url, kind, secret, slug = view.query(_SELECT_CLAIMED, delivery.key)[0]
    return DELIVERY.read(row), url, kind, secret, slug


def record_attempt(view: TableView, key: tuple[int, int, str], number: int, *result: Any) -> None:
    """Record when the next attempt is due, the time of this one, its result, and its success."""
    view.execute(_RECORD_RESULT, (*map(stored_value, result), *key, number))


def delete_deliveries_before(view: TableView, time: int) -> None:
    """Delete deliveries of events before a time that had their result."""
    view.execute(_DELETE_OLD_DELIVERIES, (time,))


# What belongs to all boards.

_INSERT_SERVER_VALUE = "INSERT INTO main.server (name, value) VALUES (?, ?) ON CONFLICT DO NOTHING"
_SELECT_SERVER_VALUE = "SELECT value FROM main.server WHERE name = ?"
_LOCK_SERVER = "UPDATE main.server SET value = value WHERE name = ?"
_COUNT_BOARDS = "SELECT COUNT(*) FROM main.board"
_RESTORED_SLUGS = "SELECT slug FROM main.board WHERE status = 'restored' ORDER BY slug"
# Rules are JSON without spaces, with this key only if the board is not listed. Quotes in texts are
# escaped, so no title looks like it.
_NOT_LISTED, _MEMBERS_ONLY, _NONE = '%"listing":"%', '%"listing":"members"%', ""
_SLUGS = "SELECT slug FROM main.board WHERE rules NOT LIKE ? ORDER BY book LIMIT ?"
_SLUGS_AFTER = (
    "SELECT slug FROM main.board WHERE rules NOT LIKE ? "
    "AND book > (SELECT book FROM main.board WHERE slug = ?) ORDER BY book LIMIT ?"
)
_OPEN_SLUGS = (
    "SELECT slug FROM main.board WHERE status {} 'closed' AND rules NOT LIKE ? "
    "ORDER BY book LIMIT ? OFFSET ?"
)
_COUNT_OPEN_SLUGS = "SELECT COUNT(*) FROM main.board WHERE status != 'closed' AND rules NOT LIKE ?"
_VISIBLE_SLUG = "SELECT 1 FROM main.board WHERE slug = ? AND rules NOT LIKE ?"
# For a slug that no board has, the first board's row is read: it takes as long.
_VERSION_BY_SLUG = (
    "SELECT slug, book, amended FROM main.board WHERE book = COALESCE("
    "(SELECT book FROM main.board WHERE slug = ?), (SELECT MIN(book) FROM main.board))"
)
_SLUGS_AND_BOOKS = "SELECT slug, name FROM main.board JOIN main.book ON book = id"
_BOOKS_AND_ENTRIES = (
    f"SELECT slug, name, {STATE_ENTRIES} FROM main.board b "  # noqa: S608
    f"JOIN main.book ON b.book = id {STATE_JOIN} ORDER BY slug"
)
_BOOK_BY_SLUG = f"{_SLUGS_AND_BOOKS} WHERE slug = ?"
_PLACES_IN_FOLDER = (
    "SELECT place FROM main.submission WHERE place LIKE '%/%' "
    "UNION ALL SELECT place FROM main.datafile WHERE place LIKE '%/%'"
)


# Without the long texts: rules change with ``amended``, and the final ranking with ``status``.
_VERSION_COLUMNS = tuple(name for name in BOARD.columns if name not in {"rules", "final"})
_SELECT_VERSIONS = (
    f"SELECT {', '.join(f'b.{name}' for name in _VERSION_COLUMNS)}, b.book, "  # noqa: S608
    f"{STATE_COLUMNS} FROM main.board b {STATE_JOIN} WHERE b.slug IN ({{}})"
)


def add_signing_key(view: TableView, encrypted: bytes) -> None:
    """Store the key that cookies are signed with, unless there is one."""
    view.execute(_INSERT_SERVER_VALUE, (_SIGNING_KEY, encrypted))


def read_signing_key(query: Query) -> bytes | None:
    """Return the encrypted key that cookies are signed with."""
    rows = query(_SELECT_SERVER_VALUE, (_SIGNING_KEY,))
    return rows[0][0] if rows else None


def count_boards(query: Query) -> int:
    """Return how many boards there are."""
    return int(query(_COUNT_BOARDS)[0][0])


def waiting_slugs(query: Query) -> list[str]:
    """Return the slugs of boards that were restored and wait to be resumed."""
    return [row[0] for row in query(_RESTORED_SLUGS)]


def list_books(query: Query) -> list[tuple[str, str, int]]:
    """Return every board's slug, the name of its book, and how many entries it has."""
    return [(row[0], row[1], row[2]) for row in query(_BOOKS_AND_ENTRIES)]


def lock_server(view: TableView) -> None:
    """Make other writers of what belongs to all boards wait until the transaction ends."""
    view.execute(_LOCK_SERVER, (_SIGNING_KEY,))


def list_slugs(
    view: TableView, limit: int = _AFTER_LAST, after: str | None = None, *, unlisted: bool = True
) -> list[str]:
    """Return the slugs of boards, oldest first, perhaps only those after another board."""
    without = _NONE if unlisted else _NOT_LISTED
    if after is None:
        return [row[0] for row in view.query(_SLUGS, (without, limit))]
    return [row[0] for row in view.query(_SLUGS_AFTER, (without, after, limit))]


def list_slugs_open_first(view: TableView, limit: int, skip: int, *, unlisted: bool) -> list[str]:
    """Return the slugs of boards, closed boards last."""
    without = _NONE if unlisted else _NOT_LISTED
    rows = view.query(_OPEN_SLUGS.format("!="), (without, limit, skip))
    if len(rows) < limit:  # the rest are closed; sorting all boards would read them all
        count = skip + len(rows) if rows else view.query(_COUNT_OPEN_SLUGS, (without,))[0][0]
        values = (without, limit - len(rows), max(skip - count, 0))
        rows = rows + view.query(_OPEN_SLUGS.format("="), values)
    return [row[0] for row in rows]


def read_versions(
    query: Query, slugs: Sequence[str]
) -> dict[str, tuple[tuple[Any, ...], int | None]]:
    """Return by slug the version of each board, and the database's time if it has a clock.

    A version holds the changing columns of the board's row and the state of its chain. It changes
    whenever anything visible on the board does. On a hidden or frozen board it is secret.
    """
    if not slugs:
        return {}
    rows = query(_SELECT_VERSIONS.format(", ".join("?" * len(slugs))), tuple(slugs))
    return {row[0]: (row[:-1], row[-1]) for row in rows}


def is_listed(view: TableView, slug: str) -> bool:
    """Return whether there is a board that lists show."""
    return is_searchable(slug) and bool(view.query(_VISIBLE_SLUG, (slug, _NOT_LISTED)))


def is_open_to_public(query: Query, slug: str) -> bool:
    """Return whether there is a board that is not for its members only."""
    return bool(query(_VISIBLE_SLUG, (slug, _MEMBERS_ONLY)))


def find_version(query: Query, slug: str) -> tuple[int, int] | None:
    """Return a board's book and how often its rules were changed; None if there is no board."""
    rows = query(_VERSION_BY_SLUG, (slug,)) if is_searchable(slug) else []
    return rows[0][1:] if rows and rows[0][0] == slug else None


def books_by_slug(view: TableView) -> dict[str, str]:
    """Return the name of every board's book by its slug."""
    return dict(view.query(_SLUGS_AND_BOOKS))


def find_book(view: TableView, slug: str) -> str | None:
    """Return the name of a board's book."""
    rows = view.query(_BOOK_BY_SLUG, (slug,)) if is_searchable(slug) else []
    return rows[0][1] if rows else None


def list_places_in_folder(view: TableView) -> set[str]:
    """Return the locations of all stored predictions and data files that lie in a folder."""
    return {row[0] for row in view.query(_PLACES_IN_FOLDER)}


# Stored predictions.

_INSERT_UPLOAD = "INSERT INTO main.upload (id, body) VALUES (?, ?)"
_SELECT_UPLOAD = "SELECT body FROM main.upload WHERE id = ?"
_DELETE_UPLOAD = "DELETE FROM main.upload WHERE id = ?"


def insert_upload(file_id: str, body: bytes) -> Statement:
    """Return the statement that stores a file."""
    return _INSERT_UPLOAD, (file_id, body)


def read_upload(view: TableView, file_id: str) -> bytes | None:
    """Return a stored file."""
    rows = view.query(_SELECT_UPLOAD, (file_id,))
    return bytes(rows[0][0]) if rows else None


def delete_upload(view: TableView, file_id: str) -> None:
    """Remove a stored file."""
    view.execute(_DELETE_UPLOAD, (file_id,))


# Dumps.

_STORED_PLACES = (
    "SELECT id, place FROM main.submission WHERE book = ? AND id > ? AND place <> '' "
    "ORDER BY id LIMIT ?"
)
_COUNT_WITHOUT_PLACE = (
    "SELECT (SELECT COUNT(*) FROM main.submission WHERE book = ? AND place = '') + "
    "(SELECT COUNT(*) FROM main.datafile WHERE book = ? AND place = '')"
)
_SET_MISSING_PLACES = (
    "UPDATE main.submission SET place = ? WHERE book = ? AND id = ? AND place = ''",
    "UPDATE main.datafile SET place = ? WHERE book = ? AND id = ? AND place = ''",
)


def iter_dumped_rows(view: ReadView, table: Table[Any]) -> Iterator[dict[str, Any]]:
    """Yield the columns of all rows of the view's board, in the order of the table's key."""
    keys = ", ".join(table.key)
    order = f" ORDER BY {keys} LIMIT {_PAGE_ROWS}" if keys else ""
    first = table.select(f"WHERE book = ?{order}")
    places = ", ".join("?" * len(table.key))
    following = table.select(f"WHERE book = ? AND ({keys}) > ({places}){order}")
    rows = view.query(first, (view.book_id,))
    while True:
        documents = [dict(zip(table.columns, row, strict=True)) for row in rows]
        yield from documents
        if len(rows) < _PAGE_ROWS:
            return
        last = tuple(documents[-1][name] for name in table.key)
        rows = view.query(following, (view.book_id, *last))


def insert_dumped_row(view: WriteView, table: Table[Any], row: dict[str, Any], tables: int) -> None:
    """Insert the columns of a row; refuse a duplicate or malformed one.

    ``tables`` is the format of the dump: columns that later ones added get their defaults.
    """
    if isinstance(row, dict):
        added = {
            name: stored_value(column.default)
            for name, column in table.columns.items()
            if column.since > tables
        }
        row = added | row
    if not isinstance(row, dict) or set(row) != set(table.columns):
        raise BrokenDump(f"The dump holds a {table.name} with other columns than this version's.")
    for name, column in table.columns.items():
        if not column.accepts(row[name]):
            raise BrokenDump(f"The dump holds a {table.name} whose {name} cannot be stored.")
    values = (view.book_id, *(row[name] for name in table.columns))
    if not view.execute(f"{table.insert} ON CONFLICT DO NOTHING", values):
        raise Conflict(
            f"This database already has this {table.name} row; the board cannot be restored."
        )


def iter_stored_places(view: ReadView) -> Iterator[tuple[str, str]]:
    """Yield the id and the place of every submission that is stored, and of every data file."""
    last = ""
    while rows := view.query(_STORED_PLACES, (view.book_id, last, _PAGE_ROWS)):
        yield from rows
        last = rows[-1][0]
    for file in list_data_files(view):
        yield file.id, file.place


def set_missing_place(view: WriteView, submission: str, place: str) -> bool:
    """Set the place of a submission or data file that has none; return whether there was one."""
    values = (place, view.book_id, submission)
    return any(view.execute(statement, values) for statement in _SET_MISSING_PLACES)


def count_without_place(view: ReadView) -> int:
    """Return how many submissions and data files have no stored content."""
    return int(view.query(_COUNT_WITHOUT_PLACE, (view.book_id, view.book_id))[0][0])
