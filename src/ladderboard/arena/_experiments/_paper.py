"""The paper experiment: the majority attack under noise."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from ladderboard._version import __version__
from ladderboard.arena._experiments._summary import pairs_markdown, summarize_pairs
from ladderboard.arena._figures import (
    NOISE_COLOURS,
    draw_bias_against_questions,
    draw_figure,
    require_matplotlib,
)
from ladderboard.arena._majority import majority_attack, majority_attack_moments
from ladderboard.arena._runner import (
    STANDARD_MECHANISMS,
    ExperimentRun,
    GameRow,
    make_matches,
    resolve_analysts,
)

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


_BATCH = 25  # repetitions in a task
_REPETITIONS = 100
_LEVELS = tuple(NOISE_COLOURS)
# n: the largest k
_QUERIES = {1_000: 1_000, 10_000: 10_000, 100_000: 10_000, 1_000_000: 3_000}
_QUICK_QUERIES = {1_000: 1_000, 3_000: 1_000, 10_000: 1_000, 30_000: 300}
_NOISE = {10_000: (100, 1_000, 10_000), 100_000: (100, 1_000, 10_000)}
_QUICK_NOISE = {1_000: (10, 100, 1_000), 10_000: (10, 100, 1_000)}
_NOISE_LEVELS = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0)
_K_SHADES = ("#C994C7", "#DD1C77", "#67001F")

_BARS = "bars: one standard deviation of the repetitions"


@dataclass(frozen=True)
class MajorityBatch:
    """Some repetitions of the attack at one size and noise level."""

    n: int
    k: int
    sigma: float
    seed: int
    first: int
    repetitions: int

    @property
    def weight(self) -> float:
        """Roughly how many signs are drawn."""
        return (self.n + 1_000) * (self.k + 10) * self.repetitions

    def describe(self) -> dict[str, Any]:
        """Return the arguments of ``majority_attack``."""
        return {"kind": "majority", **vars(self)}

    def accepts(self, result: Any) -> bool:
        """Return whether a stored result has one error for each repetition."""
        errors = result.get("errors") if isinstance(result, dict) else None
        return (
            isinstance(errors, list)
            and len(errors) == self.repetitions
            and all(isinstance(error, float) and 0 <= error <= 1 for error in errors)
        )

    def run(self, threads: int | None) -> dict[str, Any]:
        """Simulate the repetitions and return their errors."""
        errors = majority_attack(
            self.n,
            self.k,
            self.sigma,
            self.repetitions,
            self.seed,
            first=self.first,
            threads=threads,
        )
        return {"errors": errors.tolist()}


def cell_seed(seed: int, n: int, k: int) -> int:
    """Return a different seed for each size, so that points of a curve are independent.

    All noise levels of one size share it, so they differ by the noise alone.
    """
    name = json.dumps([seed, "majority", n, k]).encode()
    return int.from_bytes(hashlib.blake2b(name, digest_size=7).digest(), "big")


def paper_experiment(
    out: Path | str,
    *,
    quick: bool = False,
    repetitions: int | None = None,
    seed: int = 0,
    workers: int | None = None,
    cluster: str | None = None,
    progress: bool = False,
) -> list[Path]:
    """Draw both figures of the paper, with the exact curves, and return the files written.

    ``queries`` varies the number of queries at three noise levels, ``noise`` the noise level for
    several numbers of queries; PNG, SVG and CSV each. Raw errors are in ``results.jsonl``.
    """
    require_matplotlib()
    study = ExperimentRun(out, quick, repetitions, seed, workers, cluster, progress)
    queries = [
        (n, k, level)
        for n, largest in (_QUICK_QUERIES if quick else _QUERIES).items()
        for k in _log_spaced(10, largest, 5 if quick else 10)
        for level in _LEVELS
    ]
    noise = [
        (n, k, level)
        for n, ks in (_QUICK_NOISE if quick else _NOISE).items()
        for k in ks
        for level in (_NOISE_LEVELS[::2] if quick else _NOISE_LEVELS)
    ]
    cells = _measure_cells(study, dict.fromkeys(queries + noise))
    study.write_csv("queries.csv", [cells[query] for query in queries])
    study.write_csv("noise.csv", [cells[level] for level in noise])
    _draw_queries(study, [cells[query] for query in queries])
    _draw_noise(study, [cells[level] for level in noise])
    return study.written


def _log_spaced(low: int, high: int, count: int) -> list[int]:
    """Return integers evenly spaced on a logarithmic scale."""
    return list(dict.fromkeys(round(k) for k in np.geomspace(low, high, count).tolist()))


def _measure_cells(
    study: ExperimentRun, cells: Iterable[tuple[int, int, float]]
) -> dict[tuple[int, int, float], dict[str, Any]]:
    """Return a row of the table for every (n, k, noise level)."""
    count = study.repetitions or _REPETITIONS
    starts = list(range(0, count, _BATCH))
    cells = list(cells)
    tasks = [
        MajorityBatch(n, k, level / math.sqrt(n), cell_seed(study.seed, n, k), first, last - first)
        for n, k, level in cells
        for first, last in pairwise([*starts, count])
    ]
    if study.cluster is None:
        # Compile once here; workers then load it from the cache.
        majority_attack(1, 1, repetitions=1)
    results = study.run_tasks(tasks, "majority attack")
    table = {}
    for index, cell in enumerate(cells):
        batches = slice(index * len(starts), (index + 1) * len(starts))
        errors = np.array([error for batch in results[batches] for error in batch["errors"]])
        task = tasks[batches.start]
        mean, std = majority_attack_moments(task.n, task.k, task.sigma)
        table[cell] = {
            "n": task.n,
            "k": task.k,
            "sigma": task.sigma,
            "repetitions": count,
            "mean": float(errors.mean()),
            "std": float(errors.std(ddof=1)) if count > 1 else 0.0,
            "exact_mean": mean,
            "exact_std": std,
            "seed": task.seed,
            "version": __version__,
        }
    return table


def _noise_level(row: dict[str, Any]) -> float:
    """Return the noise in units of 1/sqrt(n)."""
    return float(round(row["sigma"] * math.sqrt(row["n"]), 6))


def _draw_points(axis: Any, x: list[float], rows: list[dict[str, Any]], colour: str) -> None:
    axis.errorbar(
        x,
        [row["mean"] for row in rows],
        [row["std"] for row in rows],
        fmt="o",
        markersize=3.5,
        capsize=2,
        elinewidth=1,
        color=colour,
    )


def _add_key(figure: Any, lines: list[tuple[str, str]], columns: int) -> None:
    """Add a legend of colours, points and lines above the panels."""
    from matplotlib.lines import Line2D  # noqa: PLC0415 - heavy, and optional

    handles: list[Any] = [
        Line2D([], [], color=colour, marker="o", markersize=4, label=label)
        for colour, label in lines
    ]
    handles += [
        Line2D([], [], color="#444444", marker="o", markersize=4, linestyle="", label="simulated"),
        Line2D([], [], color="#444444", linewidth=1, label="exact"),
    ]
    figure.legend(handles=handles, loc="outside upper center", ncols=columns)


def _draw_queries(study: ExperimentRun, rows: list[dict[str, Any]]) -> None:
    sizes = sorted({row["n"] for row in rows})
    with draw_figure(study, "queries", 2, 2, (7.5, 6.2)) as (figure, axes):
        for axis, n in zip(axes.flat, sizes, strict=True):
            panel = [row for row in rows if row["n"] == n]
            for level, colour in NOISE_COLOURS.items():
                line = [row for row in panel if _noise_level(row) == level]
                ks = [row["k"] for row in line]
                _draw_points(axis, ks, line, colour)
                # Odd and even k differ by ties: even ones alone give a smooth curve.
                fine = sorted({k - k % 2 for k in _log_spaced(ks[0], ks[-1], 60)})
                exact = [majority_attack_moments(n, k, line[0]["sigma"])[0] for k in fine]
                axis.plot(fine, exact, color=colour, linewidth=1)
            axis.set(xscale="log", title=f"n = {n:,}")
            axis.axhline(0.5, color="#444444", linewidth=0.8, linestyle=":")
        figure.supxlabel(f"number of queries k ({_BARS})", fontsize=9)
        figure.supylabel("error of the majority vote on the holdout (0.5 is honest)", fontsize=9)
        labels = {0.0: "no noise", 1.0: "σ = 1/√n", 3.0: "σ = 3/√n"}
        _add_key(figure, [(colour, labels[level]) for level, colour in NOISE_COLOURS.items()], 5)


def _draw_noise(study: ExperimentRun, rows: list[dict[str, Any]]) -> None:
    sizes = sorted({row["n"] for row in rows})
    with draw_figure(study, "noise", 1, 2, (7.5, 3.6), sharey=True) as (figure, axes):
        ks = sorted({row["k"] for row in rows})
        for axis, n in zip(axes.flat, sizes, strict=True):
            for k, colour in zip(ks, _K_SHADES, strict=True):
                line = [row for row in rows if (row["n"], row["k"]) == (n, k)]
                _draw_points(axis, [_noise_level(row) for row in line], line, colour)
                fine = np.linspace(0, _noise_level(line[-1]), 60).tolist()
                exact = [majority_attack_moments(n, k, x / math.sqrt(n))[0] for x in fine]
                axis.plot(fine, exact, color=colour, linewidth=1)
            axis.set(title=f"n = {n:,}", ylim=(None, 0.515))
            axis.axhline(0.5, color="#444444", linewidth=0.8, linestyle=":")
        figure.supxlabel(f"noise σ on the correlation, in units of 1/√n ({_BARS})", fontsize=9)
        figure.supylabel("error of the majority vote", fontsize=9)
        _add_key(figure, [(c, f"k = {k:,}") for k, c in zip(ks, _K_SHADES, strict=True)], 5)


_EASY = 0.5
_MECHANISMS = ("ladder_tiny", "ladder", "shaky_ladder")
_KS = (100, 300, 1_000, 3_000, 10_000)
_SIZES = {1_000: _KS, 10_000: _KS, 100_000: _KS[:4]}
_QUICK_SIZES = {300: (30, 100, 300), 1_000: (30, 100, 300)}
_SHIFTED_GAMES = 10
_QUICK_SHIFTED_GAMES = 3

_EXACT = "exact (plain majority)"


def shifted_experiment(
    out: Path | str,
    *,
    quick: bool = False,
    repetitions: int | None = None,
    seed: int = 0,
    workers: int | None = None,
    cluster: str | None = None,
    progress: bool = False,
) -> list[Path]:
    """Run the shifted majority attack, with half of the labels easy, and return the files written.

    The figure shows the bias of the attacker's last model against the number of questions, beside
    the exact curve of the plain majority attack on exact scores.
    """
    require_matplotlib()
    study = ExperimentRun(out, quick, repetitions, seed, workers, cluster, progress)
    sizes = [(n, k) for n, ks in (_QUICK_SIZES if quick else _SIZES).items() for k in ks]
    count = study.repetitions or (_QUICK_SHIFTED_GAMES if quick else _SHIFTED_GAMES)
    factories = {label: STANDARD_MECHANISMS[label] for label in _MECHANISMS}
    tasks = make_matches(
        factories, resolve_analysts("shifted_majority"), sizes, lambda *_: count, study.seed
    )
    rows = [
        GameRow.from_json(result) for result in study.run_tasks(tasks, "shifted majority attack")
    ]
    cells = summarize_pairs(rows, count)
    study.write_csv("rows.csv", [asdict(row) for row in rows])
    study.write_csv("table.csv", [asdict(cell) for cell in cells])
    study.write("table.md", pairs_markdown(cells))
    ks = {n: [k for m, k in sizes if m == n] for n, _ in sizes}

    def exact_curve(axis: Any, n: int) -> None:
        fine = np.geomspace(ks[n][0], ks[n][-1], 40).round().astype(int).tolist()
        curve = [exact_bias(n, k) * math.sqrt(n) for k in fine]
        axis.plot(fine, curve, color="#444444", linewidth=1.2, linestyle="--", label=_EXACT)

    draw_bias_against_questions(study, "shifted", cells, extra=exact_curve)
    return study.written


def exact_bias(n: int, k: int) -> float:
    """Return the mean bias of the plain majority attack on exact scores, half of the labels easy.

    The attack learns nothing on the easy part; on the rest it is the paper's, and its last question
    is the vote.
    """
    hard = n - int(_EASY * n)
    return (0.5 - majority_attack_moments(hard, k - 1)[0]) * hard / n
