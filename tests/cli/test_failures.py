"""Verbs where a disk is full, may only be read, or the database is gone: one sentence, code 4."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

GONE = "postgresql+psycopg://me:hunter2@127.0.0.1:1/boards"


@pytest.mark.parametrize(
    "words", [("serve", "--port", "0"), ("board", "list"), ("team", "list", "first")]
)
def test_a_database_that_is_not_there_is_one_sentence(program, words):
    done = program(*words, "--database", GONE)
    assert (done.code, done.out) == (4, "")
    (line,) = done.err.splitlines()
    assert line.startswith("ladderboard: There is no way to the PostgreSQL database 'boards' at")
    assert "hunter2" not in line
    told = program(*words, "--database", GONE, "--json")
    assert (told.code, told.json["error"]["code"]) == (4, "storage_failed")


@pytest.fixture
def guard_path(made, run, disk, tmp_path):
    """Put the guard, and nothing else, on the small disk."""
    for name in ("guard.db", "guard.db.mark"):
        shutil.move(tmp_path / name, disk.path / name)
    return disk.path / "guard.db"


def test_a_guard_on_a_full_disk(guard_path, run, disk):
    disk.fill()
    for words in (("ask", guard_path, "half.csv"), ("status", guard_path)):
        done = run(*words)
        assert (done.code, done.out) == (4, "")
        assert "guard.db cannot be used: the disk is full." in done.err
    assert run("ask", guard_path, "half.csv", "--json").json["error"]["code"] == "disk_full"
    disk.free()
    assert "4 questions left" in run("ask", guard_path, "half.csv").out


def test_a_guard_that_may_only_be_read(guard_path, run, disk):
    assert run("ask", guard_path, "half.csv").code == 0
    disk.read_only()
    assert "1 of 5 questions used, 4 left" in run("status", guard_path).out
    done = run("ask", guard_path, "good.csv")
    assert done.code == 4
    assert "Read-only file system. No question was used." in done.err
    assert run("ask", guard_path, "good.csv", "--json").json["error"]["code"] == "read_only"
    made = run("create", disk.path / "new.db", "--labels", "labels.csv", "--questions", "5")
    assert made.code == 4
    assert "Read-only file system" in made.err
    disk.writable()
    assert "3 questions left" in run("ask", guard_path, "good.csv").out


def test_an_answer_that_has_nowhere_to_go_is_not_lost(made, run, tmp_path):
    command = [sys.executable, "-m", "ladderboard", "guard", "ask", "guard.db", "half.csv"]
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, text=True, cwd=tmp_path, check=False
        )
    assert done.returncode == 4
    assert done.stderr == (
        "ladderboard: Standard output cannot be written: No space left on device. Nothing is "
        "lost; repeating the command costs no question.\n"
    )
    assert "asked before, as question 1" in run("ask", "guard.db", "half.csv").out
