"""What a connection remembers of a book is dropped when another one commits."""

import numpy as np
import pytest

import ladderboard as lb
from ladderboard.ledger._storage import _sqlite

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


def test_a_ladder_is_read_again_after_others_wrote_and_another_ladder_was_asked(tmp_path):
    path = tmp_path / "two.db"
    mechanism = lb.Ladder(step=0.01)
    lb.Holdout.create(path, LABELS, questions=99, mechanism=mechanism, ladders=2).close()
    first, second = lb.Holdout.open(path), lb.Holdout.open(path)
    first.ask(predictions(90), ladder="a")
    second.ask(predictions(40), ladder="a")
    first.ask(predictions(80), ladder="b")
    reply = first.ask(predictions(60), ladder="a")
    assert (reply.improved, reply.released) == (False, 0.2)
    assert first.ask(predictions(70), ladder="b").released == 0.35
    assert first.check() == second.check() == 5


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
    assert len(alone) == 8  # one look-up, begin, version, four rows, commit
    assert len(after_another) > len(alone)
    assert first.check() == 4


def test_a_question_that_another_connection_asked_meanwhile_is_answered_once(path, monkeypatch):
    first, second = lb.Holdout.open(path), lb.Holdout.open(path)
    first.ask(predictions(90))
    first._scorer.is_quick = False  # a quick one is scored in the transaction
    evidence, replies = type(first._scorer).evidence, []

    def ask_elsewhere_first(scorer, submission, book):
        if not replies:
            replies.append(None)
            replies.append(second.ask(predictions(80)))
        return evidence(scorer, submission, book)

    monkeypatch.setattr(type(first._scorer), "evidence", ask_elsewhere_first)
    reply = first.ask(predictions(80))  # it was looked up before the other was answered
    assert reply.again
    assert reply.question == replies[1].question == 2
    assert first.check() == 2


def test_a_look_that_another_connection_took_meanwhile_is_answered_once(tmp_path, monkeypatch):
    path = tmp_path / "gate.db"
    first = lb.Gate.create(path, LABELS, looks=9)
    first.promote(predictions(90))
    second = lb.Gate.open(path)
    first._scorer.is_quick = False
    losses, verdicts = lb.Gate._losses, []

    def check_elsewhere_first(gate, submission):
        if gate is first:
            verdicts.append(second.check(predictions(80)))
        return losses(gate, submission)

    monkeypatch.setattr(lb.Gate, "_losses", check_elsewhere_first)
    verdict = first.check(predictions(80))  # it was looked up before the other was answered
    assert verdict.again
    assert len(verdicts) == 1
    assert not verdicts[0].again
    assert first.remaining == second.remaining == 8


def test_a_disk_with_room_is_not_looked_at_for_every_question(path, monkeypatch):
    free, looks = 2**40, []

    def free_bytes(_):
        looks.append(free)
        return free

    monkeypatch.setattr(_sqlite, "_SMALL_WAL", 0)
    monkeypatch.setattr(_sqlite, "_free_bytes", free_bytes)
    monkeypatch.setattr(_sqlite, "_REPLACED_CHECK_INTERVAL", 3600)
    guard = lb.Holdout.open(path)
    for wrong in range(90, 80, -1):
        guard.ask(predictions(wrong))
    assert len(looks) == 1
    free = 2**20
    monkeypatch.setattr(_sqlite, "_REPLACED_CHECK_INTERVAL", -1)
    guard.ask(predictions(70))
    log = path.with_name("guard.db-wal")
    assert len(looks) == 2
    assert log.stat().st_size < 2**16  # it was emptied before this question
    monkeypatch.setattr(_sqlite, "_REPLACED_CHECK_INTERVAL", 3600)
    for wrong in range(60, 50, -1):
        guard.ask(predictions(wrong))
    assert len(looks) == 12  # a disk that is nearly full, for every one
