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


def contend(asker_pool, make_guard, chain, *, processes, per_process, budget, gate=False):
    known_guard = make_guard(n=50, questions=budget, gate=gate)
    pids = [
        asker_pool.start(known_guard, writer, per_process, shared=False)
        for writer in range(processes)
    ]
    assert [asker_pool.wait(pid) for pid in pids] == [{"signal": 0, "code": 0}] * processes
    answers = known_guard.logged_answers()
    assert len(answers) == processes * per_process
    answered = [answer for answer in answers if "release" in answer]
    refused = [answer["refused"] for answer in answers if "refused" in answer]
    assert refused == ["BudgetSpent"] * (processes * per_process - budget)
    assert not any(answer["again"] for answer in answered)
    assert sorted(answer["release"][3] for answer in answered) == list(range(1, budget + 1))
    assert sorted(answer["remaining"] for answer in answered) == list(range(budget))
    guard = known_guard.open()
    entries, questions = chain(guard)
    assert HighWaterMark(known_guard.path).read().entries == len(entries)
    releases = [[question[name] for name in known_guard.released] for question in questions]
    assert [release[-1] for release in releases] == list(range(1, budget + 1))
    assert all(releases[answer["release"][3] - 1] == answer["release"] for answer in answered)
    assert guard.verify_ledger() == budget
    assert guard.remaining == 0


@pytest.mark.parametrize(("gate", "per_process"), [(False, 60), (True, 20)], ids=["guard", "gate"])
def test_eight_processes_and_a_budget_for_half_of_their_questions(
    asker_pool, make_guard, chain, gate, per_process
):
    budget = 4 * per_process
    contend(
        asker_pool,
        make_guard,
        chain,
        processes=8,
        per_process=per_process,
        budget=budget,
        gate=gate,
    )


@pytest.mark.parametrize("gate", [False, True], ids=["guard", "gate"])
def test_eight_processes_with_the_same_questions(asker_pool, make_guard, chain, gate):
    """Each question is answered once, and all processes get the same answer."""
    known_guard = make_guard(n=50, questions=400, gate=gate)
    pids = [asker_pool.start(known_guard, 0, 40) for _ in range(8)]
    assert all(asker_pool.wait(pid)["code"] == 0 for pid in pids)
    answers = known_guard.logged_answers()
    _, questions = chain(known_guard.open())
    assert len(answers) == 320
    assert len(questions) == 40 == sum(not answer["again"] for answer in answers)
    for number in range(40):
        assert (
            len({json.dumps(answer["release"]) for answer in answers if answer["number"] == number})
            == 1
        )


def test_a_guard_can_be_opened_while_others_ask(asker_pool, make_guard):
    """A process that opens the file while others ask never takes it for an old copy."""
    known_guard = make_guard(n=50)
    pids = [asker_pool.start(known_guard, writer, 150, shared=False) for writer in range(2)]
    left = [known_guard.open().remaining for _ in range(60)]
    assert [asker_pool.wait(pid)["code"] for pid in pids] == [0, 0]
    assert left == sorted(left, reverse=True)
    assert known_guard.open().check() == 300


def test_asking_after_a_fork(make_guard, chain):
    """In a process of its own: this one has threads, and must not fork."""
    known_guard = make_guard(n=50)
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
        [sys.executable, "-W", "error", "-c", code, str(known_guard.path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    assert done.stdout.split() == [str(400 - 92), "92"]
    _, questions = chain(known_guard.open())
    for ladder, count in ((0, 51), (1, 41)):
        process_answers = [answer["question"] for answer in questions if answer["ladder"] == ladder]
        assert process_answers == list(range(1, count + 1))


def test_a_pickled_guard_works(make_guard):
    known_guard = make_guard(n=50, sealed=True)
    guard = known_guard.open().ladder("study")
    first = guard.ask(np.zeros(50))
    again = pickle.loads(pickle.dumps(guard))
    assert again.ask(np.zeros(50)).again
    assert again.ask(np.ones(50)).question == 2
    assert guard.remaining == again.remaining == 398
    assert pickle.loads(pickle.dumps(first)) == first
    assert pickle.loads(pickle.dumps(first)).bound == first.bound


def test_a_pickle_holds_no_secret(make_guard):
    known_guard = make_guard(n=50, sealed=True)
    pickled = pickle.dumps(known_guard.open())
    assert bytes(range(32)) not in pickled
    assert known_guard.key_file.read_text().strip().encode() not in pickled
    assert len(pickled) < 1000  # no labels either


def test_spawned_workers_with_a_pickled_guard(make_guard):
    """As with n_jobs > 1: the guard is pickled without its state."""
    known_guard = make_guard(n=50)
    guard = known_guard.open()
    rows = [np.random.default_rng(number).integers(2, size=50) for number in range(20)]
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
        replies = list(pool.map(guard.ask, rows))
    assert sorted(reply.question for reply in replies) == list(range(1, 21))
    assert guard.remaining == 380
    assert guard.check() == 20


@pytest.mark.parametrize("sealed", [False, True])
def test_files_are_private_with_any_umask(make_guard, sealed):
    before = os.umask(0)
    try:
        known_guard = make_guard(n=50, sealed=sealed)
        known_guard.open().ask(np.zeros(50))
        keep = lb.Holdout.open(
            known_guard.path, key_file=known_guard.key_file
        )  # so that the log stays
        keep.ask(np.ones(50))
        modes = {
            path.name: oct(path.stat().st_mode & 0o777)
            for path in known_guard.path.parent.glob(f"{known_guard.path.stem}*")
        }
    finally:
        os.umask(before)
    assert len(modes) == 4 + sealed
    assert set(modes.values()) == {"0o600"}
