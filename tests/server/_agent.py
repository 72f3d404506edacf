"""Somebody who may ask a guard and nothing else. Tries everything; prints what came of it."""

import json
import os
import sys

import numpy as np

import ladderboard as lb
from ladderboard.errors import BudgetSpent, LadderboardError


def attempt(path, flags=os.O_RDONLY):
    """Return what happens when a file is opened and read."""
    try:
        file = os.open(path, flags)
        try:
            if path.endswith("/mem"):  # where it is mapped, should it have been opened at all
                os.lseek(file, 0x10000, os.SEEK_SET)
            return f"read {len(os.read(file, 10))} bytes"
        finally:
            os.close(file)
    except OSError as error:
        return type(error).__name__


def run(url, seed):
    """Ask until the budget is spent; return the replies."""
    rng = np.random.default_rng(seed)
    replies = []
    with lb.Holdout.connect(url) as guard:
        told = guard.status().meter
        while True:
            try:
                reply = guard.ask(rng.integers(2, size=told.rules["rows"]))
            except BudgetSpent:
                return replies, guard.remaining
            replies.append([reply.released, reply.improved, reply.question, reply.remaining])


def main():
    """Do what standard input wants, and print what was found."""
    wanted = json.loads(sys.stdin.read())
    found = {"uid": os.getuid(), "groups": os.getgroups()}
    try:
        found["replies"], found["remaining"] = run(wanted["url"], wanted["seed"])
    except LadderboardError as error:
        found["refused"] = str(error)
    found["read"] = {path: attempt(path) for path in wanted["read"]}
    found["written"] = {path: attempt(path, os.O_RDWR) for path in wanted["read"]}
    print(json.dumps(found))  # noqa: T201


if __name__ == "__main__":
    main()
