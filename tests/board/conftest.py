"""Boards for tests, on both databases."""

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


_ON_BOTH_DATABASES = {
    "test_board", "test_boards", "test_erasure", "test_identities", "test_queue",
    "test_store_database", "test_stored_predictions",
}  # fmt: skip


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Leave PostgreSQL to ``script/test --all`` where a test does not depend on the database."""
    for item in items:
        parameters = getattr(item, "callspec", None)
        if (
            parameters is not None
            and parameters.params.get("storage") == "postgres"
            and item.path.parent.name == "board"
            and item.path.stem not in _ON_BOTH_DATABASES
        ):
            item.add_marker(pytest.mark.slow)


@pytest.fixture(params=["sqlite", "postgres"])
def storage(request, tmp_path):
    """Return an empty database of each kind."""
    if request.param == "sqlite":
        storage_ = SqliteStorage(tmp_path / "boards.db", create=True)
    else:
        server = request.getfixturevalue("postgres")
        storage_ = PostgresStorage(server.url(), create=True, schema=f"b_{secrets.token_hex(6)}")
    yield storage_
    storage_.close()


@pytest.fixture
def boards(storage, clock, tmp_path):
    """Return the boards of an empty database, with a manual clock."""
    from ladderboard.board import FolderStore

    return Boards(
        storage, FolderStore(tmp_path / "files"), environment=LedgerEnvironment(clock=clock)
    )


LABELS = np.arange(400) % 2
SPLIT = np.where(np.arange(400) < 300, "public", "private")


def make_folder(text="", *, labels=LABELS, split=SPLIT, **settings):
    lines = {
        "slug": "first",
        "title": "First",
        "loss": "zero_one",
        "questions": "100",
        "teams": "4",
    }
    lines |= {"mechanism": "{name: ladder, step: 0.01}", **settings}
    body = "\n".join(f"{key}: {value}" for key, value in lines.items() if value is not None)
    rows = "\n".join(
        f"{index},{label},{part}"
        for index, (label, part) in enumerate(zip(labels, split, strict=True))
    )
    table = read_holdout(f"id,label,split\n{rows}\n".encode())
    return FolderContent(read_rules(f"{body}\n{text}"), table)


@pytest.fixture(name="make_folder")
def give_make_folder():
    return make_folder


@pytest.fixture
def predict():
    """Return a function that makes a file of predictions with given numbers of errors."""

    def file(public, private=0, labels=LABELS):
        flipped = np.zeros(400, dtype=int)
        flipped[:public] = 1
        flipped[300 : 300 + private] = 1
        values = labels ^ flipped
        return ("id,prediction\n" + "\n".join(f"{i},{v}" for i, v in enumerate(values))).encode()

    return file


@pytest.fixture
def submit():
    """Return a function that submits bytes to a board."""

    def send(board, caller, body, **options):
        team = options.pop("team", None)
        received = options.pop("received", board.book.environment.clock())
        submission = IncomingSubmission(board.scorer().read(body), received, **options)
        return board.submit(caller, submission, team)

    return send


@pytest.fixture
def join():
    """Return a function that creates a team and returns its caller and the team."""

    def create_team(boards, board, name):
        team = board.teams.create(ORGANISER, name)
        return boards.caller_by_token(team.token, board.slug), team

    return create_team


@pytest.fixture
def organiser():
    return ORGANISER


RULES = "loss: accuracy\nquestions: 100\nteams: 5\n"


@pytest.fixture
def folder(tmp_path):
    """Return a function that writes a board folder; files given as None are left out."""

    def make(name="digits", **files):
        path = tmp_path / name
        path.mkdir()
        content = {"board.yaml": RULES, "holdout.csv": holdout(), **files}
        for file_name, text in content.items():
            if text is not None:
                file = path / file_name
                file.parent.mkdir(exist_ok=True)
                file.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return make


def holdout(n=200, private=100, seed=0):
    """Return a holdout file of coin flips with a private split."""
    labels = np.random.default_rng(seed).integers(2, size=n + private)
    rows = [
        f"{index},{label},{'public' if index < n else 'private'}"
        for index, label in enumerate(labels)
    ]
    return "\n".join(["id,label,split", *rows, ""])
