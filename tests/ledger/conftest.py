"""Books to test storages with."""

import hashlib
import os
import secrets

import pytest

from ladderboard.ledger import EntryRow, PostgresStorage, SqliteStorage


def grow(book, secret=None):
    """Append the next entry."""
    chain_state = book.chain_state()
    form = b"entry %d" % chain_state.entries
    head = hashlib.sha256(form).digest()
    now = chain_state._replace(
        entries=chain_state.entries + 1, head=head, asked=chain_state.asked + 1
    )
    book.append(
        EntryRow(chain_state.entries, "question", form, head, 0, chain_state.asked + 1, None),
        now,
        secret,
    )


@pytest.fixture(name="grow")
def give_grow():
    """Give the function."""
    return grow


@pytest.fixture
def file(tmp_path):
    """Give a file that holds a book ``b`` with one entry and one ladder."""
    with SqliteStorage(tmp_path / "guard.db", create=True) as storage:
        _fill(storage)
    return tmp_path / "guard.db"


@pytest.fixture
def schema(postgres):
    """Give a schema that holds the same."""
    name = f"s_{secrets.token_hex(6)}"
    with PostgresStorage(postgres.url(), create=True, schema=name) as storage:
        _fill(storage)
    return name


def _fill(storage):
    with storage.add_book("b") as book:
        grow(book, b"secret")
        book.add_ladder(0, "", b"state")
        book.add_dedupe_key(b"mark", 0)


@pytest.fixture
def in_a_child():
    """Give a function that forks, runs a task there, and returns what came of it in words."""

    def run(task):
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                output = str(task())
            except BaseException as error:  # noqa: BLE001
                output = f"{type(error).__name__}: {error}"
            os.write(writing, output.encode()[:60_000])
            os._exit(0)
        os.close(writing)
        with os.fdopen(reading) as pipe:
            output = pipe.read()
        os.waitpid(child, 0)
        return output

    return run


@pytest.fixture
def touch(grow):
    """Give a function that opens a file, and reads and changes everything in it."""

    def everything(path):
        with SqliteStorage(path) as storage:
            storage.books()
            with storage.write_transaction("b") as book:
                (
                    book.chain_state(),
                    list(book.entries()),
                    book.secret_side(0),
                    book.ladder_names(),
                    book.ladder_state(0),
                )
                book.find_by_dedupe_key(b"mark"), book.get_value("name")
                grow(book, b"secret")
                book.add_dedupe_key(b"other", 1)
                book.set_ladder_state(0, b"changed")

    return everything
