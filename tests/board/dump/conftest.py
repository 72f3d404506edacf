"""Boards with a history on SQLite and PostgreSQL, with stores for submitted files."""

import itertools
import secrets

import numpy as np
import pytest

from ladderboard.board import (
    Boards,
    Caller,
    DatabaseStore,
    FolderStore,
    IncomingSubmission,
    MixedStore,
    Role,
    back_up,
    dump_board,
    read_rules,
)
from ladderboard.files import read_holdout
from ladderboard.ledger import LedgerEnvironment, PostgresStorage, SecretKey, SqliteStorage
from ladderboard.server import sandbox
from support.board_stubs import FolderContent
from support.verify.board_history import keep_as_file

N = 200
ORGANISER = Caller(Role.ORGANISER)
RULES = """
slug: {slug}
loss: accuracy
questions: 400
teams: 3
registration: organiser
mechanism: {{name: shaky_ladder, step: 0.02, compare_noise: 0.01, release_noise: 0.005}}
"""


def table(flip=0):
    labels = [(index + (index < flip)) % 2 for index in range(N)]
    return read_holdout({"id": list(range(N)), "label": labels})


def predictions(number):
    """Return a file of predictions; later ones are better, and one is large."""
    rng = np.random.default_rng(number)
    errors = rng.random(N) < 0.5 / (1 + number / 8)
    lines = [f"{index},{(index + errors[index]) % 2}" for index in range(N)]
    pad = " " * 12_000 if number == 3 else ""  # more than two parts of a dump
    return "".join(f"{line}{pad}\n" for line in ["id,prediction", *lines]).encode()


class History:
    """A board in use."""

    def __init__(self, board):
        self.board, self.book = board, board.book

    def submit(self, index):
        """Submit for one of three teams."""
        body = predictions(index)
        submission = IncomingSubmission(
            self.board.scorer().read(body),
            self.book.environment.clock(),
            message=f"note {index} \u00e9",
            idempotency_key=f"key {index}",
        )
        answer = self.board.submit(Caller(Role.TEAM, 1 + index % 3), submission)
        if index == 3:
            keep_as_file(self.board, answer.id, body)
        return answer

    def rows(self, table):
        """Return all rows of a table."""
        with self.board.reading() as view:
            return view.query(
                f"SELECT {', '.join(table.columns)} FROM main.{table.name} WHERE book = ? "
                f"ORDER BY {', '.join(table.key) or 'book'}",
                (view.book_id,),
            )

    def bodies(self):
        """Return the submitted files by submission."""
        with self.board.reading() as view:
            places = view.query(
                "SELECT id, place FROM main.submission WHERE book = ?", (view.book_id,)
            )
        return {id_: self._body(location) for id_, location in places if location}

    def _body(self, location):
        with self.board.store.get(location) as file:
            return file.read()

    @property
    def status(self):
        return self.board.row().status

    def set_status(self, status):
        """Put the board into a state."""
        with self.book.storage.write_transaction(self.book.name) as view:
            view.execute("UPDATE main.board SET status = ? WHERE book = ?", (status, view.book_id))


def open_board(boards, slug="digits"):
    """Return an existing board."""
    return History(boards.open(slug))


def make_board(boards, slug="digits", *, status="open"):
    """Create a board with three teams, a history in two epochs, and all kinds of tokens."""
    folder = FolderContent(read_rules(RULES.format(slug=slug)), table())
    history = History(boards.create(folder))
    teams = history.board.teams
    history.tokens = {
        "organiser": teams.issue_staff_token(ORGANISER, Role.ORGANISER),
        "invitation": teams.invite_team(ORGANISER),
        "server": boards.issue_token(),
        **{name: teams.create(ORGANISER, name).token for name in ("R\u00e9d", "Blue", "Green")},
    }
    for index in range(7):
        history.submit(index)
    history.board.amendments.correct_labels(ORGANISER, table(flip=5), sandbox=sandbox)
    for number in range(7, 12):
        history.submit(number)
    with history.book.storage.write_transaction(
        history.book.name
    ) as view:  # one whose file is gone
        view.execute(
            "UPDATE main.submission SET place = '' WHERE book = ? AND number = 4 AND team = 1",
            (view.book_id,),
        )
    if status != "open":
        history.set_status(status)
    return history


WAYS = {
    "file to server": ("file", True, "server", False),
    "server to file": ("server", False, "file", True),
    "server to server": ("server", True, "server", True),
}


# These depend on the databases; the fast lane tries the others one way only.
_EVERY_WAY = {
    "test_a_moved_board_is_complete", "test_the_next_answers_are_what_the_source_would_have_said",
}  # fmt: skip


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Leave most moves between other databases to ``script/test --all``."""
    first, *_ = WAYS.values()
    for item in items:
        parameters = item.callspec.params if hasattr(item, "callspec") else {}
        way = parameters.get("source_and_target", first)
        if way != first and item.originalname not in _EVERY_WAY:
            item.add_marker(pytest.mark.slow)


def _boards(storage, store, key_file=None):
    ticks = itertools.count(1_800_000_000)
    return Boards(
        storage, store, key_file=key_file, environment=LedgerEnvironment(clock=lambda: next(ticks))
    )


@pytest.fixture
def make_boards(request, tmp_path):
    """Return a function that creates a database: a file, or a schema of a server."""
    opened = []

    def make(kind="file", key=False):
        name = f"place-{len(opened)}"
        if kind == "file":
            storage = SqliteStorage(tmp_path / f"{name}.db", create=True)
            store = MixedStore(storage, tmp_path / f"{name}-files")
        else:
            url = request.getfixturevalue("postgres").url()
            storage = PostgresStorage(url, create=True, schema=f"s_{secrets.token_hex(6)}")
            store = DatabaseStore(storage)
        opened.append(_boards(storage, store, tmp_path / f"{name}.key" if key else None))
        return opened[-1]

    yield make
    for boards_ in opened:
        boards_.close()


@pytest.fixture(scope="session")
def moved_dump(tmp_path_factory):
    """Return the path of the dump of a moved board and its key."""
    folder, key = tmp_path_factory.mktemp("dump"), SecretKey.make()
    boards = _boards(
        SqliteStorage(folder / "boards.db", create=True), FolderStore(folder / "files")
    )
    make_board(boards)
    dump_board(boards, "digits", folder / "dump", public_key=key.public, move=True)
    boards.close()
    return folder / "dump", key


@pytest.fixture(scope="session")
def backup_of_two(tmp_path_factory):
    """Return a folder with a backup of the boards digits and birds, and its key."""
    folder, key = tmp_path_factory.mktemp("backup"), SecretKey.make()
    storage = SqliteStorage(folder / "boards.db", create=True)
    boards = _boards(storage, FolderStore(folder / "files"))
    for slug in ("digits", "birds"):
        make_board(boards, slug)
    (folder / "shelf").mkdir()
    back_up(boards, folder / "shelf", public_key=key.public)
    boards.close()
    return folder / "shelf", key


@pytest.fixture(params=WAYS.values(), ids=WAYS)
def source_and_target(request, make_boards):
    """Return two databases to move between."""
    source, key, target, target_key = request.param
    return make_boards(source, key), make_boards(target, target_key)


@pytest.fixture(name="make_board")
def give_make_board():
    """Return the function."""
    return make_board


@pytest.fixture(name="open_board")
def give_open_board():
    """Return the function."""
    return open_board
