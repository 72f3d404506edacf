"""Make the example board from scikit-learn's digits: a training set and a holdout.

Run it from the root of the clone: ``python examples/make_digits.py [FOLDER]``. It writes the data
files; ``board.yaml`` and the texts are written by hand.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

SEED = 2027
TRAIN, PUBLIC = 397, 1000  # the other 400 are private


def main(folder: Path) -> None:
    """Write every data file of the board."""
    pixels, labels = load_digits(return_X_y=True)
    pixels = pixels.astype(np.int64)
    # A generator whose stream does not change between versions.
    order = np.argsort(np.random.RandomState(SEED).random_sample(len(labels)), kind="stable")
    train, test = order[:TRAIN], order[TRAIN:]
    names = ",".join(f"p{index}" for index in range(pixels.shape[1]))
    ids = [f"digit-{index:04d}" for index in range(len(test))]
    splits = ["public"] * PUBLIC + ["private"] * (len(test) - PUBLIC)
    # The public rows are not the first of the file: an id does not reveal its split.
    ids = [ids[index] for index in np.random.RandomState(SEED + 1).permutation(len(ids))]
    rows = sorted(zip(ids, test.tolist(), splits, strict=True))
    print(f"{'file':22}{'rows':>6}{'columns':>9}")
    write(
        folder / "data/train.csv",
        f"label,{names}",
        [f"{labels[index]},{_joined(pixels[index])}" for index in train],
    )
    write(
        folder / "data/test.csv",
        f"id,{names}",
        [f"{name},{_joined(pixels[index])}" for name, index, _ in rows],
    )
    write(
        folder / "holdout.csv",
        "id,label,split",
        [f"{name},{labels[index]},{split}" for name, index, split in rows],
    )
    write(folder / "sample_submission.csv", "id,prediction", [f"{name},0" for name, *_ in rows])
    # The baseline sees how much ink is in each column, and nothing else.
    ink = pixels.reshape(-1, 8, 8).sum(axis=1)
    means = np.array([ink[train][labels[train] == digit].mean(axis=0) for digit in range(10)])
    guesses = [int(((ink[index] - means) ** 2).sum(axis=1).argmin()) for _, index, _ in rows]
    write(
        folder / "baselines/columns.csv",
        "id,prediction",
        [f"{name},{guess}" for (name, *_), guess in zip(rows, guesses, strict=True)],
    )


def _joined(values: np.ndarray) -> str:
    return ",".join(map(str, values.tolist()))


def write(path: Path, header: str, rows: list[str]) -> None:
    """Write a table, and print its size."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(("\n".join([header, *rows]) + "\n").encode())
    print(f"{path.name:22}{len(rows):>6}{header.count(',') + 1:>9}")


if __name__ == "__main__":
    main(Path(*sys.argv[1:]) if sys.argv[1:] else Path(__file__).parent / "digits")
