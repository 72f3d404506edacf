"""Commits of which nobody knows whether they stand, and disks that are full."""

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


class Unsure(SqliteStorage):
    """A storage that loses the answer to a commit, after it or in place of it, when told to."""

    plan: ClassVar[list] = []
    count = 0

    @contextlib.contextmanager
    def write_transaction(self, book):
        type(self).count += 1
        what = self.plan.pop(0) if self.plan else "well"
        if what == "before":  # before anything was read
            raise StorageFailed("Nobody is there.", uncertain=True)
        with super().write_transaction(book) as opened:
            yield opened
            if what in {"never", "plainly"}:
                raise StorageFailed("No answer.", uncertain=what == "never")
        if what == "after":
            raise StorageFailed("No answer.", uncertain=True)


@pytest.fixture
def uncertain_guard(make_guard, monkeypatch):
    """Make a guard whose commits go as planned."""
    made = make_guard(n=N)
    guard = made.open()
    guard._book.storage.__class__ = Unsure
    monkeypatch.setattr(Unsure, "plan", [])
    monkeypatch.setattr(Unsure, "count", 0)
    return made, guard


def test_a_commit_that_stands_is_found(uncertain_guard, chain):
    made, guard = uncertain_guard
    guard.ask(model(0))
    Unsure.plan[:] = ["after"]
    reply = guard.ask(model(1))
    assert (reply.question, reply.remaining, reply.again) == (2, 398, False)
    assert Unsure.count == 3  # looked up, not asked again
    _, questions = chain(guard)
    assert len(questions) == 2
    assert (questions[1]["value"], questions[1]["improved"]) == (reply.released, reply.improved)
    again = guard.ask(model(1))
    assert again.again
    assert (again.released, again.question) == (reply.released, 2)
    assert made.open().check() == 2


def test_a_commit_that_does_not_stand_is_told(uncertain_guard, chain):
    made, guard = uncertain_guard
    guard.ask(model(0))
    Unsure.plan[:] = ["never"]
    with pytest.raises(StorageFailed, match="The question was not asked") as failed:
        guard.ask(model(1))
    assert not failed.value.uncertain
    assert Unsure.count == 3
    assert len(chain(guard)[1]) == 1
    assert guard.remaining == 399
    reply = guard.ask(model(1))
    assert (reply.question, reply.again) == (2, False)
    assert made.open().check() == 2


@pytest.mark.parametrize("plan", [["before"], ["plainly"]])
def test_nothing_was_sent(uncertain_guard, chain, plan):
    _, guard = uncertain_guard
    Unsure.plan[:] = plan
    with pytest.raises(StorageFailed):
        guard.ask(model(1))
    assert len(chain(guard)[1]) == 0
    assert guard.ask(model(1)).question == 1


@pytest.mark.parametrize("first", ["after", "never"])
def test_the_look_up_fails_too(uncertain_guard, chain, first):
    """Then it stays unknown, and asking again tells."""
    made, guard = uncertain_guard
    Unsure.plan[:] = [first, "before"]
    with pytest.raises(StorageFailed):
        guard.ask(model(1))
    stands = first == "after"
    assert len(chain(guard)[1]) == stands
    reply = guard.ask(model(1))
    assert (reply.question, reply.again) == (1, stands)
    assert made.open().check() == 1


def test_an_earlier_answer_whose_commit_is_unsure(uncertain_guard):
    """There is nothing to lose: it is told again."""
    _, guard = uncertain_guard
    first = guard.ask(model(1))
    for how in ("after", "never"):
        Unsure.plan[:] = [how]
        reply = guard.ask(model(1))
        assert (reply.again, reply.question, reply.released) == (True, 1, first.released)


def test_another_asks_the_same_before_it_is_looked_up(uncertain_guard, chain):
    """This commit did not stand, and that of another process does: theirs is the answer."""
    made, guard = uncertain_guard
    Unsure.plan[:] = ["never"]
    true = guard._book._look_up_uncertain_answer

    def look_up(*args):
        made.open().ask(model(1))
        return true(*args)

    guard._book._look_up_uncertain_answer = look_up
    reply = guard.ask(model(1))
    assert (reply.question, reply.again) == (1, True)
    assert len(chain(guard)[1]) == 1


def test_the_mark_follows_a_commit_that_was_found(uncertain_guard):
    made, guard = uncertain_guard
    Unsure.plan[:] = ["after"]
    guard.ask(model(1))
    mark = made.path.with_name(made.path.name + ".mark").read_text().split()
    assert mark[4:6] == ["3", "1"]


def test_a_ladder_whose_start_is_unsure_is_started_once(uncertain_guard, chain):
    _, guard = uncertain_guard
    Unsure.plan[:] = ["after"]
    assert guard.ladder("study").ask(model(0)).question == 1
    assert guard.ladder("study").ask(model(1)).question == 2
    assert sum(each["kind"] == "ladder" for each in chain(guard)[0]) == 2


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
said = [number for number in log if number]
assert said == list(range(2, len(said) + 2)), log
assert 0 in log, "the disk was not full"
log.append(guard.ask(np.ones(50)).question)  # room again
print(len(said), log[-1], guard.check())
"""


@pytest.mark.parametrize("room", [100_000, 200_000, 201_000, 202_000, 203_000, 250_001])
def test_a_full_disk(make_guard, chain, room):
    """Nothing is half done, and with room again it goes on; whatever write did not fit."""
    made = make_guard(n=N)
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(made.path), str(room)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    said, last, checked = map(int, done.stdout.split())
    assert last == said + 2 == checked
    guard = made.open()
    assert [each["question"] for each in chain(guard)[1]] == list(range(1, last + 1))
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
    print(sorted(each.name for each in path.parent.iterdir()))
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
print(lb.Holdout.create(path, labels=np.arange(50) % 2, questions=9).remaining)
"""


@pytest.mark.parametrize("room", [0, 100, 5000, 20_000, 60_000, 100_000, 160_000])
def test_a_guard_for_which_there_is_no_room_is_not_there(tmp_path, room):
    done = subprocess.run(
        [sys.executable, "-c", MAKE, str(tmp_path / "guard.db"), str(room)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    assert done.stdout.split("\n")[:2] == ["[]", "9"]
