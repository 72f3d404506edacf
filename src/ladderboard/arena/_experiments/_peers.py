"""The peers experiment: worst-case errors of the Shaky Ladder and its peers."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from ladderboard.arena._experiments._summary import estimate_seconds, summarize_pairs
from ladderboard.arena._runner import (
    STANDARD_MECHANISMS,
    ExperimentRun,
    GameRow,
    make_matches,
    resolve_analysts,
)
from ladderboard.mechanisms import Ladder, ShakyLadder

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from ladderboard.arena._experiments._summary import PairSummary
    from ladderboard.arena._runner import MechanismFactory
    from ladderboard.mechanisms import Mechanism

_SIZES = [(n, k) for n in (1_000, 10_000, 100_000) for k in (100, 1_000, 10_000)]
_QUICK_SIZES = [(300, 50)]
_STEPS = (1, 1.5, 2, 2.5, 3, 4, 6)
_PEERS = ("exact", "rounded", "parameter_free_ladder", "thresholdout", "shaky_ladder_paper")
_OURS = "shaky_ladder"
_LADDER = "ladder, best step"
_ATTACKS = ("shifted_majority", "abstaining", "majority", "one_bit")
_HONEST = ("steady_improvement", "plateau", "random_search")
# How many games a pair plays, by the number of questions times examples.
_REPETITIONS = ((10**7, 24), (10**12, 12))
_FEW_QUESTIONS, _MANY_GAMES = 100, 40
_MAX_SECONDS = 30.0  # seconds for a game; slower pairs are left out
_BUDGET = 6.0  # seconds for a pair, but at least three games


@dataclass(frozen=True)
class MechanismSummary:
    """A mechanism at one size, in units of 1/sqrt(n), with standard errors.

    ``error`` is the largest mean leaderboard error over the analysts, ``bias`` the largest that an
    attack's last model has.
    """

    n: int
    k: int
    mechanism: str
    error: float
    error_se: float
    error_by: str
    bias: float
    bias_se: float
    bias_by: str
    settings: str


def peers_experiment(
    out: Path | str,
    *,
    quick: bool = False,
    repetitions: int | None = None,
    seed: int = 0,
    workers: int | None = None,
    cluster: str | None = None,
    progress: bool = False,
) -> list[Path]:
    """Compare the calibrated Shaky Ladder with its peers and return the files written.

    Every mechanism plays against attacks and honest analysts and is judged by its worst mean
    leaderboard error. The Ladder plays with several steps, and the best step counts. Slow pairs
    play fewer games. ``standings.csv`` and ``table.md`` have a row for each mechanism and size,
    ``rows.csv`` one for each game.
    """
    study = ExperimentRun(out, quick, repetitions, seed, workers, cluster, progress)
    factories = _make_factories((1, 2) if quick else _STEPS)
    players = resolve_analysts([*_ATTACKS, *_HONEST])
    sizes = _QUICK_SIZES if quick else _SIZES
    default = study.repetitions or (4 if quick else None)
    left_out: list[str] = []

    def games(label: str, name: str, n: int, k: int) -> int:
        if study.repetitions is not None:
            return study.repetitions
        # The one-bit attack reads every example for every question.
        slow = max(n / 10_000, 0.5) if name == "one_bit" else 1.0
        seconds = estimate_seconds(factories[label](n, k), players[name], n, k) * slow
        if seconds > _MAX_SECONDS:
            pair = f"{name} at n = {n:,}, {k:,} questions"
            left_out.extend([pair] if pair not in left_out else [])
            return 0
        return min(default or _max_games(n, k), max(3, int(_BUDGET / seconds)))

    tasks = make_matches(factories, players, sizes, games, study.seed)
    rows = [GameRow.from_json(result) for result in study.run_tasks(tasks, "comparison")]
    cells = summarize_pairs(rows, 1)
    summaries = [
        summary
        for size in sizes
        for summary in _summarize_size(
            [cell for cell in cells if (cell.n, cell.k) == size], factories
        )
    ]
    study.write_csv("rows.csv", [asdict(row) for row in rows])
    study.write_csv("standings.csv", [asdict(summary) for summary in summaries])
    study.write("table.md", _summary_markdown(summaries, left_out))
    return study.written


def _max_games(n: int, k: int) -> int:
    """Return the largest number of games of a pair."""
    if k <= _FEW_QUESTIONS:
        return _MANY_GAMES
    return next(games for size, games in _REPETITIONS if n * k <= size)


def _make_factories(steps: Sequence[float]) -> dict[str, MechanismFactory]:
    factories: dict[str, MechanismFactory] = {
        name: STANDARD_MECHANISMS[name] for name in (*_PEERS, _OURS)
    }
    factories["shaky_ladder, noise standing"] = _shaky_with_standing_noise
    return factories | {f"ladder {step:g}": _ladder_factory(step) for step in steps}


def _ladder_factory(step: float) -> MechanismFactory:
    return lambda n, _k: Ladder(step=step / math.sqrt(n))


def _shaky_with_standing_noise(n: int, k: int) -> Mechanism:
    """Return the calibrated settings with half of the compare noise's variance standing."""
    ours = ShakyLadder.calibrated(n=n, questions=k)
    half = round(ours.compare_noise / math.sqrt(2), 12)
    return ShakyLadder(ours.step, half, ours.release_noise, grid=ours.grid)


def _summarize_size(
    cells: list[PairSummary], factories: dict[str, MechanismFactory]
) -> list[MechanismSummary]:
    """Return a summary of each mechanism at one size, and of the best Ladder only."""
    by_name: dict[str, list[PairSummary]] = {}
    for cell in cells:
        by_name.setdefault(cell.mechanism, []).append(cell)
    summaries = [_summarize_mechanism(name, group, factories) for name, group in by_name.items()]
    ladders = [summary for summary in summaries if summary.mechanism.startswith("ladder ")]
    best = min(ladders, key=lambda summary: summary.error)
    named = MechanismSummary(**{**asdict(best), "mechanism": _LADDER})
    peers = [summary for summary in summaries if summary.mechanism in _PEERS]
    ours = [summary for summary in summaries if summary not in peers and summary not in ladders]
    return [*peers, named, *ours]


def _summarize_mechanism(
    name: str, cells: list[PairSummary], factories: dict[str, MechanismFactory]
) -> MechanismSummary:
    unit = math.sqrt(cells[0].n)
    error = max(cells, key=lambda cell: cell.error_mean)
    attacks = [cell for cell in cells if cell.analyst in _ATTACKS]
    bias = max(attacks, key=lambda cell: cell.bias_mean)
    mechanism = factories[name](cells[0].n, cells[0].k)
    sizes = {"step": "step", "compare_noise": "compare", "release_noise": "release", "grid": "grid"}
    settings = ", ".join(
        f"{word} {getattr(mechanism, key) * unit:.3g}"
        for key, word in sizes.items()
        if getattr(mechanism, key, None) is not None
    )
    return MechanismSummary(
        cells[0].n,
        cells[0].k,
        name,
        error.error_units,
        error.error_std * unit / math.sqrt(error.repetitions),
        error.analyst,
        bias.bias_units,
        bias.bias_std * unit / math.sqrt(bias.repetitions),
        bias.analyst,
        settings,
    )


def _summary_markdown(summaries: list[MechanismSummary], left_out: list[str]) -> str:
    lines = [
        "# The calibrated Shaky Ladder and its peers",
        "",
        "In units of 1/√n. *error* is the largest mean leaderboard error over the analysts, *bias*",
        "the largest mean bias an attack's last model keeps, each ± its standard error, *by* its",
        "analyst;",
        f"attacks: {', '.join(_ATTACKS)}; honest: {', '.join(_HONEST)}. The Ladder has the step",
        f"with the least error of {', '.join(f'{step:g}' for step in _STEPS)}. *ours : it*",
        "divides the calibrated Shaky Ladder's by this one.",
    ]
    ours_at = {
        (summary.n, summary.k): summary for summary in summaries if summary.mechanism == _OURS
    }
    size = None
    for summary in summaries:
        ours = ours_at[summary.n, summary.k]
        if size != (summary.n, summary.k):
            size = (summary.n, summary.k)
            lines += [
                "",
                f"## n = {summary.n:,}, {summary.k:,} questions",
                "",
                "| mechanism | error | by | ours : it | bias | by | ours : it | settings |",
                "|---|---:|---|---:|---:|---|---:|---|",
            ]
        bias = f"{ours.bias / summary.bias:.2f}" if summary.bias > 2 * summary.bias_se else "-"
        lines.append(
            f"| {summary.mechanism} | {summary.error:.2f} ± {summary.error_se:.2f} "
            f"| {summary.error_by} | {ours.error / summary.error:.2f} "
            f"| {summary.bias:.2f} ± {summary.bias_se:.2f} "
            f"| {summary.bias_by} | {bias} | {summary.settings} |"
        )
    if left_out:
        lines += ["", f"Left out, because a game takes too long: {'; '.join(left_out)}."]
    return "\n".join(lines) + "\n"
