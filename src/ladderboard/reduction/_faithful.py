"""Measures whether a mechanism is faithful: whether its updates are close to the risk.

A probe is a generator of risks, as numbers of wrong examples; it is sent the released value after
each.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ladderboard import _settings
from ladderboard._formatting import format_confidence
from ladderboard.bounds import kl_lower, kl_upper
from ladderboard.reduction._estimator import parse_released_value, require_released_values
from ladderboard.tape import NumpyTape

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from numpy.typing import NDArray

    from ladderboard.mechanisms import Mechanism

_REQUIRED_SHARE = 2 / 3
# Tolerance for floats: half a cell of a grid of 1/sqrt(n) counts as near.
_ROUNDING = 1e-9
_MAX_N = 10**15


def _probe_descend(n: int, questions: int, rng: np.random.Generator) -> Generator[int, float, None]:
    """Improve with every question by a random amount: as many updates as the step allows."""
    left = sorted(rng.integers(0, n // 2 + 1, questions).tolist())
    while left:
        yield left.pop()


def _probe_creep(n: int, _questions: int, rng: np.random.Generator) -> Generator[int, float, None]:
    """Double the gain until the value changes, then start again from the new value."""
    value = yield int(rng.integers(n // 4, n // 2 + 1))
    while True:
        before, gain = value, 1
        while value == before:
            value = yield max(min(round(before * n), n) - gain, 0)
            gain = min(2 * gain, n)


def _probe_leap(n: int, _questions: int, rng: np.random.Generator) -> Generator[int, float, None]:
    """Find a gain that changes the value, then improve by such gains at random."""
    value = yield int(rng.integers(n // 2, n + 1))
    gain = 1.0
    while True:
        before = value
        value = yield min(max(round(before * n - gain * rng.uniform(1, 2)), 0), n)
        if value == before:
            gain = min(2 * gain, n)


def _probe_insist(n: int, _questions: int, rng: np.random.Generator) -> Generator[int, float, None]:
    """Ask about one model again and again: an update is then caused by noise."""
    yield n
    wrong = int(rng.integers(n // 4, n // 2 + 1))
    while True:
        yield wrong


def _probe_guess(n: int, _questions: int, rng: np.random.Generator) -> Generator[int, float, None]:
    """Ask about random guesses, as the majority attack does."""
    while True:
        yield int(rng.binomial(n, 0.5))


PROBES: dict[str, Callable[[int, int, np.random.Generator], Generator[int, float, None]]] = {
    "descend": _probe_descend,
    "creep": _probe_creep,
    "leap": _probe_leap,
    "insist": _probe_insist,
    "guess": _probe_guess,
}


@dataclass(frozen=True)
class ProbeResult:
    """The result of one probe.

    Parameters
    ----------
    probe
        The name of the probe.
    games
        How many games it played.
    kept
        In how many of them every update was within 1/(2 sqrt n) of the risk.
    updates
        How often the value fell, after the first question, in all games.
    within
        How many of these updates were within 1/(2 sqrt n) of the risk.
    low, high
        Confidence limits for the probability that a game is kept.
    """

    probe: str
    games: int
    kept: int
    updates: int
    within: int
    low: float
    high: float


@dataclass(frozen=True)
class Faithfulness:
    """A verdict on a mechanism and the results behind it. True if the verdict is "faithful".

    Parameters
    ----------
    mechanism
        Its settings.
    n, questions
        The size of the sample and of a game.
    confidence
        The probability with which all limits in ``probed`` hold.
    probed
        The result of each probe.
    """

    mechanism: dict[str, Any]
    n: int
    questions: int
    confidence: float
    probed: tuple[ProbeResult, ...]

    @property
    def worst(self) -> ProbeResult:
        """The probe that kept the fewest games; in a tie, the one with the most bad updates."""
        return min(self.probed, key=lambda result: (result.kept, result.within - result.updates))

    @property
    def verdict(self) -> str:
        """Return "faithful", "not faithful" or "undecided".

        "not faithful" holds with the stated confidence: some analyst keeps fewer than two games in
        three. "faithful" means, with that confidence, that none of the probes does; other analysts
        might. A game without an update is kept, so a mechanism that never updates is faithful.
        """
        if any(result.high < _REQUIRED_SHARE for result in self.probed):
            return "not faithful"
        return (
            "faithful"
            if all(result.low >= _REQUIRED_SHARE for result in self.probed)
            else "undecided"
        )

    @property
    def within(self) -> float | None:
        """The share of updates that were within 1/(2 sqrt n) of the risk, under the worst probe."""
        worst = self.worst
        return worst.within / worst.updates if worst.updates else None

    def __bool__(self) -> bool:
        return self.verdict == "faithful"

    def describe(self) -> str:
        """Return the verdict in two sentences."""
        worst = self.worst
        share = (
            " (no update at all)" if self.within is None else f" ({self.within:.0%} of its updates)"
        )
        sure = f"{self.verdict} with confidence {format_confidence(1 - self.confidence)}"
        return (
            f"{sure}. Under the probe {worst.probe!r} every update was within 1/(2 sqrt n) of the "
            f"risk in {worst.kept} of {worst.games} games{share}; "
            "a faithful mechanism keeps two games in three."
        )


def is_faithful(
    mechanism: Mechanism,
    n: int,
    *,
    questions: int = 100,
    games: int = 100,
    confidence: float = 0.99,
    seed: int = 0,
) -> Faithfulness:
    """Estimate how often released updates lie within 1/(2 sqrt n) of the risk on the sample.

    A mechanism is faithful if, whatever the analyst does, with probability 2/3 all its updates
    after the first question do. Five probes play many games each against it, every game on its own
    tape: ``descend`` improves a little every time, ``leap`` by large amounts, ``creep`` looks for
    the smallest gain that is released, ``insist`` repeats one model, ``guess`` guesses at random.

    Parameters
    ----------
    mechanism
        A mechanism that releases values.
    n
        Examples in the sample.
    questions
        Questions in a game. All updates of a game count, so longer games are a stricter test.
    games
        How many games each probe plays. Fewer than 18 cannot show that a mechanism is faithful.
    confidence
        The probability with which all confidence limits hold at once.
    seed
        The same seed gives the same games.

    Examples
    --------
    >>> import ladderboard as lb
    >>> lb.is_faithful(lb.Ladder(step=0.01), n=10_000).verdict
    'faithful'
    >>> lb.is_faithful(lb.Ladder(step=0.05), n=10_000).verdict  # a grid of 5 / sqrt(n)
    'not faithful'

    References
    ----------
    Hardt, "Climbing a shaky ladder", 2017, the definition of faithful algorithms.
    """
    require_released_values(mechanism)
    n = _settings.integer("n", n, at_least=1, at_most=_MAX_N)
    questions = _settings.integer("questions", questions, at_least=2)
    games = _settings.integer("games", games, at_least=1)
    seed = _settings.integer("seed", seed, at_least=0)
    confidence = _settings.number("confidence", confidence, above=0, below=1)
    # Chernoff's bound on each side, for each probe: all limits hold at once.
    nats = math.log(2 * len(PROBES) / (1 - confidence)) / games
    probed = []
    for index, (name, probe) in enumerate(PROBES.items()):
        played = [
            _play_probe(mechanism, n, questions, probe, np.random.default_rng([seed, index, game]))
            for game in range(games)
        ]
        updates, within = (sum(counts) for counts in zip(*played, strict=True))
        faithful_games = sum(near == total for total, near in played)
        low, high = kl_lower(faithful_games / games, nats), kl_upper(faithful_games / games, nats)
        probed.append(ProbeResult(name, games, faithful_games, updates, within, low, high))
    return Faithfulness(mechanism.describe(), n, questions, confidence, tuple(probed))


def _play_probe(
    mechanism: Mechanism,
    n: int,
    questions: int,
    probe: Callable[[int, int, np.random.Generator], Generator[int, float, None]],
    rng: np.random.Generator,
) -> tuple[int, int]:
    """Play one game; return the number of updates, and of those near the risk."""
    session = mechanism.start(n=n, tape=NumpyTape(seed=int(rng.integers(2**63))))
    by_example = mechanism.needs != "risk"
    # Models err on nested sets of examples.
    order: NDArray[np.int64] = rng.permutation(n) if by_example else np.empty(0, dtype=np.int64)
    near = 1 / (2 * math.sqrt(n)) + _ROUNDING
    risks = probe(n, questions, rng)
    wrong, before = next(risks), -math.inf
    updates = within = 0
    for question in range(1, questions + 1):
        risk = wrong / n
        question_data: dict[str, Any] = {"losses": order < wrong} if by_example else {"risk": risk}
        if mechanism.needs_training:  # another sample, of the same size
            question_data["training"] = rng.binomial(n, risk) / n
        value = float(parse_released_value(session.ask(**question_data).value))
        if value < before:
            updates += 1
            within += abs(value - risk) <= near
        before = value
        if question < questions:
            wrong = risks.send(value)
    return updates, within
