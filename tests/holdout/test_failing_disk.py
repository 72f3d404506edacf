"""A guard on a full or read-only disk, and after there is space again."""

import subprocess
import sys

import numpy as np
import pytest

import ladderboard as lb
from ladderboard.errors import DiskFull, ReadOnly
from ladderboard.ledger import HighWaterMark, Position

N, PAGE = 200, 4096
LABELS = np.random.default_rng(0).integers(2, size=N)
LADDER = lb.Ladder(step=0.01)


def model(*seed):
    return np.random.default_rng(seed).integers(2, size=N)


@pytest.fixture
def guard(disk):
    created = lb.Holdout.create(disk.path / "guard.db", LABELS, questions=500, mechanism=LADDER)
    yield created
    created.close()


def or_full(function, *arguments, **options):
    """Return the result, or None if the disk is full, an error without uncertainty."""
    try:
        return function(*arguments, **options)
    except DiskFull as full:
        if full.uncertain:
            raise
        return None


def image(disk, to):
    """Copy the files as a crash would leave them now, and open the copy."""
    to.mkdir()
    target = [disk.path / name for name in disk.names() - {"guard.db-shm"}]
    subprocess.run(["cp", *target, to], check=True)  # only SQLite may open the file in this process
    return lb.Holdout.open(to / "guard.db")


def test_on_a_full_disk_a_question_is_answered_or_not_asked(guard, disk, tmp_path):
    guard.ask(model(0))
    question, refused = 1, 0
    for pages in [*range(12), *range(12)]:
        disk.fill(leave=pages * PAGE)
        reply = or_full(guard.ask, model(1 + question))
        if reply is None:
            refused += 1
        else:
            question += 1
            assert (reply.question, reply.again) == (question, False)
        assert guard.remaining == 500 - question  # reading works all the time
        assert guard.ask(model(0)).again
        copy = image(disk, tmp_path / f"{question} {refused}")
        assert (copy.remaining, copy.check()) == (500 - question, question)
        copy.close()
    assert question > 2
    assert refused > 2
    disk.free()
    assert guard.ask(model(1 + question)).question == question + 1
    assert guard.check() == question + 1


def test_a_guard_is_created_completely_or_not_at_all(disk):
    created = 0
    for pages in range(0, 60, 3):
        disk.fill(leave=pages * PAGE)
        settings = {"questions": 9, "key_file": disk.path / "key"}
        guard = or_full(lb.Holdout.create, disk.path / "guard.db", LABELS, **settings)
        if guard is None:
            assert disk.names() <= {"key"}  # a complete key file is reused by the next try
        else:
            created += 1
            guard.close()
            disk.free()
            again = lb.Holdout.open(disk.path / "guard.db", key_file=disk.path / "key")
            assert again.ask(model(0)).question == 1
            again.close()
            assert disk.names() == {"guard.db", "guard.db.mark", "key"}
            for name in disk.names():
                (disk.path / name).unlink()
        disk.free()
    assert 0 < created < 20


def test_backups_are_complete_or_absent(guard, disk):
    guard.ask(model(0))
    disk.fill(leave=3 * PAGE)
    before = disk.names()
    with pytest.raises(DiskFull, match=r"copy\.db cannot be"):
        guard.backup(disk.path / "copy.db")
    assert disk.names() == before
    disk.free()
    guard.backup(disk.path / "copy.db")
    assert disk.names() == before | {"copy.db"}


def test_a_guard_on_a_read_only_disk_can_be_read(guard, disk):
    guard.ask(model(0))
    guard.close()  # an open file prevents the remount
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
    assert seen.remaining == 498  # opened as immutable
    assert seen.ask(model(2)).question == 3
    assert (guard.remaining, guard.check()) == (497, 3)
    seen.close()


def test_a_write_ahead_log_on_a_read_only_disk_is_read(guard, disk, tmp_path, run_in_process):
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
    """A function that runs a program in another process, with any exit code."""
    return lambda text, *words: subprocess.run([sys.executable, "-c", text, *words], check=False)


def test_an_answer_is_kept_if_its_mark_cannot_be_written(guard, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    guard.ask(model(0))
    with monkeypatch.context() as patched:
        patched.setattr("ladderboard.ledger._high_water.os.pwrite", full)
        assert guard.ask(model(1)).question == 2
    assert guard.ask(model(2)).question == 3
    assert guard.check() == 3


def test_an_incomplete_mark_is_not_accepted(disk, monkeypatch):
    water = HighWaterMark(disk.path / "guard.db")
    monkeypatch.setattr("ladderboard.ledger._high_water.os.pwrite", lambda *_: 10)
    with pytest.raises(DiskFull, match=r"guard\.db\.mark cannot be written"):
        water.replace(Position("b", 1, 1, "00"))
