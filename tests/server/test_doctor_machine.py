"""The doctor's checks of disks and port, and that it changes no file of a server."""

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from contextlib import contextmanager

import pytest

from ladderboard.server import check_installation
from ladderboard.server._doctor import check_disk, check_port
from support.credentials import ALL_INTERFACES
from support.server import SERVE_FIRST_BOARD

PROGRAM = [sys.executable, "-m", "ladderboard"]


@contextmanager
def mount_tmpfs(folder, *options):
    """Mount a small tmpfs; skip the test if that is not permitted."""
    command = ["mount", "-t", "tmpfs", "-o", ",".join(options), "tmpfs", str(folder)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode:
        pytest.skip(f"nothing can be mounted here: {result.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def test_small_full_and_read_only_disks(tmp_path, monkeypatch):
    with mount_tmpfs(tmp_path, "size=600m", "mode=700"):
        assert check_disk("disk", tmp_path).state == "note"
        # A folder that does not exist yet is on the disk of its parent.
        assert check_disk("disk", tmp_path / "not" / "yet").state == "note"
    with mount_tmpfs(tmp_path, "size=1m", "mode=700"):
        database = tmp_path / "boards.db"
        result = subprocess.run(
            [*PROGRAM, "board", "list", "--database", str(database)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert "There is no database" in result.stderr
        with (tmp_path / "filler").open("wb") as filler, pytest.raises(OSError, match="No space"):
            filler.write(b"0" * (2 << 20))
        check = check_disk("disk", tmp_path)
        assert (check.state, "0 bytes are free" in check.message) == ("problem", True)
    with mount_tmpfs(tmp_path, "size=9m", "mode=700"):
        subprocess.run(["mount", "-o", "remount,ro", str(tmp_path)], check=True)
        monkeypatch.setenv("LADDERBOARD_SERVE_PORT", "0")
        checks = {check.subject: check for check in check_installation(database=str(database))}
        assert checks["writing"].state == "problem"
        assert "read-only" in checks["writing"].message


def test_free_taken_and_invalid_ports():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
        listener.listen()
        (check,) = check_port("127.0.0.1", port)
        assert check.state == "problem"
        assert f"sport = {port}" in check.remedy
        (check,) = check_port(ALL_INTERFACES, port)
        assert check.state == "problem"
    (check,) = check_port("127.0.0.1", port)
    assert (check.state, check.message) == ("ok", f"127.0.0.1 port {port} is free.")
    assert check_port("127.0.0.1", 0)[0].state == "ok"
    assert check_port("203.0.113.1", port)[0].state == "problem"  # not an address of this machine
    assert check_port("boards.example.org", port)[0].state == "problem"


def checks_by_subject(database):
    checks = {}
    for check in check_installation(database=str(database)):
        checks.setdefault(check.subject, []).append(check)
    return checks


def modification_times(folder):
    return {path: path.stat().st_mtime_ns for path in sorted(folder.rglob("*"))}


@pytest.mark.slow
def test_the_doctor_changes_no_file_of_a_running_or_killed_server(tmp_path, monkeypatch):
    monkeypatch.setenv("LADDERBOARD_SERVE_PORT", "0")
    database = tmp_path / "boards.db"
    serve = [sys.executable, str(SERVE_FIRST_BOARD), str(database), "1"]
    with subprocess.Popen(serve, stdout=subprocess.PIPE, text=True) as server:
        try:
            url = server.stdout.readline().split()[0]
            port = url.rpartition(":")[2]
            doctor = [*PROGRAM, "doctor", "--json", "--database", str(database)]
            environment = {**os.environ, "LADDERBOARD_SERVE_PORT": port}
            options = {"capture_output": True, "text": True, "env": environment, "cwd": "/"}
            with urllib.request.urlopen(f"{url}/healthz", timeout=60) as response:  # noqa: S310 - ours
                assert response.status == 200
            files = modification_times(tmp_path)
            assert database.with_name("boards.db-wal").stat().st_size > 0
            result = subprocess.run(doctor, check=False, **options)
            assert modification_times(tmp_path) == files
            assert result.returncode == 0, result.stdout
            checks = {check["about"]: check for check in json.loads(result.stdout)["checks"]}
            assert checks["port"]["said"] == f"A Ladderboard answers on port {port}."
            assert checks["database"]["said"].endswith("has 1 board, in format 2.")
        finally:
            server.send_signal(signal.SIGKILL)
            server.wait()
    assert database.with_name("boards.db-wal").stat().st_size > 0
    files = modification_times(tmp_path)
    checks = checks_by_subject(database)
    assert checks["database"][0].message.endswith("has 1 board, in format 2.")
    assert modification_times(tmp_path) == files
    database.with_name("boards.db-shm").unlink()  # a crash of the machine leaves no shared memory
    files = modification_times(tmp_path)
    checks = checks_by_subject(database)
    assert "was not closed" in checks["database"][-1].message
    assert {check.state for group in checks.values() for check in group} <= {"ok", "note"}
    assert modification_times(tmp_path) == files
