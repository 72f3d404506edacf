"""Compiled games against a Shaky Ladder that count wrong examples instead of storing vectors.

A random guess affects a ladder only through its luck, the number of labels it happens to get right,
and the vote only through its luck and its weight: with n independent labels the vote is right on
each with a probability that depends on the sums of weight times luck and of weight squared. So a
question costs a few draws, whatever n is. Risks are counted in examples: a risk of 1/n is 1.
"""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray  # noqa: TC002 - numba reads it

from ladderboard.analysts import ComparisonRule, GuessOdds
from ladderboard.arena._kernels import compiled, inlined
from ladderboard.arena._shaky_calibration._calibrate import CandidateResult

if TYPE_CHECKING:
    from ladderboard.arena._shaky_calibration._calibrate import CalibrationSize, CandidateSettings

# Indices into the array that records a game.
_BOARD, _BEST, _ERROR, _AGREED, _SQUARED = range(5)

_EASY_SHARE = 0.5
# First and last true risk, and whether they fall in a line. Guesses are those of the majority
# attack.
HONEST_ANALYSTS: dict[str, tuple[float, float, bool]] = {
    "steady_improvement": (0.5, 0.25, True),
    "plateau": (0.25, 0.25, True),
    "guesses": (0.5, 0.5, True),
    "random_search": (0.5, 0.25, False),
}


class LadderGame(NamedTuple):
    """A gridded Shaky Ladder without standing noise, and the size of the game."""

    n: int
    k: int
    accounts: int
    step: float
    compare: float
    release: float
    grid: float


class GuessTable(NamedTuple):
    """What a guess teaches the attack and how far the value falls, by shift.

    ``released`` is the mean luck of a guess by how many cells it lowers the value, ``silent`` that
    of a guess without a release.
    """

    shift: NDArray[np.float64]
    gain: NDArray[np.float64]
    fall: NDArray[np.float64]
    released: NDArray[np.float64]
    silent: NDArray[np.float64]
    cell: float


@inlined
def _round_to_grid(value: float, grid: float) -> float:
    return math.floor(value / grid + 0.5) * grid


@inlined
def _ask_ladder(rules: Any, draws: Any, value: float, wrong: float) -> float:
    """Ask a ladder at ``value`` about a model, and return its new value."""
    lead = draws.standard_normal()
    blur = draws.standard_normal()
    if wrong + rules.compare * lead < value - rules.step:
        released = _round_to_grid(wrong + rules.release * blur, rules.grid)
        return min(value, max(released, 0.0))
    return value


@inlined
def _best_shift(table: Any, pace: float) -> int:
    """Return the most informative shift at which the value falls no faster than ``pace``."""
    chosen = len(table.shift) - 1
    gain = -1.0
    for index in range(len(table.shift)):
        if table.fall[index] <= pace and table.gain[index] > gain:
            chosen, gain = index, table.gain[index]
    return chosen


@inlined
def _normal_density(x: float) -> float:
    return math.exp(-x * x / 2) / math.sqrt(2 * math.pi)


@inlined
def _normal_cdf(x: float) -> float:
    return math.erfc(-x / math.sqrt(2)) / 2


@inlined
def _expected_luck(rules: Any, spread: float, lead: float) -> float:
    """Return the mean luck of a guess released ``lead`` examples better than expected."""
    if rules.release > 0:
        return lead * spread / (spread**2 + rules.release**2 + rules.grid**2 / 12)
    low, high = (lead - rules.grid / 2) / spread, (lead + rules.grid / 2) / spread
    between = _normal_cdf(high) - _normal_cdf(low)
    if between < 1e-12:
        return lead / spread
    return (_normal_density(low) - _normal_density(high)) / between


@inlined
def _record_question(tally: Any, truth: float, value: float) -> None:
    """Record the true risk of a model and the value of its ladder."""
    tally[_BEST] = min(tally[_BEST], truth)
    tally[_BOARD] = min(tally[_BOARD], value)
    tally[_ERROR] = max(tally[_ERROR], abs(tally[_BEST] - tally[_BOARD]))


@inlined
def _add_vote(tally: Any, believed: float, luck: float, spread: float) -> None:
    """Let a guess vote by the log-odds that it is right on an example."""
    edge = min(max(believed / (4 * spread), -0.49), 0.49)  # spread / hard is 1 / (4 spread)
    weight = math.log((0.5 + edge) / (0.5 - edge))
    tally[_AGREED] += weight * luck
    tally[_SQUARED] += weight * weight


@inlined
def _open_first_account(
    rules: Any, tally: Any, middle: float, spread: float, draws: Any
) -> tuple[float, int]:
    """Ask a first model again until the ladder does not move.

    Returns the value of the ladder and how many questions were asked.
    """
    wrong = round(middle - spread * draws.standard_normal())
    value, asked = float(rules.n), 0
    moved = True
    while moved and asked < rules.k - 1:
        before = value
        value = _ask_ladder(rules, draws, before, wrong)
        moved = value < before
        _record_question(tally, middle, value)
        asked += 1
    return value, asked


@inlined
def _open_account(rules: Any, tally: Any, middle: float, spread: float, draws: Any) -> float:
    """Ask the first guess of another account, and return the value of its ladder."""
    wrong = round(middle - spread * draws.standard_normal())
    value = _ask_ladder(rules, draws, float(rules.n), wrong)
    _record_question(tally, middle, value)
    if value < rules.n:
        _add_vote(
            tally, _expected_luck(rules, spread, middle - value), (middle - wrong) / spread, spread
        )
    return value


@inlined
def _climb_ladder(  # noqa: PLR0917 - numba functions take positional arguments
    rules: Any, table: Any, tally: Any, easy: int, value: float, questions: int, draws: Any
) -> float:
    """Play one ladder, and return its last value."""
    half = (rules.n - easy) / 2
    spread = math.sqrt(2 * half) / 2
    spacing = table.shift[1] - table.shift[0]
    quiet, replan_at, shift = 0, 0, 0.0
    for question in range(questions):
        if quiet >= replan_at:
            budget = max(value - half, 0.0) + spread
            shift = table.shift[_best_shift(table, budget / (questions - question))]
            replan_at = max(quiet + 1, int(quiet * 1.25))
        quiet += 1
        middle = half + min(max(round(value + shift - half), 0), easy)  # expected wrong examples
        index = round((middle - value - table.shift[0]) / spacing)
        index = min(max(index, 0), len(table.shift) - 1)
        wrong = round(middle - spread * draws.standard_normal())
        new_value = _ask_ladder(rules, draws, value, wrong)
        if new_value < value:
            cell = min(max(round((value - new_value) / table.cell), 1), table.released.shape[1]) - 1
            believed = table.released[index, cell]
            value = new_value
            quiet = replan_at = 0
        else:
            believed = table.silent[index]
        _add_vote(tally, believed, (middle - wrong) / spread, spread)
        _record_question(tally, middle, value)
    return value


@compiled
def play_attack(rules: Any, table: Any, easy: int, draws: Any) -> tuple[float, float]:
    """Play the shifted majority attack, or with several accounts the sybil attack.

    Returns the leaderboard error and the bias of the last model, in examples.
    """
    hard = float(rules.n - easy)
    spread = math.sqrt(hard) / 2
    tally = np.array([float(rules.n), float(rules.n), 0.0, 0.0, 0.0])
    values = np.full(rules.accounts, float(rules.n))
    values[0], asked = _open_first_account(rules, tally, easy + hard / 2, spread, draws)
    left = rules.k - 1 - asked

    # Every other account's first guess lies half way between two releasable values.
    opening = easy + hard / 2
    if rules.grid >= spread / 2:
        between = (math.floor(opening / rules.grid) - 0.5) * rules.grid
        opening = hard / 2 + min(max(round(between - hard / 2), 0), easy)
    count = min(rules.accounts, max(left, 1))
    for account in range(1, count):
        values[account] = _open_account(rules, tally, opening, spread, draws)
    left -= count - 1

    spare = left
    for account in range(count):
        questions = max(left - spare * (count - 1 - account) // count, 0)
        values[account] = _climb_ladder(
            rules, table, tally, easy, values[account], questions, draws
        )
        left -= questions

    # The vote is right on each hard example with the same chance.
    chance = 0.5
    if tally[_SQUARED] > 0:
        chance = _normal_cdf(tally[_AGREED] / math.sqrt(tally[_SQUARED] * hard))
    right = hard * chance + math.sqrt(hard * chance * (1 - chance)) * draws.standard_normal()
    right = min(max(right, 0.0), hard)
    _record_question(tally, hard / 2, _ask_ladder(rules, draws, values[0], hard - right))
    return tally[_ERROR], right - hard / 2


@compiled
def play_honest(rules: Any, first: float, last: float, steady: bool, draws: Any) -> float:
    """Play models described by their true risk; return the leaderboard error, in examples.

    True risks fall in a straight line, or are uniform between the two ends. With several accounts
    the teams take turns. True risks are shifted by part of a cell, off the grid.
    """
    n = float(rules.n)
    values = np.full(rules.accounts, n)
    tally = np.array([n, n, 0.0])
    offset = (draws.random() - 0.5) * min(rules.grid / n, 0.5)
    for question in range(rules.k):
        part = question / max(rules.k - 1, 1) if steady else draws.random()
        risk = min(max(first + (last - first) * part + offset, 0.0), 1.0)
        wrong = round(n * risk + math.sqrt(n * risk * (1 - risk)) * draws.standard_normal())
        account = question % rules.accounts
        values[account] = _ask_ladder(rules, draws, values[account], min(max(wrong, 0), n))
        _record_question(tally, n * risk, values[account])
    return tally[_ERROR]


def measure_candidate(
    candidate: CandidateSettings,
    size: CalibrationSize,
    repetitions: int,
    seed: int,
    threads: int = 1,
) -> CandidateResult:
    """Play games with a candidate and return the means.

    The random numbers of game i depend on (seed, i) alone, so that candidates are compared on the
    same games; the result does not depend on the threads.
    """
    unit = math.sqrt(size.n)
    accounts = min(size.teams, size.questions)
    rules = LadderGame(
        size.n,
        size.questions,
        accounts,
        candidate.step * unit,
        candidate.compare * unit,
        candidate.release * unit,
        candidate.grid * size.n,
    )
    easy = int(_EASY_SHARE * size.n)
    table = _guess_table(rules, math.sqrt(size.n - easy) / 2)

    def play_game(number: int) -> list[float]:
        draws = [
            np.random.Generator(np.random.SFC64([seed, number, analyst])) for analyst in range(5)
        ]
        error, bias = play_attack(rules, table, easy, draws[0])
        errors = (
            play_honest(rules, *kind, draws[1 + analyst])
            for analyst, kind in enumerate(HONEST_ANALYSTS.values())
        )
        return [bias, error, *errors]

    games = range(repetitions)
    if threads == 1:
        played = [play_game(number) for number in games]
    else:
        with ThreadPoolExecutor(threads) as pool:
            played = list(pool.map(play_game, games))
    results = np.array(played) / unit
    means = results.mean(axis=0).tolist()
    spread = results.std(axis=0, ddof=1) if repetitions > 1 else np.full(results.shape[1], np.nan)
    ses = (spread / math.sqrt(repetitions)).tolist()
    names = ["sybil" if accounts > 1 else "shifted_majority", *HONEST_ANALYSTS]
    return CandidateResult(
        candidate,
        repetitions,
        dict(zip(names, islice(means, 1, None), strict=True)),
        dict(zip(names, islice(ses, 1, None), strict=True)),
        means[0],
        ses[0],
    )


@lru_cache(maxsize=8)
def _guess_table(rules: LadderGame, spread: float) -> GuessTable:
    """Tabulate the odds of a guess, which are constant without standing noise."""
    rule = ComparisonRule(rules.step, fresh=rules.compare, release=rules.release, grid=rules.grid)
    odds = GuessOdds(rule, spread)
    chance, luck = odds.released[0], odds.luck[0]
    silent = np.maximum(1 - chance.sum(axis=1), 1e-9)
    mean_luck = np.divide(luck, chance, out=np.zeros_like(luck), where=chance > 0)
    gain = (mean_luck * luck).sum(axis=1) + luck.sum(axis=1) ** 2 / silent
    fall = odds.cell * (chance @ odds.falls)
    return GuessTable(odds.shift, gain, fall, mean_luck, -luck.sum(axis=1) / silent, odds.cell)
