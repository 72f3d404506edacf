"""Forks processes that ask a guard and may be killed; see ``AskerPool``.

    python asker_main.py

Reads commands as lines of JSON from standard input and replies to each with one:

    {"command": "start", "path": ..., "writer": 0, "count": 50, ...} -> {"pid": ...}
    {"command": "wait", "pid": ...} -> {"signal": ...}
    {"command": "kill_after", "pid": ..., "count": 17} -> {...}  kills it after this many stops

An asker appends a line to its log after each answer it got.
"""

import ctypes
import gc
import json
import os
import signal
import sys
import tempfile
from pathlib import Path

import numpy as np

import ladderboard as lb
from ladderboard.holdout import open_file

PTRACE_TRACEME, PTRACE_CONT, PTRACE_SYSCALL, PTRACE_SETOPTIONS = 0, 7, 24, 0x4200
SYSGOOD, EXITKILL = 1, 0x100000
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
libc.ptrace.restype = ctypes.c_long


def predictions(run, writer, number, n, *, shared=True):
    """Return a model's predictions; with ``shared``, all writers have every fourth in common."""
    seed = 99 if shared and number % 4 == 3 else writer
    return np.random.default_rng([run, seed, number]).integers(2, size=n)


def ask_once(guard, model):
    """Ask a guard or a gate; return what it released, its number last, and the whole answer."""
    if isinstance(guard, lb.Gate):
        reply = guard.check(model)
        return [reply.outcome, reply.differing, reply.needed, reply.look], reply
    reply = guard.ask(model)
    return [reply.released, reply.score, reply.improved, reply.question], reply


def ask(job):
    """Ask all questions of a job; log each answer or refusal."""
    guard = open_file(job["path"], key_file=job["key_file"])
    log = os.open(job["log"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(job["ready"], b"r")
    if job["traced"]:
        os.kill(os.getpid(), signal.SIGSTOP)
    for number in range(job["count"]):
        line = {"writer": job["writer"], "number": number}
        try:
            model = predictions(job["run"], job["writer"], number, job["n"], shared=job["shared"])
            line["release"], reply = ask_once(guard, model)
            line |= {"again": reply.again, "remaining": reply.remaining}
        except lb.LadderboardError as error:
            line["refused"] = type(error).__name__
        os.write(log, json.dumps(line).encode() + b"\n")


def ptrace(request, pid, data=0):
    if libc.ptrace(request, pid, None, data) < 0:
        raise OSError(ctypes.get_errno(), "ptrace")


def start(job):
    """Fork an asker; return when it is about to ask, where a traced one stops."""
    readable, job["ready"] = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.close(readable)
            if job["traced"]:
                ptrace(PTRACE_TRACEME, 0)
            ask(job)
            code = 0
        finally:
            os._exit(code)
    os.close(job["ready"])
    if job["traced"]:
        os.waitpid(pid, 0)
        ptrace(PTRACE_SETOPTIONS, pid, SYSGOOD | EXITKILL)
    os.read(readable, 1)
    os.close(readable)
    return {"pid": pid}


def kill_after(pid, count):
    """Kill a traced process after this many stops at the start or end of system calls."""
    stops, status = 0, 0
    while stops < count:
        ptrace(PTRACE_SYSCALL, pid)
        _, status = os.waitpid(pid, 0)
        if not os.WIFSTOPPED(status):
            return {"stops": stops, "signal": 0}
        stops += os.WSTOPSIG(status) == signal.SIGTRAP | 0x80
    os.kill(pid, signal.SIGKILL)
    return {"stops": stops, **wait(pid)}


def wait(pid):
    """Wait for a process; return its signal or exit code."""
    _, status = os.waitpid(pid, 0)
    if os.WIFSIGNALED(status):
        return {"signal": os.WTERMSIG(status)}
    return {"signal": 0, "code": os.WEXITSTATUS(status)}


def load_everything():
    """Import everything that a question needs, before askers are forked."""
    with tempfile.TemporaryDirectory() as folder:
        path, key_file = Path(folder) / "warm.db", Path(folder) / "warm.key"
        lb.Holdout.create(path, labels=[0, 1], questions=9, key_file=key_file).ask([1, 1])
        lb.Holdout.open(path, key_file=key_file).ask(predictions(0, 0, 0, 2))
        gate = lb.Gate.create(Path(folder) / "gate.db", [0, 1], looks=9, classes=[0, 1])
        gate.promote([0, 0])
        ask_once(open_file(Path(folder) / "gate.db"), [1, 1])
    gc.collect()
    assert "polars" not in sys.modules  # its threads would not survive a fork


def main():
    load_everything()
    for line in sys.stdin:
        job = json.loads(line)
        command = job.pop("command")
        if command == "start":
            reply = start(job)
        else:
            reply = {"wait": wait, "kill_after": kill_after}[command](**job)
        sys.stdout.write(json.dumps(reply) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
