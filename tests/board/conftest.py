"""Boards to test with, on both databases."""

import secrets
from itertools import count

import numpy as np
import pytest

from ladderboard.board import Boards, Caller, IncomingSubmission, Role, read_rules
from ladderboard.files import read_holdout
from ladderboard.ledger import LedgerEnvironment, PostgresStorage, SqliteStorage
from support.board_stubs import FolderContent, ManualClock

ORGANISER = Caller(Role.ORGANISER)


def fixed_environment(clock):
    salts = count(1)
    return LedgerEnvironment(clock=clock, salt=lambda: next(salts).to_bytes(32, "big"))


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture(params=["sqlite", "postgres"])
def storage(request, tmp_path):
    """Give an empty database of each kind."""
    if request.param == "sqlite":
        made = SqliteStorage(tmp_path / "boards.db", create=True)
    else:
        server = request.getfixturevalue("postgres")
        made = PostgresStorage(server.url(), create=True, schema=f"b_{secrets.token_hex(6)}")
    yield made
    made.close()


@pytest.fixture
def boards(storage, clock, tmp_path):
    """Give all boards of an empty database, with a clock of their own."""
    from ladderboard.board import FolderStore

    return Boards(storage, FolderStore(tmp_path / "files"), world=LedgerEnvironment(clock=clock))


LABELS = np.arange(400) % 2
SPLIT = np.where(np.arange(400) < 300, "public", "private")


def make_folder(text="", *, labels=LABELS, split=SPLIT, **more):
    lines = {
        "slug": "first",
        "title": "First",
        "loss": "zero_one",
        "questions": "100",
        "teams": "4",
    }
    lines |= {"mechanism": "{name: ladder, step: 0.01}", **more}
    body = "\n".join(f"{key}: {value}" for key, value in lines.items() if value is not None)
    rows = "\n".join(
        f"{at},{label},{part}" for at, (label, part) in enumerate(zip(labels, split, strict=True))
    )
    table = read_holdout(f"id,label,split\n{rows}\n".encode())
    return FolderContent(read_rules(f"{body}\n{text}"), table)


@pytest.fixture(name="make_folder")
def give_make_folder():
    return make_folder


@pytest.fixture
def predict():
    """Give predictions as a file, with so many wrong on each split."""

    def file(public, private=0, labels=LABELS):
        wrong = np.zeros(400, dtype=int)
        wrong[:public] = 1
        wrong[300 : 300 + private] = 1
        values = labels ^ wrong
        return ("id,prediction\n" + "\n".join(f"{i},{v}" for i, v in enumerate(values))).encode()

    return file


@pytest.fixture
def submit():
    """Give a function that submits bytes to a board."""

    def send(board, caller, body, **more):
        team = more.pop("team", None)
        received = more.pop("received", board.book.environment.clock())
        sent = IncomingSubmission(board.scorer().read(body), received, **more)
        return board.submit(caller, sent, team)

    return send


@pytest.fixture
def join():
    """Give a function that makes a team and returns it as a caller, with its token."""

    def come(boards, board, name):
        made = board.teams.create(ORGANISER, name)
        return boards.caller_by_token(made.token, board.slug), made

    return come


@pytest.fixture
def organiser():
    return ORGANISER


RULES = "loss: accuracy\nquestions: 100\nteams: 5\n"


@pytest.fixture
def folder(tmp_path):
    """Make a folder from files given by name; what is None is left out."""

    def make(name="digits", **files):
        path = tmp_path / name
        path.mkdir()
        content = {"board.yaml": RULES, "holdout.csv": holdout(), **files}
        for each, text in content.items():
            if text is not None:
                place = path / each
                place.parent.mkdir(exist_ok=True)
                place.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return make


def holdout(n=200, private=100, seed=0):
    """Return coin flips as a file, some of them private."""
    labels = np.random.default_rng(seed).integers(2, size=n + private)
    rows = [f"{at},{label},{'public' if at < n else 'private'}" for at, label in enumerate(labels)]
    return "\n".join(["id,label,split", *rows, ""])
