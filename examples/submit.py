"""Search on your own data, and ask the example board about every record.

script/serve, then with a team's token in LADDERBOARD_TOKEN:
python examples/submit.py http://127.0.0.1:8000
"""

import sys
from itertools import product
from pathlib import Path

import numpy as np

import ladderboard as lb
from ladderboard.client import Client

data = Path(__file__).parent / "digits/data"
train = np.loadtxt(data / "train.csv", delimiter=",", skiprows=1)
labels, images = train[:, 0].astype(int), train[:, 1:]
rows = [line.split(",") for line in (data / "test.csv").read_text().splitlines()[1:]]
ids, test = [row[0] for row in rows], np.array([row[1:] for row in rows], dtype=float)


def nearest(size: int, power: float, unknown: np.ndarray) -> np.ndarray:
    """Return the label of the nearest among the first images, by a distance with a power."""
    return labels[[(abs(images[:size] - image) ** power).sum(axis=1).argmin() for image in unknown]]


with Client(*sys.argv[1:]) as client:
    judge = lb.Judge(client.guard("digits"), mode="max")
    for model in product((20, 50, 100, 200, 300), (1.0, 2.0, 3.0)):
        score = np.mean(nearest(*model, images[300:]) == labels[300:])
        judge.consider(score, lambda: {"id": ids, "prediction": nearest(*model, test)}, name=model)  # noqa: B023

print("question   own accuracy   released   images   power   improved")
for row in judge.judgements:
    improved = "yes, the winner" if row is judge.winner else "yes" if row.improved else "no"
    answer = f"{row.question:>8}{row.score:>15.3f}{row.reply.released:>11.3f}"
    print(f"{answer}{row.name[0]:>9}{row.name[1]:>8}   {improved}")
