"""Threads that ask, one that closes, and children that are forked meanwhile and ask, too.

Run as a program with a folder and a number of seconds; prints what became of it, as JSON.
"""

import json
import os
import sys
import threading
import time
import warnings
from pathlib import Path

import numpy as np

import ladderboard as lb

N = 500
LABELS = np.arange(N) % 2


def main(folder, seconds):
    """Ask from everywhere at once, and count."""
    warnings.simplefilter("ignore", DeprecationWarning)  # of forks beside threads
    path = Path(folder) / "guard.db"
    guard = lb.Holdout.create(path, labels=LABELS, questions=100_000)
    end = time.monotonic() + seconds
    told, children = [], []
    reading, writing = os.pipe()

    def ask(seed):
        rng = np.random.default_rng(seed)
        while time.monotonic() < end:
            reply = guard.ask(np.where(rng.random(N) < 0.4, 1 - LABELS, LABELS))
            told.append((reply.question, reply.released))

    def let_go():
        while time.monotonic() < end:
            time.sleep(0.002)
            guard.close()

    threads = [threading.Thread(target=ask, args=(seed,)) for seed in (1, 2)]
    threads.append(threading.Thread(target=let_go))
    for each in threads:
        each.start()
    while time.monotonic() < end:
        time.sleep(0.05)
        child = os.fork()
        if child == 0:
            reply = guard.ask(np.random.default_rng(os.getpid() + 10).integers(2, size=N))
            os.write(writing, f"{reply.question} {reply.released}\n".encode())
            os._exit(0)
        children.append(child)
    for each in threads:
        each.join()
    failed = sum(os.waitpid(each, 0)[1] != 0 for each in children)
    os.close(writing)
    with os.fdopen(reading) as lines:
        told += [(int(number), float(value)) for number, value in map(str.split, lines)]
    kept = {each.question: each.value for each in guard.status().history}
    found = {
        "acknowledged": len(told),
        "kept": len(kept),
        "other": sum(kept.get(number) != value for number, value in told),
        "twice": len(told) - len({number for number, _ in told}),
        "children": len(children),
        "failed": failed,
        "checked": guard.check(),
    }
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
