"""All mechanisms against all analysts, with a table and figures."""

from __future__ import annotations

from dataclasses import asdict
from importlib.util import find_spec
from itertools import product
from typing import TYPE_CHECKING, Any

from ladderboard.arena._experiments._summary import (
    FULL_BUDGET,
    QUICK_BUDGET,
    estimate_seconds,
    pairs_markdown,
    summarize_pairs,
)
from ladderboard.arena._figures import (
    draw_bias_against_questions,
    draw_error_and_bias,
    require_matplotlib,
)
from ladderboard.arena._runner import (
    STANDARD_MECHANISMS,
    ExperimentRun,
    GameRow,
    analyst_names,
    make_matches,
    parse_sizes,
    resolve_analysts,
    resolve_mechanisms,
)
from ladderboard.errors import InvalidSetting

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

_SIZES = ((1_000, 1_000), (10_000, 1_000), (10_000, 10_000))
_QUICK_SIZES = ((200, 50), (1_000, 50))
_REPETITIONS = 10
_OPTIONAL_LIBRARIES = {"hyperparameter_search": ("sklearn", "scikit-learn")}
_QUICK_REPETITIONS = 2


def arena_experiment(
    out: Path | str,
    *,
    mechanisms: Any = None,
    analysts: Any = None,
    n: int | Iterable[int] | None = None,
    k: int | Iterable[int] | None = None,
    quick: bool = False,
    repetitions: int | None = None,
    seed: int = 0,
    workers: int | None = None,
    cluster: str | None = None,
    progress: bool = False,
) -> list[Path]:
    """Let analysts play against mechanisms and return the files written.

    Without ``mechanisms`` and ``analysts`` all that are known by name take part. ``rows.csv`` has
    a row a game, ``table.csv`` and ``table.md`` one a cell. Where a single analyst meets several k
    the figure shows bias against k, else error and bias of every mechanism. Unless repetitions are
    asked for, pairs that are known to be slow play less or not at all, and the table says so.
    """
    require_matplotlib()
    study = ExperimentRun(out, quick, repetitions, seed, workers, cluster, progress)
    makers = resolve_mechanisms(mechanisms or list(STANDARD_MECHANISMS))
    left_out: list[str] = []
    players = resolve_analysts(analysts or _installed_analysts(left_out))
    sizes = _choose_sizes(n, k, quick=quick)
    usual = study.repetitions or (_QUICK_REPETITIONS if quick else _REPETITIONS)

    patience = QUICK_BUDGET if quick else FULL_BUDGET

    def count(label: str, name: str, n: int, k: int) -> int:
        if repetitions is not None:
            return usual
        seconds = estimate_seconds(makers[label](n, k), players[name], n, k)
        games = patience.games(usual, seconds)
        if not games and analysts:
            return 1  # asked for by name
        if not games:
            where = f"n = {n:,}, k = {k:,}"
            left_out.append(
                f"{name} against {label} at {where}: about {seconds:.0f} s a game; "
                "it plays if `--repetitions` is given"
            )
        return games

    tasks = make_matches(makers, players, sizes, count, study.seed)
    rows = [GameRow.from_json(each) for each in study.run_tasks(tasks, "arena")]
    cells = summarize_pairs(rows, usual)
    study.write_csv("rows.csv", [asdict(row) for row in rows])
    study.write_csv("table.csv", [asdict(cell) for cell in cells])
    study.write("table.md", pairs_markdown(cells, left_out))
    if len(players) == 1 and len({k for _, k in sizes}) > 1:
        draw_bias_against_questions(study, "arena", cells)
    else:
        for n_, k_ in sizes:
            here = [cell for cell in cells if (cell.n, cell.k) == (n_, k_)]
            if here:
                draw_error_and_bias(study, f"arena-n{n_}-k{k_}", here)
    return study.written


def _installed_analysts(left_out: list[str]) -> list[str]:
    """Return the analysts by name, without those whose libraries are not installed."""
    names = analyst_names()
    for name, (module, package) in _OPTIONAL_LIBRARIES.items():
        if name in names and find_spec(module) is None:
            names.remove(name)
            left_out.append(f"{name}: needs `pip install {package}`")
    return names


def _choose_sizes(n: Any, k: Any, *, quick: bool) -> list[tuple[int, int]]:
    if n is None and k is None:
        return list(_QUICK_SIZES if quick else _SIZES)
    if n is None or k is None:
        raise InvalidSetting("n and k go together: give both, or neither for the usual sizes.")
    return list(product(parse_sizes("n", n), parse_sizes("k", k)))
