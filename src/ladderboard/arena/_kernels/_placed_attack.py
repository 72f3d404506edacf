"""Compiled games of the attack by placed guesses, on one ladder or on those of several accounts.

The same attack as ``ladderboard.analysts.AbstainingAttack``, without classes that are rare: labels
are such that every right prediction is 1, and a guess is a row of fair bits. A question costs n/64
draws, so that games with a hundred thousand examples take a fraction of a second. Risks are counted
in examples: a risk of 1/n is 1.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray  # noqa: TC002 - numba reads it

from ladderboard.analysts import GuessModel, LadderRungs, plan_placements
from ladderboard.arena._kernels._compiled import compiled, inlined, popcount

if TYPE_CHECKING:
    from ladderboard.mechanisms import Mechanism

_MAX_EDGE = 0.49
_MAX_VOTED = 0.8
_MIN_EDGE = 1e-3
_MIN_CHANCE = 1e-9
_MIN_RELEASE_CHANCE = 0.005  # silence teaches nothing if releases are rarer
_STOP = -1
_BINS = 4_096


class LadderRules(NamedTuple):
    """A Shaky Ladder without standing noise, or a growing ladder.

    ``by_value``: step and noises are multiples of the standard error at the ladder's value, and the
    grid is a readable one; otherwise they are examples. Noises and grid are then shares of the
    step. ``growth``, ``cap`` and sharing are those of a growing ladder.
    """

    n: int
    by_value: bool
    step: float
    compare: float
    release: float
    grid: float
    cut: float
    growth: float = 0.0
    cap: float = math.inf
    sharing: float = 0.0
    sharing_cap: float = 1.0

    @classmethod
    def from_mechanism(cls, mechanism: Mechanism, n: int) -> LadderRules:
        """Return the rules of a mechanism."""
        rule = mechanism.comparison(n)
        if mechanism.rung_growth(1) is None:
            return cls(
                n,
                by_value=False,
                step=n * rule.step,
                compare=n * rule.compare_noise,
                release=n * rule.release_noise,
                grid=n * rule.grid,
                cut=math.inf,
            )
        settings = mechanism.describe()
        return cls(
            n,
            by_value=True,
            step=settings["step"],
            compare=settings["compare_noise"],
            release=settings["release_noise"],
            grid=settings["grid"],
            cut=settings["cut"],
            growth=settings["growth"],
            cap=settings["cap"] or math.inf,
            sharing=settings["sharing"],
            sharing_cap=settings["sharing_cap"],
        )


class PlanTable(NamedTuple):
    """A placement plan as arrays: actions and expected questions by level, cell and price."""

    action: NDArray[np.int64]
    expected_questions: NDArray[np.float64]
    values: NDArray[np.float64]
    shifts: NDArray[np.float64]


@lru_cache(maxsize=4)
def plan_table(mechanism: Mechanism, guess: GuessModel, questions: int) -> PlanTable:
    """Return the plan of the attack against a mechanism."""
    plan = plan_placements(LadderRungs.from_mechanism(mechanism, guess.n), guess, questions)
    return PlanTable(plan.action, plan.expected_questions, plan.values, plan.shifts)


@inlined
def _readable(grid: float) -> float:
    """Return the number 1, 2 or 5 times a power of ten nearest by ratio."""
    power = 10.0 ** math.floor(math.log10(grid))
    square = (grid / power) ** 2
    if square < 2:
        return power
    if square < 10:
        return 2 * power
    return 5 * power if square < 50 else 10 * power


@inlined
def _multiple(rules: Any, changes: float, others: float) -> float:
    """Return how many times the first step is taken."""
    alone = (1 + changes) ** rules.growth
    shared = (1 + changes + rules.sharing * others) ** rules.growth
    return (
        min(shared, alone * rules.sharing_cap, rules.cap) if others > 0 else min(alone, rules.cap)
    )


@inlined
def _rung(rules: Any, value: float, multiple: float) -> tuple[float, float, float, float]:
    """Return step, compare noise, release noise and grid, in examples."""
    if not rules.by_value:
        return rules.step, rules.compare, rules.release, rules.grid
    share = min(value / rules.n, 0.5)
    error = math.sqrt(max(share * (1 - share), 1 / rules.n) * rules.n)
    step = rules.step * multiple * error
    grid = _readable(rules.grid * step / rules.n) * rules.n
    return step, rules.compare * step, rules.release * step, grid


@inlined
def _noise(cut: float, draws: Any) -> float:
    noise = draws.standard_normal()
    while abs(noise) > cut:
        noise = draws.standard_normal()
    return noise


@inlined
def _crossing_odds(distance: float, step: float, compare: float, deviation: float) -> Any:
    """Return the chance that a guess crosses, and its mean luck times that chance."""
    total = max(math.sqrt(deviation**2 + compare**2), 1e-12)
    z = -(distance + step) / total
    density = math.exp(-z * z / 2) / math.sqrt(2 * math.pi)
    return math.erfc(-z / math.sqrt(2)) / 2, deviation / total * density


@inlined
def _luck_if_crossed(distance: float, step: float, compare: float, deviation: float) -> float:
    chance, luck = _crossing_odds(distance, step, compare, deviation)
    if chance > _MIN_CHANCE:
        return luck / chance
    return -(distance + step) / max(deviation, 1e-12)


@inlined
def _next_word(state: Any) -> Any:
    """Return 64 random bits (splitmix64)."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    word = state[0]
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))


@inlined
def _choose(  # noqa: PLR0917
    rules: Any, plan: Any, values: Any, changes: Any, account: int, left: int
) -> tuple[int, float]:
    """Return the action on an account's ladder, and the value of the cell to jump to."""
    levels, cells, prices = plan.action.shape
    cell_size = plan.values[1] - plan.values[0]
    total = changes.sum()
    own_level, own_cell = 0, 0
    expected = np.zeros(prices)
    for index in range(account, len(values)):
        level = changes[index]
        if rules.growth > 0:
            multiple = _multiple(rules, changes[index], total - changes[index])
            level = multiple ** (1 / rules.growth) - 1
        row = min(round(level), levels - 1)
        cell = min(max(round((values[index] - plan.values[0]) / cell_size), 0), cells - 1)
        expected += plan.expected_questions[row, cell]
        if index == account:
            own_level, own_cell = row, cell
    price = 0
    while price < prices - 1 and expected[price] > left:
        price += 1
    action = plan.action[own_level, own_cell, price]
    if account == len(values) - 1:
        while action == _STOP and price > 0:
            price -= 1
            action = plan.action[own_level, own_cell, price]
    target = plan.values[_STOP - 1 - action] if action < _STOP else 0.0
    return action, target


class _Guess(NamedTuple):
    """A placed guess: how many examples are guessed, and what is known about the errors."""

    size: int
    base_wrong: float  # on the examples that are not guessed
    expected_wrong: float
    deviation: float


@inlined
def _place_guess(  # noqa: PLR0917
    wanted: float, known: int, abstains: bool, odds: Any, order: Any, draws: Any
) -> _Guess:
    """Return a guess with about the wanted number of expected errors."""
    unknown = len(odds)
    fewest = unknown / 2
    mistakes = min(max(round(wanted - fewest), 0), known)
    size = unknown
    if abstains and wanted > known + fewest:
        size = min(max(round(unknown - 2 * (wanted - known - fewest)), 1), unknown)
    variance = size / 4
    base_wrong = float(mistakes + unknown - size)
    expected_wrong = base_wrong + size / 2
    won = 0.0
    most_voted = int(_MAX_VOTED * unknown)
    while won < fewest - wanted and unknown - size < most_voted:
        belief = odds[order[size - 1]]
        edge = 0.5 - 1 / (1 + math.exp(abs(belief)))
        if edge < _MIN_EDGE:
            break
        size -= 1  # the vote answers the surest examples
        won += edge
        variance -= edge**2
        base_wrong += belief < 0 or (belief == 0 and draws.random() < 0.5)
    return _Guess(size, base_wrong, expected_wrong - won, math.sqrt(max(variance, 0.25)))


@inlined
def _sort_by_doubt(odds: Any) -> Any:
    """Return the examples in order, about: the least sure first. Sorts by counting."""
    surest = np.abs(odds).max()
    starts = np.zeros(_BINS + 1, dtype=np.int64)
    scale = (_BINS - 1) / max(surest, 1e-300)
    for belief in odds:
        starts[int(abs(belief) * scale) + 1] += 1
    starts = np.cumsum(starts)
    order = np.empty(len(odds), dtype=np.int64)
    for index in range(len(odds)):
        bin_number = int(abs(odds[index]) * scale)
        order[starts[bin_number]] = index
        starts[bin_number] += 1
    return order


@inlined
def _draw_bits(words: Any, size: int, state: Any) -> int:
    """Draw which guesses are right, and return how many."""
    right = 0
    whole = (size + 63) // 64
    for index in range(whole):
        word = _next_word(state)
        if index == whole - 1 and size % 64:
            word &= (np.uint64(1) << np.uint64(size % 64)) - np.uint64(1)
        words[index] = word
        right += popcount(word)
    return right


@inlined
def _luck_if_released(guess: Any, rung: Any, value: float, released: float) -> float:
    """Return the mean luck of a guess that was released."""
    step, compare, release, grid = rung
    deviation, distance = guess.deviation, guess.expected_wrong - value
    blur = release**2 + (grid**2 / 12 if grid > 1.001 else 0.0)
    trusted = deviation**2 / (deviation**2 + blur)
    mean = (distance + value - released) * trusted / deviation
    rest = math.sqrt(1 - trusted)
    crossed = _luck_if_crossed(distance - deviation * mean, step, compare, deviation * rest)
    return mean + rest * crossed


@inlined
def _luck_if_silent(guess: Any, rung: Any, value: float) -> float:
    """Return the mean luck of a guess that was not released; 0 if releases are rare."""
    step, compare, _, _ = rung
    chance, luck = _crossing_odds(guess.expected_wrong - value, step, compare, guess.deviation)
    return -luck / max(1 - chance, _MIN_CHANCE) if chance > _MIN_RELEASE_CHANCE else 0.0


@inlined
def _add_vote(odds: Any, order: Any, words: Any, guess: Any, luck: float) -> None:
    """Let a guess vote by the log-odds that it is right on an example."""
    edge = min(max(luck / (4 * guess.deviation), -_MAX_EDGE), _MAX_EDGE)
    weight = math.log((0.5 + edge) / (0.5 - edge))
    for index in range(guess.size):
        bit = (words[index >> 6] >> np.uint64(index & 63)) & np.uint64(1)
        odds[order[index]] += weight if bit else -weight


@inlined
def _ask_ladder(rules: Any, rung: Any, value: float, wrong: float, draws: Any) -> float:
    """Ask a ladder at ``value`` about a model, and return its new value."""
    step, compare, release, grid = rung
    on_compare, on_release = _noise(rules.cut, draws), _noise(rules.cut, draws)
    if wrong + compare * on_compare >= value - step:
        return value
    released = math.floor((wrong + release * on_release) / grid + 0.5) * grid
    return min(max(released, 0.0), value)


@inlined
def _count_right(odds: Any, draws: Any) -> int:
    """Return how many labels the vote gets right."""
    right = 0
    for belief in odds:
        right += belief > 0 or (belief == 0 and draws.random() < 0.5)
    return right


@compiled
def play_placed_attack(  # noqa: PLR0917 - numba functions take positional arguments
    rules: Any, plan: Any, known: int, abstains: bool, accounts: int, questions: int, draws: Any
) -> tuple[float, float]:
    """Play the attack; return the bias of its last model, in examples, and the changes."""
    unknown = rules.n - known
    odds = np.zeros(unknown)  # log-odds of the true label
    order = np.arange(unknown)
    words = np.empty((unknown + 63) // 64, dtype=np.uint64)
    state = np.array([int(draws.random() * 2**53)], dtype=np.uint64)
    values, changes = np.full(accounts, float(rules.n)), np.zeros(accounts)
    left = questions - 2  # one question has shown that the mechanism is a ladder; one is the vote
    for account in range(accounts):
        guess = _Guess(0, 0.0, 0.0, 1.0)
        quiet, replan_at = 0, 0
        while left > 0:
            value = values[account]
            multiple = _multiple(rules, changes[account], changes.sum() - changes[account])
            rung = _rung(rules, value, multiple)
            if quiet >= replan_at:
                action, wanted = _choose(rules, plan, values, changes, account, left)
                if action == _STOP:
                    break
                if action > _STOP:
                    spread = math.sqrt(unknown / 4 + rung[1] ** 2)
                    wanted = value - rung[0] + spread * plan.shifts[action]
                if quiet == 0:
                    order = _sort_by_doubt(odds)
                guess = _place_guess(wanted, known, abstains, odds, order, draws)
                replan_at = max(quiet + 1, int(quiet * 1.25))
            wrong = guess.base_wrong + guess.size - _draw_bits(words, guess.size, state)
            values[account] = _ask_ladder(rules, rung, value, wrong, draws)
            quiet += 1
            left -= 1
            if values[account] < value:
                luck = _luck_if_released(guess, rung, value, values[account])
                changes[account] += 1
                quiet, replan_at = 0, 0
            else:
                luck = _luck_if_silent(guess, rung, value)
            if luck:
                _add_vote(odds, order, words, guess, luck)
    return _count_right(odds, draws) - unknown / 2, changes.sum()


def placed_attack_biases(
    mechanism: Mechanism,
    *,
    n: int,
    questions: int,
    known: float = 0.0,
    abstains: bool = True,
    accounts: int = 1,
    games: int,
    seed: int = 0,
) -> NDArray[np.float64]:
    """Return the bias of the attack's last model times sqrt(n), one number for each game.

    Parameters
    ----------
    mechanism, n, questions
        A ladder without standing noise, the examples and the questions of all accounts.
    known
        The share of the labels that is known.
    abstains
        Whether predictions that are surely wrong are accepted.
    accounts
        How many ladders the attack plays, one after the other.
    """
    guess = GuessModel(n, int(known * n), 0.0 if abstains else None)
    rules, plan = LadderRules.from_mechanism(mechanism, n), plan_table(mechanism, guess, questions)
    biases = [
        play_placed_attack(
            rules,
            plan,
            guess.known,
            abstains,
            min(accounts, max(questions - 2, 1)),
            questions,
            np.random.Generator(np.random.SFC64([seed, number])),
        )[0]
        for number in range(games)
    ]
    return np.array(biases) / math.sqrt(n)
