"""Commands with a full or read-only disk or a missing database: one sentence, code 4."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

GONE = "postgresql+psycopg://me:hunter2@127.0.0.1:1/boards"


@pytest.mark.parametrize(
    "arguments", [("serve", "--port", "0"), ("board", "list"), ("team", "list", "first")]
)
def test_an_unreachable_database_is_one_sentence(run_cli, arguments):
    result = run_cli(*arguments, "--database", GONE)
    assert (result.code, result.out) == (4, "")
    (line,) = result.err.splitlines()
    assert line.startswith("ladderboard: Cannot connect to the PostgreSQL database 'boards' at")
    assert "hunter2" not in line
    as_json = run_cli(*arguments, "--database", GONE, "--json")
    assert (as_json.code, as_json.json["error"]["code"]) == (4, "storage_failed")


@pytest.fixture
def guard_path(guard_folder, run_guard, disk, tmp_path):
    """Put the guard, and nothing else, on the small disk."""
    for name in ("guard.db", "guard.db.mark"):
        shutil.move(tmp_path / name, disk.path / name)
    return disk.path / "guard.db"


def test_a_guard_on_a_full_disk(guard_path, run_guard, disk):
    disk.fill()
    for arguments in (("ask", guard_path, "half.csv"), ("status", guard_path)):
        result = run_guard(*arguments)
        assert (result.code, result.out) == (4, "")
        assert "guard.db cannot be used: the disk is full." in result.err
    assert run_guard("ask", guard_path, "half.csv", "--json").json["error"]["code"] == "disk_full"
    disk.free()
    assert "4 questions left" in run_guard("ask", guard_path, "half.csv").out


def test_a_read_only_guard(guard_path, run_guard, disk):
    assert run_guard("ask", guard_path, "half.csv").code == 0
    disk.read_only()
    assert "1 of 5 questions used, 4 left" in run_guard("status", guard_path).out
    result = run_guard("ask", guard_path, "good.csv")
    assert result.code == 4
    assert "Read-only file system. No question was used." in result.err
    assert run_guard("ask", guard_path, "good.csv", "--json").json["error"]["code"] == "read_only"
    created = run_guard(
        "create", disk.path / "new.db", "--labels", "labels.csv", "--questions", "5"
    )
    assert created.code == 4
    assert "Read-only file system" in created.err
    disk.writable()
    assert "3 questions left" in run_guard("ask", guard_path, "good.csv").out


def test_an_answer_survives_a_full_stdout(guard_folder, run_guard, tmp_path):
    command = [sys.executable, "-m", "ladderboard", "guard", "ask", "guard.db", "half.csv"]
    with Path("/dev/full").open("wb") as full:
        result = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, text=True, cwd=tmp_path, check=False
        )
    assert result.returncode == 4
    assert result.stderr == (
        "ladderboard: Standard output cannot be written: No space left on device. No data "
        "were lost. You can repeat the command; it is not counted twice.\n"
    )
    assert "Duplicate of question 1" in run_guard("ask", "guard.db", "half.csv").out
