"""The shifted experiment: the attack climbs the Ladder but not the Shaky Ladder."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from ladderboard.arena._experiments._summary import pairs_markdown, summarize_pairs
from ladderboard.arena._figures import draw_bias_against_questions, require_matplotlib
from ladderboard.arena._majority import majority_attack_moments
from ladderboard.arena._runner import (
    STANDARD_MECHANISMS,
    ExperimentRun,
    GameRow,
    make_matches,
    resolve_analysts,
)

if TYPE_CHECKING:
    from pathlib import Path

_EASY = 0.5
_MECHANISMS = ("ladder_tiny", "ladder", "shaky_ladder")
_KS = (100, 300, 1_000, 3_000, 10_000)
_SIZES = {1_000: _KS, 10_000: _KS, 100_000: _KS[:4]}
_QUICK_SIZES = {300: (30, 100, 300), 1_000: (30, 100, 300)}
_REPETITIONS = 10
_QUICK_REPETITIONS = 3

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
    count = study.repetitions or (_QUICK_REPETITIONS if quick else _REPETITIONS)
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
