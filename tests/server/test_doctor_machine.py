"""What a doctor says of the machine: disks, clock, port, limits; and beside a server that runs."""

import json
import os
import resource
import signal
import socket
import subprocess
import sys
import time
import tomllib
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import pytest

from ladderboard.server import check_installation
from ladderboard.server._doctor import EXTRAS
from ladderboard.server._doctor import _machine as machine
from ladderboard.server._doctor._machine import (
    check_clock,
    check_descriptors,
    check_disk,
    check_port,
    database_size,
)
from support.credentials import ALL_INTERFACES
from support.server import SERVE_FIRST_BOARD

ROOT = Path(__file__).parents[2]
PROGRAM = [sys.executable, "-m", "ladderboard"]


def test_the_extras_are_those_of_the_package():
    names = {"pyyaml": "yaml", "scikit-learn": "sklearn", "markdown-it-py": "markdown_it"}
    names |= {"python-multipart": "python_multipart", "inspect-ai": "inspect_ai"}
    given = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    del given["all"]

    def modules(extra):
        found = []
        for each in given[extra]:
            name = each.partition(";")[0].partition(">")[0]
            if name.startswith("ladderboard["):
                found += modules(name.removeprefix("ladderboard[").removesuffix("]"))
            else:
                plain = name.partition("[")[0]
                found.append(names.get(plain, plain))
        return found

    assert set(EXTRAS) == set(given)
    for name, extra in EXTRAS.items():
        assert set(extra.modules) == set(modules(name)), name
        assert len(set(extra.modules)) == len(extra.modules)
        assert extra.adds[0].islower()
        assert not extra.adds.endswith(".")


@contextmanager
def mounted(folder, *options):
    """Mount a small disk of memory; whoever may not do so cannot run the test."""
    command = ["mount", "-t", "tmpfs", "-o", ",".join(options), "tmpfs", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"nothing can be mounted here: {done.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_small_disk_a_full_one_and_one_that_may_only_be_read(tmp_path, monkeypatch):
    with mounted(tmp_path, "size=600m", "mode=700"):
        assert check_disk("disk", tmp_path).state == "note"
        # Folders that are made later are on the disk that is there.
        assert check_disk("disk", tmp_path / "not" / "yet").state == "note"
        found = check_disk("disk", tmp_path, 1 << 40)
        assert (found.state, "a copy has no room" in found.message) == ("note", True)
    with mounted(tmp_path, "size=1m", "mode=700"):
        database = tmp_path / "boards.db"
        done = subprocess.run(
            [*PROGRAM, "board", "list", "--database", str(database)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert "There is no database" in done.stderr
        with (tmp_path / "filler").open("wb") as filler, pytest.raises(OSError, match="No space"):
            filler.write(b"0" * (2 << 20))
        found = check_disk("disk", tmp_path)
        assert (found.state, "0 bytes are free" in found.message) == ("problem", True)
    with mounted(tmp_path, "size=1m", "nr_inodes=2"):
        (tmp_path / "one").write_text("")
        found = check_disk("disk", tmp_path)
        assert (found.state, "No more files" in found.message) == ("problem", True)
    with mounted(tmp_path, "size=9m", "mode=700"):
        subprocess.run(["mount", "-o", "remount,ro", str(tmp_path)], check=True)
        monkeypatch.setenv("LADDERBOARD_SERVE_PORT", "0")
        found = {each.subject: each for each in check_installation(database=str(database))}
        assert found["writing"].state == "problem"
        assert "read-only" in found["writing"].message


def test_the_size_counts_what_lies_beside(tmp_path):
    (tmp_path / "boards.db").write_bytes(b"1" * 10)
    (tmp_path / "boards.db.submissions" / "ab").mkdir(parents=True)
    (tmp_path / "boards.db.submissions" / "ab" / "cd").write_bytes(b"1" * 5)
    assert database_size(tmp_path / "boards.db") == 15
    assert database_size(tmp_path / "none.db") == 0


def test_clocks(monkeypatch):
    now = int(time.time())
    monkeypatch.setattr(machine, "_is_synchronised", lambda: None)
    assert check_clock(now - 5, None)[0].state == "ok"
    assert check_clock(now + 30, None)[0].state == "ok"  # two machines differ by that
    assert check_clock(now + 3600, None)[0].state == "problem"
    # What the database's own clock says counts for its entries.
    assert check_clock(now + 3600, 3600.0)[0].state == "note"
    found = check_clock(now, -3600.0)
    assert [each.state for each in found] == ["problem"]
    assert "behind" in check_clock(now - 9000, -3600.0)[0].message
    monkeypatch.setattr(machine, "_is_synchronised", lambda: False)
    assert check_clock(now, None)[0].state == "note"
    monkeypatch.setattr(machine.time, "time", lambda: 1000.0)
    assert "1970" in check_clock(None, None)[0].message
    assert check_clock(None, None)[0].state == "problem"


def test_ports_that_are_free_taken_or_nobody_s():
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        port = other.getsockname()[1]
        other.listen()
        (found,) = check_port("127.0.0.1", port)
        assert found.state == "problem"
        assert f"(process {os.getpid()})" in found.message
        (found,) = check_port(ALL_INTERFACES, port)
        assert found.state == "problem"
    (found,) = check_port("127.0.0.1", port)
    assert (found.state, found.message) == ("ok", f"127.0.0.1 port {port} is free.")
    assert check_port("127.0.0.1", 0)[0].state == "ok"
    assert check_port("203.0.113.1", port)[0].state == "problem"  # of no machine at all
    assert check_port("boards.example.org", port)[0].state == "problem"


def test_few_descriptors_are_noted():
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, before[1]))
    try:
        (found,) = check_descriptors()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert (found.state, "1,024" in found.message) == ("note", True)
    assert "LimitNOFILE" in found.remedy


def seen(database):
    found = {}
    for each in check_installation(database=str(database)):
        found.setdefault(each.subject, []).append(each)
    return found


def listing(folder):
    return {path: path.stat().st_mtime_ns for path in sorted(folder.rglob("*"))}


@pytest.mark.slow
def test_beside_a_server_and_after_it_was_killed(tmp_path, monkeypatch):
    monkeypatch.setenv("LADDERBOARD_SERVE_PORT", "0")
    database = tmp_path / "boards.db"
    serve = [sys.executable, str(SERVE_FIRST_BOARD), str(database), "1"]
    with subprocess.Popen(serve, stdout=subprocess.PIPE, text=True) as server:
        try:
            url = server.stdout.readline().split()[0]
            port = url.rpartition(":")[2]
            doctor = [*PROGRAM, "doctor", "--json", "--database", str(database)]
            environment = {**os.environ, "LADDERBOARD_SERVE_PORT": port}
            how = {"capture_output": True, "text": True, "env": environment, "cwd": "/"}
            with urllib.request.urlopen(f"{url}/healthz", timeout=60) as said:  # noqa: S310 - ours
                assert said.status == 200
            before = listing(tmp_path)
            assert database.with_name("boards.db-wal").stat().st_size > 0
            done = subprocess.run(doctor, check=False, **how)
            assert listing(tmp_path) == before
            assert done.returncode == 0, done.stdout
            found = {each["about"]: each for each in json.loads(done.stdout)["checks"]}
            assert found["port"]["said"] == f"A Ladderboard answers on port {port}."
            assert found["database"]["said"].endswith("has 1 board, in format 1.")
        finally:
            server.send_signal(signal.SIGKILL)
            server.wait()
    assert database.with_name("boards.db-wal").stat().st_size > 0
    before = listing(tmp_path)
    found = seen(database)
    assert found["database"][0].message.endswith("has 1 board, in format 1.")
    assert listing(tmp_path) == before
    database.with_name("boards.db-shm").unlink()  # a crash of the machine leaves no shared memory
    before = listing(tmp_path)
    found = seen(database)
    assert "was not closed" in found["database"][-1].message
    assert {each.state for all_ in found.values() for each in all_} <= {"ok", "note"}
    assert listing(tmp_path) == before
