"""Trials: how a Shaky Ladder with some settings fares against attackers and honest analysts."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from ladderboard.analysts import Odds, Rule
from ladderboard.arena._candidate import Trial
from ladderboard.arena._sparring import Book, Rules, attacked, honest

if TYPE_CHECKING:
    from ladderboard.arena._candidate import Candidate, Size

__all__ = ["HONEST", "trial"]

_EASY = 0.5
# First and last true risk, and whether they fall in a line. Guesses are what the majority attack
# asks before its vote.
HONEST: dict[str, tuple[float, float, bool]] = {
    "steady_improvement": (0.5, 0.25, True),
    "plateau": (0.25, 0.25, True),
    "guesses": (0.5, 0.5, True),
    "random_search": (0.5, 0.25, False),
}


def trial(candidate: Candidate, size: Size, repetitions: int, seed: int, threads: int = 1) -> Trial:
    """Play games and return the means.

    Game i has the luck of (seed, i) whatever the settings, so that candidates are compared on the
    same games; the result does not depend on the threads.
    """
    unit = math.sqrt(size.n)
    accounts = min(size.teams, size.questions)
    rules = Rules(
        size.n,
        size.questions,
        accounts,
        candidate.step * unit,
        candidate.compare * unit,
        candidate.release * unit,
        candidate.grid * size.n,
    )
    easy = int(_EASY * size.n)
    book = _book(rules, math.sqrt(size.n - easy) / 2)

    def game(at: int) -> list[float]:
        draws = [np.random.Generator(np.random.SFC64([seed, at, who])) for who in range(5)]
        error, bias = attacked(rules, book, easy, draws[0])
        errors = (honest(rules, *kind, draws[1 + who]) for who, kind in enumerate(HONEST.values()))
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
    names = ["sybil" if accounts > 1 else "shifted_majority", *HONEST]
    return Trial(
        candidate,
        repetitions,
        dict(zip(names, islice(means, 1, None), strict=True)),
        dict(zip(names, islice(ses, 1, None), strict=True)),
        means[0],
        ses[0],
    )


@lru_cache(maxsize=8)
def _book(rules: Rules, spread: float) -> Book:
    """Tabulate the odds of a guess, which stay the same where no noise stands."""
    rule = Rule(rules.step, fresh=rules.compare, release=rules.release, grid=rules.grid)
    odds = Odds(rule, spread)
    told, luck = odds.told[0], odds.luck[0]
    silent = np.maximum(1 - told.sum(axis=1), 1e-9)
    heard = np.divide(luck, told, out=np.zeros_like(luck), where=told > 0)
    gain = (heard * luck).sum(axis=1) + luck.sum(axis=1) ** 2 / silent
    fall = odds.cell * (told @ odds.falls)
    return Book(odds.shift, gain, fall, heard, -luck.sum(axis=1) / silent, odds.cell)
