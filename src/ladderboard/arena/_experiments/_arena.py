"""The arena experiment: all mechanisms against all analysts, with tables and figures."""

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
    """Play analysts against mechanisms and return the files written.

    By default all registered mechanisms and analysts take part. ``rows.csv`` has a row for each
    game, ``table.csv`` and ``table.md`` one for each pair and size. For a single analyst and
    several k the figure shows bias against k, else error and bias of every mechanism. Unless
    repetitions are given, slow pairs play fewer games or none, and the table says so.
    """
    require_matplotlib()
    study = ExperimentRun(out, quick, repetitions, seed, workers, cluster, progress)
    factories = resolve_mechanisms(mechanisms or list(STANDARD_MECHANISMS))
    left_out: list[str] = []
    players = resolve_analysts(analysts or _installed_analysts(left_out))
    sizes = _choose_sizes(n, k, quick=quick)
    default = study.repetitions or (_QUICK_REPETITIONS if quick else _REPETITIONS)

    budget = QUICK_BUDGET if quick else FULL_BUDGET

    def count(label: str, name: str, n: int, k: int) -> int:
        if repetitions is not None:
            return default
        seconds = estimate_seconds(factories[label](n, k), players[name], n, k)
        games = budget.games(default, seconds)
        if not games and analysts:
            return 1  # requested by name
        if not games:
            size = f"n = {n:,}, k = {k:,}"
            left_out.append(
                f"{name} against {label} at {size}: about {seconds:.0f} s a game; "
                "it plays if `--repetitions` is given"
            )
        return games

    tasks = make_matches(factories, players, sizes, count, study.seed)
    rows = [GameRow.from_json(result) for result in study.run_tasks(tasks, "arena")]
    cells = summarize_pairs(rows, default)
    study.write_csv("rows.csv", [asdict(row) for row in rows])
    study.write_csv("table.csv", [asdict(cell) for cell in cells])
    study.write("table.md", pairs_markdown(cells, left_out))
    if len(players) == 1 and len({k for _, k in sizes}) > 1:
        draw_bias_against_questions(study, "arena", cells)
    else:
        for n_, k_ in sizes:
            panel = [cell for cell in cells if (cell.n, cell.k) == (n_, k_)]
            if panel:
                draw_error_and_bias(study, f"arena-n{n_}-k{k_}", panel)
    return study.written


def _installed_analysts(left_out: list[str]) -> list[str]:
    """Return the registered analysts whose libraries are installed."""
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
        raise InvalidSetting("Give both n and k, or neither for the default sizes.")
    return list(product(parse_sizes("n", n), parse_sizes("k", k)))
