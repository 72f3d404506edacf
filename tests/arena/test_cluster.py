"""The same tasks on a real Dask cluster on loopback, one worker of which is killed."""

import dataclasses
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, contextmanager

import pytest

import ladderboard as lb
from ladderboard.errors import WorkerError
from support.processes import free_port

OWN = """
import time
from dataclasses import dataclass
import ladderboard as lb

STEP = 0.001

@dataclass(frozen=True)
class ClusterLadder(lb.Ladder):
    step: float = STEP
    name = "own"

def slow(game):
    for _ in range(game.questions):
        game.ask(game.rng.integers(0, 2, game.n))
        time.sleep(0.002)
"""


@contextmanager
def run_dask(*arguments, cwd):
    command = [sys.executable, "-m", "dask", *arguments, "--no-dashboard"]
    log = subprocess.DEVNULL
    with subprocess.Popen(command, cwd=cwd, stdout=log, stderr=log) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.fixture
def cluster(tmp_path):
    """A scheduler and two workers of one thread, none of which knows the user's module."""
    address = f"tcp://127.0.0.1:{free_port()}"
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    with ExitStack() as stack:
        address_options = ["--host", "127.0.0.1", "--port", address.rpartition(":")[2]]
        scheduler = stack.enter_context(run_dask("scheduler", *address_options, cwd=elsewhere))
        worker = ["worker", address, "--host", "127.0.0.1", "--no-nanny", "--nthreads", "1"]
        workers = [stack.enter_context(run_dask(*worker, cwd=elsewhere)) for _ in range(2)]
        yield address, scheduler, workers


def without_seconds(rows):
    return [dataclasses.replace(row, seconds=0) for row in rows]


@pytest.mark.slow
def test_a_cluster_that_loses_a_worker_gives_the_same_rows(cluster, tmp_path, monkeypatch):
    address, _, workers = cluster
    (tmp_path / "own_code.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)

    def play(**options):
        return lb.arena.run(
            ["own_code:ClusterLadder", "exact"],
            ["majority", "own_code:slow"],
            n=[500, 1000],
            k=60,
            repetitions=10,
            **options,
        )

    def kill_half_way():
        _wait_until_busy(address)
        os.kill(workers[0].pid, signal.SIGKILL)

    killer = threading.Thread(target=kill_half_way)
    killer.start()
    rows = play(cluster=address)
    killer.join()
    assert workers[0].poll() == -signal.SIGKILL
    assert workers[1].poll() is None
    assert without_seconds(rows) == without_seconds(play())


def test_a_scheduler_that_dies_is_one_sentence(cluster):
    address, scheduler, _ = cluster

    def slow(game):
        time.sleep(0.5)
        game.ask([0] * game.n)

    def kill_half_way():
        _wait_until_busy(address)
        scheduler.kill()

    killer = threading.Thread(target=kill_half_way)
    killer.start()
    with pytest.raises(WorkerError, match=f"The Dask scheduler at {address} is gone"):
        lb.arena.run("exact", slow, n=100, k=1, repetitions=200, cluster=address)
    killer.join()


def _wait_until_busy(address):
    """Wait until both workers are there and have results."""
    from distributed import Client

    with Client(address, timeout=20, set_as_default=False) as client:
        client.wait_for_workers(2, timeout=20)
        for _ in range(1000):
            if len([keys for keys in client.has_what().values() if keys]) == 2:
                return
            time.sleep(0.01)


def test_an_unreachable_scheduler_is_one_sentence(monkeypatch):
    monkeypatch.setattr("ladderboard.arena._runner._executors._CONNECT_SECONDS", 2)
    begun = time.monotonic()
    address = f"tcp://127.0.0.1:{free_port()}"
    with pytest.raises(WorkerError, match=f"No Dask scheduler answers at {address}"):
        lb.arena.run("exact", "majority", n=100, k=10, cluster=address)
    assert time.monotonic() - begun < 20


def test_an_invalid_scheduler_address_is_refused():
    with pytest.raises(lb.errors.InvalidSetting, match="address of a Dask scheduler"):
        lb.arena.run("exact", "majority", n=100, k=10, cluster="here")
