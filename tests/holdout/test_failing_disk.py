"""A guard on a disk that is full, or may only be read, and what it says when that is over."""

import subprocess
import sys

import numpy as np
import pytest

import ladderboard as lb
from ladderboard.errors import DiskFull, ReadOnly, StorageFailed
from ladderboard.ledger import HighWaterMark, Position

N, PAGE = 200, 4096
LABELS = np.random.default_rng(0).integers(2, size=N)
LADDER = lb.Ladder(step=0.01)


def model(*seed):
    return np.random.default_rng(seed).integers(2, size=N)


@pytest.fixture
def guard(disk):
    made = lb.Holdout.create(disk.path / "guard.db", LABELS, questions=500, mechanism=LADDER)
    yield made
    made.close()


def or_full(do, *given, **more):
    """Return what comes of it, or None where the disk is full, which is certain."""
    try:
        return do(*given, **more)
    except DiskFull as full:
        if full.uncertain:
            raise
        return None


def image(disk, to):
    """Copy what a crash at this moment would leave, and open it."""
    to.mkdir()
    there = [disk.path / name for name in disk.names() - {"guard.db-shm"}]
    subprocess.run(["cp", *there, to], check=True)  # nobody here may open it but SQLite
    return lb.Holdout.open(to / "guard.db")


def test_whatever_room_is_left_a_question_is_answered_or_was_not_asked(guard, disk, tmp_path):
    guard.ask(model(0))
    asked, refused = 1, 0
    for pages in [*range(12), *range(12)]:
        disk.fill(leave=pages * PAGE)
        reply = or_full(guard.ask, model(1 + asked))
        if reply is None:
            refused += 1
        else:
            asked += 1
            assert (reply.question, reply.again) == (asked, False)
        assert guard.remaining == 500 - asked  # it can be looked at all the while
        copy = image(disk, tmp_path / f"{asked} {refused}")
        assert (copy.remaining, copy.check()) == (500 - asked, asked)
        copy.close()
    assert asked > 2
    assert refused > 2
    disk.free()
    assert guard.ask(model(1 + asked)).question == asked + 1
    assert guard.check() == asked + 1


def test_a_guard_is_made_whole_or_not_at_all(disk):
    made = 0
    for pages in range(0, 60, 3):
        disk.fill(leave=pages * PAGE)
        how = {"questions": 9, "key_file": disk.path / "key"}
        guard = or_full(lb.Holdout.create, disk.path / "guard.db", LABELS, **how)
        if guard is None:
            assert disk.names() <= {"key"}  # if that is whole it is good for the next try
        else:
            made += 1
            guard.close()
            disk.free()
            again = lb.Holdout.open(disk.path / "guard.db", key_file=disk.path / "key")
            assert again.ask(model(0)).question == 1
            again.close()
            assert disk.names() == {"guard.db", "guard.db.mark", "key"}
            for name in disk.names():
                (disk.path / name).unlink()
        disk.free()
    assert 0 < made < 20


def test_copies_are_whole_or_not_there(guard, disk):
    guard.ask(model(0))
    disk.fill(leave=3 * PAGE)
    before = disk.names()
    with pytest.raises(DiskFull, match=r"copy\.db cannot be"):
        guard.backup(disk.path / "copy.db")
    assert disk.names() == before
    disk.free()
    guard.backup(disk.path / "copy.db")
    assert disk.names() == before | {"copy.db"}


def test_a_disk_that_may_only_be_read_shows_what_is_there(guard, disk):
    guard.ask(model(0))
    guard.close()  # or it could not be made so here
    disk.read_only()
    for seen in (guard, lb.Holdout.open(disk.path / "guard.db")):
        assert (seen.remaining, len(seen.status().history), seen.check()) == (499, 1, 1)
        with pytest.raises(ReadOnly) as refused:
            seen.ask(model(1))
        assert not refused.value.uncertain
    with pytest.raises(ReadOnly, match="cannot be created"):
        lb.Holdout.create(disk.path / "new.db", LABELS, questions=9)
    disk.writable()
    assert guard.ask(model(1)).question == 2
    assert seen.remaining == 498  # which had opened it as a file that nobody changes
    assert seen.ask(model(2)).question == 3
    assert (guard.remaining, guard.check()) == (497, 3)
    seen.close()


def test_a_log_that_was_left_on_such_a_disk_is_read(guard, disk, tmp_path, run_in_process):
    path = disk.path / "guard.db"
    guard.close()
    run_in_process(
        "import os, sys, ladderboard as lb, numpy as np; g = lb.Holdout.open(sys.argv[1]); "
        "g.ask(np.zeros(200, int)); os.kill(os.getpid(), 9)",
        path,
    )
    assert (disk.path / "guard.db-wal").stat().st_size > 0
    disk.read_only()
    assert guard.remaining == 499
    with pytest.raises(ReadOnly):
        guard.ask(model(0))
    disk.writable()
    assert guard.ask(model(0)).question == 2


@pytest.fixture
def run_in_process():
    """Give a function that runs a program in another process, however that ends."""
    return lambda text, *words: subprocess.run([sys.executable, "-c", text, *words], check=False)


def test_an_answer_stands_though_its_mark_could_not_be_written(guard, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    guard.ask(model(0))
    with monkeypatch.context() as patched:
        patched.setattr("ladderboard.ledger._high_water.os.pwrite", full)
        assert guard.ask(model(1)).question == 2
    assert guard.ask(model(2)).question == 3
    assert guard.check() == 3


def test_half_a_mark_is_not_taken_for_one(disk, monkeypatch):
    water = HighWaterMark(disk.path / "guard.db")
    monkeypatch.setattr("ladderboard.ledger._high_water.os.pwrite", lambda *_: 10)
    with pytest.raises(DiskFull, match=r"guard\.db\.mark cannot be written"):
        water.replace(Position("b", 1, 1, "00"))


def test_where_nobody_can_look_it_stays_uncertain(guard, monkeypatch):
    """The commit has no answer, and then the file cannot be opened any more."""
    storage, tries = guard._book.storage, []
    writing = storage.write_transaction

    def lost(book):
        tries.append(book)
        if len(tries) == 1:
            raise StorageFailed("No answer.", uncertain=True)
        raise StorageFailed("No way.")

    monkeypatch.setattr(storage, "write_transaction", lost)
    with pytest.raises(StorageFailed, match=r"No answer\.") as failed:
        guard.ask(model(0))
    assert failed.value.uncertain
    assert len(tries) == 2
    monkeypatch.setattr(storage, "write_transaction", writing)
    assert guard.ask(model(0)).question == 1
