"""Many processes on one file, and one guard in many processes."""

import json
import multiprocessing
import os
import pickle
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest

import ladderboard as lb
from ladderboard.ledger import HighWaterMark


def contend(asker_pool, make_guard, chain, *, processes, each, budget):
    made = make_guard(n=50, questions=budget)
    pids = [asker_pool.start(made, writer, each, shared=False) for writer in range(processes)]
    assert [asker_pool.wait(pid) for pid in pids] == [{"signal": 0, "code": 0}] * processes
    told = made.logged_answers()
    assert len(told) == processes * each
    answered = [one for one in told if "release" in one]
    refused = [one["refused"] for one in told if "refused" in one]
    assert refused == ["BudgetSpent"] * (processes * each - budget)
    assert not any(one["again"] for one in answered)
    assert sorted(one["release"][3] for one in answered) == list(range(1, budget + 1))
    assert sorted(one["remaining"] for one in answered) == list(range(budget))
    guard = made.open()
    entries, questions = chain(guard)
    assert HighWaterMark(made.path).read().entries == len(entries)
    assert [one["question"] for one in questions] == list(range(1, budget + 1))
    by_question = {
        one["question"]: [one["value"], one["score"], one["improved"], one["question"]]
        for one in questions
    }
    assert all(by_question[one["release"][3]] == one["release"] for one in answered)
    assert guard.check() == budget
    assert guard.remaining == 0


def test_eight_processes_and_a_budget_for_half_of_their_questions(asker_pool, make_guard, chain):
    contend(asker_pool, make_guard, chain, processes=8, each=250, budget=1000)


def test_eight_processes_with_the_same_questions(asker_pool, make_guard, chain):
    """Each question is answered once, and everybody hears the same."""
    made = make_guard(n=50, questions=400)
    pids = [asker_pool.start(made, 0, 40) for _ in range(8)]
    assert all(asker_pool.wait(pid)["code"] == 0 for pid in pids)
    told = made.logged_answers()
    _, questions = chain(made.open())
    assert len(told) == 320
    assert len(questions) == 40 == sum(not one["again"] for one in told)
    for at in range(40):
        assert len({json.dumps(one["release"]) for one in told if one["number"] == at}) == 1


def test_it_is_opened_while_others_ask(asker_pool, make_guard):
    """Whoever opens it sees a file that goes on, and never takes it for an old copy."""
    made = make_guard(n=50)
    pids = [asker_pool.start(made, writer, 150, shared=False) for writer in range(2)]
    left = [made.open().remaining for _ in range(60)]
    assert [asker_pool.wait(pid)["code"] for pid in pids] == [0, 0]
    assert left == sorted(left, reverse=True)
    assert made.open().check() == 300


def test_a_fork_of_a_process_that_has_asked(make_guard, chain):
    """In a process of its own: this one has threads, and must not fork."""
    made = make_guard(n=50)
    code = """
import os, sys
import numpy as np, ladderboard as lb
guard = lb.Holdout.open(sys.argv[1])
ladder = guard.ladder("other")
guard.ask(np.zeros(50)), ladder.ask(np.zeros(50))
pids = []
for child in range(4):
    pid = os.fork()
    if not pid:
        for at in range(10):
            rng = np.random.default_rng([child, at])
            guard.ask(rng.integers(2, size=50)), ladder.ask(rng.integers(2, size=50))
        os._exit(0)
    pids.append(pid)
for at in range(10):
    guard.ask(np.random.default_rng([9, at]).integers(2, size=50))
assert all(os.waitpid(pid, 0)[1] == 0 for pid in pids)
print(guard.remaining, guard.check())
"""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code, str(made.path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    assert done.stdout.split() == [str(400 - 92), "92"]
    _, questions = chain(made.open())
    for ladder, count in ((0, 51), (1, 41)):
        own = [one["question"] for one in questions if one["ladder"] == ladder]
        assert own == list(range(1, count + 1))


def test_a_guard_that_was_pickled(make_guard):
    made = make_guard(n=50, sealed=True)
    guard = made.open().ladder("study")
    first = guard.ask(np.zeros(50))
    again = pickle.loads(pickle.dumps(guard))
    assert again.ask(np.zeros(50)).again
    assert again.ask(np.ones(50)).question == 2
    assert guard.remaining == again.remaining == 398
    assert pickle.loads(pickle.dumps(first)) == first
    assert pickle.loads(pickle.dumps(first)).bound == first.bound


def test_a_pickle_holds_no_secret(make_guard):
    made = make_guard(n=50, sealed=True)
    whole = pickle.dumps(made.open())
    assert bytes(range(32)) not in whole
    assert made.key_file.read_text().strip().encode() not in whole
    assert len(whole) < 1000  # no labels either


def test_spawned_workers_with_a_pickled_guard(make_guard):
    """As n_jobs > 1 does: the guard travels, its state does not."""
    made = make_guard(n=50)
    guard = made.open()
    rows = [np.random.default_rng(at).integers(2, size=50) for at in range(20)]
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
        replies = list(pool.map(guard.ask, rows))
    assert sorted(reply.question for reply in replies) == list(range(1, 21))
    assert guard.remaining == 380
    assert guard.check() == 20


@pytest.mark.parametrize("sealed", [False, True])
def test_files_are_their_owners_only_whatever_the_umask(make_guard, sealed):
    before = os.umask(0)
    try:
        made = make_guard(n=50, sealed=sealed)
        made.open().ask(np.zeros(50))
        keep = lb.Holdout.open(made.path, key_file=made.key_file)  # so that the log stays
        keep.ask(np.ones(50))
        modes = {
            each.name: oct(each.stat().st_mode & 0o777)
            for each in made.path.parent.glob(f"{made.path.stem}*")
        }
    finally:
        os.umask(before)
    assert len(modes) == 4 + sealed
    assert set(modes.values()) == {"0o600"}
