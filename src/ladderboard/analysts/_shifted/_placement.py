"""Where to place a guess: dynamic programming over a ladder's value and changes.

An analyst that can add any amount to a question's risk chooses, for every question, how far above
or below the ladder's value the guess is expected. A guess placed high is released rarely, and is
lucky when it is; one placed low is released often, teaches little, and uses up the ladder. The best
placement depends on the ladder's value, on how often it changed (the steps of a growing ladder
grow), and on the questions left.

Everything is counted in examples: a risk of 1/n is 1.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ladderboard.analysts._shifted._comparison_rule import ComparisonRule, normal_cdf

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from ladderboard.mechanisms import Mechanism


_LUCK = np.linspace(-5, 5, 61)  # of a guess, in standard deviations: fewer examples wrong
_WEIGHT = np.exp(-_LUCK * _LUCK / 2) / np.exp(-_LUCK * _LUCK / 2).sum()
_KNOTS = np.linspace(-7, 7, 2_801)
_BELOW = np.array([normal_cdf(knot) for knot in _KNOTS.tolist()])
_DISTANCES = np.linspace(-3, 5.5, 205)  # of a guess above the step, in deviations of all noise
_SHIFTS = np.linspace(-2, 4.5, 48)  # those that are tried
_SPREADS = 32  # deviations of a guess, relative to the step, that are tabulated
_FALLS = 48  # cells that one release can fall, at most
_CELLS = 240  # values that are distinguished, at most
_LEVELS = 60  # numbers of changes that are distinguished, at most
_PRICES = np.geomspace(1e-6, 2.0, 50)  # of a question, in squared standard deviations of luck
_SURELY = 2.5  # deviations of all noise beyond the step at which a release is nearly sure
_SHORT_STEP = 0.6  # a fall on average, in rungs, at the least
_MIN_CHANCE = 1e-7  # smaller chances count as none
_TINY = 1e-300
STOP = -1
"""The action of asking no more."""


class LadderRungs(NamedTuple):
    """The rungs of a ladder: one rule in units of a rung, and the size of each rung, in examples.

    ``multiples`` are the sizes of rungs by number of changes, the last one also for more. With
    ``by_value`` a rung is proportional to the standard error at the ladder's value; otherwise rungs
    are the same at every value.
    """

    n: int
    unit_rule: ComparisonRule
    size: float
    multiples: tuple[float, ...] = (1.0,)
    by_value: bool = False

    @classmethod
    def from_mechanism(cls, mechanism: Mechanism, n: int) -> LadderRungs:
        """Return the rungs of a mechanism."""
        rule = ComparisonRule.from_mechanism(mechanism, n)
        if rule.by_difference:  # two guesses differ on half of the examples
            rule = rule._replace(step=rule.margin(n // 2), grid=1.0, by_difference=0.0)
        size = math.hypot(rule.step, rule.compare) or rule.grid or 1.0
        growth = mechanism.rung_growth(_LEVELS)
        if growth is None:
            return cls(n, rule.scaled(1 / size), size)
        # The rule of a growing ladder is that of its first rung at a value of one half.
        return cls(n, rule.scaled(1 / size), size * 2 / math.sqrt(n), growth, by_value=True)

    @property
    def levels(self) -> int:
        """How many numbers of changes are distinguished."""
        return len(self.multiples)

    def sizes(self, values: NDArray[np.float64], changes: float) -> NDArray[np.float64]:
        """Return the size of the rung below each value after this many changes."""
        size = self.size * float(np.interp(changes, np.arange(self.levels), self.multiples))
        if not self.by_value:
            return np.full(np.shape(values), size)
        share = np.minimum(np.clip(values / self.n, 0.0, 1.0), 0.5)
        variance = np.maximum(share * (1 - share), 1 / self.n)
        scaled: NDArray[np.float64] = size * np.sqrt(variance * self.n)
        return scaled

    def changes_at(self, multiple: float) -> float:
        """Return after how many changes a rung is this many times the first one."""
        return float(np.interp(multiple, self.multiples, np.arange(self.levels)))

    def rule_at(self, value: float, changes: float) -> ComparisonRule:
        """Return the rule for the next model."""
        return self.unit_rule.scaled(float(self.sizes(np.array([value]), changes)[0]))


class GuessModel(NamedTuple):
    """How a guess is made: which numbers of wrong examples can be expected, and their spread.

    The labels of ``known`` examples are known; as many of them as wanted are wrong. The others are
    guessed. With ``rare``, the share of labels that an abstention gets right, some of them may be
    abstained on; a guess of one of the other two classes is right on ``(1 - rare) / 2`` of them.
    With ``rare=None`` there is no abstention.
    """

    n: int
    known: int = 0
    rare: float | None = 0.0

    @property
    def unknown(self) -> int:
        """The number of examples whose label is not known."""
        return self.n - self.known

    @property
    def right(self) -> float:
        """The chance that a guessed example is right."""
        return (1 - (self.rare or 0.0)) / 2

    @property
    def vote_weight(self) -> float:
        """How many examples a vote wins by, at most, for each that it wins by on fair coins."""
        return 2 * self.right

    @property
    def fewest_wrong(self) -> float:
        """The expected number of wrong examples with all known ones right, the others guessed."""
        return self.unknown * (1 - self.right)

    @property
    def most_wrong(self) -> float:
        """The largest expected number of wrong examples: with one guess, or none abstained on."""
        if self.rare is None:
            return self.known + self.fewest_wrong
        return self.known + self.unknown * (1 - self.rare) - (self.right - self.rare)

    def mistakes(self, wrong: float) -> int:
        """Return how many known examples to be wrong on so that ``wrong`` are expected wrong."""
        return min(max(round(wrong - self.fewest_wrong), 0), self.known)

    def size(self, wrong: float) -> int:
        """Return how many examples to guess so that ``wrong`` are expected wrong."""
        return round(float(self._sizes(np.array(wrong))))

    def _sizes(self, wrong: NDArray[np.float64]) -> NDArray[np.float64]:
        if self.rare is None:
            return np.full(np.shape(wrong), float(self.unknown))
        above = wrong - self.known - self.fewest_wrong
        clipped: NDArray[np.float64] = np.clip(
            self.unknown - above / (self.right - self.rare), min(1.0, self.unknown), self.unknown
        )
        return clipped

    def expected(self, size: int, mistakes: int) -> float:
        """Return how many are expected wrong with ``size`` guessed and ``mistakes`` known wrong."""
        abstained = (self.unknown - size) * (1 - (self.rare or 0.0))
        return mistakes + abstained + size * (1 - self.right)

    def variances(self, size: float) -> tuple[float, float]:
        """Return the variance of the number wrong among the guessed, and among the abstained."""
        rare = self.rare or 0.0
        guessed = size * self.right * (1 - self.right)
        return guessed, (self.unknown - size) * rare * (1 - rare)

    def deviation(self, wrong: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the standard deviation of the number of wrong examples."""
        size, rare = self._sizes(wrong), self.rare or 0.0
        by_rare = (self.unknown - size) * rare * (1 - rare)
        deviations: NDArray[np.float64] = np.sqrt(size * self.right * (1 - self.right) + by_rare)
        return deviations

    def informative(self, wrong: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the share of its variance that comes from guessed examples."""
        guessed = self._sizes(wrong) * self.right * (1 - self.right)
        return guessed / np.maximum(self.deviation(wrong) ** 2, _TINY)


class _ReleaseTable:
    """The chance of every fall, and the mean luck with it, in units of a ladder's rung.

    Step, noises and grid of a rung have fixed ratios, so that one table serves all rungs: by the
    deviation of a guess relative to the rung (``spread``), its distance above the step in
    deviations of all noise, and the fall in cells.
    """

    def __init__(self, rule: ComparisonRule, cell: float, smallest: float, largest: float) -> None:
        self.rule, self.cell = rule, cell
        self.spreads = np.geomspace(
            max(smallest, 1e-3), max(largest, 1.1 * smallest, 2e-3), _SPREADS
        )
        reach = rule.step + 3 * math.hypot(largest, rule.compare) + 2 * rule.release
        self.falls = np.arange(1, min(math.ceil(reach / cell), _FALLS) + 1)
        tables = [self._releases(spread) for spread in self.spreads.tolist()]
        self.chance = np.array([chance for chance, _ in tables])  # by spread, distance and fall
        luck = np.array([luck for _, luck in tables])  # times the chance of the fall
        quiet = 1 - self.chance.sum(axis=2)
        self.information = (luck**2 / np.maximum(self.chance, _TINY)).sum(axis=2)
        self.information += luck.sum(axis=2) ** 2 / np.maximum(quiet, _MIN_CHANCE)

    def _releases(self, spread: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        rule = self.rule
        shift = -rule.step + _DISTANCES * math.hypot(spread, rule.compare)
        wrong = shift[:, None] - spread * _LUCK  # relative to the ladder's value
        crossed = _chance_below(-rule.step - wrong, rule.compare) * _WEIGHT
        edges = -self.cell * (self.falls - 0.5)
        reached = _chance_below(edges[:, None, None] - wrong, rule.release)
        reached[:-1] -= reached[1:]
        by_luck = crossed * reached  # by fall, distance and luck
        return by_luck.sum(axis=2).T, (by_luck @ _LUCK).T

    def index(
        self, spread: NDArray[np.float64], shift: NDArray[np.float64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the nearest spread and distance in the table."""
        ratio = math.log(self.spreads[1] / self.spreads[0])
        row = np.rint(np.log(np.maximum(spread, _TINY) / self.spreads[0]) / ratio)
        row = np.clip(row, 0, _SPREADS - 1).astype(np.int64)
        deviation = np.hypot(self.spreads[row], self.rule.compare)
        distance = (shift + self.rule.step) / deviation
        column = np.rint((distance - _DISTANCES[0]) / (_DISTANCES[1] - _DISTANCES[0]))
        return row, np.clip(column, 0, len(_DISTANCES) - 1).astype(np.int64)


class PlacementPlan:
    """The best placement of a guess, for every value of a ladder and every price of a question.

    The value of a question is the square of the mean luck that its release implies: these add up,
    and the final vote is right on an example with probability Phi(sqrt(sum / n)). With a price for
    each question, the worth V(v, b) of a ladder at value v after b changes solves

        V(v, b) = max over shifts of (information - price + later) / P(released),
        later = sum_f P(f) V(v - f, b + 1),

    f being how far the value falls, so one sweep from the most changes and the lowest values solves
    it. The price is the one at which the questions left are expected to last. ``vote`` is how many
    examples the vote is expected to win by: below the risk of guesses the surest examples are
    answered by vote.

    Noise that stays until the ladder moves is treated as fresh.
    """

    def __init__(self, ladder: LadderRungs, guess: GuessModel, vote: float = 0.0) -> None:
        self.ladder, self.guess, self.vote = ladder, guess, vote
        lowest = max(guess.fewest_wrong - vote, 0.0)
        self.cell = max((ladder.n - lowest) / _CELLS, math.sqrt(ladder.n) / 8)
        if not ladder.by_value:  # all values lie on one grid
            self.cell = max(self.cell, ladder.unit_rule.grid * ladder.size)
        self._low = math.ceil(lowest / self.cell) - 2
        cells = math.ceil(ladder.n / self.cell) - self._low + 1
        self.values = (self._low + np.arange(cells)).astype(np.float64) * float(self.cell)
        self.levels = self._count_levels(lowest)
        self.rungs = [ladder.sizes(self.values, level) for level in range(self.levels)]
        deviations = guess.deviation(self.values)
        smallest, largest = (
            min(rung.min() for rung in self.rungs),
            max(rung.max() for rung in self.rungs),
        )
        self.table = _ReleaseTable(
            ladder.unit_rule,
            max(ladder.unit_rule.grid, 1 / 8),
            float(deviations.min() / largest),
            float(deviations.max() / smallest),
        )
        shape = (self.levels, len(self.values), len(_PRICES))
        self.worth, self.expected_questions = np.zeros(shape), np.zeros(shape)  # until the end
        self.action = np.full(shape, STOP)  # a shift; below STOP: a cell to jump to
        for level in range(self.levels - 1, -1, -1):
            self._solve_level(level)

    def _count_levels(self, lowest: float) -> int:
        """Return how many numbers of changes to distinguish: those that a climb can reach."""
        value, level = float(self.ladder.n), 0
        while value > lowest and level < self.ladder.levels - 1:
            value -= _SHORT_STEP * float(self.ladder.sizes(np.array([value]), level)[0])
            level += 1
        return level + 1

    def _solve_level(self, level: int) -> None:
        final = level == self.levels - 1
        chances, gains, possible = self._choices(level)
        below = np.rint(self.table.falls * self.rungs[level][:, None] * self.table.cell / self.cell)
        under = np.arange(len(self.values))[:, None] - np.maximum(below, 1).astype(np.int64)
        if not final:
            self._solve_cells(level, slice(None), chances, gains, possible, under, level + 1)
            self._jump(level, slice(None), level + 1)
            return
        # The last level is followed by itself: from the lowest value upwards.
        for cell in range(len(self.values)):
            cells = slice(cell, cell + 1)
            self._solve_cells(
                level, cells, chances[cells], gains[cells], possible[cells], under[cells], level
            )
            self._jump(level, cells, level)

    def _choices(
        self, level: int
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]:
        """Return, by value and shift: the chance of each fall, the information, and what can be."""
        guess, rung, rule = self.guess, self.rungs[level][:, None], self.ladder.unit_rule
        wrong = self.values[:, None] + self._shift(self.rungs[level])
        deviation = guess.deviation(wrong)
        rows, columns = self.table.index(deviation / rung, (wrong - self.values[:, None]) / rung)
        chance = self.table.chance[rows, columns]
        gain = self.table.information[rows, columns]
        gain = gain * guess.informative(wrong) * self._guessed_share(wrong)
        possible = (wrong >= guess.fewest_wrong - self.vote) & (wrong <= guess.most_wrong)
        return chance, gain, possible & (chance.sum(axis=2) > _MIN_CHANCE) & (rule.step >= 0)

    @property
    def shifts(self) -> NDArray[np.float64]:
        """The shifts that are tried, above the step in deviations of all noise."""
        return _SHIFTS

    def _shift(self, rung: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the shifts that are tried, by value."""
        rule = self.ladder.unit_rule
        widest = math.sqrt(self.guess.unknown) / 2
        deviation = np.hypot(widest, rule.compare * rung)
        return -rule.step * rung[:, None] + deviation[:, None] * _SHIFTS

    def _solve_cells(  # noqa: PLR0917 - the parts of one equation
        self,
        level: int,
        cells: slice,
        chances: NDArray[np.float64],
        gains: NDArray[np.float64],
        possible: NDArray[np.bool_],
        under: NDArray[np.int64],
        following: int,
    ) -> None:
        inside = (under >= 0)[:, :, None]
        reached = np.maximum(under, 0)
        later_worth = chances @ np.where(inside, self.worth[following][reached], 0.0)
        later_questions = np.where(inside, self.expected_questions[following][reached], 0.0)
        total = np.maximum(chances.sum(axis=2), _MIN_CHANCE)
        worth = (gains[:, :, None] - _PRICES + later_worth) / total[:, :, None]
        worth[~possible] = -np.inf
        best = worth.argmax(axis=1)
        rows = np.arange(len(best))[:, None]
        best_worth = np.take_along_axis(worth, best[:, None, :], axis=1)[:, 0]
        spent = 1 + np.einsum("cpf,cfp->cp", chances[rows, best], later_questions)
        stop = best_worth <= 0
        self.worth[level, cells] = np.where(stop, 0.0, best_worth)
        self.expected_questions[level, cells] = np.where(stop, 0.0, spent / total[rows, best])
        self.action[level, cells] = np.where(stop, STOP, best)

    def _jump(self, level: int, cells: slice, following: int) -> None:
        """Consider one question that is sure to be released, to continue far below.

        Its release shows the luck of the guess, blurred by noise and grid.
        """
        indices = np.arange(len(self.values))[cells]
        guess, rule = self.guess, self.ladder.unit_rule
        variance = guess.deviation(self.values) ** 2
        gain = variance / (variance + rule.blur * self.rungs[level] ** 2 + _TINY)
        gain = gain * guess.informative(self.values) * self._guessed_share(self.values)
        possible = (self.values >= guess.fewest_wrong - self.vote) & (
            self.values <= guess.most_wrong
        )
        after = np.where(possible, gain, 0.0)[:, None] + self.worth[following]
        # The best cell below each: a running maximum.
        best = np.maximum.accumulate(after, axis=0)
        index = np.where(after >= best, np.arange(len(self.values))[:, None], 0)
        best_cell = np.maximum.accumulate(index, axis=0)
        reach = rule.step * self.rungs[level] + _SURELY * np.hypot(
            math.sqrt(guess.unknown) / 2, rule.compare * self.rungs[level]
        )
        below = indices - np.ceil(reach[cells] / self.cell).astype(np.int64)
        jump_worth = np.where((below >= 0)[:, None], best[np.maximum(below, 0)] - _PRICES, -np.inf)
        jump = jump_worth > self.worth[level, cells]
        lower = best_cell[np.maximum(below, 0)]
        prices = np.arange(len(_PRICES))
        self.worth[level, cells] = np.where(jump, jump_worth, self.worth[level, cells])
        self.expected_questions[level, cells] = np.where(
            jump,
            self.expected_questions[following][lower, prices] + 1,
            self.expected_questions[level, cells],
        )
        self.action[level, cells] = np.where(jump, STOP - 1 - lower, self.action[level, cells])

    def _guessed_share(self, wrong: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the share of the examples that is guessed; the vote answers the surest.

        Log-odds are about normal, so those beyond z deviations account for exp(-z^2/2) of what the
        vote gains.
        """
        if not self.vote:
            return np.ones(np.shape(wrong))
        paid = np.clip((self.guess.fewest_wrong - wrong) / self.vote, 1e-9, 1.0)
        rest = np.interp(-np.log(paid), _SURE, _REST)
        return np.where(wrong < self.guess.fewest_wrong, rest, 1.0)

    def information(self, questions: int) -> float:
        """Return roughly how much this many questions teach, in squared deviations."""
        expected = self.expected_questions[0, -1]
        price = min(int((expected > questions).sum()), len(_PRICES) - 1)
        learned = self.worth[0, -1, price] + _PRICES[price] * expected[price]
        return float(learned * min(questions / max(expected[price], 1.0), 1.0))

    def expected_wrong(
        self, ladders: Sequence[tuple[float, float]], current: int, left: int
    ) -> float | None:
        """Return the expected number of wrong examples of the next guess on the current ladder.

        ``ladders`` are the ladders that may still be played: their values and numbers of changes,
        which others may add to. None if no question on this one is worth its price.
        """
        places = [
            (min(round(changes), self.levels - 1), self._cell_of(value))
            for value, changes in ladders
        ]
        # A higher price asks fewer questions: take the lowest at which they last.
        expected = np.sum([self.expected_questions[place] for place in places], axis=0)
        price = min(int((expected > left).sum()), len(_PRICES) - 1)
        level, cell = places[current]
        action = int(self.action[level, cell, price])
        while action == STOP and price and len(ladders) == 1:
            price -= 1  # unused questions are worth nothing
            action = int(self.action[level, cell, price])
        if action == STOP:
            return None
        if action < STOP:
            return float(self.values[STOP - 1 - action])
        value = ladders[current][0]
        rung = self.ladder.sizes(np.array([value]), level)
        return value + float(self._shift(rung)[0, action])

    def _cell_of(self, value: float) -> int:
        return min(max(round(value / self.cell) - self._low, 0), len(self.values) - 1)


_SURE = np.linspace(0, 24, 2_401)
_REST = np.array([math.erf(math.sqrt(value)) for value in _SURE.tolist()])


@lru_cache(maxsize=8)
def plan_placements(ladder: LadderRungs, guess: GuessModel, questions: int) -> PlacementPlan:
    """Return the placements for a game of this many questions."""
    # A vote of one lucky guess, to begin with: without any, nothing is below the risk of guesses.
    first = PlacementPlan(ladder, guess, math.sqrt(guess.unknown) / 2 * guess.vote_weight)
    vote = math.sqrt(first.information(questions) * guess.unknown / (2 * math.pi))
    return PlacementPlan(ladder, guess, vote * guess.vote_weight)


def _chance_below(distance: NDArray[np.float64], noise: float) -> NDArray[np.float64]:
    """Return the chance that noise of this standard deviation stays below a distance."""
    if not noise:
        return (distance > 0).astype(np.float64)
    return np.interp(distance / noise, _KNOTS, _BELOW)
