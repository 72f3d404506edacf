"""Make a guard's file of the current format, to be kept: later versions must open it.

Run once for each released format: python tests/holdout/formats/make.py FOLDER
"""

import itertools
import json
import sys
from pathlib import Path

import numpy as np

import ladderboard as lb
from ladderboard.ledger import LedgerEnvironment

LABELS = ["cat", "dog", "cat", "bird", "dog", "cat"] * 5
IDS = [f"img_{number}" for number in range(30)]


def model(wrong):
    """Return predictions with ids of which so many are wrong."""
    words = ["cow" if number < wrong else label for number, label in enumerate(LABELS)]
    return {"id": IDS, "prediction": words}


def make(folder):
    """Make the file, and next to it its expected contents."""
    ticks, salts = itertools.count(1_700_000_000), itertools.count()
    environment = LedgerEnvironment(
        clock=lambda: next(ticks), salt=lambda: next(salts).to_bytes(32, "big")
    )
    path = folder / "2.db"
    guard = lb.Holdout.create(
        path,
        LABELS,
        ids=IDS,
        group=np.arange(30) // 2,
        questions=20,
        classes="any",
        ladders=2,
        key=bytes(range(32)),
        environment=environment,
    )
    for wrong in (20, 19, 10):
        guard.ask(model(wrong))
    guard.ladder("second").ask(model(4))
    guard.close()
    lb.Holdout.restore(path, charge=2, environment=environment).close()
    guard = lb.Holdout.open(path)
    expected = guard.status().describe()
    guard.close()
    del expected["bound"]  # it is computed, and may get tighter
    (folder / "2.json").write_text(json.dumps(expected, indent=1) + "\n")


if __name__ == "__main__":
    make(Path(sys.argv[1]))
