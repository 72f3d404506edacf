"""What would be enough, where examples are too few for what the rules allow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ladderboard.board._check_promise import says_something
from ladderboard.errors import InvalidSetting

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ladderboard.board._folder import BoardFolder

__all__ = ["would_do"]

_MOST = 10**9  # examples; who has not so many needs no more to be told


def would_do(folder: BoardFolder) -> list[str]:
    """Return what each would end the warning: more examples, fewer questions, or fewer teams, too.

    Numbers are round, and each was tried.
    """
    rules, worth = folder.rules, folder.worth

    def enough(n: int, questions: int, teams: int) -> bool:
        try:
            return says_something(rules, n, questions, teams, zero_one=folder.zero_one)
        except InvalidSetting:  # a mechanism that cannot work with so many
            return False

    found = []
    more = next((n for n in _rising(worth) if enough(n, rules.questions, rules.teams)), None)
    if more is not None:
        found.append(f"{more:,} independent examples")
    fewer = list(_halves(rules.questions, rules.asked_baselines + rules.teams))
    few = next((each for each in fewer if enough(worth, each, rules.teams)), None)
    if few is not None:
        found.append(f"{few:,} questions")
    # Half as many of both, as often as it takes: fewer teams alone are seldom what is wanted.
    pairs = zip(fewer, _halves(rules.teams, 1), strict=False)
    both = next((pair for pair in pairs if enough(worth, *pair)), None)
    if both is not None and both[0] != few and rules.ladders > 1:
        found.append(f"{both[0]:,} questions for {both[1]:,} team{'s' * (both[1] > 1)}")
    return found


def _halves(number: int, least: int) -> Iterator[int]:
    """Give half of a number, half of that, and so on, in two digits.

    >>> list(_halves(1_000, 20))
    [500, 250, 120, 60, 30]
    """
    while (number := number // 2) >= least:
        digits = 10 ** max(len(str(number)) - 2, 0)
        number = number // digits * digits
        yield number


def _rising(number: int) -> Iterator[int]:
    """Give larger numbers in two digits, each by a tenth or so.

    >>> [n for n, _ in zip(_rising(3_000), range(5))]
    [3300, 3700, 4100, 4600, 5100]
    """
    while number < _MOST:
        digits = 10 ** max(len(str(number)) - 2, 0)
        number = -(-(number + max(number // 10, 1)) // digits) * digits
        yield number
