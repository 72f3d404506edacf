"""The calibrated Shaky Ladder beside its peers, at their worst."""

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
# How often a pair plays, by the number of questions times examples; short games are cheap.
_REPETITIONS = ((10**7, 24), (10**12, 12))
_FEW_QUESTIONS, _MANY_GAMES = 100, 40
_MAX_SECONDS = 30.0  # seconds a game; what takes longer is left out
_BUDGET = 6.0  # seconds a pair, but three games at least


@dataclass(frozen=True)
class MechanismSummary:
    """A mechanism at one size, in units of 1/sqrt(n), with standard errors.

    ``error`` is the largest mean leaderboard error over the analysts, ``bias`` the largest that an
    attack's last model keeps.
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


def calibrated_experiment(
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

    Every mechanism meets attacks and honest analysts; it is as good as its worst mean leaderboard
    error. The Ladder plays with several steps, and the one with the least worst error counts.
    Pairs that take long play fewer games. ``standings.csv`` and ``table.md`` have a row a
    mechanism and size, ``rows.csv`` one a game.
    """
    study = ExperimentRun(out, quick, repetitions, seed, workers, cluster, progress)
    makers = _make_factories((1, 2) if quick else _STEPS)
    players = resolve_analysts([*_ATTACKS, *_HONEST])
    sizes = _QUICK_SIZES if quick else _SIZES
    usual = study.repetitions or (4 if quick else None)
    left_out: list[str] = []

    def games(label: str, name: str, n: int, k: int) -> int:
        if study.repetitions is not None:
            return study.repetitions
        # The one-bit attack looks at every example for every question.
        slow = max(n / 10_000, 0.5) if name == "one_bit" else 1.0
        seconds = estimate_seconds(makers[label](n, k), players[name], n, k) * slow
        if seconds > _MAX_SECONDS:
            where = f"{name} at n = {n:,}, {k:,} questions"
            left_out.extend([where] if where not in left_out else [])
            return 0
        return min(usual or _max_games(n, k), max(3, int(_BUDGET / seconds)))

    tasks = make_matches(makers, players, sizes, games, study.seed)
    rows = [GameRow.from_json(each) for each in study.run_tasks(tasks, "comparison")]
    cells = summarize_pairs(rows, 1)
    standings = [
        standing
        for size in sizes
        for standing in _summarize_size(
            [cell for cell in cells if (cell.n, cell.k) == size], makers
        )
    ]
    study.write_csv("rows.csv", [asdict(row) for row in rows])
    study.write_csv("standings.csv", [asdict(each) for each in standings])
    study.write("table.md", _summary_markdown(standings, left_out))
    return study.written


def _max_games(n: int, k: int) -> int:
    """Return how many games a pair plays at most."""
    if k <= _FEW_QUESTIONS:
        return _MANY_GAMES
    return next(games for size, games in _REPETITIONS if n * k <= size)


def _make_factories(steps: Sequence[float]) -> dict[str, MechanismFactory]:
    makers: dict[str, MechanismFactory] = {
        name: STANDARD_MECHANISMS[name] for name in (*_PEERS, _OURS)
    }
    makers["shaky_ladder, noise standing"] = _shaky_with_standing_noise
    return makers | {f"ladder {step:g}": _ladder_factory(step) for step in steps}


def _ladder_factory(step: float) -> MechanismFactory:
    return lambda n, _k: Ladder(step=step / math.sqrt(n))


def _shaky_with_standing_noise(n: int, k: int) -> Mechanism:
    """Return the calibrated settings with half of the compare noise's variance made to stand."""
    ours = ShakyLadder.calibrated(n=n, questions=k)
    half = round(ours.compare_noise / math.sqrt(2), 12)
    return ShakyLadder(ours.step, half, ours.release_noise, grid=ours.grid)


def _summarize_size(
    cells: list[PairSummary], makers: dict[str, MechanismFactory]
) -> list[MechanismSummary]:
    """Return where each mechanism stands at one size; of the Ladders the best."""
    by_name: dict[str, list[PairSummary]] = {}
    for cell in cells:
        by_name.setdefault(cell.mechanism, []).append(cell)
    found = [_summarize_mechanism(name, group, makers) for name, group in by_name.items()]
    ladders = [each for each in found if each.mechanism.startswith("ladder ")]
    best = min(ladders, key=lambda each: each.error)
    named = MechanismSummary(**{**asdict(best), "mechanism": _LADDER})
    peers = [each for each in found if each.mechanism in _PEERS]
    ours = [each for each in found if each not in peers and each not in ladders]
    return [*peers, named, *ours]


def _summarize_mechanism(
    name: str, cells: list[PairSummary], makers: dict[str, MechanismFactory]
) -> MechanismSummary:
    unit = math.sqrt(cells[0].n)
    error = max(cells, key=lambda cell: cell.error_mean)
    attacks = [cell for cell in cells if cell.analyst in _ATTACKS]
    bias = max(attacks, key=lambda cell: cell.bias_mean)
    mechanism = makers[name](cells[0].n, cells[0].k)
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


def _summary_markdown(standings: list[MechanismSummary], left_out: list[str]) -> str:
    lines = [
        "# The calibrated Shaky Ladder and its peers",
        "",
        "In units of 1/√n. *error* is the largest mean leaderboard error over the analysts, *bias*",
        "the largest mean bias an attack's last model keeps, each ± its standard error, *by* whom;",
        f"attacks: {', '.join(_ATTACKS)}; honest: {', '.join(_HONEST)}. The Ladder has the step",
        f"with the least error of {', '.join(f'{step:g}' for step in _STEPS)}. *ours : it*",
        "divides the calibrated Shaky Ladder's by this one.",
    ]
    ours_at = {(each.n, each.k): each for each in standings if each.mechanism == _OURS}
    size = None
    for each in standings:
        ours = ours_at[each.n, each.k]
        if size != (each.n, each.k):
            size = (each.n, each.k)
            lines += [
                "",
                f"## n = {each.n:,}, {each.k:,} questions",
                "",
                "| mechanism | error | by | ours : it | bias | by | ours : it | settings |",
                "|---|---:|---|---:|---:|---|---:|---|",
            ]
        bias = f"{ours.bias / each.bias:.2f}" if each.bias > 2 * each.bias_se else "-"
        lines.append(
            f"| {each.mechanism} | {each.error:.2f} ± {each.error_se:.2f} | {each.error_by} "
            f"| {ours.error / each.error:.2f} | {each.bias:.2f} ± {each.bias_se:.2f} "
            f"| {each.bias_by} | {bias} | {each.settings} |"
        )
    if left_out:
        lines += ["", f"Left out, because a game takes too long: {'; '.join(left_out)}."]
    return "\n".join(lines) + "\n"
