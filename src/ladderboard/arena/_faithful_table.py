"""The page of the experiment: the attack's table and that of the verdicts."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ladderboard.arena._probing import PROBED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ladderboard.arena._probing import Verdict
    from ladderboard.arena._vote_cells import VoteCell

__all__ = ["markdown"]

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
the games in which the threshold was spent before k answers; where there are any, the figure's
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
## Who is faithful

A mechanism is faithful if with probability 2/3 all its updates in a game, after the first
question, are within 1/(2√n) of the risk, whoever asks. `is_faithful` lets five probes try it;
the *worst* is that under which the fewest games were *kept*, every update within that distance.
*limits* are for the probability that a game is kept, all five probes' at once with the
*confidence* stated; *within* is the share of the *updates* that were near enough. "Not faithful"
holds with that confidence; "faithful" says that none of these probes found otherwise, and who
never updates is faithful by the letter. `shaky_ladder` is calibrated for the questions that are
asked, or for the number of them beside its name. Steps and grids are in units of 1/√n."""
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


def markdown(cells: Sequence[VoteCell], verdicts: Sequence[Verdict]) -> str:
    """Return both tables, with what their columns mean."""
    lines = [_ATTACK]
    for n in dict.fromkeys(cell.n for cell in cells):
        lines += _head(f"## The attack, n = {n:,}", _ATTACK_HEADS, "|---|---" + "|---:" * 10)
        lines += [_attacked(cell) for cell in cells if cell.n == n]
    lines += ["", _VERDICTS]
    for n in dict.fromkeys(each.n for each in verdicts):
        here = [each for each in verdicts if each.n == n]
        title = f"### n = {n:,}, {here[0].questions:,} questions, {here[0].games:,} games a probe"
        lines += _head(title, _VERDICT_HEADS, "|---|---:|---:|---|---:|---|---:|---:|---:|---:")
        lines += [_judged(each) for each in here]
    return "\n".join(lines) + "\n"


def _head(title: str, heads: Sequence[str], rule: str) -> list[str]:
    return ["", title, "", f"| {' | '.join(heads)} |", f"{rule}|"]


def _attacked(cell: VoteCell) -> str:
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


def _judged(found: Verdict) -> str:
    unit = math.sqrt(found.n)
    mechanism = PROBED[found.mechanism](found.n, found.questions)
    step, grid = getattr(mechanism, "step", None), getattr(mechanism, "grid", None)
    if grid is None and mechanism.name == "ladder":
        grid = step  # what it is if left out
    sizes = ["" if each is None else f"{each * unit:.3g}" for each in (step, grid)]
    measured = [""] * 6
    if found.confidence is not None:
        measured = [
            f"{found.confidence:.0%}",
            f"{found.probe}",
            f"{found.kept} of {found.games}",
            f"{found.low:.2f} to {found.high:.2f}",
            f"{found.updates}",
            "" if found.within is None else f"{found.within:.0%}",
        ]
    return f"| {' | '.join([found.mechanism, *sizes, found.verdict, *measured])} |"
