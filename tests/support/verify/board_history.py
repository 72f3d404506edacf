"""Makes boards with small or full histories and their bundles; reads bundles."""

import itertools
import json
import secrets
import struct
from contextlib import contextmanager

import numpy as np

from ladderboard.board import (
    Boards,
    Caller,
    DatabaseStore,
    FolderStore,
    IncomingSubmission,
    MixedStore,
    Role,
    dump_board,
    read_rules,
    restore_board,
    write_board_bundle,
)
from ladderboard.files import read_holdout
from ladderboard.ledger import LedgerEnvironment, PostgresStorage, SecretKey, SqliteStorage, decode
from ladderboard.server import sandbox
from support.board_stubs import FolderContent

N, PUBLIC_ROWS = 300, 200
LARGE = 4  # the number of the submission that takes more than one part
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
    """Return the records of a bundle, read independently of the verifier."""
    rest = path.read_bytes().partition(b"\n")[2][:-32]
    records = []
    while rest:
        (size,) = struct.unpack(">Q", rest[:8])
        records.append(decode(rest[8 : 8 + size]))
        rest = rest[8 + size :]
    return records


def holdout_table(flip=0):
    """Return the holdout with its first ``flip`` labels flipped."""
    labels = [(row % 2) ^ (row < flip) for row in range(N)]
    split = ["public" if row < PUBLIC_ROWS else "private" for row in range(N)]
    return read_holdout({"id": list(range(N)), "label": labels, "split": split})


def predictions(number):
    """Return the predictions of a submission; later ones are better."""
    wrong = np.random.default_rng(number).random(N) < 0.5 / (1 + number / 6)
    pad = " " * 12_000 if number == LARGE else ""
    lines = [f"{row},{(row % 2) ^ wrong[row]:d}{pad}" for row in range(N)]
    return "\n".join(["id,prediction", *lines, ""]).encode()


def submit_predictions(board, team, number):
    """Submit ``predictions(number)`` for a team; return the answer."""
    body = predictions(number)
    time = board.book.environment.clock()
    sent = IncomingSubmission(board.scorer().read(body), time, message=f"note {number}")
    return board.submit(Caller(Role.TEAM, team), sent)


def keep_as_file(board, submission_id, body, format_="csv"):
    """Store a submission as older versions did: the uploaded file itself."""
    prepared = board.store.prepare(secrets.token_hex(16), body)
    with board.book.storage.write_transaction(board.book.name) as view:
        prepared.commit(view)
        view.execute(
            "UPDATE main.submission SET place = ?, format = ?, size = ? WHERE book = ? AND id = ?",
            (prepared.location, format_, len(body), view.book_id, submission_id),
        )


def _open_boards(storage, store, **options):
    ticks = itertools.count(1_800_000_000)
    return Boards(
        storage, store, environment=LedgerEnvironment(clock=lambda: next(ticks)), **options
    )


def _make_folder(folder, table, **changes):
    """Return the content of a board's folder: rules, labels and the files of baselines.

    A rule that is None is left out.
    """
    (folder / "coin.csv").write_bytes(predictions(0))
    settings = {name: rule for name, rule in {**RULES, **changes}.items() if rule is not None}
    rules = read_rules(json.dumps(settings))
    described = rules.describe()["baselines"]
    names = [baseline["name"] for baseline in described if baseline.get("file")]
    baselines = dict.fromkeys(names, folder / "coin.csv")
    return FolderContent(rules, table, baselines)


@contextmanager
def small_board(folder, table=None, *, names=("Red", "Blue", "Green"), **rules):
    """Give a board on SQLite and the numbers of its teams."""
    storage = SqliteStorage(folder / "boards.db", create=True)
    boards = _open_boards(storage, FolderStore(folder / "files"))
    board = boards.create(_make_folder(folder, table or holdout_table(), **rules))
    first = 1 + board.rules.scored_baseline_count
    for name in names:
        board.teams.create(ORGANISER, name)
    yield board, range(first, first + len(names))
    boards.close()


def close_and_bundle(board, path, *, submissions=True):
    """Close a board; return the path of its bundle."""
    board.closer.close(ORGANISER, sandbox=sandbox)
    write_board_bundle(board, path, labels=True, submissions=submissions)
    return path


def make_full_history(folder, url, *, ladder="board"):
    """Run a board on SQLite, move it to a PostgreSQL server, and close it there.

    In between it is amended and paused, its labels are corrected twice, and a team is disqualified.
    Returns the boards of both databases and the board.
    """
    content = _make_folder(folder, holdout_table(), ladder=ladder)
    storage = SqliteStorage(folder / "boards.db", create=True)
    first = _open_boards(storage, MixedStore(storage, folder / "files"), key_file=folder / "key")
    board = first.create(content)
    teams = [board.teams.create(ORGANISER, name) for name in ("Réd", "Blue", "Green", "Silent")]
    for number in range(1, 8):
        answer = submit_predictions(board, 2 + number % 3, number)
        if number == LARGE:
            keep_as_file(board, answer.id, predictions(number))
    key = SecretKey.make()
    dump_board(first, "digits", folder / "dump", public_key=key.public, move=True)
    server = PostgresStorage(url, create=True, schema=f"v_{secrets.token_hex(6)}")
    second = _open_boards(server, DatabaseStore(server))
    restore_board(second, folder / "dump", secret_key=key)
    board = second.open("digits")
    board.amendments.amend(ORGANISER, {"questions": 80})
    board.amendments.correct_labels(ORGANISER, holdout_table(flip=5), sandbox=sandbox)
    for number in range(8, 14):
        submit_predictions(board, 2 + number % 3, number)
    board.amendments.pause(ORGANISER)
    board.amendments.resume(ORGANISER, charge=2)
    board.amendments.correct_labels(ORGANISER, holdout_table(flip=6), sandbox=sandbox)
    answers = [submit_predictions(board, 2 + index % 3, index) for index in range(14, 18)]
    board.closer.select_submissions(Caller(Role.TEAM, 4), [answers[0].id])
    board.teams.disqualify(ORGANISER, teams[1].id)
    board.closer.close(ORGANISER, sandbox=sandbox)
    return first, second, board


def make_full_bundle(folder, url, **options):
    """Return the path and the head of the bundle of a board with a full history."""
    first, second, board = make_full_history(folder, url, **options)
    path = folder / "digits.bundle"
    head = write_board_bundle(board, path, labels=True, submissions=True)
    for boards in (first, second):
        boards.close()
    return path, head
