"""Books that were changed, or put back."""

import sqlite3

import numpy as np
import pytest

import ladderboard as lb
from ladderboard.errors import (
    BrokenLedger,
    BudgetSpent,
    InvalidSetting,
    StaleCopy,
)
from ladderboard.ledger import (
    Book,
    HighWaterMark,
    SqliteStorage,
    adopt_copy,
)
from support.books import (
    KEY,
    MECHANISM,
    fixed_environment,
    make_opening,
    make_question,
    submission_digest,
)

# The entry with number 3, as the database shows it.
THIRD = "CAST(form AS TEXT) LIKE '%\"number\":3,%'"
OF_THIRD = f"place = (SELECT place FROM entry WHERE {THIRD})"
LAST = "place = (SELECT max(place) FROM entry)"
OTHER = f"(SELECT min(packed) FROM secret WHERE NOT {OF_THIRD})"
SPACED = "CAST(replace(CAST(form AS TEXT), '\"improved\":', '\"improved\": ') AS BLOB)"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "book.db"


@pytest.fixture
def book(path):
    return Book.create(
        SqliteStorage(path, create=True),
        make_opening(),
        name="b",
        key=KEY,
        high_water=HighWaterMark(path),
        environment=fixed_environment(),
    )


def entries(book):
    return [fields for _, fields in book.entries()]


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        (f"UPDATE entry SET form = {SPACED} WHERE {THIRD}", "Entry 4"),
        (f"DELETE FROM entry WHERE {THIRD}", "Entry 3"),
        (f"UPDATE entry SET asked = 2 WHERE {LAST}", "stored chain state"),
        (f"UPDATE entry SET changes = changes + 1 WHERE {LAST}", "stored chain state"),
        (f"UPDATE secret SET packed = {OTHER} WHERE {OF_THIRD}", "Entry 3 .* secret is not"),
        (f"DELETE FROM secret WHERE {OF_THIRD}", "Entry 3 .* secret side is missing"),
        ("UPDATE ladder SET state = (SELECT state FROM ladder WHERE number = 1) WHERE number = 0",
         "state of ladder 0"),
        ("UPDATE kept SET value = zeroblob(33) WHERE name = 'key'", "key is not the one"),
        ("UPDATE kept SET value = zeroblob(33) WHERE name = 'salt of the key'",
         "key is not the one"),
    ],
)  # fmt: skip
def test_whatever_was_changed_in_the_database_is_found(book, path, statement, message):
    for number, risk in enumerate([0.5, 0.3, 0.1]):
        book.ask(make_question(number, risk))
    book.ask(make_question(9, ladder="other"))
    database = sqlite3.connect(path)
    database.execute("PRAGMA foreign_keys = OFF")
    changed = database.execute(statement).rowcount
    database.commit()
    database.close()
    assert changed == 1
    with pytest.raises(BrokenLedger, match=message):
        Book(SqliteStorage(path), "b").check()


def put_back(path, copy):
    """Put a copy in place of a file, as somebody would who knows how."""
    for suffix in ("-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    path.write_bytes(copy.read_bytes())


def copy_of(path, to):
    database, other = sqlite3.connect(path), sqlite3.connect(to)
    database.backup(other)
    database.close()
    other.close()
    return to


def test_a_file_behind_its_mark_is_refused_until_somebody_says_what_to_charge(book, path, tmp_path):
    book.ask(make_question(1))
    copy = copy_of(path, tmp_path / "copy.db")
    for number in (2, 3, 4):
        book.ask(make_question(number))
    book.storage.close()
    put_back(path, copy)
    water = HighWaterMark(path)
    with pytest.raises(StaleCopy, match="missing from it: at least 3") as caught:
        Book(SqliteStorage(path), "b", high_water=water)
    assert caught.value.missing == 3
    with pytest.raises(InvalidSetting, match="at least 3"):
        adopt_copy(SqliteStorage(path), "b", 2, high_water=water)
    with pytest.raises(InvalidSetting, match="left: 19"):
        adopt_copy(SqliteStorage(path), "b", 20, high_water=water)
    adopt_copy(SqliteStorage(path), "b", 5, high_water=water)
    back = Book(SqliteStorage(path), "b", high_water=water)
    assert (back.chain_state().asked, back.chain_state().charged, back.chain_state().lost) == (
        1,
        5,
        1,
    )
    assert entries(back)[-1] | {"kind": "restored", "charged": 5} == entries(back)[-1]
    for number in range(10, 24):
        back.ask(make_question(number))
    with pytest.raises(BudgetSpent):
        back.ask(make_question(24))
    assert back.check() == 15


def test_a_question_number_that_comes_again_has_noise_of_its_own(book, path, tmp_path):
    copy = copy_of(path, tmp_path / "copy.db")
    first = [book.ask(make_question(number, 0.3)).release for number in range(5)]
    book.storage.close()
    put_back(path, copy)
    storage = SqliteStorage(path)
    adopt_copy(storage, "b", 5, high_water=HighWaterMark(path))
    back = Book(storage, "b", high_water=HighWaterMark(path))
    assert [back.ask(make_question(number, 0.3)).release for number in range(5)] == first

    def draws(number):
        tape = lb.Tape(key=KEY)
        return tape.draw(MECHANISM.laws, ladder=0, question=1, context=submission_digest(number))

    assert draws(0) != draws(1)


def test_a_copy_of_before_the_close_has_nothing_left_to_ask(book, path, tmp_path):
    book.ask(make_question(1))
    copy = copy_of(path, tmp_path / "copy.db")
    book.close()
    book.storage.close()
    put_back(path, copy)
    with pytest.raises(InvalidSetting, match="at least 19"):
        adopt_copy(SqliteStorage(path), "b", 0, high_water=HighWaterMark(path))
    adopt_copy(SqliteStorage(path), "b", 19, high_water=HighWaterMark(path))
    with pytest.raises(BudgetSpent):
        Book(SqliteStorage(path), "b", high_water=HighWaterMark(path)).ask(make_question(2))


def test_of_a_mechanism_that_wants_losses_the_states_are_checked(path):
    mechanism = lb.ParameterFreeLadder()
    book = Book.create(SqliteStorage(path, create=True), make_opening(mechanism), name="b")
    for number in (1, 2):
        losses = (np.arange(1000) < 300 // number).astype(float)
        book.ask(make_question(number, losses.mean(), losses=losses))
    assert book.check() == 0
    database = sqlite3.connect(path)
    state = database.execute("SELECT state FROM ladder").fetchone()[0]
    position = state.index(b"question")  # and what follows is its number
    changed = state[:position] + state[position:].replace(b"2", b"1", 1)
    database.execute("UPDATE ladder SET state = ?", (changed,))
    database.commit()
    database.close()
    with pytest.raises(BrokenLedger, match="state of ladder 0"):
        Book(SqliteStorage(path), "b").check()
