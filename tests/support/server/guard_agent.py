"""A process that may only ask a guard: it asks, tries to read secret files, prints the results."""

import json
import os
import sys

import numpy as np

import ladderboard as lb
from ladderboard.errors import BudgetSpent, LadderboardError


def try_to_read(path, flags=os.O_RDONLY):
    """Return what happens when a file is opened and read."""
    try:
        file = os.open(path, flags)
        try:
            if path.endswith("/mem"):  # an address that is mapped
                os.lseek(file, 0x10000, os.SEEK_SET)
            return f"read {len(os.read(file, 10))} bytes"
        finally:
            os.close(file)
    except OSError as error:
        return type(error).__name__


def ask_until_spent(url, seed):
    """Ask until the budget is spent; return the replies and the remaining budget."""
    rng = np.random.default_rng(seed)
    replies = []
    with lb.Holdout.connect(url) as guard:
        rows = guard.status().meter.rules["rows"]
        while True:
            try:
                reply = guard.ask(rng.integers(2, size=rows))
            except BudgetSpent:
                return replies, guard.remaining
            replies.append([reply.released, reply.improved, reply.question, reply.remaining])


def main():
    """Read the task from standard input; print the results."""
    task = json.loads(sys.stdin.read())
    results = {"uid": os.getuid(), "groups": os.getgroups()}
    try:
        results["replies"], results["remaining"] = ask_until_spent(task["url"], task["seed"])
    except LadderboardError as error:
        results["refused"] = str(error)
    results["read"] = {path: try_to_read(path) for path in task["read"]}
    results["written"] = {path: try_to_read(path, os.O_RDWR) for path in task["read"]}
    json.dump(results, sys.stdout)


if __name__ == "__main__":
    main()
