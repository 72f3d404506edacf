"""Reading a file of predictions and scoring it: against pandas and scikit-learn.

Yardsticks: what people write, ``read_csv`` or ``read_parquet``, then ``merge`` on the id or
``set_index`` and ``reindex`` to the holdout's order, then ``accuracy_score``. Labels, ids and the
roster are in memory before the clock starts, on both sides. Memory is by how much a run raises the
peak of a fresh process that has its labels already.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import polars as pl
from sklearn.metrics import accuracy_score

import ladderboard as lb
from _timing import min_seconds, report_ratio
from ladderboard.files import Roster, read_predictions

if TYPE_CHECKING:
    from collections.abc import Callable

    Ids = list[str] | np.ndarray

MILLION = 10**6
# case, suffix, n, whether ids are 0..n-1, rounds, smallest ratio allowed
CELLS = (
    ("general ids", "csv", MILLION, False, 5, 4),
    ("ids 0..n-1", "csv", MILLION, True, 9, 6),
    ("ids 0..n-1", "parquet", 10 * MILLION, True, 3, 5),
)
PEAK = """
import sys
from pathlib import Path
sys.path.insert(0, {folder!r})
import files
def kilobytes(field):
    return int(Path("/proc/self/status").read_text().split(field + ":")[1].split()[0])
labels, ids = files.holdout({n}, {ordinal})
run = files.{reader}(labels, ids)
run({small!r}, warm=True)
Path("/proc/self/clear_refs").write_text("5")  # forget the peak of making ids
before = kilobytes("VmRSS")
run({path!r})
print((kilobytes("VmHWM") - before) / 1024)
"""


def holdout(n: int, ordinal: bool) -> tuple[np.ndarray, Ids]:
    """Return labels and ids."""
    labels = np.random.default_rng(1).integers(0, 2, n)
    return labels, np.arange(n) if ordinal else [f"img_{index:07d}" for index in range(n)]


def write(path: Path, ids: Ids) -> None:
    """Write predictions in another order than the holdout's."""
    rng = np.random.default_rng(0)
    frame = pl.DataFrame({"id": ids, "prediction": rng.integers(0, 2, len(ids))})
    frame = frame[rng.permutation(len(ids))]
    frame.write_csv(path) if path.suffix == ".csv" else frame.write_parquet(path)


def read_with_ladderboard(labels: np.ndarray, ids: Ids) -> Callable[..., float]:
    """Read, join and score with Ladderboard."""
    loss = lb.loss("zero_one")
    roster = Roster.of(pl.Series(ids), kind="number")
    true_labels = loss.read_labels(labels)

    def run(path: str, *, warm: bool = False) -> float:
        if warm:
            small = Roster.of(100, kind="number")
            return read_predictions(path, small, loss).mean()
        return 1 - loss.score(true_labels, read_predictions(path, roster, loss)).mean()

    return run


def read_with_merge(labels: np.ndarray, ids: Ids) -> Callable[..., float]:
    """Read, merge and score with pandas and scikit-learn."""
    truth = pd.DataFrame({"id": ids, "label": labels})

    def run(path: str, *, warm: bool = False) -> float:
        table = _read(path)
        if warm:
            return accuracy_score(table["prediction"], table["prediction"])
        both = truth.merge(table, on="id", how="left")
        return accuracy_score(both["label"], both["prediction"])

    return run


def read_with_reindex(labels: np.ndarray, ids: Ids) -> Callable[..., float]:
    """Read, reindex and score with pandas and scikit-learn."""
    index = pd.Index(ids, name="id")

    def run(path: str, *, warm: bool = False) -> float:
        table = _read(path).set_index("id")["prediction"]
        if warm:
            return accuracy_score(table, table)
        return accuracy_score(labels, table.reindex(index))

    return run


def _read(path: str) -> pd.DataFrame:
    return pd.read_csv(path) if path.endswith(".csv") else pd.read_parquet(path)


def compare_times(folder: Path) -> None:
    """Time the three in turn, in one run."""
    for case, suffix, n, ordinal, rounds, target in CELLS:
        labels, ids = holdout(n, ordinal)
        path = folder / f"{ordinal}.{suffix}"
        write(path, ids)
        runs = [
            make(labels, ids)
            for make in (read_with_ladderboard, read_with_merge, read_with_reindex)
        ]
        scores = [run(str(path)) for run in runs]
        if len({round(score, 12) for score in scores}) != 1:
            raise SystemExit(f"the scores differ: {scores}")
        fast, merge, reindex = min_seconds(
            *(lambda run=run, path=path: run(str(path)) for run in runs), rounds=rounds
        )
        for name, seconds in (("merge", merge), ("reindex", reindex)):
            report_ratio(
                f"{suffix} n={n:.0e}, {case}: pandas {name} / ours",
                seconds / fast,
                f"at least {target}",
                detail=f"{1e3 * seconds:.0f} ms / {1e3 * fast:.0f} ms",
            )


def compare_memory(folder: Path) -> None:
    """Compare by how much each raises the peak of a fresh process."""
    for case, suffix, n, ordinal, _, _ in CELLS:
        path, small = folder / f"{ordinal}.{suffix}", folder / f"small.{suffix}"
        write(small, np.arange(100))
        used = []
        for reader in ("read_with_ladderboard", "read_with_merge", "read_with_reindex"):
            code = PEAK.format(
                folder=str(Path(__file__).parent),
                n=n,
                ordinal=ordinal,
                reader=reader,
                small=str(small),
                path=str(path),
            )
            done = subprocess.run(
                [sys.executable, "-c", code], capture_output=True, text=True, check=True
            )
            used.append(float(done.stdout))
        for name, theirs in (("merge", used[1]), ("reindex", used[2])):
            report_ratio(
                f"{suffix} n={n:.0e}, {case}: peak, ours / pandas {name}",
                used[0] / theirs,
                "below 1",
                detail=f"{used[0]:.0f} MiB / {theirs:.0f} MiB",
            )


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        compare_times(Path(temporary))
        compare_memory(Path(temporary))
