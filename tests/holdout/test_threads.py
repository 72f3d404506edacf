"""One guard, many threads."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event, Thread

import numpy as np
import pytest

import ladderboard as lb
from ladderboard.errors import BudgetSpent
from ladderboard.ledger import HighWaterMark
from support.holdout.asker_main import ask_once

N = 50


def model(*seed):
    return np.random.default_rng(seed).integers(2, size=N)


def in_threads(work, count=8):
    """Run work(0), work(1), ... at once and return what they returned."""
    ready = Barrier(count)

    def begin(thread):
        ready.wait()
        return work(thread)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(begin, range(count)))


@pytest.mark.parametrize("sealed", [False, True])
def test_eight_threads_and_a_budget_for_half_of_their_questions(make_guard, chain, sealed):
    known_guard = make_guard(n=N, questions=200, sealed=sealed)
    guard = known_guard.open()

    def work(thread):
        replies = []
        for number in range(50):
            try:
                replies.append(guard.ask(model(thread, number)))
            except BudgetSpent:
                replies.append(None)
        return replies

    replies = [reply for thread_replies in in_threads(work) for reply in thread_replies]
    answered = [reply for reply in replies if reply is not None]
    assert len(answered) == 200
    assert sorted(reply.question for reply in answered) == list(range(1, 201))
    assert sorted(reply.remaining for reply in answered) == list(range(200))
    _, questions = chain(guard)
    by_question = {question["question"]: question for question in questions}
    for reply in answered:
        question = by_question[reply.question]
        assert (reply.released, reply.improved) == (question["value"], question["improved"])
    assert guard.check() == 200


@pytest.mark.parametrize("gate", [False, True], ids=["guard", "gate"])
def test_threads_with_the_same_question_get_the_same_answer(make_guard, gate):
    guard = make_guard(n=N, gate=gate).open()
    answers_by_thread = in_threads(lambda _: [ask_once(guard, model(at)) for at in range(20)])
    for answers in zip(*answers_by_thread, strict=True):
        assert len({tuple(release) for release, _ in answers}) == 1
        assert sum(not reply.again for _, reply in answers) == 1
    assert guard.remaining == 380


def test_an_incumbent_that_changes_while_others_look(make_guard):
    """Every verdict is about the incumbent that its entry names."""
    known_gate = make_guard(n=N, gate=True, questions=200)
    gate = known_gate.open()

    def work(thread):
        if thread:
            return [gate.check(model(thread, number)) for number in range(10)]
        return [gate.promote(model(0, number)) for number in range(10)]

    promoted, *verdicts = in_threads(work, 6)
    assert promoted == list(range(2, 12))
    incumbents = [np.zeros(N, int), *(model(0, number) for number in range(10))]
    for thread, thread_verdicts in enumerate(verdicts, 1):
        for number, verdict in enumerate(thread_verdicts):
            rival = incumbents[verdict.incumbent - 1]
            assert verdict.differing == int((rival != model(thread, number)).sum())
    assert gate.verify_ledger() == 50


def test_threads_that_start_the_same_ladder_get_one(make_guard):
    guard = make_guard(n=N).open()
    questions = in_threads(lambda thread: guard.ladder("study").ask(model(thread)).question)
    assert sorted(questions) == list(range(1, 9))
    assert [ladder.name for ladder in guard.status().ladders] == ["", "study"]
    assert guard.check() == 8


def test_threads_on_separate_ladders(make_guard, chain):
    guard = make_guard(n=N).open()

    def work(thread):
        ladder = guard.ladder(f"study {thread}")
        return [ladder.ask(model(thread, number)).question for number in range(20)]

    assert in_threads(work) == [list(range(1, 21))] * 8
    assert guard.check() == 160
    entries, _ = chain(guard)
    assert sum(entry["kind"] == "ladder" for entry in entries) == 9


def test_a_status_is_a_consistent_snapshot(make_guard):
    """All parts of a status are from one moment, while ladders are started and asked."""
    guard = make_guard(n=N, questions=400, ladders=40).open()
    done = Event()

    def ask_questions():
        try:
            for number in range(40):
                ladder = guard.ladder(f"study {number}")
                for question in range(3):
                    ladder.ask(model(number, question))
        finally:
            done.set()

    busy = Thread(target=ask_questions)
    busy.start()
    seen = 0
    while not done.is_set():
        status = guard.status()
        assert sum(ladder.questions for ladder in status.ladders) == len(status.history)
        assert status.meter.used == len(status.history)
        assert status.meter.chain_state.ladders == len(status.ladders)
        assert status.meter.chain_state.head.hex() == status.head
        for ladder in status.ladders:
            values = [record.value for record in status.history if record.ladder == ladder.name]
            assert ladder.released == (values[-1] if values else 1)
        seen += 1
    busy.join()
    assert seen > 1


def test_a_refused_thread_does_not_block_others(make_guard):
    guard = make_guard(n=N).open()

    def work(thread):
        if thread % 2:
            with pytest.raises(lb.errors.InvalidPredictions):
                guard.ask([1, 2])
            with pytest.raises(lb.errors.InvalidSetting):
                guard.ask(model(thread), training=0.5)  # refused inside the transaction
        return guard.ask(model(thread)).question

    assert sorted(in_threads(work)) == list(range(1, 9))


def test_a_late_writer_does_not_lower_the_mark(make_guard, monkeypatch):
    """A thread that commits first and writes its mark last does not lower the mark."""
    known_guard = make_guard(n=N)
    guard = known_guard.open()
    committed, go_on, true = Event(), Event(), HighWaterMark.advance

    def late(self, level):
        if level.questions == 1:
            committed.set()
            go_on.wait()
        true(self, level)

    monkeypatch.setattr(HighWaterMark, "advance", late)
    slow = Thread(target=lambda: guard.ask(model(0)))
    slow.start()
    committed.wait()
    guard.ask(model(1))
    go_on.set()
    slow.join()
    assert HighWaterMark(known_guard.path).read().questions == 2
