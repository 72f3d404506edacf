"""Old copies put back: refused until the owner says how many questions to charge."""

import contextlib
import fcntl
import math
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path
from threading import Thread

import numpy as np
import pytest

import ladderboard as lb
from ladderboard.errors import BudgetSpent, InvalidSetting, StaleCopy, StorageFailed

N = 50
RELEASE = ("value", "score", "improved", "question")


def model(*seed):
    return np.random.default_rng(seed).integers(2, size=N)


def ask(guard, *seeds):
    return [guard.ask(model(seed)) for seed in seeds]


def settled(path):
    """Write the log into the file, so that the file is all there is."""
    with contextlib.closing(sqlite3.connect(path)) as link:
        link.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def copy(path, to):
    settled(path)
    shutil.copy(path, to)


def put_back(kept, path):
    """As somebody would with `mv`: another file of that name, without the log."""
    for end in ("-wal", "-shm"):
        path.with_name(path.name + end).unlink(missing_ok=True)
    shutil.copy(kept, f"{kept}.moved")
    Path(f"{kept}.moved").replace(path)


@pytest.fixture
def looking(monkeypatch):
    """Let a storage look at every transaction whether its file is still there."""
    monkeypatch.setattr("ladderboard.ledger._storage._sqlite._REPLACED_CHECK_INTERVAL", -1)


@pytest.fixture
def rolled_back(make_guard, tmp_path):
    """A guard of which two of five questions are in an old copy, which was put back."""

    def make(**how):
        made = make_guard(n=N, **how)
        guard = made.open()
        ask(guard, 0, 1)
        kept = tmp_path / "kept.db"
        copy(made.path, kept)
        made.replies = ask(guard, 2, 3, 4)
        del guard
        put_back(kept, made.path)
        made.kept = kept
        return made

    return make


@pytest.mark.parametrize("sealed", [False, True])
def test_an_old_copy_is_refused_until_its_questions_are_charged(rolled_back, chain, sealed):
    made = rolled_back(questions=10, sealed=sealed)
    with pytest.raises(StaleCopy, match="missing from it: at least 3") as old:
        made.open()
    assert old.value.missing == 3
    for charge in (0, 1, 2):
        with pytest.raises(InvalidSetting, match="at least 3"):
            lb.Holdout.restore(made.path, charge, key_file=made.key_file)
    with pytest.raises(InvalidSetting, match="left: 8"):
        lb.Holdout.restore(made.path, 9, key_file=made.key_file)
    with pytest.raises(StaleCopy):
        made.open()
    guard = lb.Holdout.restore(made.path, 4, key_file=made.key_file)
    assert guard.remaining == 10 - 2 - 4
    entries, questions = chain(guard)
    assert entries[-1]["kind"] == "restored"
    assert entries[-1]["charged"] == 4
    assert len(questions) == 2
    assert [reply.question for reply in ask(guard, 10, 11, 12, 13)] == [3, 4, 5, 6]
    with pytest.raises(BudgetSpent):
        ask(guard, 14)
    assert made.open().check() == 6


def test_what_was_lost_widens_the_certificate(rolled_back):
    made = rolled_back(questions=10)
    there = lb.Holdout.restore(made.path, 3)
    whole = made.replies[-1].bound
    assert there.certificate.high - there.certificate.low > whole.high - whole.low


def test_the_same_question_gets_the_same_answer_and_another_gets_other_noise(make_guard, tmp_path):
    """With Laplace noise and no grid, every release shows its noise."""
    made = make_guard(n=N)
    path = tmp_path / "shaky.db"
    mechanism = lb.Noisy(sd=0.1)
    key = bytes(range(32))
    guard = lb.Holdout.create(path, labels=made.labels, questions=99, mechanism=mechanism, key=key)
    ask(guard, 0)
    copy(path, tmp_path / "kept.db")
    first = ask(guard, 1)[0]
    del guard
    put_back(tmp_path / "kept.db", path)
    guard = lb.Holdout.restore(path, 1)
    copy(path, tmp_path / "kept.db")
    assert ask(guard, 1)[0].score == first.score  # question 2 again, and the same model
    del guard
    put_back(tmp_path / "kept.db", path)
    guard = lb.Holdout.restore(path, 1)
    other = ask(guard, 2)[0]  # question 2 again, and another model
    assert other.question == first.question == 2
    noise = [
        reply.score - (model(seed) != made.labels).mean()
        for seed, reply in ((1, first), (2, other))
    ]
    assert abs(noise[0] - noise[1]) > 1e-6


def test_the_mark_is_missing(make_guard):
    made = make_guard(n=N)
    guard = made.open()
    ask(guard, 0)
    mark = made.path.with_name(made.path.name + ".mark")
    whole = mark.read_bytes()
    mark.unlink()
    for refused in (made.open, lambda: ask(guard, 1)):
        with pytest.raises(StaleCopy, match="There is no"):
            refused()
    with pytest.raises(StaleCopy):
        guard.close_for_good()
    assert not mark.exists()
    mark.write_bytes(whole)
    assert ask(guard, 1)[0].question == 2


@pytest.mark.parametrize(
    "damage",
    [
        lambda mark: b"",
        lambda mark: mark[:-1],
        lambda mark: mark + b" ",
        lambda mark: bytes(256),
        lambda mark: mark.replace(b"mark 1", b"mark 2"),
        lambda mark: mark.replace(b"ladderboard", b"ledderboard"),
        lambda mark: b"\xff" * 256,
    ],
)
def test_the_mark_is_damaged(make_guard, damage):
    made = make_guard(n=N)
    guard = made.open()
    ask(guard, 0)
    mark = made.path.with_name(made.path.name + ".mark")
    mark.write_bytes(damage(mark.read_bytes()))
    for refused in (made.open, lambda: ask(guard, 1)):
        with pytest.raises(StaleCopy, match="damaged"):
            refused()
    assert lb.Holdout.restore(made.path, 0).ask(model(1)).question == 2


def test_the_mark_of_another_file(make_guard):
    one, other = make_guard(n=N), make_guard(n=N)
    guard = one.open()
    ask(guard, 0)
    mark, another = (each.path.with_name(each.path.name + ".mark") for each in (one, other))
    shutil.copy(another, mark)
    for refused in (one.open, lambda: ask(guard, 1)):
        with pytest.raises(StaleCopy, match="another file"):
            refused()


def test_file_and_mark_of_another_guard(make_guard, looking):
    """A stranger's file under this name is found out by whoever still has this one open."""
    one, other = make_guard(n=N), make_guard(n=N)
    guard = one.open()
    ask(guard, 0)
    settled(other.path)
    put_back(other.path, one.path)
    shutil.copy(f"{other.path}.mark", f"{one.path}.mark")
    with pytest.raises(StorageFailed, match="replaced"):
        ask(guard, 1)
    assert one.open().remaining == 400  # it is whole, and another's


def test_a_file_swapped_while_it_is_open(make_guard, tmp_path, looking):
    """What it would answer now would be in a file that has no name; so it does not."""
    made = make_guard(n=N)
    guard = made.open()
    ask(guard, 0)
    copy(made.path, tmp_path / "kept.db")
    put_back(tmp_path / "kept.db", made.path)
    for refused in (lambda: ask(guard, 1), guard.close_for_good):
        with pytest.raises(StorageFailed, match="replaced"):
            refused()
    new = made.open()
    assert new.remaining == 399
    assert ask(new, 1)[0].question == 2
    assert new.check() == 2


def test_a_file_swapped_between_two_looks_at_it(make_guard, tmp_path, monkeypatch):
    """Somebody answers in a file that has lost its name: the mark knows of it all the same."""
    monkeypatch.setattr("ladderboard.ledger._storage._sqlite._REPLACED_CHECK_INTERVAL", math.inf)
    made = make_guard(n=N)
    guard = made.open()
    ask(guard, 0)
    copy(made.path, tmp_path / "kept.db")
    put_back(tmp_path / "kept.db", made.path)
    assert ask(guard, 1)[0].question == 2
    with pytest.raises(StaleCopy) as old:
        made.open()
    assert old.value.missing == 1
    restored = lb.Holdout.restore(made.path, 1)
    with pytest.raises(StaleCopy):
        ask(guard, 2)  # the one without a name tells another story now
    assert ask(restored, 3)[0].question == 2


@pytest.mark.parametrize("settle", [True, False])
def test_a_file_written_over_in_its_place(make_guard, tmp_path, settle):
    """As `cp` does it, while nobody has it open; its log may still hold what is newer."""
    made = make_guard(n=N)
    guard = made.open()
    ask(guard, 0)
    copy(made.path, tmp_path / "kept.db")
    ask(guard, 1, 2)
    if settle:
        settled(made.path)
    log = made.path.with_name(made.path.name + "-wal")
    whole = log.read_bytes()
    del guard
    if not settle:  # as it is after a crash
        log.write_bytes(whole)
    made.path.write_bytes((tmp_path / "kept.db").read_bytes())
    if settle:
        with pytest.raises(StaleCopy):
            made.open()
    else:
        assert made.open().check() == 3  # nothing is missing


@pytest.mark.parametrize("elsewhere", [1, 3, 6])
def test_a_copy_that_was_used_elsewhere(make_guard, tmp_path, elsewhere):
    """It comes back with fewer, as many or more questions than were asked here."""
    made = make_guard(n=N)
    guard = made.open()
    ask(guard, 0)
    away = tmp_path / "away"
    away.mkdir()
    copy(made.path, away / "guard.db")
    shutil.copy(f"{made.path}.mark", away / "guard.db.mark")
    ask(guard, 1, 2, 3)
    del guard
    other = lb.Holdout.open(away / "guard.db")
    ask(other, *range(10, 10 + elsewhere))
    del other
    settled(away / "guard.db")
    put_back(away / "guard.db", made.path)
    with pytest.raises(StaleCopy) as old:
        made.open()
    assert old.value.missing >= 1  # three were answered here, of which it knows nothing
    with pytest.raises(InvalidSetting):
        lb.Holdout.restore(made.path, old.value.missing - 1)
    guard = lb.Holdout.restore(made.path, 3)
    assert guard.remaining == 400 - 1 - elsewhere - 3
    assert guard.check() == 1 + elsewhere


def test_a_backup_must_be_restored(make_guard, tmp_path):
    made = make_guard(n=N)
    guard = made.open()
    ask(guard, 0, 1)
    guard.backup(tmp_path / "backup.db")
    ask(guard, 2)
    with pytest.raises(StaleCopy):
        lb.Holdout.open(tmp_path / "backup.db")
    there = lb.Holdout.restore(tmp_path / "backup.db", 5)
    assert there.remaining == 400 - 2 - 5
    assert there.check() == 2
    assert guard.remaining == 397


WATER = """
import sys
from ladderboard.ledger import HighWaterMark, Position
water, last = HighWaterMark(sys.argv[1]), 30_000
if sys.argv[2] == "write":
    for at in range(last + 1):
        water.advance(Position("b" * 32, at + 1, at, f"{at:064d}"))
else:
    level = None
    while level is None or level.questions < last:
        level = water.read()
        assert level is None or level.entries - 1 == level.questions == int(level.head), level
"""


def test_a_mark_is_read_whole_while_it_is_written(tmp_path):
    """Without a lock one read in some thousands got half of two marks, and a file was refused."""
    lb.ledger.HighWaterMark(tmp_path / "guard.db").replace(
        lb.ledger.Position("b" * 32, 1, 0, "0" * 64)
    )
    both = [
        subprocess.Popen([sys.executable, "-c", WATER, str(tmp_path / "guard.db"), what])
        for what in ("read", "write")
    ]
    assert [each.wait() for each in both] == [0, 0]


def test_who_reads_a_mark_waits_for_who_writes_it(tmp_path):
    water = lb.ledger.HighWaterMark(tmp_path / "guard.db")
    water.replace(lb.ledger.Position("b", 1, 0, "0"))
    read = []
    file = os.open(water.path, os.O_RDWR)  # as another process has it
    fcntl.flock(file, fcntl.LOCK_EX)
    reader = Thread(target=lambda: read.append(water.read()))
    reader.start()
    reader.join(0.1)
    assert not read
    water._write(file, lb.ledger.Position("b", 2, 1, "1"))
    os.close(file)
    reader.join()
    assert read[0].entries == 2
