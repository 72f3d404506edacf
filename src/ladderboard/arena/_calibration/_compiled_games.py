"""Whole games against a Shaky Ladder, played by counting, without a single vector.

A random guess matters to a ladder only through its luck, the number of labels it happens to get
right, and to the vote only through its luck and its weight: with n independent labels the vote is
right on each with a probability that the sums of weight times luck and of weight squared decide.
So a question costs a few draws, whatever n is. Counted in examples: a risk of 1/n is 1.
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
from ladderboard.arena._calibration._calibrate import CandidateResult
from ladderboard.arena._kernels import compiled, inlined

if TYPE_CHECKING:
    from ladderboard.arena._calibration._calibrate import CalibrationSize, CandidateSettings

# What is kept of a game, in one array.
_BOARD, _BEST, _ERROR, _AGREED, _SQUARED = range(5)

_EASY_SHARE = 0.5
# First and last true risk, and whether they fall in a line. Guesses are what the majority attack
# asks before its vote.
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
    """What the attack looks up by shift: how much it learns, how far the value falls.

    ``heard`` is the mean luck of a guess that lowers the value by so many cells, ``unheard`` that
    of one that is not told.
    """

    shift: NDArray[np.float64]
    gain: NDArray[np.float64]
    fall: NDArray[np.float64]
    heard: NDArray[np.float64]
    unheard: NDArray[np.float64]
    cell: float


@inlined
def _round_to_grid(value: float, grid: float) -> float:
    return math.floor(value / grid + 0.5) * grid


@inlined
def _ask_ladder(rules: Any, draws: Any, stands: float, wrong: float) -> float:
    """Ask a ladder that stands somewhere, and return where it stands then."""
    lead = draws.standard_normal()
    blur = draws.standard_normal()
    if wrong + rules.compare * lead < stands - rules.step:
        told = _round_to_grid(wrong + rules.release * blur, rules.grid)
        return min(stands, max(told, 0.0))
    return stands


@inlined
def _best_shift(book: Any, pace: float) -> int:
    """Return the shift that teaches most among those at which the value falls no faster."""
    chosen = len(book.shift) - 1
    gain = -1.0
    for at in range(len(book.shift)):
        if book.fall[at] <= pace and book.gain[at] > gain:
            chosen, gain = at, book.gain[at]
    return chosen


@inlined
def _normal_density(at: float) -> float:
    return math.exp(-at * at / 2) / math.sqrt(2 * math.pi)


@inlined
def _normal_cdf(at: float) -> float:
    return math.erfc(-at / math.sqrt(2)) / 2


@inlined
def _expected_luck(rules: Any, spread: float, lead: float) -> float:
    """Return the mean luck of a guess told to be so many examples better than expected."""
    if rules.release > 0:
        return lead * spread / (spread**2 + rules.release**2 + rules.grid**2 / 12)
    low, high = (lead - rules.grid / 2) / spread, (lead + rules.grid / 2) / spread
    between = _normal_cdf(high) - _normal_cdf(low)
    if between < 1e-12:
        return lead / spread
    return (_normal_density(low) - _normal_density(high)) / between


@inlined
def _record_question(tally: Any, truth: float, value: float) -> None:
    """Take in the true risk of a model and where its ladder stands."""
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
    """Open the first account with a model, and ask it again until nothing is told.

    Returns where the ladder stands and how many questions were asked.
    """
    wrong = round(middle - spread * draws.standard_normal())
    value, asked = float(rules.n), 0
    told = True
    while told and asked < rules.k - 1:
        before = value
        value = _ask_ladder(rules, draws, before, wrong)
        told = value < before
        _record_question(tally, middle, value)
        asked += 1
    return value, asked


@inlined
def _open_account(rules: Any, tally: Any, middle: float, spread: float, draws: Any) -> float:
    """Ask another account's first guess, which is told, and return where its ladder stands."""
    wrong = round(middle - spread * draws.standard_normal())
    value = _ask_ladder(rules, draws, float(rules.n), wrong)
    _record_question(tally, middle, value)
    if value < rules.n:
        _add_vote(
            tally, _expected_luck(rules, spread, middle - value), (middle - wrong) / spread, spread
        )
    return value


@inlined
def _climb_ladder(  # noqa: PLR0917 - compiled functions take what they need by place
    rules: Any, book: Any, tally: Any, easy: int, value: float, questions: int, draws: Any
) -> float:
    """Play one ladder, and return where it stands in the end."""
    half = (rules.n - easy) / 2
    spread = math.sqrt(2 * half) / 2
    apart = book.shift[1] - book.shift[0]
    quiet, patience, shift = 0, 0, 0.0
    for at in range(questions):
        if quiet >= patience:
            room = max(value - half, 0.0) + spread
            shift = book.shift[_best_shift(book, room / (questions - at))]
            patience = max(quiet + 1, int(quiet * 1.25))
        quiet += 1
        middle = half + min(max(round(value + shift - half), 0), easy)  # of what it has wrong
        place = round((middle - value - book.shift[0]) / apart)
        place = min(max(place, 0), len(book.shift) - 1)
        wrong = round(middle - spread * draws.standard_normal())
        after = _ask_ladder(rules, draws, value, wrong)
        if after < value:
            cell = min(max(round((value - after) / book.cell), 1), book.heard.shape[1]) - 1
            believed = book.heard[place, cell]
            value = after
            quiet = patience = 0
        else:
            believed = book.unheard[place]
        _add_vote(tally, believed, (middle - wrong) / spread, spread)
        _record_question(tally, middle, value)
    return value


@compiled
def play_attack(rules: Any, book: Any, easy: int, draws: Any) -> tuple[float, float]:
    """Play the shifted majority attack, or with several accounts the sybil attack.

    Returns the leaderboard error and the bias of the last model, in examples.
    """
    hard = float(rules.n - easy)
    spread = math.sqrt(hard) / 2
    tally = np.array([float(rules.n), float(rules.n), 0.0, 0.0, 0.0])
    stands = np.full(rules.accounts, float(rules.n))
    stands[0], asked = _open_first_account(rules, tally, easy + hard / 2, spread, draws)
    left = rules.k - 1 - asked

    # Every other account's first question is told, half way between two things to be told.
    opening = easy + hard / 2
    if rules.grid >= spread / 2:
        between = (math.floor(opening / rules.grid) - 0.5) * rules.grid
        opening = hard / 2 + min(max(round(between - hard / 2), 0), easy)
    count = min(rules.accounts, max(left, 1))
    for account in range(1, count):
        stands[account] = _open_account(rules, tally, opening, spread, draws)
    left -= count - 1

    spare = left
    for account in range(count):
        questions = max(left - spare * (count - 1 - account) // count, 0)
        stands[account] = _climb_ladder(rules, book, tally, easy, stands[account], questions, draws)
        left -= questions

    # The vote: right on each hard example with the same chance.
    chance = 0.5
    if tally[_SQUARED] > 0:
        chance = _normal_cdf(tally[_AGREED] / math.sqrt(tally[_SQUARED] * hard))
    right = hard * chance + math.sqrt(hard * chance * (1 - chance)) * draws.standard_normal()
    right = min(max(right, 0.0), hard)
    _record_question(tally, hard / 2, _ask_ladder(rules, draws, stands[0], hard - right))
    return tally[_ERROR], right - hard / 2


@compiled
def play_honest(rules: Any, first: float, last: float, steady: bool, draws: Any) -> float:
    """Play models that are nothing but their true risk; return the leaderboard error, in examples.

    They fall in a straight line, or lie anywhere between the two ends. With several accounts the
    teams take turns. True risks are moved by part of a cell, so that none sits on the grid.
    """
    n = float(rules.n)
    stands = np.full(rules.accounts, n)
    tally = np.array([n, n, 0.0])
    moved = (draws.random() - 0.5) * min(rules.grid / n, 0.5)
    for at in range(rules.k):
        part = at / max(rules.k - 1, 1) if steady else draws.random()
        risk = min(max(first + (last - first) * part + moved, 0.0), 1.0)
        wrong = round(n * risk + math.sqrt(n * risk * (1 - risk)) * draws.standard_normal())
        account = at % rules.accounts
        stands[account] = _ask_ladder(rules, draws, stands[account], min(max(wrong, 0), n))
        _record_question(tally, n * risk, stands[account])
    return tally[_ERROR]


def measure_candidate(
    candidate: CandidateSettings,
    size: CalibrationSize,
    repetitions: int,
    seed: int,
    threads: int = 1,
) -> CandidateResult:
    """Play games and return the means.

    Game i has the luck of (seed, i) whatever the settings, so that candidates are compared on the
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
    book = _guess_table(rules, math.sqrt(size.n - easy) / 2)

    def game(at: int) -> list[float]:
        draws = [np.random.Generator(np.random.SFC64([seed, at, who])) for who in range(5)]
        error, bias = play_attack(rules, book, easy, draws[0])
        errors = (
            play_honest(rules, *kind, draws[1 + who])
            for who, kind in enumerate(HONEST_ANALYSTS.values())
        )
        return [bias, error, *errors]

    games = range(repetitions)
    if threads == 1:
        played = [game(at) for at in games]
    else:
        with ThreadPoolExecutor(threads) as pool:
            played = list(pool.map(game, games))
    table = np.array(played) / unit
    means = table.mean(axis=0).tolist()
    spread = table.std(axis=0, ddof=1) if repetitions > 1 else np.full(table.shape[1], np.nan)
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
    """Tabulate the odds of a guess, which stay the same where no noise stands."""
    rule = ComparisonRule(rules.step, fresh=rules.compare, release=rules.release, grid=rules.grid)
    odds = GuessOdds(rule, spread)
    told, luck = odds.told[0], odds.luck[0]
    silent = np.maximum(1 - told.sum(axis=1), 1e-9)
    heard = np.divide(luck, told, out=np.zeros_like(luck), where=told > 0)
    gain = (heard * luck).sum(axis=1) + luck.sum(axis=1) ** 2 / silent
    fall = odds.cell * (told @ odds.falls)
    return GuessTable(odds.shift, gain, fall, heard, -luck.sum(axis=1) / silent, odds.cell)
