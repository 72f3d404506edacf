"""Trials: attacks on a board's mechanism, played in one process of lowest priority.

There is one at a time on a server, however many processes serve: they share a folder. The process
that plays holds a lock in it from before its first breath to its last, whatever ends it; so who
finds the lock free knows that nothing is under way. What it says goes to a file there.
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


_LOCK, _NOW = "lock", "now.json"
_LOOK = 0.1  # seconds between two looks at a process
_WAIT = 0.2  # seconds for the lock, which somebody may hold only to look whether it is free
_ENDING = 10.0  # seconds until a process is gone that has no more to do
_PAUSE = 0.01  # seconds between two tries
_SENTENCES = {
    "cancelled": "The games were cancelled.",
    "late": "The games took too long, and were ended.",
    "failed": "The games broke off before their end.",
}

State = Literal["none", "running", "done", "cancelled", "late", "failed"]


class AttackRunning(Exception):
    """Another trial is under way: on this board, or on None where nobody knows yet."""

    def __init__(self, board: str | None) -> None:
        super().__init__("A trial is under way.")
        self.board = board


class JobStatus(NamedTuple):
    """How the last trial of a board stands, and what the last whole one found.

    ``why`` says in words why there is no result; ``kept`` is what was asked, when, and the points;
    ``other`` is the board on which one is under way, if it is another.
    """

    state: State = "none"
    done: int = 0
    total: int = worker.TOTAL
    reason: str = ""
    last_result: dict[str, Any] | None = None
    other_board: str | None = None

    def describe(self) -> dict[str, Any]:
        """Return how far it is, JSON-able."""
        return {"state": self.state, "done": self.done, "total": self.total}


class AttackJobs:
    """The trials of one server.

    Parameters
    ----------
    folder
        Where all processes of this server, and nobody else, look; it is made if it is not there.
    seconds
        How long one may take.
    """

    def __init__(self, folder: Path, *, seconds: float) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._folder, self._seconds = folder, seconds
        self._closing = threading.Event()
        self._watch: threading.Thread | None = None

    def close(self) -> None:
        """End what was started from here."""
        self._closing.set()
        if self._watch is not None:
            self._watch.join()

    def start(self, board: str, target: dict[str, Any], when: str) -> None:
        """Begin to play against a board; the next time with other luck.

        Raises
        ------
        Busy
            One is under way.
        """
        lock = self._acquire_lock()
        try:
            self._archive_last()
            before = self._read_json(_archive_name(board))
            seed = 0 if before is None else before["seed"] + 1
            request, job_id = {"target": target, "seed": seed}, secrets.token_hex(8)
            self._write_json(_NOW, {"board": board, "id": job_id, "time": when, **request})
            process = self._spawn_worker(job_id, {**request, "parent": os.getpid()}, lock)
        except OSError as error:
            with suppress(OSError):
                self._remove(_NOW)
            failed = storage_error(error, "No trial could be started")
            if type(failed) is StorageFailed:  # no disk is to blame
                raise WorkerError(str(failed)) from None
            raise failed from None
        finally:
            os.close(lock)  # which the process holds now
        self._watch = threading.Thread(target=self._supervise, args=(process, job_id), name="trial")
        self._watch.start()

    def _spawn_worker(
        self, job_id: str, request: dict[str, Any], lock: int
    ) -> subprocess.Popen[bytes]:
        # Not in a session of its own: Linux would weigh priorities among its processes only.
        with (self._folder / f"{job_id}.jsonl").open("wb") as output:
            return subprocess.Popen(  # noqa: S603 - our own program
                subprocess_command(worker.__file__, json.dumps(request)),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env=subprocess_env(),
                pass_fds=(lock,),
                process_group=0,  # Ctrl-C is for the server, which ends this
            )

    def _supervise(self, process: subprocess.Popen[bytes], job_id: str) -> None:
        """Wait for the end, and bring it about if it must be."""
        deadline = time.monotonic() + self._seconds
        while True:
            with suppress(subprocess.TimeoutExpired):
                process.wait(_LOOK)
                return
            timed_out = time.monotonic() > deadline
            if timed_out:
                with suppress(OSError):  # on a full disk nobody can say why, but it ends
                    self._record_end(job_id, "late")
            if timed_out or self._closing.is_set() or self._end_reason(job_id):
                process.kill()

    def cancel(self, board: str) -> bool:
        """End the trial of a board, if there is one, and wait until it is gone."""
        job = self._read_json(_NOW)
        if job is None or job["board"] != board or not self._is_lock_held():
            return False
        self._record_end(job["id"], "cancelled")  # who started it sees that
        deadline = time.monotonic() + _ENDING
        while self._is_lock_held() and time.monotonic() < deadline:
            time.sleep(_PAUSE)
        return True

    def status(self, board: str) -> JobStatus:
        """Return how the trial of a board stands."""
        running = self._is_lock_held()  # first: what has ended has said everything
        job, last_result = self._read_json(_NOW), self._read_json(_archive_name(board))
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
            state, reason=message.get("failed", _SENTENCES[state]), last_result=last_result
        )

    def _archive_last(self) -> None:
        """Keep what the last trial found for its board; whoever does holds the lock."""
        job = self._read_json(_NOW)
        if job is None:
            return
        message = self._last_message(job["id"])
        if "points" in message:
            self._write_json(_archive_name(job["board"]), {**job, "points": message["points"]})
        for name in (_NOW, f"{job['id']}.jsonl", f"{job['id']}.why"):
            self._remove(name)

    def _acquire_lock(self) -> int:
        """Return the lock, which is ours now."""
        if fcntl is None:
            raise WorkerError("Trials need a system that can lock files.")
        lock, deadline = self._open_lock_file(), time.monotonic() + _WAIT
        while True:
            with suppress(BlockingIOError):
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return lock
            job = self._read_json(_NOW)
            is_over = job is not None and self._is_over(job["id"])
            if time.monotonic() > deadline + _ENDING * is_over:
                os.close(lock)
                raise AttackRunning(None if job is None else job["board"])
            time.sleep(_PAUSE)

    def _is_over(self, job_id: str) -> bool:
        """Tell whether a process has no more to do than to end."""
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
        """Return why a process was ended; None if nobody did."""
        return self._read_json(f"{job_id}.why")

    def _last_message(self, job_id: str) -> dict[str, Any]:
        """Return the last line that was said as a whole."""
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
        """Write a file that others see as a whole or not at all."""
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
    """Return how it stands where nothing is under way but what was kept."""
    if last_result is None:
        return JobStatus(other_board=other_board)
    return JobStatus("done", worker.TOTAL, last_result=last_result, other_board=other_board)
