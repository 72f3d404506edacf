"""A book: the one transaction in which a question is answered."""

import hashlib
import json
import secrets

import pytest

import ladderboard as lb
from ladderboard.errors import (
    BrokenLedger,
    BudgetSpent,
    InvalidSetting,
    InvalidState,
    SessionClosed,
)
from ladderboard.ledger import (
    Book,
    Cipher,
    Commitment,
    HighWaterMark,
    LedgerEnvironment,
    PostgresStorage,
    SqliteStorage,
    digest,
)
from ladderboard.ledger._storage._sql import WriteView
from support.books import (
    KEY,
    MECHANISM,
    fixed_environment,
    make_opening,
    make_question,
    submission_digest,
)


class Database:
    """A place for a book, in one of the two databases."""

    def __init__(self, kind, path, server):
        self.water = HighWaterMark(path) if kind == "sqlite" else None
        self._where = (path,) if kind == "sqlite" else (server.url(),)
        self._how = {} if kind == "sqlite" else {"schema": f"s{secrets.token_hex(4)}"}
        self._storage = SqliteStorage if kind == "sqlite" else PostgresStorage

    def create(self):
        return self._storage(*self._where, create=True, **self._how)

    def open(self):
        return self._storage(*self._where, **self._how)


@pytest.fixture(params=["sqlite", "postgres"])
def database(request, tmp_path):
    server = request.getfixturevalue("postgres") if request.param == "postgres" else None
    return Database(request.param, tmp_path / "book.db", server)


@pytest.fixture
def book(database):
    return Book.create(
        database.create(),
        make_opening(),
        name="b",
        key=KEY,
        high_water=database.water,
        environment=fixed_environment(),
    )


def entries(book):
    return [fields for _, fields in book.entries()]


def test_the_first_entry_commits_to_everything_that_decides_releases(book):
    first = entries(book)[0]
    salts = [book.read_encrypted(f"salt of the {what}") for what in ("holdout", "key")]
    assert first["holdout"] == Commitment("holdout", b"h" * 32, salts[0]).hash.hex()
    hashed = hashlib.sha256(KEY).digest()
    assert first["key"] == Commitment("key", hashed, salts[1]).hash.hex()
    decided = {
        field: first[field] for field in ("n", "loss", "mechanism", "rules", "holdout", "key")
    }
    assert first["commitment"] == digest("opening", decided).hex()
    assert salts[0] != salts[1]


def test_salts_are_not_made_from_the_noise_key(database):
    storage = database.create()
    twice = [Book.create(storage, make_opening(), name=name, key=KEY) for name in ("b", "c")]
    firsts = [entries(book)[0] for book in twice]
    for what in ("holdout", "key", "commitment"):
        assert firsts[0][what] != firsts[1][what]


def test_releases_are_those_of_a_session_on_the_same_tape(book):
    session = MECHANISM.start(n=1000, tape=lb.Tape(key=KEY))
    for number, risk in enumerate([0.5, 0.45, 0.4, 0.41, 0.3, 0.1]):
        expected = session.ask(risk=risk, context=submission_digest(number))
        assert book.ask(make_question(number, risk)).release == expected
    assert book.check() == 6


def test_a_question_is_looked_up_again_unless_all_that_was_committed_since_is_known(
    book, database, monkeypatch
):
    def looked_up(number, risk):
        with book.reading() as view:
            return make_question(number, risk)._replace(unanswered_at=view.chain_state().head)

    looked_up_keys = []
    find = WriteView.find_by_dedupe_key
    monkeypatch.setattr(
        WriteView,
        "find_by_dedupe_key",
        lambda view, key: looked_up_keys.append(key) or find(view, key),
    )
    first, second, third = (looked_up(number, 0.5) for number in (1, 2, 3))
    assert [book.ask(question).repeated for question in (first, second)] == [False, False]
    assert not looked_up_keys  # the second one is another than the first
    assert book.ask(third).repeated is False
    assert len(looked_up_keys) == 1  # two commits since
    fourth = looked_up(4, 0.4)
    assert [book.ask(fourth).repeated for _ in range(2)] == [False, True]
    fifth = looked_up(5, 0.4)
    other = Book(database.open(), "b", high_water=database.water)
    assert other.ask(make_question(5, 0.4)).repeated is False
    assert book.ask(fifth).repeated is True
    assert book.check() == 5


SHARING = lb.GrowingLadder(step=0.2, accounts=3, sharing=0.5, sharing_cap=4)
# Risks by ladder, in the order of questions: three busy ladders and two quiet ones.
CLIMB = [("abcde"[index % 5], 0.6 - 0.012 * index) for index in range(40)]
CLIMB = [(name, risk if name in "abc" else 0.5) for name, risk in CLIMB]


def test_changes_of_the_most_changed_other_ladders_count(database):
    opening = make_opening(SHARING, questions=100)
    book = Book.create(database.create(), opening, name="b", key=KEY)
    sessions = {
        name: SHARING.start(n=1000, tape=lb.Tape(key=KEY), ladder=number)
        for number, name in enumerate("abcde", start=1)
    }
    changes, counted = dict.fromkeys(sessions, 0), []
    for index, (name, risk) in enumerate(CLIMB):
        counted.append(sum(sorted(changes[other] for other in changes if other != name)[-2:]))
        expected = sessions[name].ask(
            risk=risk, others=counted[-1], context=submission_digest(index)
        )
        assert book.ask(make_question(index, risk, ladder=name)).release == expected
        changes[name] += expected.improved
    assert max(counted) > max(changes.values()) > 3
    assert book.check() == len(CLIMB)
    again = book.ask(make_question(0, CLIMB[0][1], ladder="a"))
    assert (again.repeated, again.release.question) == (True, 1)
    with book.storage.write_transaction("b") as view:
        view.set_ladder_state(1, view.ladder_state(1), changed=True)
    with pytest.raises(BrokenLedger, match="state of ladder 1"):
        book.check()


def test_an_entry_tells_the_release_and_hides_the_rest(book):
    outcome = book.ask(make_question(1, 0.123456))
    last = entries(book)[-1]
    public = {"kind", "value", "score", "improved", "question", "ladder", "asker", "time"}
    hashes = {"format", "book", "number", "previous", "submission", "secret"}
    assert set(last) == public | hashes
    assert (last["value"], last["improved"]) == (outcome.release.value, outcome.release.improved)
    assert "0.123456" not in json.dumps(last)
    assert last["submission"] != submission_digest(1).hex()
    assert last["time"] == int(last["time"])


def test_the_same_submission_gets_the_same_answer_and_costs_nothing(book):
    first = book.ask(make_question(1, 0.5))
    book.ask(make_question(2, 0.2))
    again = book.ask(make_question(1, 0.5))
    assert again.repeated
    assert again.release == first.release
    assert book.chain_state().asked == 2
    assert book.find_duplicate(submission_digest(1)).release == first.release
    assert book.find_duplicate(submission_digest(3)) is None


def test_another_ladder_and_another_asker_are_other_questions(book):
    book.ask(make_question(1, 0.5))
    assert not book.ask(make_question(1, 0.5, ladder="other")).repeated
    assert not book.ask(make_question(1, 0.5, asker="somebody")).repeated
    assert book.ask(make_question(1, 0.5, asker="somebody")).repeated
    assert book.chain_state().asked == 3


def test_a_key_to_retry_with_belongs_to_one_submission(book):
    first = book.ask(make_question(1, idempotency_key="r"))
    assert book.ask(make_question(1, idempotency_key="r")).release == first.release
    before = book.chain_state()
    with pytest.raises(InvalidSetting, match="another submission"):
        book.ask(make_question(2, idempotency_key="r"))
    assert book.chain_state() == before
    assert not book.ask(make_question(3, idempotency_key="s")).repeated
    assert book.chain_state().asked == 2


def test_a_key_to_retry_with_is_somebodys_own(book):
    book.ask(make_question(1, idempotency_key="r", asker="one"))
    assert not book.ask(make_question(2, idempotency_key="r", asker="other")).repeated


def test_past_the_budget_there_is_a_refusal_but_for_what_was_asked_before(book):
    for number in range(20):
        book.ask(make_question(number))
    before = book.chain_state()
    with pytest.raises(BudgetSpent, match="All 20 questions"):
        book.ask(make_question(20))
    assert book.ask(make_question(7)).repeated
    assert book.chain_state() == before


def test_the_budget_is_shared_by_all_ladders(book):
    for number in range(20):
        book.ask(make_question(number, ladder="other" if number % 2 else ""))
    with pytest.raises(BudgetSpent):
        book.ask(make_question(20, ladder="other"))


def test_ladders_have_numbers_and_noise_of_their_own(book):
    for ladder, name in enumerate(["", "a", "b"]):
        assert book.ladder_value(name) == 1
        session = MECHANISM.start(n=1000, tape=lb.Tape(key=KEY), ladder=ladder)
        expected = session.ask(risk=0.3, context=submission_digest(1))
        assert book.ask(make_question(1, 0.3, ladder=name)).release == expected
        assert book.ladder_value(name) == expected.value
    assert book.ladder_names() == ["", "a", "b"]
    assert [entry["kind"] for entry in entries(book)] == ["opened", *["ladder", "question"] * 3]
    assert book.check() == 3


def test_a_question_that_is_refused_starts_no_ladder(book):
    before = book.chain_state()
    with pytest.raises(lb.LadderboardError, match="risk must be"):
        book.ask(make_question(1, 1.5, ladder="new"))
    assert book.chain_state() == before
    assert book.ladder_names() == [""]
    book.ask(make_question(1, 0.5, ladder="new"))
    assert book.check() == 1


def test_closing_is_for_good(book):
    first = book.ask(make_question(1, 0.2))
    assert book.close() == [first.release.value]
    for act in (
        lambda: book.ask(make_question(2)),
        book.close,
        lambda: book.ask(make_question(2, ladder="late")),
    ):
        with pytest.raises(SessionClosed):
            act()
    assert book.ask(make_question(1)).repeated
    assert entries(book)[-1]["kind"] == "closed"
    assert book.check() == 1


def test_closing_returns_unpublished_estimates(database):
    mechanism = lb.OneBit(step=0.1)
    book = Book.create(database.create(), make_opening(mechanism), name="b")
    assert book.ask(make_question(1, 0.25)).release.value is None
    assert book.close() == [0.2]  # to the nearest step


def test_time_is_whole_and_never_runs_backwards(database):
    times = iter([100, 100, 300, 200, 400])
    book = Book.create(
        database.create(),
        make_opening(),
        name="b",
        environment=LedgerEnvironment(clock=lambda: next(times)),
    )
    for number in range(3):
        book.ask(make_question(number))
    assert [entry["time"] for entry in entries(book)] == [100, 100, 300, 300, 400]


def test_another_process_may_go_on(book, database):
    book.ask(make_question(1, 0.5))
    other = Book(database.open(), "b", high_water=database.water)
    other.ask(make_question(2, 0.4))
    book.ask(make_question(3, 0.3))  # the session at hand is not where the ladder is any more
    session = MECHANISM.start(n=1000, tape=lb.Tape(key=KEY))
    for number, risk in ((1, 0.5), (2, 0.4), (3, 0.3)):
        expected = session.ask(risk=risk, context=submission_digest(number))
    assert book.ask(make_question(3)).release == expected
    assert other.check() == 3


def test_a_question_that_the_mechanism_refuses_changes_nothing(book):
    before = book.chain_state()
    with pytest.raises(lb.LadderboardError, match="risk must be"):
        book.ask(make_question(1, 1.5))
    assert book.chain_state() == before
    assert not book.ask(make_question(1, 0.5)).repeated
    assert book.check() == 1


@pytest.mark.parametrize(
    "mechanism",
    [
        lb.Ladder(step=0.01),
        lb.Exact(),
        lb.Rounded(digits=2),
        lb.Noisy(sd=0.1),
        lb.OneBit(step=0.01),
        lb.ShakyLadder.from_paper(n=100_000, questions=50),
        lb.ShakyLadder.calibrated(n=1000, questions=50),
    ],
    ids=lambda mechanism: mechanism.name,
)
def test_every_mechanism_is_replayed_from_its_secrets(database, mechanism):
    book = Book.create(database.create(), make_opening(mechanism), name="b")
    for number, risk in enumerate([0.5, 0.31, 0.3, 0.2, 0.1, 0.05]):
        book.ask(make_question(number, risk))
    assert Book(database.open(), "b").check() == 6


def test_training_losses_are_replayed(database):
    mechanism = lb.Thresholdout(threshold=0.04, noise=0.01)
    book = Book.create(database.create(), make_opening(mechanism), name="b")
    for number, risk in enumerate([0.5, 0.3, 0.1]):
        book.ask(make_question(number, risk, training=0.2))
    assert book.check() == 3


def test_a_mechanism_that_wants_losses_gets_them(database):
    import numpy as np

    mechanism = lb.BootstrapLadder()
    book = Book.create(database.create(), make_opening(mechanism), name="b", key=KEY)
    session = mechanism.start(n=1000, tape=lb.Tape(key=KEY))
    for number, wrong in enumerate((500, 300, 290)):
        losses = (np.arange(1000) < wrong).astype(float)
        expected = session.ask(losses=losses, context=submission_digest(number))
        release = book.ask(make_question(number, losses.mean(), losses=losses)).release
        assert release == expected
    assert book.check() == 0  # it holds together, but no release can be recomputed


class CustomLadder(lb.Ladder):
    name = "own"


def test_a_custom_mechanism_must_be_passed_to_open(database):
    Book.create(
        database.create(),
        make_opening(CustomLadder(step=0.1)),
        name="b",
        mechanism=CustomLadder(step=0.1),
    )
    with pytest.raises(lb.LadderboardError, match="own"):
        Book(database.open(), "b")
    with pytest.raises(InvalidSetting, match="another mechanism"):
        Book(database.open(), "b", mechanism=CustomLadder(step=0.2))
    assert (
        Book(database.open(), "b", mechanism=CustomLadder(step=0.1))
        .ask(make_question(1))
        .release.improved
    )


def test_an_encrypted_book_needs_its_key(database):
    seal = Cipher(KEY, "b")
    book = Book.create(database.create(), make_opening(), name="b", encryption=seal)
    book.ask(make_question(1))
    with pytest.raises(InvalidState, match="encrypted"):
        Book(database.open(), "b")
    with pytest.raises(InvalidState, match="wrong"):
        Book(database.open(), "b", encryption=Cipher(b"x" * 32, "b"))
    assert Book(database.open(), "b", encryption=Cipher(KEY, "b")).check() == 1
