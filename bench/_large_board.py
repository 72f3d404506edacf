"""A board with many teams and submissions, written directly to the database.

Reading its standings costs as much as on a real board; its ledger is not valid.
"""

from __future__ import annotations

import http.client
import json
import sqlite3
from contextlib import closing
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np
import psycopg

from _timing import min_seconds
from ladderboard.board import open_boards, read_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path


_RULES = """
title: Crowd
loss: zero_one
questions: 10000000
teams: 10000
ladder: team
mechanism: {name: ladder, step: 0.01}
"""
_START = 1_700_000_000
_FORM = b'{"kind":"question"}' + bytes(400)
_TEAM = ("book", "number", "id", "name", "folded", "kind", "disqualified", "made", "used", "last",
         "released", "since")  # fmt: skip
_SUBMISSION = ("book", "team", "number", "id", "entry", "time", "message", "format", "size",
               "place", "chosen", "epoch", "value", "score", "improved", "question")  # fmt: skip
_ENTRY = ("place", "kind", "ladder", "question", "asker", "hash", "time", "asked", "changes",
          "ladders", "lost", "charged", "closed", "form")  # fmt: skip
_MARK = ("book", "mark", "number")
_ENTRIES = 2**40
_TIMES, _ROUNDS = 40, 15


class _Inserter:
    """Inserts many rows: by SQLite's own driver, or by PostgreSQL's COPY."""

    def __init__(self, database: str) -> None:
        self._postgres = "://" in database
        self.connection: Any = (
            psycopg.connect(database.replace("+psycopg", ""), options="-c search_path=ladderboard")
            if self._postgres
            else sqlite3.connect(database)
        )

    def insert(self, table: str, columns: tuple[str, ...], rows: Iterable[tuple[Any, ...]]) -> None:
        names = ", ".join(columns)
        if not self._postgres:
            marks = ", ".join("?" * len(columns))
            self.connection.executemany(f"INSERT INTO {table} ({names}) VALUES ({marks})", rows)  # noqa: S608
            return
        with self.connection.cursor().copy(f"COPY {table} ({names}) FROM STDIN") as copy:
            for row in rows:
                copy.write_row(row)


def create_large_board(
    path: Path,
    slug: str,
    *,
    teams: int,
    submissions: int,
    n: int = 3,
    database: str | None = None,
) -> None:
    """Create a board with teams and their submissions, in a new database unless one is given."""
    folder = path.with_name(f"{slug}-folder")
    folder.mkdir()
    (folder / "board.yaml").write_text(_RULES + f"slug: {slug}\n")
    labels = "".join(f"{row},{(row + 1) % 2}\n" for row in range(n))
    (folder / "holdout.csv").write_text(f"id,label\n{labels}")
    database = str(path) if database is None else database
    boards = open_boards(database, create=True)
    boards.create(read_folder(folder))
    boards.close()
    inserter = _Inserter(database)
    with closing(inserter.connection):
        query = f"SELECT book FROM board WHERE slug = '{slug}'"  # noqa: S608
        ((book,),) = inserter.connection.execute(query).fetchall()
        query = f"SELECT MAX(place) + 1 FROM entry WHERE place / {_ENTRIES} = {book}"  # noqa: S608
        ((following,),) = inserter.connection.execute(query).fetchall()
        _fill(inserter, book, following - book * _ENTRIES, teams, submissions // teams)
        inserter.connection.commit()


def _fill(inserter: _Inserter, book: int, first: int, teams: int, per_team: int) -> None:
    values = np.random.default_rng(0).random(teams).round(3).tolist()  # some are equal

    def rows() -> Iterator[tuple[int, int, int, str]]:
        for index in range(teams * per_team):
            yield index, index % teams + 1, index // teams + 1, f"{book:08x}{index:024x}"

    last = _START + teams * per_team
    seats = (
        (book, index, f"{index:016x}", f"Team {index}", f"team{index}", "team", 0, _START,
         per_team, last, value, _START + index)
        for index, value in enumerate(values, 1)
    )  # fmt: skip
    inserter.insert("team", _TEAM, seats)
    sent = (
        (book, team, index, submission_id, first + n, _START + n, "", "csv", 20000, submission_id,
         0, 0, values[team - 1], None, int(index == 1), index)
        for n, team, index, submission_id in rows()
    )  # fmt: skip
    inserter.insert("submission", _SUBMISSION, sent)
    first_entry = book * _ENTRIES + first
    entries = (
        (first_entry + n, "question", 0, index, f"{team:016x}", bytes(32), _START + n, n + 1, 0, 1,
         0, 0, 0, _FORM)
        for n, team, index, _ in rows()
    )  # fmt: skip
    inserter.insert("entry", _ENTRY, entries)
    marks = ((book, blake2b(b"%d" % n, digest_size=32).digest(), first + n) for n, *_ in rows())
    inserter.insert("mark", _MARK, marks)
    inserter.connection.execute(f"UPDATE board SET teams = {teams} WHERE book = {book}")  # noqa: S608


def time_pages(small: int, large: int, limit: int) -> list[float]:
    """Return seconds for a page of the small board, and for the large one's first and middle."""
    path = f"/api/v1/boards/{{}}/leaderboard?limit={limit}"
    lines = {port: http.client.HTTPConnection("127.0.0.1", port) for port in (small, large)}

    def get(port: int, path: str) -> dict[str, object]:
        lines[port].request("GET", path)
        reply = lines[port].getresponse()
        content: dict[str, object] = json.loads(reply.read())
        if reply.status != 200:
            raise SystemExit(f"refused: {content}")
        return content

    def reading(port: int, path: str) -> Callable[[], None]:
        def run() -> None:
            for _ in range(_TIMES):
                lines[port].request("GET", path)
                lines[port].getresponse().read()

        return run

    cursor = None
    for _ in range(5):  # to the middle, in large steps
        cursor_query = "" if cursor is None else f"&cursor={cursor}"
        cursor = get(large, f"/api/v1/boards/many/leaderboard?limit=1000{cursor_query}")["next"]
    middle = path.format("many") + f"&cursor={cursor}"
    tasks = [(small, path.format("few")), (large, path.format("many")), (large, middle)]
    for port, task_path in tasks:
        get(port, task_path)
    best_seconds = min_seconds(*(reading(*task) for task in tasks), rounds=_ROUNDS)
    for line in lines.values():
        line.close()
    return [seconds / _TIMES for seconds in best_seconds]
