"""Make a database of boards in the present format, to be kept: later versions must open it.

Run once for each released format: python tests/board/formats/make.py FOLDER [POSTGRES_URL]

For format 1 this writes 1.db with its marks and its folder of large submissions, 1.json with what
must come out of it, a backup of it in 1.backup and the secret key that opens that; and with the
address of an empty PostgreSQL database 1.sql, the same boards as rows.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from ladderboard.board import (
    BOARD_SCHEMA,
    Boards,
    Caller,
    DatabaseStore,
    IncomingSubmission,
    MixedStore,
    Role,
    VerifiedIdentity,
    back_up,
    read_rules,
)
from ladderboard.board import _store as mixed
from ladderboard.files import read_holdout
from ladderboard.ledger import LedgerEnvironment, PostgresStorage, SqliteStorage, make_secret_key

ORGANISER = Caller(Role.ORGANISER)
N = 60
_TEAMS = "SELECT name, used, released FROM main.team WHERE book = ? ORDER BY number"
RULES = """
slug: {slug}
title: Kept
loss: accuracy
questions: 40
teams: 3
registration: sign_in
sign_in: {{domains: [example.edu], approval: true}}
finals: {{selections: 1}}
mechanism: {{name: shaky_ladder, step: 0.02, compare_noise: 0.01, release_noise: 0.005}}
"""


def predictions(seed):
    """Return a file."""
    wrong = np.random.default_rng(seed).random(N) < 0.6 / (1 + seed / 3)
    lines = (f"{index},{(index + wrong[index]) % 2}\n" for index in range(N))
    return ("id,prediction\n" + "".join(lines)).encode()


def table(flip=0):
    """Return the labels; some may be corrected."""
    splits = ["public" if index < 40 else "private" for index in range(N)]
    labels = [(index + (index < flip)) % 2 for index in range(N)]
    return read_holdout({"id": list(range(N)), "label": labels, "split": splits})


def submit(board, seed):
    """Submit for one of two teams."""
    body = predictions(seed)
    sent = IncomingSubmission(
        board.scorer().read(body), board.book.environment.clock(), idempotency_key=str(seed)
    )
    return board.submit(Caller(Role.TEAM, 1 + seed % 2), sent)


def fill(boards):
    """Make a board in use, with an amendment and corrected labels, and one that is closed."""
    for slug in ("open", "closed"):
        rules = read_rules(RULES.format(slug=slug))
        folder = SimpleNamespace(
            rules=rules, table=table(), baselines={}, people=(), data={"train.csv": Path(__file__)}
        )
        board = boards.create(folder)
        for name in ("R\u00e9d", "Blue"):
            board.teams.create(ORGANISER, name)
        board.teams.invite_team(ORGANISER)
        board.identities.extend_list(ORGANISER, ["ada@example.org"])
        person = VerifiedIdentity("example", "https://example.edu", "1", "Bob", "bob@example.edu")
        caller = boards.caller_by_token_hash(board.identities.sign_in(person, seconds=60), slug)
        board.identities.register(caller, "Green")
        board.identities.approve(ORGANISER, 2)
        for seed in range(5):
            # One lies where a large one would.
            mixed._MAX_DATABASE_BYTES = 0 if seed == 3 else 2**20
            submit(board, seed)
        board.amendments.amend(ORGANISER, {"questions": 50})
        board.amendments.correct_labels(ORGANISER, table(flip=2))
        submit(board, 5)
        if slug == "closed":
            board.closer.close(ORGANISER)


def describe_boards(boards):
    """Return what a database tells."""
    content = {}
    for slug in boards.list():
        board = boards.open(slug)
        row, head = board.row(), board.book.head()
        with board.reading() as view:
            teams = view.query(_TEAMS, (view.book_id,))
        content[slug] = {
            "status": row.status,
            "epoch": row.epoch,
            "entries": head.entries,
            "head": head.hash.hex(),
            "best": row.best,
            "teams": teams,
        }
    return json.loads(json.dumps(content))


def environment():
    """Return a clock and salts that are the same every time."""
    ticks, salts = itertools.count(1_700_000_000), itertools.count(1)
    return LedgerEnvironment(
        clock=lambda: next(ticks), salt=lambda: hashlib.sha256(b"%d" % next(salts)).digest()
    )


def make(folder, url=None):
    """Make everything."""
    number = len(BOARD_SCHEMA.migrations)
    storage = SqliteStorage(folder / f"{number}.db", create=True)
    boards = Boards(
        storage, MixedStore(storage, folder / f"{number}.db.submissions"), environment=environment()
    )
    fill(boards)
    (folder / f"{number}.json").write_text(json.dumps(describe_boards(boards), indent=1) + "\n")
    key = make_secret_key(folder / f"{number}.key")
    backup = back_up(boards, folder, public_key=key.public)
    backup.path.rename(folder / f"{number}.backup")
    boards.close()
    (folder / f"{number}.db.submissions/incoming").rmdir()  # Git keeps no empty folders
    with closing(sqlite3.connect(folder / f"{number}.db")) as database:
        database.execute("VACUUM")
    if url is not None:
        boards = Boards(
            rows := PostgresStorage(url, create=True),
            DatabaseStore(rows),
            environment=environment(),
        )
        fill(boards)
        boards.close()
        (folder / f"{number}.sql").write_text(_sql(url))


def _sql(url):
    """Return the schema as statements, without what depends on the server."""
    words = ["pg_dump", "--inserts", "--no-owner", "--schema=ladderboard", url]
    dumped = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    lines = (line for line in dumped.splitlines() if line and not line.startswith(("--", "\\")))
    dull = ("SET ", "SELECT pg_catalog.set_config")
    return "\n".join(line for line in lines if not line.startswith(dull)) + "\n"


if __name__ == "__main__":
    make(Path(sys.argv[1]), *sys.argv[2:])
