"""Attack jobs (trials): attacks on a board's mechanism, run in one process of lowest priority.

A server runs one job at a time: all its processes share a folder. The job's process holds a lock
there from its start to its end, however it ends, so a free lock means that no job is running. The
job writes its output to a file in the folder.
"""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from ladderboard.errors import StorageFailed, WorkerError, storage_error
from ladderboard.server import _attack_worker as worker
from ladderboard.server._process import subprocess_command, subprocess_env

if TYPE_CHECKING:
    from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


_LOCK, _CURRENT = "lock", "now.json"
_POLL_SECONDS = 0.1  # between two checks of a process
_LOCK_SECONDS = 0.2  # for the lock, which another process may hold just to test it
_EXIT_SECONDS = 10.0  # for a process to exit after it finished or was stopped
_RETRY_SECONDS = 0.01  # between two attempts to lock
_REASONS = {
    "cancelled": "The simulation was cancelled.",
    "late": "The simulation exceeded its time limit.",
    "failed": "The simulation ended unexpectedly.",
}

State = Literal["none", "running", "done", "cancelled", "late", "failed"]


class AttackRunning(Exception):
    """Another trial is running: on this board, or on None if that is not recorded yet."""

    def __init__(self, board: str | None) -> None:
        super().__init__("A simulation is already running.")
        self.board = board


class JobStatus(NamedTuple):
    """The state of a board's last trial, and the result of its last complete one.

    ``reason`` says why there is no result; ``last_result`` holds the request, its time and the
    points; ``other_board`` is the board of a running trial, if it is another board's.
    """

    state: State = "none"
    done: int = 0
    total: int = worker.TOTAL
    reason: str = ""
    last_result: dict[str, Any] | None = None
    other_board: str | None = None

    def describe(self) -> dict[str, Any]:
        """Return the progress, JSON-able."""
        return {"state": self.state, "done": self.done, "total": self.total}


class AttackJobs:
    """The trials of one server.

    Parameters
    ----------
    folder
        Shared by the processes of this server and no others; created if missing.
    seconds
        The time limit of a trial.
    """

    def __init__(self, folder: Path, *, seconds: float) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._folder, self._seconds = folder, seconds
        self._closing = threading.Event()
        self._watch: threading.Thread | None = None

    def close(self) -> None:
        """Stop the trial that this process started."""
        self._closing.set()
        if self._watch is not None:
            self._watch.join()

    def start(self, board: str, target: dict[str, Any], when: str) -> None:
        """Start a trial of a board, with another seed than its last one.

        Raises
        ------
        AttackRunning
            A trial is running already.
        """
        lock = self._acquire_lock()
        try:
            self._archive_last()
            last_result = self._read_json(_archive_name(board))
            seed = 0 if last_result is None else last_result["seed"] + 1
            request, job_id = {"target": target, "seed": seed}, secrets.token_hex(8)
            self._write_json(_CURRENT, {"board": board, "id": job_id, "time": when, **request})
            process = self._spawn_worker(job_id, {**request, "parent": os.getpid()}, lock)
        except OSError as error:
            with suppress(OSError):
                self._remove(_CURRENT)
            failed = storage_error(error, "No trial could be started")
            if type(failed) is StorageFailed:  # not because of the disk
                raise WorkerError(str(failed)) from None
            raise failed from None
        finally:
            os.close(lock)  # the process has inherited it
        self._watch = threading.Thread(target=self._supervise, args=(process, job_id), name="trial")
        self._watch.start()

    def _spawn_worker(
        self, job_id: str, request: dict[str, Any], lock: int
    ) -> subprocess.Popen[bytes]:
        # Not in its own session: Linux would compare priorities within that session only.
        with (self._folder / f"{job_id}.jsonl").open("wb") as output:
            return subprocess.Popen(  # noqa: S603 - our own program
                subprocess_command(worker.__file__, json.dumps(request)),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env=subprocess_env(),
                pass_fds=(lock,),
                process_group=0,  # Ctrl-C is for the server, which stops this process
            )

    def _supervise(self, process: subprocess.Popen[bytes], job_id: str) -> None:
        """Wait for the process to exit; kill it when it is late, cancelled or the server closes."""
        deadline = time.monotonic() + self._seconds
        while True:
            with suppress(subprocess.TimeoutExpired):
                process.wait(_POLL_SECONDS)
                return
            timed_out = time.monotonic() > deadline
            if timed_out:
                with suppress(OSError):  # on a full disk the reason is lost, but the process ends
                    self._record_end(job_id, "late")
            if timed_out or self._closing.is_set() or self._end_reason(job_id):
                process.kill()

    def cancel(self, board: str) -> bool:
        """Stop the trial of a board, if one is running, and wait for it to exit."""
        job = self._read_json(_CURRENT)
        if job is None or job["board"] != board or not self._is_lock_held():
            return False
        self._record_end(job["id"], "cancelled")  # the process that started it watches for this
        deadline = time.monotonic() + _EXIT_SECONDS
        while self._is_lock_held() and time.monotonic() < deadline:
            time.sleep(_RETRY_SECONDS)
        return True

    def status(self, board: str) -> JobStatus:
        """Return the state of a board's trial."""
        running = self._is_lock_held()  # first: after the end the output is complete
        job, last_result = self._read_json(_CURRENT), self._read_json(_archive_name(board))
        if job is None:
            return _status_from_archive(last_result)
        if job["board"] != board:
            other_board = (
                job["board"] if running and "points" not in self._last_message(job["id"]) else None
            )
            return _status_from_archive(last_result, other_board)
        message = self._last_message(job["id"])
        if "points" in message:
            return _status_from_archive({**job, "points": message["points"]})
        if running:
            return JobStatus("running", message.get("done", 0), last_result=last_result)
        state: Any = self._end_reason(job["id"]) or "failed"
        return JobStatus(
            state, reason=message.get("failed", _REASONS[state]), last_result=last_result
        )

    def _archive_last(self) -> None:
        """Store the result of the last trial for its board; the caller holds the lock."""
        job = self._read_json(_CURRENT)
        if job is None:
            return
        message = self._last_message(job["id"])
        if "points" in message:
            self._write_json(_archive_name(job["board"]), {**job, "points": message["points"]})
        for name in (_CURRENT, f"{job['id']}.jsonl", f"{job['id']}.why"):
            self._remove(name)

    def _acquire_lock(self) -> int:
        """Lock the folder; return the descriptor that holds the lock."""
        if fcntl is None:
            raise WorkerError("Trials need a system that can lock files.")
        lock, deadline = self._open_lock_file(), time.monotonic() + _LOCK_SECONDS
        while True:
            with suppress(BlockingIOError):
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return lock
            job = self._read_json(_CURRENT)
            is_over = job is not None and self._is_over(job["id"])
            if time.monotonic() > deadline + _EXIT_SECONDS * is_over:
                os.close(lock)
                raise AttackRunning(None if job is None else job["board"])
            time.sleep(_RETRY_SECONDS)

    def _is_over(self, job_id: str) -> bool:
        """Tell whether a job has finished or was stopped, so that its process exits soon."""
        return (
            bool({"points", "failed"} & self._last_message(job_id).keys())
            or self._end_reason(job_id) is not None
        )

    def _is_lock_held(self) -> bool:
        if fcntl is None:
            return False
        lock = self._open_lock_file()
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(lock)
        return False

    def _open_lock_file(self) -> int:
        return os.open(self._folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)

    def _record_end(self, job_id: str, reason: State) -> None:
        if not self._end_reason(job_id):
            self._write_json(f"{job_id}.why", reason)

    def _end_reason(self, job_id: str) -> str | None:
        """Return why a job was stopped; None if it was not."""
        return self._read_json(f"{job_id}.why")

    def _last_message(self, job_id: str) -> dict[str, Any]:
        """Return the last complete line of a job's output."""
        with suppress(OSError):
            lines = (self._folder / f"{job_id}.jsonl").read_bytes().split(b"\n")[:-1]
            if lines:
                return dict(json.loads(lines[-1]))
        return {}

    def _read_json(self, name: str) -> Any:
        with suppress(FileNotFoundError):
            return json.loads((self._folder / name).read_bytes())
        return None

    def _write_json(self, name: str, content: Any) -> None:
        """Write a file atomically."""
        temporary = self._folder / f"{secrets.token_hex(8)}.part"
        temporary.write_text(json.dumps(content))
        temporary.replace(self._folder / name)

    def _remove(self, name: str) -> None:
        (self._folder / name).unlink(missing_ok=True)


def _archive_name(board: str) -> str:
    return f"board-{board}.json"


def _status_from_archive(
    last_result: dict[str, Any] | None, other_board: str | None = None
) -> JobStatus:
    """Return the status of a board without a running trial."""
    if last_result is None:
        return JobStatus(other_board=other_board)
    return JobStatus("done", worker.TOTAL, last_result=last_result, other_board=other_board)
