"""Processes that ask a guard's questions, to be killed: forked from one that is warm.

    python _asker.py

Reads commands as lines of JSON on standard input and answers each with one:

    {"do": "start", "path": ..., "writer": 0, "count": 50, "log": ..., ...} -> {"pid": ...}
    {"do": "end", "pid": ...} -> {"signal": ...}       waits for its end
    {"do": "stops", "pid": ..., "count": 17} -> {...}  lets it make so many system calls, kills it

An asker writes a line to its log for every answer it got, after it got it, straight to the file.
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

PTRACE_TRACEME, PTRACE_CONT, PTRACE_SYSCALL, PTRACE_SETOPTIONS = 0, 7, 24, 0x4200
SYSGOOD, EXITKILL = 1, 0x100000
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
libc.ptrace.restype = ctypes.c_long


def predictions(run, writer, at, n, *, shared=True):
    """Return a model's; every fourth is one that all writers ask about, unless none is shared."""
    who = 99 if shared and at % 4 == 3 else writer
    return np.random.default_rng([run, who, at]).integers(2, size=n)


def ask(job):
    guard = lb.Holdout.open(job["path"], key_file=job["key_file"])
    log = os.open(job["log"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(job["ready"], b"r")
    if job["traced"]:
        os.kill(os.getpid(), signal.SIGSTOP)
    for at in range(job["count"]):
        try:
            reply = guard.ask(
                predictions(job["run"], job["writer"], at, job["n"], shared=job["shared"])
            )
            told = [reply.released, reply.score, reply.improved, reply.question]
            said = {"at": at, "told": told, "again": reply.again, "left": reply.remaining}
        except lb.LadderboardError as error:
            said = {"at": at, "refused": type(error).__name__}
        os.write(log, json.dumps({"writer": job["writer"], **said}).encode() + b"\n")


def ptrace(request, pid, data=0):
    if libc.ptrace(request, pid, None, data) < 0:
        raise OSError(ctypes.get_errno(), "ptrace")


def start(job):
    """Return the process when it is about to ask; a traced one waits there."""
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


def stops(pid, count):
    """Let a traced process make so many steps into and out of system calls, and kill it there."""
    made, status = 0, 0
    while made < count:
        ptrace(PTRACE_SYSCALL, pid)
        _, status = os.waitpid(pid, 0)
        if not os.WIFSTOPPED(status):
            return {"made": made, "signal": 0}
        made += os.WSTOPSIG(status) == signal.SIGTRAP | 0x80
    os.kill(pid, signal.SIGKILL)
    return {"made": made, **end(pid)}


def end(pid):
    _, status = os.waitpid(pid, 0)
    if os.WIFSIGNALED(status):
        return {"signal": os.WTERMSIG(status)}
    return {"signal": 0, "code": os.WEXITSTATUS(status)}


def warm():
    """Load everything that a question needs, so that askers need not."""
    with tempfile.TemporaryDirectory() as folder:
        path, key_file = Path(folder) / "warm.db", Path(folder) / "warm.key"
        lb.Holdout.create(path, labels=[0, 1], questions=9, key_file=key_file).ask([1, 1])
        lb.Holdout.open(path, key_file=key_file).ask(predictions(0, 0, 0, 2))
    gc.collect()
    assert "polars" not in sys.modules  # its threads would not survive a fork


def main():
    warm()
    for line in sys.stdin:
        job = json.loads(line)
        do = job.pop("do")
        done = start(job) if do == "start" else {"end": end, "stops": stops}[do](**job)
        sys.stdout.write(json.dumps(done) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
