"""Refused and repeated questions are not scored, because the time may depend on labels."""

import contextlib
import itertools
import os
import pickle
import sqlite3

import numpy as np
import pytest

import ladderboard as lb
from ladderboard.errors import (
    BudgetSpent,
    InvalidInput,
    SessionClosed,
    StaleCopy,
    StorageFailed,
)
from ladderboard.ledger import LedgerEnvironment
from ladderboard.ledger._storage import _sqlite
from ladderboard.losses import Log, TopK, ZeroOne

N = 200
LABELS = np.random.default_rng(1).integers(2, size=N)


def wrong(count):
    return np.where(np.arange(N) < count, 1 - LABELS, LABELS)


@pytest.fixture
def guard(tmp_path):
    return lb.Holdout.create(
        tmp_path / "guard.db", LABELS, questions=3, mechanism=lb.Ladder(step=0.02, grid=0.01)
    )


@pytest.fixture
def scored(monkeypatch):
    """Return a list that records every call of the loss."""
    done, evaluate = [], ZeroOne.evaluate

    def counted(self, labels, predictions):
        done.append(1)
        return evaluate(self, labels, predictions)

    monkeypatch.setattr(ZeroOne, "evaluate", counted)
    return done


def test_an_earlier_answer_is_not_scored_again(guard, scored):
    guard.ask(wrong(50))
    assert guard.ask(wrong(50)).again
    assert len(scored) == 1


def test_nothing_is_scored_when_the_budget_is_spent(guard, scored):
    for count in (50, 40, 30):
        guard.ask(wrong(count))
    with pytest.raises(BudgetSpent):
        guard.ask(wrong(20))
    assert len(scored) == 3


def test_after_a_refused_transaction_the_mark_is_read_before_anything_is_scored(
    guard, scored, tmp_path
):
    guard.ask(wrong(50))
    (tmp_path / "guard.db.mark").unlink()
    for count in (40, 30, 20):
        with pytest.raises(StaleCopy):
            guard.ask(wrong(count))
    assert len(scored) == 1  # the answered one


@pytest.fixture
def locked(tmp_path, monkeypatch):
    """Return a block in which another connection has the write lock of a file."""
    monkeypatch.setattr(_sqlite, "WRITER_TIMEOUT", 0.05)

    @contextlib.contextmanager
    def lock(name):
        with contextlib.closing(sqlite3.connect(tmp_path / name, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            yield

    return lock


def test_an_earlier_answer_is_read_while_nothing_can_be_written(locked, guard, scored):
    released = guard.ask(wrong(50)).released
    with locked("guard.db"):
        again = guard.ask(wrong(50))
        assert (again.again, again.released) == (True, released)
        with pytest.raises(StorageFailed, match="locked"):
            guard.ask(wrong(40))
    assert len(scored) == 1
    assert guard.ask(wrong(40)).question == 2


def test_an_earlier_verdict_is_read_while_nothing_can_be_written(locked, tmp_path, scored):
    gate = lb.Gate.create(tmp_path / "gate.db", LABELS, looks=3)
    gate.promote(wrong(60))
    outcome = gate.check(wrong(50)).outcome
    counted = len(scored)
    with locked("gate.db"):
        again, incumbent = gate.check(wrong(50)), gate.check(wrong(60))
        assert (again.again, again.outcome) == (True, outcome)
        assert (incumbent.outcome, incumbent.look) == ("not_worse", 0)
        with pytest.raises(StorageFailed, match="locked"):
            gate.check(wrong(40))
    assert len(scored) == counted
    assert gate.check(wrong(40)).look == 2


@pytest.mark.parametrize("make", ["guard", "gate"])
def test_what_is_recorded_does_not_depend_on_when_it_is_scored(tmp_path, make):
    records = []
    for quick in (True, False):
        salts = itertools.count()
        settings = {
            "key": bytes(32),
            "environment": LedgerEnvironment(
                clock=lambda: 1_000_000_000,
                salt=lambda salts=salts: next(salts).to_bytes(32, "big"),
            ),
        }
        path = tmp_path / f"{quick}.db"
        if make == "guard":
            made = lb.Holdout.create(path, LABELS, questions=9, **settings)
            ask = made.ask
        else:
            made = lb.Gate.create(path, LABELS, looks=9, **settings)
            made.promote(wrong(60))
            ask = made.check
        assert made._scorer.is_quick
        made._scorer.is_quick = quick
        answers = [ask(wrong(count)) for count in (90, 50, 50, 60, 20)]
        recorded = [fields for _, fields in made._book.entries()][2:]
        for fields in recorded:
            del fields["book"], fields["previous"]  # a file has its own id
        made.verify_ledger()
        records.append(([str(answer) for answer in answers], recorded))
    assert records[0] == records[1]
    assert len(records[0][1]) == 4  # one of five is repeated, or a promotion and three looks


def test_after_the_close_nothing_is_scored(guard, scored):
    guard.close_for_good()
    with pytest.raises(SessionClosed):
        guard.ask(wrong(20))
    assert not scored


@pytest.mark.parametrize("training", [0.5, 7, "x"])
def test_questions_refused_by_the_mechanism_are_not_scored(guard, scored, training):
    with pytest.raises(InvalidInput, match="training"):
        guard.ask(wrong(20), training=training)
    assert not scored


def test_a_missing_training_loss_is_refused_before_scoring(tmp_path, scored):
    guard = lb.Holdout.create(
        tmp_path / "g.db", LABELS, questions=3, mechanism=lb.Thresholdout(threshold=0.1, noise=0.1)
    )
    with pytest.raises(InvalidInput, match="needs training="):
        guard.ask(wrong(20))
    assert not scored


@pytest.mark.parametrize(
    ("loss", "binary"),
    [(ZeroOne(), True), (TopK(k=2), True), (Log(classes=(0, 1), clip=0.01), False)],
    ids=["zero-one", "top-k", "log"],
)
def test_the_fast_path_to_a_risk_depends_on_the_loss_type_only(tmp_path, loss, binary, monkeypatch):
    guard = lb.Holdout.create(tmp_path / "g.db", LABELS, questions=3, loss=loss)
    taken = []
    grouping = type(guard._scorer.grouping)
    units = grouping._units
    monkeypatch.setattr(
        grouping, "_units", lambda self, losses: taken.append(1) or units(self, losses)
    )
    vectors = [np.zeros(N), np.ones(N), (LABELS == 1).astype(float)]
    for losses in vectors:
        risk = guard._scorer.grouping.risk(losses, binary=guard._scorer._binary)
        assert risk == losses.mean()
    assert len(taken) == (0 if binary else len(vectors))


def test_a_memory_error_spends_no_question(guard, monkeypatch):
    def short(self, labels, predictions):
        raise MemoryError

    evaluate = ZeroOne.evaluate
    monkeypatch.setattr(ZeroOne, "evaluate", short)
    with pytest.raises(MemoryError):
        guard.ask(wrong(50))
    assert guard.remaining == 3
    monkeypatch.setattr(ZeroOne, "evaluate", evaluate)
    assert guard.ask(wrong(50)).released == 0.25


def test_a_repeated_answer_has_the_current_bound(guard):
    guard.ask(wrong(100))
    guard.ask(wrong(10))
    again = guard.ask(wrong(100))
    assert again.again
    assert again.released == 0.5
    assert again.bound == guard.certificate
    assert again.bound.high < 0.5
    assert pickle.loads(pickle.dumps(again)).bound == guard.certificate


def test_an_unwritable_mark_is_refused_before_a_question_is_spent(guard, monkeypatch):
    plain = os.open

    def locked(path, flags, *more, **named):
        if str(path).endswith(".mark") and flags & os.O_RDWR:
            raise PermissionError(13, "Permission denied")
        return plain(path, flags, *more, **named)

    with monkeypatch.context() as patched:
        patched.setattr(os, "open", locked)
        with pytest.raises(StorageFailed, match="mark cannot be written: Permission denied"):
            guard.ask(wrong(50))
    assert guard.remaining == 3
