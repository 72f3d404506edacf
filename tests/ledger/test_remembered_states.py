"""What a connection remembers of a book is dropped when another one commits."""

import numpy as np
import pytest

import ladderboard as lb

N = 200
LABELS = np.arange(N) % 2


@pytest.fixture
def path(tmp_path):
    lb.Holdout.create(
        tmp_path / "guard.db", LABELS, questions=99, mechanism=lb.Ladder(step=0.01)
    ).close()
    return tmp_path / "guard.db"


def predictions(wrong):
    return LABELS ^ (np.arange(N) < wrong)


def statements_of(guard, ask):
    connection = guard._book.storage._pool._free[-1].connection
    statements = []
    connection.set_trace_callback(statements.append)
    ask()
    connection.set_trace_callback(None)
    return statements


def test_two_connections_in_turn_make_one_chain(path):
    first, second = lb.Holdout.open(path), lb.Holdout.open(path)
    released = [
        guard.ask(predictions(wrong)).released
        for wrong, guard in zip(range(90, 30, -5), [first, second] * 6, strict=True)
    ]
    assert released == sorted(released, reverse=True)
    assert first.remaining == second.remaining == 99 - 12
    assert first.check() == second.check() == 12


def test_a_ladder_of_another_process_is_read_again(path):
    first, second = lb.Holdout.open(path), lb.Holdout.open(path)
    first.ask(predictions(90))
    second.ask(predictions(40))
    reply = first.ask(predictions(60))
    assert not reply.improved
    assert reply.released == second.released == 0.2


def test_a_refused_question_leaves_what_is_remembered_true(path, monkeypatch):
    guard = lb.Holdout.open(path)
    guard.ask(predictions(90))
    with monkeypatch.context() as patched:
        patched.setattr(lb.Ladder, "advance", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            guard.ask(predictions(80))
    assert guard.ask(predictions(70)).question == 2
    assert guard.check() == 2


def test_few_statements_are_needed_while_nothing_else_commits(path):
    first, second = lb.Holdout.open(path), lb.Holdout.open(path)
    first.ask(predictions(90))
    alone = statements_of(first, lambda: first.ask(predictions(89)))
    second.ask(predictions(88))
    after_another = statements_of(first, lambda: first.ask(predictions(87)))
    assert len(alone) == 9  # two look-ups, begin, version, four rows, commit
    assert len(after_another) > len(alone)
    assert first.check() == 4
