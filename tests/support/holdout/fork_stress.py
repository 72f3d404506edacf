"""Asks from threads and forked children while another thread closes the guard:

python -m support.holdout.fork_stress FOLDER SECONDS

Prints counts as JSON.
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
    """Ask from all threads and children, and count the answers."""
    warnings.simplefilter("ignore", DeprecationWarning)  # about forking with threads
    path = Path(folder) / "guard.db"
    guard = lb.Holdout.create(path, labels=LABELS, questions=100_000)
    end = time.monotonic() + seconds
    answers, children = [], []
    reading, writing = os.pipe()

    def ask(seed):
        rng = np.random.default_rng(seed)
        while time.monotonic() < end:
            reply = guard.ask(np.where(rng.random(N) < 0.4, 1 - LABELS, LABELS))
            answers.append((reply.question, reply.released))

    def close_repeatedly():
        while time.monotonic() < end:
            time.sleep(0.002)
            guard.close()

    threads = [threading.Thread(target=ask, args=(seed,)) for seed in (1, 2)]
    threads.append(threading.Thread(target=close_repeatedly))
    for thread in threads:
        thread.start()
    while time.monotonic() < end:
        time.sleep(0.05)
        child = os.fork()
        if child == 0:
            reply = guard.ask(np.random.default_rng(os.getpid() + 10).integers(2, size=N))
            os.write(writing, f"{reply.question} {reply.released}\n".encode())
            os._exit(0)
        children.append(child)
    for thread in threads:
        thread.join()
    failed = sum(os.waitpid(child, 0)[1] != 0 for child in children)
    os.close(writing)
    with os.fdopen(reading) as lines:
        answers += [(int(number), float(value)) for number, value in map(str.split, lines)]
    recorded = {row.question: row.value for row in guard.status().history}
    counts = {
        "answers": len(answers),
        "recorded": len(recorded),
        "different": sum(recorded.get(number) != value for number, value in answers),
        "duplicates": len(answers) - len({number for number, _ in answers}),
        "children": len(children),
        "failed": failed,
        "checked": guard.check(),
    }
    sys.stdout.write(json.dumps(counts))


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
