"""Processes killed while they ask: no answer is lost or given twice."""

import os
import signal
import time

import pytest

import ladderboard as lb
from support.holdout.asker_main import predictions as model_predictions
from support.randomness import seeded_random

RELEASE = ("value", "score", "improved", "question")
# One question makes about 60 stops at system calls, from the mark's reading to the log's line.
STOPS = 200
SECONDS = 0.025  # in which an asker asks about ten


def kill(asker_pool, known_guard, rng, *, writers, traced):
    """Let askers ask, kill each at a random moment, and return the writers."""
    pids = [
        asker_pool.start(known_guard, writer, traced=traced and writer == 0) for writer in writers
    ]
    if traced:
        assert asker_pool.kill_after(pids[0], rng.randint(1, STOPS))
        pids = pids[1:]
    for pid in pids:
        time.sleep(rng.uniform(0, SECONDS))
        os.kill(pid, signal.SIGKILL)
        assert asker_pool.wait(pid)["signal"] in {signal.SIGKILL, 0}


def verify(known_guard, chain, writers, killed=1):
    """Reopen and compare everything with the logged answers.

    Return the number of recorded questions, and of those without a logged answer.
    """
    guard = known_guard.open()
    entries, questions = chain(guard)
    answers = known_guard.logged_answers()
    assert not [answer for answer in answers if "refused" in answer]
    # No gaps, no duplicates.
    assert [question["question"] for question in questions] == list(range(1, len(questions) + 1))
    assert guard.meter.used == len(questions) == len(entries) - 2
    # Nothing acknowledged is lost.
    by_question = {
        question["question"]: [question[name] for name in RELEASE] for question in questions
    }
    for answer in answers:
        assert by_question[answer["release"][3]] == answer["release"]
    fresh = [answer for answer in answers if not answer["again"]]
    assert len({answer["release"][3] for answer in fresh}) == len(fresh)
    doubtful = len(questions) - len(fresh)
    assert 0 <= doubtful <= killed * len(writers)  # at most the one that a kill cut
    # The replay from key and submissions.
    submitted = {}
    for writer in writers:
        for number in range(60):
            predictions = model_predictions(known_guard.run, writer, number, known_guard.n)
            submission = guard._scorer.read(predictions).digest
            earlier = guard._book.find_duplicate(submission)
            if earlier is not None:
                submitted[earlier.entry_number] = (predictions, submission)
    assert sorted(submitted) == [question["number"] for question in questions]
    session = known_guard.mechanism.start(n=known_guard.n, tape=lb.Tape(key=bytes(range(32))))
    for question in questions:
        predictions, submission = submitted[question["number"]]
        risk = float((predictions != known_guard.labels).mean())
        assert [*session.ask(risk=risk, context=submission)] == [question[name] for name in RELEASE]
    assert guard.check() == len(questions)
    # Repeated questions get the same reply for free.
    left = guard.remaining
    for question in questions:
        reply = guard.ask(submitted[question["number"]][0])
        assert reply.again
        assert [reply.released, reply.score, reply.improved, reply.question] == by_question[
            question["question"]
        ]
    assert guard.remaining == left == 400 - len(questions)
    # The guard continues to answer.
    assert (
        guard.ask(model_predictions(known_guard.run, 77, 0, known_guard.n)).question
        == len(questions) + 1
    )
    return len(questions), doubtful


def run(seed, asker_pool, make_guard, chain):
    """One run: two writers in half of them, at system calls in half, sealed in a quarter."""
    rng = seeded_random(seed)
    writers = [0, 1] if seed % 2 else [0]
    known_guard = make_guard(sealed=seed % 8 in {2, 3})
    killed = rng.choice([1, 1, 2])  # it may go on after a kill, and be killed again
    for _ in range(killed):
        kill(asker_pool, known_guard, rng, writers=writers, traced=seed % 4 < 2)
    return verify(known_guard, chain, writers, killed)


def test_twelve_kills(asker_pool, make_guard, chain):
    for seed in range(12):
        run(seed, asker_pool, make_guard, chain)


@pytest.mark.slow
@pytest.mark.parametrize("block", range(4))
def test_two_hundred_and_forty_kills(block, asker_pool, make_guard, chain):
    seeds = range(100 + 60 * block, 160 + 60 * block)
    earlier = [run(seed, asker_pool, make_guard, chain) for seed in seeds]
    # A third of a question's stops are between commit and acknowledgement, and 30 runs are cut at
    # stops: the chance that none falls there is below 1e-5.
    assert any(doubtful for _, doubtful in earlier)
    assert sum(questions for questions, _ in earlier) > 60


def cut(counts, asker_pool, make_guard, chain):
    """Kill an asker after so many stops at system calls, for each of these counts."""
    doubtful, total = [], []
    for count in counts:
        known_guard = make_guard(n=20)
        pid = asker_pool.start(known_guard, traced=True)
        assert asker_pool.run("kill_after", pid=pid, count=count)["signal"] == signal.SIGKILL
        doubtful.append(verify(known_guard, chain, [0])[1])
        total.append(len(known_guard.logged_answers()))
    assert set(doubtful) == {0, 1}  # before the commit, and after it
    assert total[0] == 0  # cut in the first question, and in later ones; a question's calls vary
    assert max(total) >= 1


def test_kills_at_system_calls_of_a_question(asker_pool, make_guard, chain):
    cut(range(1, STOPS, 7), asker_pool, make_guard, chain)


@pytest.mark.slow
def test_a_kill_at_every_system_call_of_a_question(asker_pool, make_guard, chain):
    cut(range(1, STOPS), asker_pool, make_guard, chain)
