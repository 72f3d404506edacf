"""Refused and repeated questions are not scored, because the time may depend on labels."""

import os
import pickle

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
