"""The majority attack on a general estimator: games, summaries and figure."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from ladderboard._version import __version__
from ladderboard.arena._figures import draw_figure, line_styles
from ladderboard.arena._majority import majority_attack_moments
from ladderboard.arena._runner import STANDARD_MECHANISMS, repetition_seed
from ladderboard.errors import BudgetSpent
from ladderboard.reduction import GeneralEstimator
from ladderboard.tape import Tape

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ladderboard.arena._runner import ExperimentRun
    from ladderboard.mechanisms import Mechanism

_MAX_QUESTIONS = 10**6  # the largest calibrated size
# Seconds for a classifier, measured on one core: mechanisms that read a risk, or every loss.
_SECONDS_PER_RISK, _SECONDS_PER_LOSSES = 2.8e-5, 1.4e-4

_GREY = "#444444"
_APART = 1.025  # horizontal distance between mechanisms, which may have the same values


def vote_alpha(k: int) -> Fraction:
    """Return the largest alpha that allows k guesses and their vote."""
    return Fraction(1, 3 * (k + 1))


def make_voter(label: str, n: int, k: int) -> Mechanism:
    """Return a standard mechanism with settings for all classifiers that k guesses may need."""
    return STANDARD_MECHANISMS[label](n, min(math.floor(1 / vote_alpha(k) ** 2), _MAX_QUESTIONS))


@dataclass(frozen=True)
class VoteRow:
    """One game, with everything needed to run it again.

    ``answered`` is how many of the k guesses were answered before the threshold was spent,
    ``classifiers`` how many the mechanism was given, ``bias`` how much better the vote looks on the
    holdout than it is, ``last_error`` how far the answer about the vote is from the truth, None if
    there was no answer, ``farthest`` the largest distance of an answer from its sample mean.
    """

    mechanism: str
    n: int
    k: int
    repetition: int
    seed: int
    version: str
    answered: int
    classifiers: int
    bias: float
    last_error: float | None
    farthest: float


@dataclass(frozen=True)
class VoteGame:
    """One repetition of the attack against a standard mechanism."""

    label: str
    n: int
    k: int
    repetition: int
    seed: int

    @property
    def weight(self) -> float:
        """Roughly how many seconds it takes, if the threshold lasts."""
        # A guess has mean 1/2, so it needs half of the classifiers.
        classifiers = (self.k + 1) / (2 * float(vote_alpha(self.k)))
        slow = make_voter(self.label, self.n, self.k).needs != "risk"
        return classifiers * (_SECONDS_PER_LOSSES if slow else _SECONDS_PER_RISK)

    def describe(self) -> dict[str, Any]:
        """Return mechanism, size and seed."""
        settings = make_voter(self.label, self.n, self.k).describe()
        return {"kind": "vote", **vars(self), "mechanism": settings}

    def accepts(self, result: Any) -> bool:
        """Return whether a stored vote belongs to this game and holds numbers."""
        try:
            vote = VoteRow(**result)
            mine = (self.label, self.n, self.k, self.repetition)
            last_error = 0.0 if vote.last_error is None else vote.last_error
            return (vote.mechanism, vote.n, vote.k, vote.repetition) == mine and all(
                type(number) in (int, float) and math.isfinite(number)
                for number in (
                    vote.answered,
                    vote.classifiers,
                    vote.bias,
                    last_error,
                    vote.farthest,
                )
            )
        except TypeError:
            return False

    def run(self, threads: int | None) -> dict[str, Any]:
        """Guess, vote, ask about the vote, and return the row."""
        game_seed = repetition_seed(self.seed, "vote", self.n, self.k, self.repetition)
        # Neither the labels nor the guesses depend on the mechanism.
        rng = np.random.default_rng(game_seed)
        estimator = _TrackedEstimator(
            make_voter(self.label, self.n, self.k), self.n, self.k, game_seed
        )
        labels = _coin_flips(rng, self.n)
        votes = np.zeros(self.n, dtype=np.int64)
        answered = 0
        for _ in range(self.k):
            guess = _coin_flips(rng, self.n)
            answer = estimator.ask(guess != labels)
            if answer is None:
                break
            answered += 1
            # As MajorityAttack with keep="signed".
            votes += np.where(guess == (answer < 0.5), 1, -1)
        wrong = (votes >= 0) != labels
        last = estimator.ask(wrong)
        return asdict(
            VoteRow(
                mechanism=self.label,
                n=self.n,
                k=self.k,
                repetition=self.repetition,
                seed=game_seed,
                version=__version__,
                answered=answered,
                classifiers=estimator.estimator.classifiers,
                bias=0.5 - int(wrong.sum()) / self.n,
                # Labels are coins, so the true mean is 1/2 whatever the vote.
                last_error=None if last is None else abs(last - 0.5),
                farthest=estimator.farthest,
            )
        )


class _TrackedEstimator:
    """An estimator that records how far its answers were from the sample means."""

    def __init__(self, mechanism: Mechanism, n: int, k: int, seed: int) -> None:
        tape = Tape(seed=seed)
        self.estimator = GeneralEstimator(mechanism, n=n, alpha=vote_alpha(k), tape=tape)
        self.farthest = 0.0

    def ask(self, wrong: Any) -> float | None:
        """Return the answer to a query of zeros and ones, or None if the threshold is spent."""
        try:
            answer = self.estimator.ask(wrong.astype(float)).value
        except BudgetSpent:
            return None
        self.farthest = max(self.farthest, abs(answer - int(wrong.sum()) / len(wrong)))
        return answer


def _coin_flips(rng: np.random.Generator, n: int) -> Any:
    return rng.integers(0, 2, n, dtype=np.uint8).astype(bool)


@dataclass(frozen=True)
class VoteSummary:
    """One mechanism at one n and k.

    ``line`` is ``expected_bias(n, k)``, ``exact_mean`` the mean bias if all k answers were exact,
    ``spent`` in how many games the threshold was spent before k answers, ``voted`` in how many the
    vote was answered too; ``last_error_mean`` is over these, and None if there are none.
    """

    n: int
    k: int
    mechanism: str
    games: int
    alpha: float
    bias_mean: float
    bias_std: float
    bias_units: float
    line: float
    exact_mean: float
    answered_mean: float
    spent: int
    voted: int
    last_error_mean: float | None
    farthest: float


def expected_bias(n: int, k: float) -> float:
    """Return sqrt(k/n)/pi, the mean bias for exact answers to first order in k/n.

    An exactly answered guess is right on a label with probability p = 1/2 + 1/sqrt(2 pi n), nearly;
    the vote is where Bin(k, p) is above k/2, half of the ties counted.
    """
    return math.sqrt(k / n) / math.pi


def summarize_votes(votes: Iterable[VoteRow]) -> list[VoteSummary]:
    """Return a summary for each mechanism and size."""
    groups: dict[tuple[int, int, str], list[VoteRow]] = {}
    for vote in votes:
        groups.setdefault((vote.n, vote.k, vote.mechanism), []).append(vote)
    return [_summarize_votes(*key, group) for key, group in groups.items()]


def _summarize_votes(n: int, k: int, mechanism: str, votes: list[VoteRow]) -> VoteSummary:
    biases = np.array([vote.bias for vote in votes])
    errors = [vote.last_error for vote in votes if vote.last_error is not None]
    return VoteSummary(
        n,
        k,
        mechanism,
        games=len(votes),
        alpha=float(vote_alpha(k)),
        bias_mean=float(biases.mean()),
        bias_std=float(biases.std(ddof=1)) if len(votes) > 1 else 0.0,
        bias_units=float(biases.mean()) * math.sqrt(n),
        line=expected_bias(n, k),
        exact_mean=0.5 - majority_attack_moments(n, k).mean,
        answered_mean=float(np.mean([vote.answered for vote in votes])),
        spent=sum(vote.answered < k for vote in votes),
        voted=len(errors),
        last_error_mean=float(np.mean(errors)) if errors else None,
        farthest=max(vote.farthest for vote in votes),
    )


def draw_votes(study: ExperimentRun, name: str, cells: Sequence[VoteSummary]) -> None:
    """Draw a line for each mechanism and a panel for each n; hollow if the threshold was spent."""
    from matplotlib.lines import Line2D  # noqa: PLC0415 - heavy, and optional
    from matplotlib.ticker import NullFormatter  # noqa: PLC0415

    sizes = sorted({cell.n for cell in cells})
    styles = line_styles(list(dict.fromkeys(cell.mechanism for cell in cells)))
    size = (1.2 + 3.4 * len(sizes), 4.2)
    with draw_figure(study, name, 1, len(sizes), size, sharey=True) as (figure, axes):
        for axis, n in zip(axes.flat, sizes, strict=True):
            ks = sorted({cell.k for cell in cells if cell.n == n})
            fine = np.geomspace(ks[0], ks[-1], 40).tolist()
            line = [expected_bias(n, k) * math.sqrt(n) for k in fine]
            axis.plot(fine, line, color=_GREY, linewidth=1.2, linestyle="--", zorder=2.5)
            for index, (mechanism, style) in enumerate(styles.items()):
                shift = _APART ** (index - (len(styles) - 1) / 2)
                points = [cell for cell in cells if (cell.n, cell.mechanism) == (n, mechanism)]
                _draw_line(axis, points, shift, style)
            axis.axhline(0, color=_GREY, linewidth=0.8, linestyle=":")
            axis.set(xscale="log", title=f"n = {n:,}", xlabel="number of guesses k")
            axis.set_xticks(ks, [f"{k:,}" for k in ks])
            axis.xaxis.set_minor_formatter(NullFormatter())
        axes.flat[0].set_ylabel(
            "bias of the vote, in units of 1/√n\n(bars: one standard deviation)"
        )
        handles: list[Any] = [
            Line2D([], [], markersize=4.5, linewidth=1.2, label=mechanism, **style)
            for mechanism, style in styles.items()
        ]
        handles += [
            Line2D([], [], color=_GREY, linestyle="--", linewidth=1.2, label="√(k/n)/π"),
            Line2D(
                *([], []),
                color=_GREY,
                marker="o",
                markerfacecolor="white",
                linestyle="",
                label="hollow: threshold spent before k answers",
            ),
        ]
        figure.legend(handles=handles, loc="outside upper center", ncols=4)


def _draw_line(
    axis: Any, cells: Sequence[VoteSummary], shift: float, style: dict[str, Any]
) -> None:
    """Draw one mechanism, with separate markers, since some are hollow."""
    ks = [cell.k * shift for cell in cells]
    biases = [cell.bias_units for cell in cells]
    bars = [cell.bias_std * math.sqrt(cell.n) for cell in cells]
    colour = style["color"]
    axis.errorbar(ks, biases, bars, linewidth=1.2, elinewidth=0.8, capsize=2, color=colour)
    for k, bias, cell in zip(ks, biases, cells, strict=True):
        face = "white" if cell.spent else colour
        axis.plot([k], [bias], **style, markerfacecolor=face, markersize=4.5, zorder=3)
