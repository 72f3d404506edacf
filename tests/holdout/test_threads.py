"""One guard, many threads."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event, Thread

import numpy as np
import pytest

import ladderboard as lb
from ladderboard.errors import BudgetSpent
from ladderboard.ledger import HighWaterMark

N = 50


def model(*seed):
    return np.random.default_rng(seed).integers(2, size=N)


def in_threads(work, count=8):
    """Run work(0), work(1), ... at once and return what they returned."""
    ready = Barrier(count)

    def begin(which):
        ready.wait()
        return work(which)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(begin, range(count)))


@pytest.mark.parametrize("sealed", [False, True])
def test_eight_threads_and_a_budget_for_half_of_their_questions(make_guard, chain, sealed):
    made = make_guard(n=N, questions=200, sealed=sealed)
    guard = made.open()

    def work(which):
        told = []
        for at in range(50):
            try:
                told.append(guard.ask(model(which, at)))
            except BudgetSpent:
                told.append(None)
        return told

    told = [reply for some in in_threads(work) for reply in some]
    answered = [reply for reply in told if reply is not None]
    assert len(answered) == 200
    assert sorted(reply.question for reply in answered) == list(range(1, 201))
    assert sorted(reply.remaining for reply in answered) == list(range(200))
    _, questions = chain(guard)
    by_question = {one["question"]: one for one in questions}
    for reply in answered:
        one = by_question[reply.question]
        assert (reply.released, reply.improved) == (one["value"], one["improved"])
    assert guard.check() == 200


def test_threads_with_the_same_question_hear_the_same(make_guard):
    guard = make_guard(n=N).open()
    told = in_threads(lambda _: [guard.ask(model(at)) for at in range(20)])
    for replies in zip(*told, strict=True):
        assert len({(each.released, each.improved, each.question) for each in replies}) == 1
        assert sum(not each.again for each in replies) == 1
    assert guard.remaining == 380


def test_threads_that_start_the_same_ladder_get_one(make_guard):
    guard = make_guard(n=N).open()
    told = in_threads(lambda which: guard.ladder("study").ask(model(which)).question)
    assert sorted(told) == list(range(1, 9))
    assert [each.name for each in guard.status().ladders] == ["", "study"]
    assert guard.check() == 8


def test_threads_on_ladders_of_their_own(make_guard, chain):
    guard = make_guard(n=N).open()

    def work(which):
        ladder = guard.ladder(f"study {which}")
        return [ladder.ask(model(which, at)).question for at in range(20)]

    assert in_threads(work) == [list(range(1, 21))] * 8
    assert guard.check() == 160
    entries, _ = chain(guard)
    assert sum(each["kind"] == "ladder" for each in entries) == 9


def test_a_status_is_of_one_moment(make_guard):
    """While ladders are started and asked: nothing in it is of before or after the rest."""
    guard = make_guard(n=N, questions=400, ladders=40).open()
    done = Event()

    def go_on():
        try:
            for at in range(40):
                ladder = guard.ladder(f"study {at}")
                for question in range(3):
                    ladder.ask(model(at, question))
        finally:
            done.set()

    busy = Thread(target=go_on)
    busy.start()
    seen = 0
    while not done.is_set():
        status = guard.status()
        assert sum(each.questions for each in status.ladders) == len(status.history)
        assert status.meter.used == len(status.history)
        assert status.meter.chain_state.ladders == len(status.ladders)
        assert status.meter.chain_state.head.hex() == status.head
        for each in status.ladders:
            own = [told.value for told in status.history if told.ladder == each.name]
            assert each.released == (own[-1] if own else 1)
        seen += 1
    busy.join()
    assert seen > 1


def test_a_thread_that_is_refused_holds_nobody_up(make_guard):
    guard = make_guard(n=N).open()

    def work(which):
        if which % 2:
            with pytest.raises(lb.errors.InvalidPredictions):
                guard.ask([1, 2])
            with pytest.raises(lb.errors.InvalidSetting):
                guard.ask(model(which), training=0.5)  # refused inside the transaction
        return guard.ask(model(which)).question

    assert sorted(in_threads(work)) == list(range(1, 9))


def test_who_comes_late_to_the_mark_does_not_lower_it(make_guard, monkeypatch):
    """One thread commits first and marks last: the mark stays where the other put it."""
    made = make_guard(n=N)
    guard = made.open()
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
    assert HighWaterMark(made.path).read().questions == 2
