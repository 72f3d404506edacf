"""A board with many teams and submissions for bench/server.py, written directly to the database.

Reading its standings costs as much as on a real board; its ledger is not valid.
"""

from __future__ import annotations

import http.client
import json
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import numpy as np

from _timing import min_seconds
from ladderboard.board import open_boards, read_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
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
_TEAM = (
    "INSERT INTO team (book, number, id, name, folded, kind, disqualified, made, used, last, "
    "released, since) VALUES (?, ?, ?, ?, ?, 'team', 0, ?, ?, ?, ?, ?)"
)
_SUBMISSION = (
    "INSERT INTO submission (book, team, number, id, entry, time, message, format, size, place, "
    "chosen, epoch, value, score, improved, question) "
    "VALUES (?, ?, ?, ?, ?, ?, '', 'csv', 20000, ?, 0, 0, ?, NULL, ?, ?)"
)
_ENTRY = (
    "INSERT INTO entry (place, kind, ladder, question, asker, hash, time, asked, changes, ladders, "
    "lost, charged, closed, form) VALUES (?, 'question', 0, ?, ?, ?, ?, ?, 0, 1, 0, 0, 0, ?)"
)
_ENTRIES = 2**40
_TIMES, _ROUNDS = 40, 15


def create_large_board(path: Path, slug: str, *, teams: int, submissions: int) -> None:
    """Create a database with one board, its teams, and their submissions."""
    folder = path.with_name(slug)
    folder.mkdir()
    (folder / "board.yaml").write_text(_RULES)
    (folder / "holdout.csv").write_text("id,label\n0,1\n1,0\n2,1\n")
    boards = open_boards(path, create=True)
    boards.create(read_folder(folder))
    boards.close()
    with closing(sqlite3.connect(path)) as database:
        book, first = database.execute(
            "SELECT book, (SELECT count(*) FROM entry) FROM board WHERE slug = ?", (slug,)
        ).fetchone()
        _fill(database, book, first, teams, submissions // teams)
        database.commit()


def _fill(database: sqlite3.Connection, book: int, first: int, teams: int, per_team: int) -> None:
    values = np.random.default_rng(0).random(teams).round(3).tolist()  # some are equal

    def rows() -> Iterator[tuple[int, int, int, str]]:
        for index in range(teams * per_team):
            yield index, index % teams + 1, index // teams + 1, f"{index:032x}"

    last = _START + teams * per_team
    seats = (
        (
            book,
            index,
            f"{index:016x}",
            f"Team {index}",
            f"team{index}",
            _START,
            per_team,
            last,
            value,
            _START + index,
        )
        for index, value in enumerate(values, 1)
    )
    database.executemany(_TEAM, seats)
    sent = (
        (
            book,
            team,
            index,
            submission_id,
            first + n,
            _START + n,
            submission_id,
            values[team - 1],
            index == 1,
            index,
        )
        for n, team, index, submission_id in rows()
    )
    database.executemany(_SUBMISSION, sent)
    first_entry = book * _ENTRIES + first
    entries = (
        (first_entry + n, index, f"{team:016x}", bytes(32), _START + n, n + 1, _FORM)
        for n, team, index, _ in rows()
    )
    database.executemany(_ENTRY, entries)
    database.execute("UPDATE board SET teams = ? WHERE book = ?", (teams, book))


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
