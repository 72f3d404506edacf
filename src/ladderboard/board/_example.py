"""An example board for whoever has none: made up, all of it, and new each time."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

__all__ = ["write_example"]

_TRAIN, _PUBLIC, _PRIVATE = 1_000, 3_000, 1_000
_FEATURES = "temperature,strength,waited"

_RULES = """\
# An example board: who asks for a second cup of coffee? Everybody in it was made up.
title: A second cup
description: |
  Will the guest who got this cup ask for another one? Of each cup is known how hot it was when it
  came (degrees), how strong (grams of coffee in a litre) and how long the guest had waited for it
  (minutes).

  Learn from `train.csv`, predict 0 or 1 for every cup in `test.csv`, and send a table with the
  columns `id` and `prediction`. `example_submission.py` does it in ten lines, and can be beaten.

  A score that does not move means that nothing is known to be better, not that nothing happened.

loss: {name: accuracy, classes: [0, 1]}
display: {name: accuracy, digits: 3}

# Five teams with twenty questions each, and one for the baseline.
questions: 101
teams: 5
registration: invited
ladder: team

baselines:
- {name: Whoever waited little, file: baselines/waited.csv}
- {name: Guessing, value: 0.5, source: a coin}

finals: {selections: 2}

# This board is here to explain: its page Play shows what attacks gain.
play: true
"""

_README = """\
# A second cup

- `train.csv`: 1,000 cups with their `label`: 1 where the guest asked for another one.
- `test.csv`: 4,000 cups with an `id` and no label.
- `example_submission.py`: learns from the first, predicts the second, writes `predictions.csv`. It
  needs NumPy. It draws a straight line; but coffee can be too hot and too cold.

Send a table with a row for every `id` of `test.csv`:

```text
id,prediction
cup-0000,1
cup-0001,0
```

The guests are made up, and so is the coffee.
"""

_SCRIPT = '''\
"""Predict second cups by a straight line, and write predictions.csv beside this file."""

from pathlib import Path

import numpy as np

here = Path(__file__).parent
train = np.loadtxt(here / "train.csv", delimiter=",", skiprows=1)
rows = [line.split(",") for line in (here / "test.csv").read_text().splitlines()[1:]]
test = np.array([row[1:] for row in rows], dtype=float)


def features(cups):
    """What is known of each cup, and a one. Add (cups - 62) ** 2, and see what the board says."""
    return np.column_stack([np.ones(len(cups)), cups])


line, *_ = np.linalg.lstsq(features(train[:, 1:]), train[:, 0], rcond=None)
again = (features(test) @ line > 0.5).astype(int)

lines = [f"{row[0]},{guess}" for row, guess in zip(rows, again, strict=True)]
(here / "predictions.csv").write_text("\\n".join(["id,prediction", *lines]) + "\\n")
print(f"predictions.csv holds {len(lines)} predictions.")
'''


def write_example(folder: Path, rng: np.random.Generator | None = None) -> list[Path]:
    """Fill a folder with an example board, and return the files.

    Nobody has seen the labels before: they are drawn with ``rng``, by default from the operating
    system's own randomness.
    """
    rng = np.random.default_rng() if rng is None else rng
    learned, asked = _cups(rng, _TRAIN), _cups(rng, _PUBLIC + _PRIVATE)
    ids = [f"cup-{at:04d}" for at in range(_PUBLIC + _PRIVATE)]
    # Nothing about an id tells its split.
    split = rng.permutation(["public"] * _PUBLIC + ["private"] * _PRIVATE).tolist()
    labels, known = asked.again.tolist(), asked.rows
    little = (asked.waited < np.median(learned.waited)).astype(int).tolist()
    files = {
        "board.yaml": _RULES,
        "holdout.csv": _table("id,label,split", zip(ids, labels, split, strict=True)),
        "sample_submission.csv": _table("id,prediction", ((each, 0) for each in ids)),
        "baselines/waited.csv": _table("id,prediction", zip(ids, little, strict=True)),
        "public/README.md": _README,
        "public/example_submission.py": _SCRIPT,
        "public/train.csv": _table(
            f"label,{_FEATURES}", zip(learned.again.tolist(), learned.rows, strict=True)
        ),
        "public/test.csv": _table(f"id,{_FEATURES}", zip(ids, known, strict=True)),
    }
    for name, text in files.items():
        place = folder / name
        place.parent.mkdir(exist_ok=True)
        place.write_text(text, encoding="utf-8", newline="\n")
    return [folder / name for name in files]


class _Cups(NamedTuple):
    """Cups of coffee, and whether their guests asked for another one."""

    again: NDArray[np.int64]
    waited: NDArray[np.float64]
    rows: list[str]


def _cups(rng: np.random.Generator, count: int) -> _Cups:
    hot, strong = rng.normal(64, 9, count).round(1), rng.normal(58, 10, count).round(1)
    waited = rng.gamma(3, 2, count).round(1)
    # Best at 62 degrees; stronger is better up to a point; who waits long has to go.
    joy = 2.2 - ((hot - 62) / 7) ** 2 + (strong - 58) / 8 - ((strong - 58) / 14) ** 2
    joy += (6 - waited) / 4
    again = (rng.logistic(size=count) < 1.5 * joy).astype(np.int64)
    return _Cups(again, waited, [f"{a},{b},{c}" for a, b, c in zip(hot, strong, waited)])  # noqa: B905


def _table(header: str, rows: object) -> str:
    lines = [",".join(map(str, row)) for row in rows]  # type: ignore[attr-defined]
    return "\n".join([header, *lines]) + "\n"
