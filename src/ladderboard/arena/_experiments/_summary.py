"""Summaries of the games of one pair at one size, and how many games to play."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ladderboard.analysts import Analyst
    from ladderboard.arena._runner import GameRow
    from ladderboard.mechanisms import Mechanism

_HEADS = (
    "mechanism",
    "games",
    "error",
    "worst",
    "error·√n",
    "bias",
    "bias·√n",
    "changes",
    "seconds",
    "",
)

# Seconds for a question, measured on one core at n = 10,000; others are fast.
_SECONDS_PER_QUESTION = {
    "hyperparameter_search": 1.2e-2,
    "log_loss": 6e-4,
    "one_bit": 4e-4,
    "multiclass": 3e-4,
    "abstaining": 3e-4,
    "sybil": 3e-4,
}
_FAST_SECONDS = 1e-4
# Mechanisms that read every loss: seconds for an example and question.
_SECONDS_PER_LOSS = 2e-8


@dataclass(frozen=True)
class PairSummary:
    """One mechanism against one analyst at one size.

    Errors and biases are on the risk scale; those that end in ``_units`` are multiplied by
    sqrt(n), in units of the standard error.
    """

    n: int
    k: int
    analyst: str
    mechanism: str
    repetitions: int
    error_mean: float
    error_std: float
    error_worst: float
    bias_mean: float
    bias_std: float
    changes_mean: float
    asked_mean: float
    seconds_mean: float
    error_units: float
    bias_units: float
    note: str = ""


def summarize_pairs(rows: Iterable[GameRow], wanted: int) -> list[PairSummary]:
    """Return a summary of each pair and size; one with too few repetitions gets a note."""
    groups: dict[tuple[int, int, str, str], list[GameRow]] = {}
    for row in rows:
        groups.setdefault((row.n, row.k, row.analyst, row.mechanism), []).append(row)
    return [_summarize_pair(key, group, wanted) for key, group in groups.items()]


def _summarize_pair(
    key: tuple[int, int, str, str], rows: list[GameRow], wanted: int
) -> PairSummary:
    errors = np.array([row.leaderboard_error for row in rows])
    biases = np.array([row.bias for row in rows])
    unit = math.sqrt(key[0])
    fewer = f"slow: {len(rows)} of {wanted} repetitions" if len(rows) < wanted else ""
    return PairSummary(
        *key,
        repetitions=len(rows),
        error_mean=float(errors.mean()),
        error_std=_std(errors),
        error_worst=float(errors.max()),
        bias_mean=float(biases.mean()),
        bias_std=_std(biases),
        changes_mean=float(np.mean([row.changes for row in rows])),
        asked_mean=float(np.mean([row.asked for row in rows])),
        seconds_mean=float(np.mean([row.seconds for row in rows])),
        error_units=float(errors.mean()) * unit,
        bias_units=float(biases.mean()) * unit,
        note=fewer,
    )


def _std(values: Any) -> float:
    return float(values.std(ddof=1)) if len(values) > 1 else 0.0


def _format_mean(mean: float, std: float, games: int) -> str:
    """Format a mean and its standard deviation, which a single game lacks."""
    return f"{mean:.4f} ± {std:.4f}" if games > 1 else f"{mean:.4f}"


def pairs_markdown(cells: Sequence[PairSummary], left_out: Sequence[str] = ()) -> str:
    """Return the summaries as Markdown tables, with a list of what was left out."""
    lines = [
        "# Mechanisms against analysts",
        "",
        "*error* is the leaderboard error (Definition 1 of the paper), mean ± standard deviation",
        "over the repetitions; *bias* is how much better the analyst's last model looks on the",
        "holdout than it is; *changes* is how often the board moved; *seconds* is for one game.",
        "The error compares the board with the best true risk so far, the bias is about the last",
        "model alone: an attack may end with a model that looks far better than the board says.",
    ]
    before = None
    for cell in cells:
        if before != (cell.n, cell.k, cell.analyst):
            before = (cell.n, cell.k, cell.analyst)
            lines += [
                "",
                f"## {cell.analyst}, n = {cell.n:,}, k = {cell.k:,}",
                "",
                f"| {' | '.join(_HEADS)} |",
                f"|---{'|---:' * (len(_HEADS) - 2)}|---|",
            ]
        values = (
            cell.mechanism.replace("|", "\\|"),
            f"{cell.repetitions}",
            _format_mean(cell.error_mean, cell.error_std, cell.repetitions),
            f"{cell.error_worst:.4f}",
            f"{cell.error_units:.2f}",
            _format_mean(cell.bias_mean, cell.bias_std, cell.repetitions),
            f"{cell.bias_units:.2f}",
            f"{cell.changes_mean:.1f}",
            f"{cell.seconds_mean:.2g}",
            cell.note,
        )
        lines.append(f"| {' | '.join(values)} |")
    if left_out:
        lines += ["", "## Left out", "", *(f"- {reason}" for reason in left_out)]
    return "\n".join(lines) + "\n"


def estimate_seconds(mechanism: Mechanism, analyst: Analyst, n: int, k: int) -> float:
    """Return roughly how many seconds one game takes."""
    question = _SECONDS_PER_QUESTION.get(getattr(analyst, "name", ""), _FAST_SECONDS)
    return k * (question + (_SECONDS_PER_LOSS * n if mechanism.needs != "risk" else 0.0))


@dataclass(frozen=True)
class TimeBudget:
    """Seconds per game from which few games, a single one, or none are played."""

    few: float
    one: float
    none: float

    def games(self, usual: int, seconds: float) -> int:
        """Return how many games to play if one takes this many seconds."""
        if seconds >= self.none:
            return 0
        if seconds >= self.one:
            return 1
        return min(usual, 3) if seconds >= self.few else usual


FULL_BUDGET = TimeBudget(few=2, one=10, none=60)
QUICK_BUDGET = TimeBudget(few=0.2, one=0.2, none=2)
