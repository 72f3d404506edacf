"""The page of a board with many teams, for bench/server.py, beside its standings as JSON."""

from __future__ import annotations

import gzip
import http.client
import re
from typing import TYPE_CHECKING

import numpy as np

from _timing import min_seconds
from ladderboard.board import Caller, IncomingSubmission, Role, open_boards, read_folder
from ladderboard.files import read_predictions
from ladderboard.holdout import AlignedPredictions

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


_N, _TIMES, _ROUNDS = 1_000, 20, 15
_RULES = """
title: Busy
description: A board with many teams, which all get better.
loss: accuracy
questions: 40000
teams: 10000
ladder: team
mechanism: {name: ladder, step: 0.001}
"""


def create_busy_board(path: Path, *, teams: int, per_team: int) -> str:
    """Create a database with one board, teams and their submissions; return a team's token."""
    folder = path.with_name("busy")
    folder.mkdir()
    rng = np.random.default_rng(0)
    labels = rng.integers(2, size=_N)
    (folder / "board.yaml").write_text(_RULES)
    rows = "\n".join(f"{index},{label}" for index, label in enumerate(labels))
    (folder / "holdout.csv").write_text(f"id,label\n{rows}\n")
    boards = open_boards(path, create=True)
    board = boards.create(read_folder(folder))
    organiser = Caller(Role.ORGANISER)
    registered = [
        board.teams.register_or_create(organiser, f"Team {index}") for index in range(teams)
    ]
    scorer = board.scorer()
    for question in range(teams * per_team):
        wrong = rng.random(_N) < 0.5 - 0.4 * question / (teams * per_team)
        lines = "\n".join(f"{index},{value}" for index, value in enumerate(labels ^ wrong))
        body = f"id,prediction\n{lines}\n".encode()
        aligned = AlignedPredictions.from_values(read_predictions(body, scorer.roster, scorer.loss))
        incoming = IncomingSubmission(submission=aligned, received=boards.environment.clock())
        board.submit(
            boards.caller_by_token(registered[question % teams].token, board.slug), incoming
        )
    boards.close()
    return registered[0].token


def time_page(port: int, token: str | None = None) -> tuple[float, float]:
    """Return seconds for the board's page, and for its standings as JSON.

    With a token the page is rendered every time; the public page is cached.
    """
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    line = http.client.HTTPConnection("127.0.0.1", port)

    def reading(path: str) -> Callable[[], None]:
        def run() -> None:
            for _ in range(_TIMES):
                line.request("GET", path, headers=headers)
                reply = line.getresponse()
                reply.read()
                if reply.status != 200:
                    raise SystemExit(f"refused: {reply.status}")

        return run

    tasks = [reading("/boards/busy"), reading("/api/v1/boards/busy/leaderboard")]
    for task in tasks:
        task()
    page, standings = min_seconds(*tasks, rounds=_ROUNDS)
    line.close()
    return page / _TIMES, standings / _TIMES


def page_bytes(port: int) -> tuple[int, int]:
    """Return the bytes of a page with its static files: as sent, and compressed with gzip."""
    line = http.client.HTTPConnection("127.0.0.1", port)
    incoming = packed = 0
    paths = ["/boards/busy"]
    while paths:
        line.request("GET", paths.pop(), headers={"Accept-Encoding": "gzip"})
        reply = line.getresponse()
        body = reply.read()
        incoming += len(body)
        is_packed = reply.headers["Content-Encoding"] == "gzip"
        packed += len(body) if is_packed else len(gzip.compress(body))
        if reply.headers["Content-Type"].startswith("text/html"):
            text = (gzip.decompress(body) if is_packed else body).decode()
            paths += re.findall(r'(?:src|href)="(/static/[^"]+)"', text)
    line.close()
    return incoming, packed
