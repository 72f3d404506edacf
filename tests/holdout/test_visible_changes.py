"""Guards certify growing ladders by the values of their changes, read from the ledger."""

import numpy as np
import pytest

import ladderboard as lb
from ladderboard.bounds import VisibleChange, certificate


def model(labels, errors):
    """Return predictions with a number of errors."""
    predictions = labels.copy()
    predictions[:errors] ^= 1
    return predictions


def ask_all(guard, labels, risks=(0.4, 0.41, 0.3, 0.22, 0.23, 0.15)):
    return [guard.ask(model(labels, int(risk * len(labels)))) for risk in risks]


@pytest.fixture
def labels():
    return np.arange(2_000) % 2


def test_the_changes_of_a_book_are_read_and_certified(tmp_path, labels):
    guard = lb.Holdout.create(tmp_path / "guard.db", labels=labels, loss="zero_one", questions=100)
    replies = ask_all(guard, labels)
    expected = [
        VisibleChange(t, reply.released) for t, reply in enumerate(replies, 1) if reply.improved
    ]
    assert len(expected) >= 3
    for book in (guard._book, lb.Holdout.open(tmp_path / "guard.db")._book):
        assert book.visible_changes(book.chain_state()) == tuple(expected)
    result = guard.certificate
    assert result == replies[-1].bound == guard.status().certificate
    mechanism = guard._book.mechanism
    settings = {
        "released": replies[-1].released,
        "asked": 6,
        "opened": 1,
        "amendable": True,
        "proven": True,
    }
    assert result == certificate(2_000, 100, expected, mechanism, **settings)
    counted = certificate(2_000, 100, len(expected), mechanism, **settings)
    assert result.overfitting < counted.overfitting
    first = replies[0].bound  # computed now, about then
    assert first.released == replies[0].released
    assert first.nats < result.nats


def test_changes_of_many_ladders_keep_their_order(tmp_path, labels):
    guard = lb.Holdout.create(
        tmp_path / "guard.db", labels=labels, loss="zero_one", questions=100, ladders=3
    )
    for name, risk in (("a", 0.4), ("b", 0.3), ("a", 0.2), ("c", 0.1), ("b", 0.31)):
        guard.ladder(name).ask(model(labels, int(risk * len(labels))))
    changes = guard._book.visible_changes(guard._book.chain_state())
    assert [(change.question, change.ladder) for change in changes][:4] == [
        (1, changes[0].ladder),
        (2, changes[1].ladder),
        (3, changes[0].ladder),
        (4, changes[3].ladder),
    ]
    assert guard.status().certificate.released == min(change.value for change in changes)


def test_losses_that_are_not_zero_one_have_a_certificate(tmp_path):
    """A range of 20 and errors of standard deviation 1: far smaller than they might be."""
    rng = np.random.default_rng(1)
    labels = rng.normal(0, 3, 5_000).clip(-10, 10)
    loss = lb.loss("squared", range=(-10, 10))
    guard = lb.Holdout.create(tmp_path / "guard.db", labels=labels, loss=loss, questions=100)
    for spread in (2.0, 1.0):
        reply = guard.ask((labels + rng.normal(0, spread, 5_000)).clip(-10, 10))
    assert "variance" in reply.bound.theorem
    assert not reply.bound.vacuous
    assert reply.bound.low <= 1 / 400 <= reply.bound.high < 0.03
