"""Search on data of one's own, and ask the example board whenever that sets a record.

script/serve, then with a team's token in LADDERBOARD_TOKEN:
python examples/submit.py http://127.0.0.1:8000
"""

import sys
from pathlib import Path

import numpy as np

import ladderboard as lb
from ladderboard.client import Client

public = Path(__file__).parent / "digits/public"
train = np.loadtxt(public / "train.csv", delimiter=",", skiprows=1)
labels, images = train[:, 0].astype(int), train[:, 1:]
rows = [line.split(",") for line in (public / "test.csv").read_text().splitlines()[1:]]
ids, test = [row[0] for row in rows], np.array([row[1:] for row in rows], dtype=float)


def nearest(size: int, power: float, unknown: np.ndarray) -> np.ndarray:
    """Answer with the label of the nearest of the first images, by a distance with a power."""
    return labels[[(abs(images[:size] - each) ** power).sum(axis=1).argmin() for each in unknown]]


with Client(sys.argv[1]) as client:
    judge = lb.Judge(client.guard("digits"))
    for size in (20, 50, 100, 200, 300):
        for power in (1.0, 2.0, 3.0):
            error = np.mean(nearest(size, power, images[300:]) != labels[300:])
            predictions = {"id": ids, "prediction": nearest(size, power, test)}
            judge.consider(error, predictions, name=f"{size} images, power {power:g}")

print(f"{'question':>8}  {'own error':>9}  {'released':>8}  improved  model")
for each in judge.verdicts:
    released, improved = f"{each.reply.released:.3f}", "yes" if each.improved else "no"
    print(f"{each.question:>8}  {each.score:>9.3f}  {released:>8}  {improved:8}  {each.name}")
print(f"The winner is {judge.winner.name}; {judge.verdicts[-1].reply.remaining} questions left.")
