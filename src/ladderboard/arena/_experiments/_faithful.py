"""The faithful experiment: which mechanisms are faithful, and what the lower bound costs them."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from ladderboard.arena._experiments._vote_attack import (
    VoteGame,
    VoteRow,
    draw_votes,
    summarize_votes,
)
from ladderboard.arena._figures import require_matplotlib
from ladderboard.arena._runner import STANDARD_MECHANISMS, ExperimentRun
from ladderboard.mechanisms import Ladder, ShakyLadder
from ladderboard.reduction import is_faithful

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from ladderboard.arena._experiments._vote_attack import VoteSummary
    from ladderboard.mechanisms import Mechanism

_NO_VALUE = "tells no value"
# Seconds for a question, measured on one core: mechanisms that read a risk, or every loss.
_SECONDS_PER_RISK, _SECONDS_PER_LOSSES = 1e-5, 1e-4

_ATTACK = """\
# The majority attack through the reduction

Labels are coins. A general estimator, which works through the mechanism, is asked about k random
guesses, each of which then votes, and last about the vote. Its *alpha* is 1/(3(k+1)), the
largest with which k+1 queries fit; it promises answers within alpha of the truth as long as the
mechanism's leaderboard error stays below alpha/4. The vote's true risk is 1/2, so its *bias* is
what it learned about the sample, and an estimator that answers close to sample means is wrong by
that much: *error of the answer*, over the games in which the vote was answered, *voted* of all.

√(k/n)/π is the bias that exact answers give away, to first order in k/n; *exact answers* is its
mean without approximation. *answered* is how many of the k guesses got an answer, on average: the
estimator refuses once its threshold is spent, which happens early only if the mechanism's error
reached alpha/4. The vote of m guesses, exactly answered, gives away about √(m/n)/π. *spent* counts
the games in which the threshold was spent before k answers; if any, the figure's
marker is hollow. *farthest* is the largest distance of an answer from its sample mean. Bias,
errors, distances and alpha are in units of 1/√n; ± is one standard deviation over the games, which
share their labels and guesses between mechanisms.

![Bias of the vote against the number of guesses, one line a mechanism](faithful.png)"""
_ATTACK_HEADS = (
    "k",
    "mechanism",
    "games",
    "bias",
    "√(k/n)/π",
    "exact answers",
    "answered",
    "spent",
    "voted",
    "error of the answer",
    "farthest",
    "alpha",
)
_VERDICTS = """\
## Which mechanisms are faithful

A mechanism is faithful if with probability 2/3 all its updates in a game, after the first
question, are within 1/(2√n) of the risk, whatever the analyst asks. `is_faithful` lets five
probes try it; the *worst* is that under which the fewest games were *kept*, every update within
that distance. *limits* are for the probability that a game is kept, all five probes' at once
with the *confidence* stated; *within* is the share of the *updates* that were near enough. "Not
faithful" holds with that confidence; "faithful" says that none of these probes found otherwise.
A mechanism that never updates is faithful by definition. `shaky_ladder` is calibrated for the
questions that are asked, or for the number of them beside its name. Steps and grids are in units
of 1/√n."""
_VERDICT_HEADS = (
    "mechanism",
    "step",
    "grid",
    "verdict",
    "confidence",
    "worst",
    "kept",
    "limits",
    "updates",
    "within",
)

_MECHANISMS = ("exact", "ladder_tiny", "ladder", "parameter_free_ladder", "noisy", "shaky_ladder")
_KS = (3, 10, 30, 100, 300)
_SIZES = {1_000: _KS, 10_000: _KS}
_QUICK_SIZES = {300: _KS[:3], 1_000: _KS[:3]}
_REPETITIONS, _QUICK_REPETITIONS = 20, 3
_BUDGET = 40.0  # seconds for a pair and size, but at least five games
_MIN_GAMES = 5
_QUESTIONS = 100
_PROBE_GAMES, _QUICK_PROBE_GAMES = 100, 20

PROBED_MECHANISMS: dict[str, Callable[[int, int], Mechanism]] = {
    **STANDARD_MECHANISMS,
    "ladder_half": lambda n, _k: Ladder(step=0.5 / math.sqrt(n)),
    "ladder_coarse": lambda n, _k: Ladder(step=4 / math.sqrt(n)),
    # Calibrated for longer games than are played here.
    "shaky_ladder, 1,000": lambda n, _k: ShakyLadder.calibrated(n=n, questions=1_000),
    "shaky_ladder, 10,000": lambda n, _k: ShakyLadder.calibrated(n=n, questions=10_000),
}


@dataclass(frozen=True)
class FaithfulnessRow:
    """The result of ``is_faithful`` for a mechanism, with its worst probe.

    ``kept`` of ``games`` had every update within 1/(2 sqrt n) of the risk, and ``within`` is the
    part of ``updates`` that were; ``low`` and ``high`` limit the probability that a game is kept.
    """

    mechanism: str
    n: int
    verdict: str
    questions: int
    games: int
    confidence: float | None = None
    probe: str | None = None
    kept: int | None = None
    low: float | None = None
    high: float | None = None
    updates: int | None = None
    within: float | None = None


@dataclass(frozen=True)
class FaithfulnessTask:
    """All probes against one mechanism."""

    label: str
    n: int
    questions: int
    games: int
    seed: int

    @property
    def _mechanism(self) -> Mechanism:
        return PROBED_MECHANISMS[self.label](self.n, self.questions)

    @property
    def weight(self) -> float:
        """Roughly how many seconds it takes."""
        slow = self._mechanism.needs != "risk"
        return (
            5 * self.games * self.questions * (_SECONDS_PER_LOSSES if slow else _SECONDS_PER_RISK)
        )

    def describe(self) -> dict[str, Any]:
        """Return mechanism, size and seed."""
        return {"kind": "probing", **vars(self), "mechanism": self._mechanism.describe()}

    def accepts(self, result: Any) -> bool:
        """Return whether a stored row is about this mechanism at this size."""
        try:
            row = FaithfulnessRow(**result)
        except TypeError:
            return False
        mine = (self.label, self.n, self.questions, self.games)
        return (row.mechanism, row.n, row.questions, row.games) == mine and (
            row.verdict == _NO_VALUE or type(row.kept) is int
        )

    def run(self, threads: int | None) -> dict[str, Any]:
        """Run all probes and return the row."""
        mechanism = self._mechanism
        key = (self.label, self.n)
        if mechanism.hides_value:
            return asdict(FaithfulnessRow(*key, _NO_VALUE, self.questions, self.games))
        result = is_faithful(
            mechanism, self.n, questions=self.questions, games=self.games, seed=self.seed
        )
        worst = result.worst
        return asdict(
            FaithfulnessRow(
                *key,
                result.verdict,
                self.questions,
                self.games,
                result.confidence,
                worst.probe,
                worst.kept,
                worst.low,
                worst.high,
                worst.updates,
                result.within,
            )
        )


def faithful_markdown(cells: Sequence[VoteSummary], verdicts: Sequence[FaithfulnessRow]) -> str:
    """Return both tables and the meaning of their columns."""
    lines = [_ATTACK]
    for n in dict.fromkeys(cell.n for cell in cells):
        lines += _table_head(f"## The attack, n = {n:,}", _ATTACK_HEADS, "|---|---" + "|---:" * 10)
        lines += [_attack_line(cell) for cell in cells if cell.n == n]
    lines += ["", _VERDICTS]
    for n in dict.fromkeys(verdict.n for verdict in verdicts):
        panel = [verdict for verdict in verdicts if verdict.n == n]
        title = f"### n = {n:,}, {panel[0].questions:,} questions, {panel[0].games:,} games a probe"
        lines += _table_head(
            title, _VERDICT_HEADS, "|---|---:|---:|---|---:|---|---:|---:|---:|---:"
        )
        lines += [_verdict_line(verdict) for verdict in panel]
    return "\n".join(lines) + "\n"


def _table_head(title: str, heads: Sequence[str], rule: str) -> list[str]:
    return ["", title, "", f"| {' | '.join(heads)} |", f"{rule}|"]


def _attack_line(cell: VoteSummary) -> str:
    unit = math.sqrt(cell.n)
    error = "" if cell.last_error_mean is None else f"{cell.last_error_mean * unit:.2f}"
    spread = f" ± {cell.bias_std * unit:.2f}" if cell.games > 1 else ""
    values = (
        f"{cell.k}",
        cell.mechanism,
        f"{cell.games}",
        f"{cell.bias_units:.2f}{spread}",
        f"{cell.line * unit:.2f}",
        f"{cell.exact_mean * unit:.2f}",
        f"{cell.answered_mean:.1f}",
        f"{cell.spent}",
        f"{cell.voted}",
        error,
        f"{cell.farthest * unit:.2f}",
        f"{cell.alpha * unit:.3g}",
    )
    return f"| {' | '.join(values)} |"


def _verdict_line(row: FaithfulnessRow) -> str:
    unit = math.sqrt(row.n)
    mechanism = PROBED_MECHANISMS[row.mechanism](row.n, row.questions)
    settings = mechanism.comparison(row.n)
    grid = 0.0 if mechanism.hides_value else settings.grid
    sizes = [f"{size * unit:.3g}" if size else "" for size in (settings.step, grid)]
    measured = [""] * 6
    if row.confidence is not None:
        measured = [
            f"{row.confidence:.0%}",
            f"{row.probe}",
            f"{row.kept} of {row.games}",
            f"{row.low:.2f} to {row.high:.2f}",
            f"{row.updates}",
            "" if row.within is None else f"{row.within:.0%}",
        ]
    return f"| {' | '.join([row.mechanism, *sizes, row.verdict, *measured])} |"


def faithful_experiment(
    out: Path | str,
    *,
    quick: bool = False,
    repetitions: int | None = None,
    seed: int = 0,
    workers: int | None = None,
    cluster: str | None = None,
    progress: bool = False,
) -> list[Path]:
    """Run the majority attack through the reduction, probe mechanisms, and return the files.

    Labels are coins. The attacker asks a ``GeneralEstimator`` about k guesses, and last about
    their vote. The figure shows the vote's bias against k beside sqrt(k/n)/pi: with exact answers
    the vote is right on a label with probability P(Bin(k, p) > k/2) and half that of a tie,
    p = 1/2 + 1/sqrt(2 pi n) nearly, which is 1/2 + sqrt(k/n)/pi to first order for k far below n.

    ``games.csv`` has a row for each game, ``attack.csv`` one for each mechanism and size,
    ``faithful.csv`` the result of ``is_faithful`` for every mechanism, ``table.md`` both tables.
    Unless repetitions are given, slow games are repeated less often.
    """
    require_matplotlib()
    study = ExperimentRun(out, quick, repetitions, seed, workers, cluster, progress)
    games = _vote_games(study)
    probings = [
        FaithfulnessTask(
            label, n, _QUESTIONS, _QUICK_PROBE_GAMES if quick else _PROBE_GAMES, study.seed
        )
        for n in (_QUICK_SIZES if quick else _SIZES)
        for label in PROBED_MECHANISMS
    ]
    results = study.run_tasks([*games, *probings], "faithful")
    votes = [VoteRow(**result) for result in results[: len(games)]]
    verdicts = [FaithfulnessRow(**result) for result in results[len(games) :]]
    cells = summarize_votes(votes)
    study.write_csv("games.csv", [asdict(vote) for vote in votes])
    study.write_csv("attack.csv", [asdict(cell) for cell in cells])
    study.write_csv("faithful.csv", [asdict(verdict) for verdict in verdicts])
    study.write("table.md", faithful_markdown(cells, verdicts))
    draw_votes(study, "faithful", cells)
    return study.written


def _vote_games(study: ExperimentRun) -> list[VoteGame]:
    """Return all games, in the order of the rows."""
    default = study.repetitions or (_QUICK_REPETITIONS if study.quick else _REPETITIONS)
    games = []
    for n, ks in (_QUICK_SIZES if study.quick else _SIZES).items():
        for k in ks:
            for label in _MECHANISMS:
                count = default
                if study.repetitions is None:
                    seconds = VoteGame(label, n, k, 0, study.seed).weight
                    count = min(default, max(_MIN_GAMES, int(_BUDGET / seconds)))
                games += [
                    VoteGame(label, n, k, repetition, study.seed) for repetition in range(count)
                ]
    return games
