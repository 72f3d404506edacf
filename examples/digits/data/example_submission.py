"""Predict digits by the nearest mean image, and write predictions.csv to the current folder."""

from pathlib import Path

import numpy as np

here = Path(__file__).parent
train = np.loadtxt(here / "train.csv", delimiter=",", skiprows=1)
labels, images = train[:, 0].astype(int), train[:, 1:]

rows = [line.split(",") for line in (here / "test.csv").read_text().splitlines()[1:]]
ids = [row[0] for row in rows]
test = np.array([row[1:] for row in rows], dtype=float)

means = np.array([images[labels == digit].mean(axis=0) for digit in range(10)])
distance = ((test[:, None, :] - means[None, :, :]) ** 2).sum(axis=2)

lines = [f"{name},{digit}" for name, digit in zip(ids, distance.argmin(axis=1), strict=True)]
Path("predictions.csv").write_text("\n".join(["id,prediction", *lines]) + "\n")
print(f"predictions.csv holds {len(lines)} predictions.")
