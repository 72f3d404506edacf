"""A board with everything that a history can have, closed; and what is in its bundle."""

import itertools
import json
import secrets
import struct
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np

from ladderboard.board import (
    Boards,
    Caller,
    DatabaseStore,
    FolderStore,
    MixedStore,
    Role,
    Sent,
    dump_board,
    read_rules,
    restore_board,
    write_board_bundle,
)
from ladderboard.files import read_holdout
from ladderboard.ledger import PostgresStorage, SecretKey, SqliteStorage, World, decode
from ladderboard.server import sandbox

N, PUBLIC = 300, 200
LARGE = 4  # the submission that takes more than one part
ORGANISER = Caller(Role.ORGANISER)
SHAKY = {"name": "shaky_ladder", "step": 0.02, "compare_noise": 0.01, "release_noise": 0.005}
RULES = {
    "slug": "digits",
    "loss": "accuracy",
    "questions": 60,
    "teams": 5,
    "registration": "organiser",
    "finals": {"selections": 2},
    "mechanism": SHAKY,
    "baselines": [{"name": "Coin", "file": "coin.csv"}],
}


def read_bundle(path):
    """Return the records of a bundle, by a reader that is not the verifier's."""
    left = path.read_bytes().removeprefix(b"ladderboard bundle 1\n")[:-32]
    found = []
    while left:
        (size,) = struct.unpack(">Q", left[:8])
        found.append(decode(left[8 : 8 + size]))
        left = left[8 + size :]
    return found


def holdout(flip=0):
    """Return the labels, with so many of them flipped."""
    labels = [(each % 2) ^ (each < flip) for each in range(N)]
    split = ["public" if each < PUBLIC else "private" for each in range(N)]
    return read_holdout({"id": list(range(N)), "label": labels, "split": split})


def predictions(at):
    """Return predictions that are better the later they come."""
    wrong = np.random.default_rng(at).random(N) < 0.5 / (1 + at / 6)
    pad = " " * 12_000 if at == LARGE else ""
    lines = [f"{each},{(each % 2) ^ wrong[each]:d}{pad}" for each in range(N)]
    return "\n".join(["id,prediction", *lines, ""]).encode()


def submit(board, team, at):
    """Submit for a team, and return the answer."""
    body = predictions(at)
    clock = board.book.world.clock()
    sent = Sent(board.scorer().read(body), clock, message=f"note {at}")
    return board.submit(Caller(Role.TEAM, team), sent)


def keep_as_file(board, own, body, format_="csv"):
    """Keep a submission as older versions did: the file, as it came."""
    prepared = board.store.prepare(secrets.token_hex(16), body)
    with board.book.storage.writing(board.book.name) as view:
        prepared.commit(view)
        view.change(
            "UPDATE main.submission SET place = ?, format = ?, size = ? WHERE book = ? AND id = ?",
            (prepared.place, format_, len(body), view.number, own),
        )


def _boards(storage, store, **more):
    ticks = itertools.count(1_800_000_000)
    return Boards(storage, store, world=World(clock=lambda: next(ticks)), **more)


def _made(folder, table, **more):
    """Return a board's folder, without a folder: rules, labels and the files of baselines.

    A rule that is None is left out.
    """
    (folder / "coin.csv").write_bytes(predictions(0))
    told = {name: rule for name, rule in {**RULES, **more}.items() if rule is not None}
    rules = read_rules(json.dumps(told))
    files = [each["name"] for each in rules.describe()["baselines"] if each.get("file")]
    baselines = dict.fromkeys(files, folder / "coin.csv")
    return SimpleNamespace(rules=rules, table=table, baselines=baselines)


@contextmanager
def small(folder, table=None, *, names=("Red", "Blue", "Green"), **more):
    """Give a board on SQLite and the numbers of its teams; ``more`` are rules."""
    storage = SqliteStorage(folder / "boards.db", create=True)
    boards = _boards(storage, FolderStore(folder / "files"))
    board = boards.create(_made(folder, table or holdout(), **more))
    first = 1 + board.rules.asked_baselines
    for each in names:
        board.seats.add(ORGANISER, each)
    yield board, range(first, first + len(names))
    boards.close()


def opened(board, path, *, labels=True, submissions=True):
    """Close a board, and return the path of its bundle."""
    board.finishing.close(ORGANISER, sandbox=sandbox)
    write_board_bundle(board, path, labels=labels, submissions=submissions)
    return path


def live(folder, url, *, ladder="board"):
    """Let a board live on SQLite, move to a PostgreSQL server, and be closed there.

    On the way it is amended, its labels are corrected twice, it is paused, and a team is
    disqualified. Returns the boards of both databases and the board.
    """
    made = _made(folder, holdout(), ladder=ladder)
    storage = SqliteStorage(folder / "boards.db", create=True)
    first = _boards(storage, MixedStore(storage, folder / "files"), key_file=folder / "key")
    board = first.create(made)
    teams = [board.seats.add(ORGANISER, name) for name in ("Réd", "Blue", "Green", "Silent")]
    for at in range(1, 8):
        answer = submit(board, 2 + at % 3, at)
        if at == LARGE:
            keep_as_file(board, answer.id, predictions(at))
    key = SecretKey.make()
    dump_board(first, "digits", folder / "dump", public_key=key.public, move=True)
    server = PostgresStorage(url, create=True, schema=f"v_{secrets.token_hex(6)}")
    second = _boards(server, DatabaseStore(server))
    restore_board(second, folder / "dump", secret_key=key)
    board = second.open("digits")
    board.amending.amend(ORGANISER, {"questions": 80})
    board.amending.correct(ORGANISER, holdout(flip=5), sandbox=sandbox)
    for at in range(8, 14):
        submit(board, 2 + at % 3, at)
    board.amending.pause(ORGANISER)
    board.amending.resume(ORGANISER, charge=2)
    board.amending.correct(ORGANISER, holdout(flip=6), sandbox=sandbox)
    answers = [submit(board, 2 + at % 3, at) for at in range(14, 18)]
    board.finishing.choose(Caller(Role.TEAM, 4), [answers[0].id])
    board.seats.disqualify(ORGANISER, teams[1].id)
    board.finishing.close(ORGANISER, sandbox=sandbox)
    return first, second, board


def lived_bundle(folder, url, *, labels=True, submissions=True, **more):
    """Return the path of the bundle of such a board, and its head."""
    first, second, board = live(folder, url, **more)
    path = folder / "digits.bundle"
    head = write_board_bundle(board, path, labels=labels, submissions=submissions)
    for each in (first, second):
        each.close()
    return path, head
