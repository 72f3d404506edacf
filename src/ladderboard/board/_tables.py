"""The database tables of boards, which stand beside the ledger's, and their rows."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from ladderboard.errors import NotFound
from ladderboard.ledger import SchemaModule, select_from

if TYPE_CHECKING:
    from ladderboard.ledger import LedgerEnvironment, ReadView

ENDED_STATUSES = {"closing", "closed", "moved"}
"""Statuses in which a board takes no more submissions."""

SERVER_BOOK = "server"
"""The name of a book without entries that holds what belongs to all boards."""

# A released format never changes; the next one is another tuple.
# seen_*: what others see while the board is frozen.
_FORMAT_1 = (
    """CREATE TABLE main.board (
        book {whole} PRIMARY KEY, slug TEXT NOT NULL UNIQUE, rules TEXT NOT NULL,
        status TEXT NOT NULL, visibility TEXT NOT NULL, horizon {whole} NOT NULL,
        seen_epoch {whole} NOT NULL, epoch {whole} NOT NULL, amended {whole} NOT NULL,
        teams {whole} NOT NULL, pooled {whole} NOT NULL, replayed {whole} NOT NULL,
        stored {whole} NOT NULL, best {real}, final TEXT, made {whole} NOT NULL)""",
    """CREATE TABLE main.team (
        book {whole} NOT NULL, number {whole} NOT NULL, id TEXT NOT NULL, name TEXT NOT NULL,
        folded TEXT NOT NULL, kind TEXT NOT NULL, disqualified {whole} NOT NULL,
        made {whole} NOT NULL, used {whole} NOT NULL, last {whole}, released {real}, since {whole},
        seen_used {whole}, seen_last {whole}, seen_released {real}, seen_since {whole},
        PRIMARY KEY (book, number), UNIQUE (book, folded), UNIQUE (book, id))""",
    """CREATE INDEX {prefix}team_standing
        ON {on}team (book, disqualified, released, since, number)""",
    """CREATE INDEX {prefix}team_seen
        ON {on}team (book, disqualified, seen_released, seen_since, number)""",
    """CREATE TABLE main.credential (
        hash {blob} PRIMARY KEY, book {whole} NOT NULL, role TEXT NOT NULL, team {whole},
        made {whole} NOT NULL, expires {whole}, ended {whole})""",
    "CREATE INDEX {prefix}credential_team ON {on}credential (book, team)",
    """CREATE TABLE main.submission (
        book {whole} NOT NULL, team {whole} NOT NULL, number {whole} NOT NULL, id TEXT NOT NULL,
        entry {whole} NOT NULL, time {whole} NOT NULL, message TEXT NOT NULL, format TEXT,
        size {whole} NOT NULL, place TEXT NOT NULL, chosen {whole} NOT NULL,
        epoch {whole} NOT NULL, value {real}, score {real}, improved {whole} NOT NULL,
        question {whole} NOT NULL, PRIMARY KEY (book, team, number), UNIQUE (id),
        UNIQUE (book, entry))""",
    """CREATE TABLE main.record (
        book {whole} NOT NULL, entry {whole} NOT NULL, epoch {whole} NOT NULL,
        time {whole} NOT NULL, team {whole} NOT NULL, value {real} NOT NULL,
        PRIMARY KEY (book, entry)){tail}""",
    "CREATE TABLE main.upload (id TEXT PRIMARY KEY, body {blob} NOT NULL)",
)
BOARD_SCHEMA = SchemaModule("board", (_FORMAT_1,))

_BOARD = (
    "SELECT slug, rules, status, visibility, horizon, seen_epoch, epoch, amended, teams, pooled, "
    "replayed, stored, best, final, made FROM main.board WHERE book = ?"
)
_TEAM_COLUMNS = (
    "number, id, name, kind, disqualified, made, used, last, released, since, "
    "seen_used, seen_last, seen_released, seen_since"
)
_TEAM = select_from("team", _TEAM_COLUMNS, "WHERE book = ? AND number = ?")
_TEAM_BY_ID = select_from("team", _TEAM_COLUMNS, "WHERE book = ? AND id = ?")


class BoardRow(NamedTuple):
    """A row of the table ``board``.

    ``status`` is open, paused, restored (paused until the organiser charges questions), closing,
    closed or moved. ``rules`` are the current ones; ``amended`` counts their changes. While the
    board is frozen, others see ``horizon`` entries and the epoch ``seen_epoch``. ``pooled`` counts
    questions beyond the teams' shares, ``replayed`` those asked again after labels were corrected,
    ``stored`` the bytes of all submissions. ``best`` is the lowest released loss.
    """

    slug: str
    rules: str
    status: str
    visibility: str
    horizon: int
    seen_epoch: int
    epoch: int
    amended: int
    teams: int
    pooled: int
    replayed: int
    stored: int
    best: float | None
    final: str | None
    made: int


class TeamRow(NamedTuple):
    """A row of the table ``team``; ``kind`` is team or baseline, ``since`` the release's time."""

    number: int
    id: str
    name: str
    kind: str
    disqualified: int
    made: int
    used: int
    last: int | None
    released: float | None
    since: int | None
    seen_used: int | None
    seen_last: int | None
    seen_released: float | None
    seen_since: int | None


def read_board(view: ReadView) -> BoardRow:
    """Return the row of the view's board."""
    rows = view.query(_BOARD, (view.book_id,))
    if not rows:
        raise NotFound("There is no such board.")
    return BoardRow(*rows[0])


def read_team(view: ReadView, number: int) -> TeamRow:
    """Return a team of the view's board by its number."""
    rows = view.query(_TEAM, (view.book_id, number))
    if not rows:
        raise NotFound("There is no such team.")
    return TeamRow(*rows[0])


def find_team(view: ReadView, team: str) -> TeamRow:
    """Return a team of the view's board by its id."""
    rows = view.query(_TEAM_BY_ID, (view.book_id, team))
    if not rows:
        raise NotFound("There is no such team.")
    return TeamRow(*rows[0])


def current_time(view: ReadView, environment: LedgerEnvironment) -> int:
    """Return the time of the database or the machine, but never one before the last entry."""
    return max(clock_time(view, environment), view.chain_state().time)


def clock_time(view: ReadView, environment: LedgerEnvironment) -> int:
    """Return the database's clock if it has one, otherwise the machine's."""
    shared = view.now() if environment.uses_system_clock else None
    return environment.clock() if shared is None else shared


def is_searchable(text: str) -> bool:
    """Return whether text is safe to use in a database lookup: ASCII without NUL."""
    return isinstance(text, str) and "\0" not in text and text.isascii()


def to_json(value: Any) -> str:
    """Return compact JSON with sorted keys, as the database stores it."""
    return json.dumps(value, ensure_ascii=True, separators=(",", ":"), sort_keys=True)


def sample_key(epoch: int) -> str:
    """Return the key under which an epoch's labelled sample is stored."""
    return "sample" if epoch == 0 else f"sample {epoch}"
