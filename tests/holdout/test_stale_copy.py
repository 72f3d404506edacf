"""Old copies are refused until the owner states how many questions to charge."""

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
    """Write the log into the file, so that the file is complete."""
    with contextlib.closing(sqlite3.connect(path)) as link:
        link.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def copy(path, to):
    settled(path)
    shutil.copy(path, to)


def put_back(old_copy, path):
    """Replace the file like `mv`: another file of that name, without its log."""
    for end in ("-wal", "-shm"):
        path.with_name(path.name + end).unlink(missing_ok=True)
    shutil.copy(old_copy, f"{old_copy}.moved")
    Path(f"{old_copy}.moved").replace(path)


@pytest.fixture
def looking(monkeypatch):
    """Make a storage check in every transaction whether its file was replaced."""
    monkeypatch.setattr("ladderboard.ledger._storage._sqlite._REPLACED_CHECK_INTERVAL", -1)


@pytest.fixture
def rolled_back(make_guard, tmp_path):
    """A guard replaced by an old copy with two of its five questions."""

    def make(**settings):
        known_guard = make_guard(n=N, **settings)
        guard = known_guard.open()
        ask(guard, 0, 1)
        old_copy = tmp_path / "kept.db"
        copy(known_guard.path, old_copy)
        known_guard.replies = ask(guard, 2, 3, 4)
        del guard
        put_back(old_copy, known_guard.path)
        known_guard.old_copy = old_copy
        return known_guard

    return make


@pytest.mark.parametrize("sealed", [False, True])
def test_an_old_copy_is_refused_until_its_questions_are_charged(rolled_back, chain, sealed):
    known_guard = rolled_back(questions=10, sealed=sealed)
    with pytest.raises(StaleCopy, match="missing from it: at least 3") as old:
        known_guard.open()
    assert old.value.missing == 3
    for charge in (0, 1, 2):
        with pytest.raises(InvalidSetting, match="at least 3"):
            lb.Holdout.restore(known_guard.path, charge, key_file=known_guard.key_file)
    with pytest.raises(InvalidSetting, match="left: 8"):
        lb.Holdout.restore(known_guard.path, 9, key_file=known_guard.key_file)
    with pytest.raises(StaleCopy):
        known_guard.open()
    guard = lb.Holdout.restore(known_guard.path, 4, key_file=known_guard.key_file)
    assert guard.remaining == 10 - 2 - 4
    entries, questions = chain(guard)
    assert entries[-1]["kind"] == "restored"
    assert entries[-1]["charged"] == 4
    assert len(questions) == 2
    assert [reply.question for reply in ask(guard, 10, 11, 12, 13)] == [3, 4, 5, 6]
    with pytest.raises(BudgetSpent):
        ask(guard, 14)
    assert known_guard.open().check() == 6


def test_charged_questions_widen_the_certificate(rolled_back):
    known_guard = rolled_back(questions=10)
    restored = lb.Holdout.restore(known_guard.path, 3)
    original = known_guard.replies[-1].bound
    assert restored.certificate.high - restored.certificate.low > original.high - original.low


def test_after_a_restore_equal_questions_get_equal_answers_and_others_new_noise(
    make_guard, tmp_path
):
    """With Laplace noise and no grid, every release shows its noise."""
    known_guard = make_guard(n=N)
    path = tmp_path / "shaky.db"
    mechanism = lb.Noisy(sd=0.1)
    key = bytes(range(32))
    guard = lb.Holdout.create(
        path, labels=known_guard.labels, questions=99, mechanism=mechanism, key=key
    )
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
        reply.score - (model(seed) != known_guard.labels).mean()
        for seed, reply in ((1, first), (2, other))
    ]
    assert abs(noise[0] - noise[1]) > 1e-6


def test_a_missing_mark_is_refused(make_guard):
    known_guard = make_guard(n=N)
    guard = known_guard.open()
    ask(guard, 0)
    mark = known_guard.path.with_name(known_guard.path.name + ".mark")
    content = mark.read_bytes()
    mark.unlink()
    for refused in (known_guard.open, lambda: ask(guard, 1)):
        with pytest.raises(StaleCopy, match="There is no"):
            refused()
    with pytest.raises(StaleCopy):
        guard.close_for_good()
    assert not mark.exists()
    mark.write_bytes(content)
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
def test_a_damaged_mark_is_refused(make_guard, damage):
    known_guard = make_guard(n=N)
    guard = known_guard.open()
    ask(guard, 0)
    mark = known_guard.path.with_name(known_guard.path.name + ".mark")
    mark.write_bytes(damage(mark.read_bytes()))
    for refused in (known_guard.open, lambda: ask(guard, 1)):
        with pytest.raises(StaleCopy, match="damaged"):
            refused()
    assert lb.Holdout.restore(known_guard.path, 0).ask(model(1)).question == 2


def test_the_mark_of_another_file_is_refused(make_guard):
    known_guard, other = make_guard(n=N), make_guard(n=N)
    guard = known_guard.open()
    ask(guard, 0)
    mark, another = (
        guard_files.path.with_name(guard_files.path.name + ".mark")
        for guard_files in (known_guard, other)
    )
    shutil.copy(another, mark)
    for refused in (known_guard.open, lambda: ask(guard, 1)):
        with pytest.raises(StaleCopy, match="another file"):
            refused()


def test_file_and_mark_of_another_guard_are_refused(make_guard, looking):
    """A process with the old file open detects that another guard's file replaced it."""
    known_guard, other = make_guard(n=N), make_guard(n=N)
    guard = known_guard.open()
    ask(guard, 0)
    settled(other.path)
    put_back(other.path, known_guard.path)
    shutil.copy(f"{other.path}.mark", f"{known_guard.path}.mark")
    with pytest.raises(StorageFailed, match="replaced"):
        ask(guard, 1)
    assert known_guard.open().remaining == 400  # a valid file of another guard


def test_a_file_swapped_while_open_is_detected(make_guard, tmp_path, looking):
    """It refuses to answer, because the answer would go into an unlinked file."""
    known_guard = make_guard(n=N)
    guard = known_guard.open()
    ask(guard, 0)
    copy(known_guard.path, tmp_path / "kept.db")
    put_back(tmp_path / "kept.db", known_guard.path)
    for refused in (lambda: ask(guard, 1), guard.close_for_good):
        with pytest.raises(StorageFailed, match="replaced"):
            refused()
    new = known_guard.open()
    assert new.remaining == 399
    assert ask(new, 1)[0].question == 2
    assert new.check() == 2


def test_a_file_swapped_between_two_checks_is_detected(make_guard, tmp_path, monkeypatch):
    """An answer in an unlinked file is still recorded in the mark."""
    monkeypatch.setattr("ladderboard.ledger._storage._sqlite._REPLACED_CHECK_INTERVAL", math.inf)
    known_guard = make_guard(n=N)
    guard = known_guard.open()
    ask(guard, 0)
    copy(known_guard.path, tmp_path / "kept.db")
    put_back(tmp_path / "kept.db", known_guard.path)
    assert ask(guard, 1)[0].question == 2
    with pytest.raises(StaleCopy) as old:
        known_guard.open()
    assert old.value.missing == 1
    restored = lb.Holdout.restore(known_guard.path, 1)
    with pytest.raises(StaleCopy):
        ask(guard, 2)  # the unlinked file has other entries now
    assert ask(restored, 3)[0].question == 2


@pytest.mark.parametrize("settle", [True, False])
def test_a_file_overwritten_in_place_is_detected(make_guard, tmp_path, settle):
    """Overwritten like `cp`, while it is closed; its log may still hold newer entries."""
    known_guard = make_guard(n=N)
    guard = known_guard.open()
    ask(guard, 0)
    copy(known_guard.path, tmp_path / "kept.db")
    ask(guard, 1, 2)
    if settle:
        settled(known_guard.path)
    log = known_guard.path.with_name(known_guard.path.name + "-wal")
    content = log.read_bytes()
    del guard
    if not settle:  # as it is after a crash
        log.write_bytes(content)
    known_guard.path.write_bytes((tmp_path / "kept.db").read_bytes())
    if settle:
        with pytest.raises(StaleCopy):
            known_guard.open()
    else:
        assert known_guard.open().check() == 3  # nothing is missing


@pytest.mark.parametrize("elsewhere", [1, 3, 6])
def test_a_copy_used_elsewhere_is_detected(make_guard, tmp_path, elsewhere):
    """The copy returns with fewer, as many or more questions than were asked here."""
    known_guard = make_guard(n=N)
    guard = known_guard.open()
    ask(guard, 0)
    away = tmp_path / "away"
    away.mkdir()
    copy(known_guard.path, away / "guard.db")
    shutil.copy(f"{known_guard.path}.mark", away / "guard.db.mark")
    ask(guard, 1, 2, 3)
    del guard
    other = lb.Holdout.open(away / "guard.db")
    ask(other, *range(10, 10 + elsewhere))
    del other
    settled(away / "guard.db")
    put_back(away / "guard.db", known_guard.path)
    with pytest.raises(StaleCopy) as old:
        known_guard.open()
    assert old.value.missing >= 1  # three answers are not in the copy
    with pytest.raises(InvalidSetting):
        lb.Holdout.restore(known_guard.path, old.value.missing - 1)
    guard = lb.Holdout.restore(known_guard.path, 3)
    assert guard.remaining == 400 - 1 - elsewhere - 3
    assert guard.check() == 1 + elsewhere


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


def test_a_mark_is_read_completely_during_writes(tmp_path):
    """Without a lock, one read in some thousands mixed two marks, and the file was refused."""
    lb.ledger.HighWaterMark(tmp_path / "guard.db").replace(
        lb.ledger.Position("b" * 32, 1, 0, "0" * 64)
    )
    processes = [
        subprocess.Popen([sys.executable, "-c", WATER, str(tmp_path / "guard.db"), mode])
        for mode in ("read", "write")
    ]
    assert [process.wait() for process in processes] == [0, 0]


def test_a_reader_of_another_mark_waits_for_the_writer(tmp_path):
    water = lb.ledger.HighWaterMark(tmp_path / "guard.db")
    water.replace(lb.ledger.Position("b", 1, 0, "0"))
    read = []
    file = os.open(water.path, os.O_RDWR)  # as another process has it
    fcntl.flock(file, fcntl.LOCK_EX)
    assert water.read().entries == 1  # the mark is as it was
    other = lb.ledger.HighWaterMark(tmp_path / "guard.db")
    reader = Thread(target=lambda: read.append(other.read()))
    reader.start()
    reader.join(0.1)
    assert not read
    water._write(file, lb.ledger.Position("b", 2, 1, "1"))
    os.close(file)
    reader.join()
    assert read[0].entries == 2
