"""Faithfulness, measured: whether a mechanism that updates says something close to the risk.

A probe is a generator of risks, in numbers of examples got wrong; it is sent the value that stands
after each.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ladderboard import _settings
from ladderboard._formatting import format_confidence as digits
from ladderboard.bounds import kl_lower, kl_upper
from ladderboard.reduction._estimator import parse_released_value, require_released_values
from ladderboard.tape import NumpyTape

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from numpy.typing import NDArray

    from ladderboard.mechanisms import Mechanism

_REQUIRED_SHARE = 2 / 3
# Releases and distances are rounded; half a cell of a grid of 1/sqrt(n) is meant to be near enough.
_ROUNDING = 1e-9
_MAX_N = 10**15


def _probe_descend(n: int, questions: int, rng: np.random.Generator) -> Generator[int, float, None]:
    """Improve with every question, by a random amount: as many updates as a step allows."""
    left = sorted(rng.integers(0, n // 2 + 1, questions).tolist())
    while left:
        yield left.pop()


def _probe_creep(n: int, _questions: int, rng: np.random.Generator) -> Generator[int, float, None]:
    """Improve on what stands by twice as much each time, until it is told; then start again."""
    told = yield int(rng.integers(n // 4, n // 2 + 1))
    while True:
        told_before, gain = told, 1
        while told == told_before:
            told = yield max(min(round(told_before * n), n) - gain, 0)
            gain = min(2 * gain, n)


def _probe_leap(n: int, _questions: int, rng: np.random.Generator) -> Generator[int, float, None]:
    """Find a gain that is told, and go on by such gains at random: any residue on a grid occurs."""
    told = yield int(rng.integers(n // 2, n + 1))
    gain = 1.0
    while True:
        told_before = told
        told = yield min(max(round(told_before * n - gain * rng.uniform(1, 2)), 0), n)
        if told == told_before:
            gain = min(2 * gain, n)


def _probe_insist(n: int, _questions: int, rng: np.random.Generator) -> Generator[int, float, None]:
    """Ask about one model again and again: an update is then luck in the noise."""
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
    """What one probe found.

    Parameters
    ----------
    probe
        Its name.
    games
        How many it played.
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
    """A verdict on a mechanism, with what it rests on. True where the verdict is "faithful".

    Parameters
    ----------
    mechanism
        Its settings.
    n, questions
        The size of the sample and of a game.
    confidence
        The probability with which all limits in ``probed`` hold.
    probed
        What each probe found.
    """

    mechanism: dict[str, Any]
    n: int
    questions: int
    confidence: float
    probed: tuple[ProbeResult, ...]

    @property
    def worst(self) -> ProbeResult:
        """The probe that kept the fewest games; of several, the one with most updates astray."""
        return min(self.probed, key=lambda each: (each.kept, each.within - each.updates))

    @property
    def verdict(self) -> str:
        """Return "faithful", "not faithful" or "undecided".

        "not faithful" holds with the stated confidence: some analyst keeps fewer than two games in
        three. "faithful" says, with that confidence, that none of the probes does; other analysts
        might. A game without an update is kept, so whoever never updates is faithful.
        """
        if any(each.high < _REQUIRED_SHARE for each in self.probed):
            return "not faithful"
        return (
            "faithful" if all(each.low >= _REQUIRED_SHARE for each in self.probed) else "undecided"
        )

    @property
    def within(self) -> float | None:
        """The part of updates that were within 1/(2 sqrt n) of the risk, under the worst probe."""
        worst = self.worst
        return worst.within / worst.updates if worst.updates else None

    def __bool__(self) -> bool:
        return self.verdict == "faithful"

    def describe(self) -> str:
        """Say it in two sentences."""
        worst = self.worst
        share = (
            " (no update at all)" if self.within is None else f" ({self.within:.0%} of its updates)"
        )
        return (
            f"{self.verdict} at confidence {digits(1 - self.confidence)}. Under the probe "
            f"{worst.probe!r} every update was within 1/(2 sqrt n) of the risk in {worst.kept} of "
            f"{worst.games} games{share}; a faithful mechanism keeps two games in three."
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
    after the first question do. Five probes play against it, each many games on tapes of their own:
    ``descend`` improves every time a little, ``leap`` by leaps, ``creep`` looks for the least gain
    that is told, ``insist`` asks about one model again and again, ``guess`` guesses at random.

    Parameters
    ----------
    mechanism
        One that tells values.
    n
        Examples in the sample.
    questions
        Questions in a game. Faithfulness is about all updates of a game, so longer games ask more.
    games
        How many games each probe plays. With fewer than 18 nothing is shown to be faithful.
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
    for at, (name, probe) in enumerate(PROBES.items()):
        played = [
            _play_probe(mechanism, n, questions, probe, np.random.default_rng([seed, at, game]))
            for game in range(games)
        ]
        updates, within = (sum(counts) for counts in zip(*played, strict=True))
        kept = sum(near == all_ for all_, near in played)
        low, high = kl_lower(kept / games, nats), kl_upper(kept / games, nats)
        probed.append(ProbeResult(name, games, kept, updates, within, low, high))
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
    by_example = mechanism.needs == "losses"
    # Models err on nested sets of examples.
    order: NDArray[np.int64] = rng.permutation(n) if by_example else np.empty(0, dtype=np.int64)
    near = 1 / (2 * math.sqrt(n)) + _ROUNDING
    asking = probe(n, questions, rng)
    wrong, before = next(asking), -math.inf
    updates = within = 0
    for question in range(1, questions + 1):
        risk = wrong / n
        given: dict[str, Any] = {"losses": order < wrong} if by_example else {"risk": risk}
        if mechanism.needs_training:  # another sample, of the same size
            given["training"] = rng.binomial(n, risk) / n
        value = float(parse_released_value(session.ask(**given).value))
        if value < before:
            updates += 1
            within += abs(value - risk) <= near
        before = value
        if question < questions:
            wrong = asking.send(value)
    return updates, within
