"""Commits with an unknown result, and full disks."""

import contextlib
import subprocess
import sys
from typing import ClassVar

import numpy as np
import pytest

from ladderboard.errors import StorageFailed
from ladderboard.ledger import SqliteStorage

N = 50


def model(*seed):
    return np.random.default_rng(seed).integers(2, size=N)


class UncertainStorage(SqliteStorage):
    """A storage that loses the result of a commit, or the commit itself, as planned."""

    plan: ClassVar[list] = []
    count = 0

    @contextlib.contextmanager
    def write_transaction(self, book, prefetch=None):
        type(self).count += 1
        outcome = self.plan.pop(0) if self.plan else "well"
        if outcome == "before":  # before anything was read
            raise StorageFailed("Nobody is there.", uncertain=True)
        with super().write_transaction(book, prefetch) as opened:
            yield opened
            if outcome in {"never", "plainly"}:
                raise StorageFailed("No answer.", uncertain=outcome == "never")
        if outcome == "after":
            raise StorageFailed("No answer.", uncertain=True)


@pytest.fixture
def uncertain_guard(make_guard, monkeypatch):
    """A guard whose commits follow a plan."""
    known_guard = make_guard(n=N)
    guard = known_guard.open()
    guard._book.storage.__class__ = UncertainStorage
    monkeypatch.setattr(UncertainStorage, "plan", [])
    monkeypatch.setattr(UncertainStorage, "count", 0)
    return known_guard, guard


def test_a_successful_commit_is_found(uncertain_guard, chain):
    known_guard, guard = uncertain_guard
    guard.ask(model(0))
    UncertainStorage.plan[:] = ["after"]
    reply = guard.ask(model(1))
    assert (reply.question, reply.remaining, reply.again) == (2, 398, False)
    assert UncertainStorage.count == 3  # looked up, not asked again
    _, questions = chain(guard)
    assert len(questions) == 2
    assert (questions[1]["value"], questions[1]["improved"]) == (reply.released, reply.improved)
    again = guard.ask(model(1))
    assert again.again
    assert (again.released, again.question) == (reply.released, 2)
    assert known_guard.open().check() == 2


def test_a_failed_commit_is_reported(uncertain_guard, chain):
    known_guard, guard = uncertain_guard
    guard.ask(model(0))
    UncertainStorage.plan[:] = ["never"]
    with pytest.raises(StorageFailed, match="The question was not asked") as failed:
        guard.ask(model(1))
    assert not failed.value.uncertain
    assert UncertainStorage.count == 3
    assert len(chain(guard)[1]) == 1
    assert guard.remaining == 399
    reply = guard.ask(model(1))
    assert (reply.question, reply.again) == (2, False)
    assert known_guard.open().check() == 2


@pytest.mark.parametrize("plan", [["before"], ["plainly"]])
def test_an_error_before_the_commit(uncertain_guard, chain, plan):
    _, guard = uncertain_guard
    UncertainStorage.plan[:] = plan
    with pytest.raises(StorageFailed):
        guard.ask(model(1))
    assert len(chain(guard)[1]) == 0
    assert guard.ask(model(1)).question == 1


@pytest.mark.parametrize("first", ["after", "never"])
def test_the_lookup_fails_too(uncertain_guard, chain, first):
    """The result stays unknown until the question is repeated."""
    known_guard, guard = uncertain_guard
    UncertainStorage.plan[:] = [first, "before"]
    with pytest.raises(StorageFailed, match=r"No answer\.") as failed:
        guard.ask(model(1))
    assert failed.value.uncertain
    assert UncertainStorage.count == 2
    committed = first == "after"
    assert len(chain(guard)[1]) == committed
    reply = guard.ask(model(1))
    assert (reply.question, reply.again) == (1, committed)
    assert known_guard.open().check() == 1


def test_a_repeated_answer_with_an_uncertain_commit(uncertain_guard):
    """A repeated question writes nothing, so its answer is certain."""
    _, guard = uncertain_guard
    first = guard.ask(model(1))
    for outcome in ("after", "never"):
        UncertainStorage.plan[:] = [outcome]
        reply = guard.ask(model(1))
        assert (reply.again, reply.question, reply.released) == (True, 1, first.released)


def test_a_concurrent_equal_question_before_the_lookup(uncertain_guard, chain):
    """This commit failed and another process committed the question: its answer is returned."""
    known_guard, guard = uncertain_guard
    UncertainStorage.plan[:] = ["never"]
    original = guard._book._find_unconfirmed

    def look_up(*args):
        known_guard.open().ask(model(1))
        return original(*args)

    guard._book._find_unconfirmed = look_up
    reply = guard.ask(model(1))
    assert (reply.question, reply.again) == (1, True)
    assert len(chain(guard)[1]) == 1


def test_the_mark_follows_a_found_commit(uncertain_guard):
    known_guard, guard = uncertain_guard
    UncertainStorage.plan[:] = ["after"]
    guard.ask(model(1))
    mark = known_guard.path.with_name(known_guard.path.name + ".mark").read_text().split()
    assert mark[4:6] == ["3", "1"]


def test_a_ladder_with_an_uncertain_start_is_started_once(uncertain_guard, chain):
    _, guard = uncertain_guard
    UncertainStorage.plan[:] = ["after"]
    assert guard.ladder("study").ask(model(0)).question == 1
    assert guard.ladder("study").ask(model(1)).question == 2
    assert sum(entry["kind"] == "ladder" for entry in chain(guard)[0]) == 2


FULL = """
import resource, signal, sys
import numpy as np, ladderboard as lb
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # a write past the limit then fails like a full disk
path, room, log = sys.argv[1], int(sys.argv[2]), []
guard = lb.Holdout.open(path)
guard.ask(np.zeros(50))
resource.setrlimit(resource.RLIMIT_FSIZE, (room, resource.RLIM_INFINITY))
for at in range(60):
    model = np.random.default_rng(at).integers(2, size=50)
    try:
        log.append(guard.ask(model).question)
    except lb.errors.StorageFailed as failed:
        assert not failed.uncertain
        log.append(0)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
answered = [number for number in log if number]
assert answered == list(range(2, len(answered) + 2)), log
assert 0 in log, "the disk was not full"
log.append(guard.ask(np.ones(50)).question)  # room again
print(len(answered), log[-1], guard.check())
"""


@pytest.mark.parametrize("max_bytes", [100_000, 201_000, 203_000])
def test_a_full_disk(make_guard, chain, max_bytes):
    """Whichever write fails, nothing is half done, and the guard continues with more space."""
    known_guard = make_guard(n=N)
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(known_guard.path), str(max_bytes)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    answered, last, checked = map(int, done.stdout.split())
    assert last == answered + 2 == checked
    guard = known_guard.open()
    assert [question["question"] for question in chain(guard)[1]] == list(range(1, last + 1))
    assert guard.ask(model(99)).question == last + 1


MAKE = """
import pathlib, resource, signal, sys
import numpy as np, ladderboard as lb
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
path = pathlib.Path(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
try:
    lb.Holdout.create(path, labels=np.arange(20_000) % 2, questions=9)
except lb.errors.StorageFailed as failed:
    print(sorted(file.name for file in path.parent.iterdir()))
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
print(lb.Holdout.create(path, labels=np.arange(50) % 2, questions=9).remaining)
"""


@pytest.mark.parametrize("max_bytes", [0, 5000, 60_000, 160_000])
def test_a_guard_without_disk_space_is_not_created(tmp_path, max_bytes):
    done = subprocess.run(
        [sys.executable, "-c", MAKE, str(tmp_path / "guard.db"), str(max_bytes)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    assert done.stdout.split("\n")[:2] == ["[]", "9"]
