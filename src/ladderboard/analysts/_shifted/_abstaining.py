"""The abstaining attack: predictions that are surely wrong shift the risk of a question.

An analyst that can add any amount to a question's risk chooses, for every question, how far above
or below the ladder's value the guess is expected. A guess placed high is released rarely, and is
lucky when it is; one placed low is released often, teaches little, and uses up the ladder. The best
placement depends on the ladder's value and on the questions left; dynamic programming finds it.

Everything is counted in examples: a risk of 1/n is 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from ladderboard import _settings
from ladderboard.analysts._game import Analyst
from ladderboard.analysts._shifted._comparison_rule import ComparisonRule, RiskShifter
from ladderboard.analysts._shifted._local_search import LocalSearch
from ladderboard.analysts._shifted._majority import MIN_QUESTIONS, ShiftedMajority, play_with_scores
from ladderboard.analysts._shifted._normal import normal_cdf
from ladderboard.analysts._worlds import CoinFlipWorld, RareClassWorld

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ladderboard.analysts._game import Game
    from ladderboard.analysts._worlds import World
    from ladderboard.mechanisms import Release

_LUCK = np.linspace(-5, 5, 121)  # of a guess, in standard deviations: fewer examples wrong
_WEIGHT = np.exp(-_LUCK * _LUCK / 2) / np.exp(-_LUCK * _LUCK / 2).sum()
_KNOTS = np.linspace(-7, 7, 2_801)
_BELOW = np.array([normal_cdf(knot) for knot in _KNOTS.tolist()])
_SHIFTS = 71
_SPREADS = 24  # sizes of a guess that are distinguished
_FALLS = 60  # cells that one release can fall, at most
_CELLS = 2_000  # cells in total, at most
_PRICES = np.geomspace(1e-6, 2.0, 120)  # of a question, in squared standard deviations of luck
_MIN_CHANCE = 1e-7  # smaller chances count as none
_TINY = 1e-300

_REPLAN_AFTER = 1.25  # choose a new placement after a silence this much longer
_ABSTAIN = 2
_MAX_RARE = 0.3  # a class as common as the two others shifts nothing
_MAX_VOTED = 0.8  # at most this share of the examples is left to the vote
_MAX_EDGE = 0.49  # the surest belief about a guess, beyond chance


class PartialGuess(NamedTuple):
    """A guess on some of the examples that abstains on the others.

    With ``rare`` the share of labels that an abstention gets right, a guess of one of the other two
    classes is right on ``(1 - rare) / 2`` of them.
    """

    n: int
    rare: float = 0.0

    @property
    def right(self) -> float:
        """The chance that a guessed example is right."""
        return (1 - self.rare) / 2

    @property
    def fewest_wrong(self) -> float:
        """The expected number of wrong examples if all are guessed."""
        return self.n * (1 - self.right)

    @property
    def most_wrong(self) -> float:
        """The expected number of wrong examples if none is guessed."""
        return self.n * (1 - self.rare)

    def size(self, wrong: float) -> int:
        """Return how many examples to guess so that ``wrong`` are expected wrong."""
        gain = self.right - self.rare  # of a guess over an abstention
        return min(max(round((self.most_wrong - wrong) / gain), 0), self.n)

    def expected(self, size: int) -> float:
        """Return how many are expected wrong with ``size`` examples guessed."""
        return self.most_wrong - size * (self.right - self.rare)

    def variance(self, size: float) -> tuple[float, float]:
        """Return the variance of the number wrong among the guessed, and among all."""
        guessed = size * self.right * (1 - self.right)
        return guessed, guessed + (self.n - size) * self.rare * (1 - self.rare)


class PlacementPlan:
    """The best placement of a guess, for every value of a ladder and every price of a question.

    The value of a question is the square of the mean luck that its release implies: these add up,
    and the final vote is right on an example with probability Phi(sqrt(sum / n)). With a price for
    each question, the worth V(v) of a ladder at value v solves

        V(v) = max over shifts of (information - price + sum_f P(f) V(v - f)) / P(released),

    f being how far the value falls, so one sweep from the lowest value upwards solves it. The price
    is the one at which the questions left are expected to last. ``vote`` is how many examples the
    vote is expected to win by: below the risk of guesses the surest examples are answered by vote.

    Noise that stays until the ladder moves is treated as fresh.
    """

    def __init__(self, rule: ComparisonRule, guess: PartialGuess, vote: float = 0.0) -> None:
        self.rule, self.guess, self.vote = rule, guess, vote
        root = math.sqrt(guess.n)
        noise = math.hypot(root / 2, rule.compare)
        deepest = rule.step + 2 * noise + 2 * math.hypot(root / 2, rule.release)
        self.cell = max(rule.grid, root / 8, deepest / _FALLS, guess.n / _CELLS)
        self.falls = np.arange(1, math.ceil(deepest / self.cell) + 1)
        self.shift = np.linspace(-rule.step - 2 * noise, -rule.step + 4.5 * noise, _SHIFTS)
        sizes = guess.n * (np.arange(1, _SPREADS + 1) / _SPREADS) ** 2
        variances = [guess.variance(size) for size in sizes.tolist()]
        releases = [self._releases(math.sqrt(total)) for _, total in variances]
        self._released = np.array([release[0] for release in releases])  # by size, shift and fall
        self._luck = np.array([release[1] for release in releases])  # summed over the chance of it
        self._quiet = 1 - self._released.sum(axis=2)
        from_release = (self._luck**2 / np.maximum(self._released, _TINY)).sum(axis=2)
        from_silence = self._luck.sum(axis=2) ** 2 / np.maximum(self._quiet, _MIN_CHANCE)
        # Only the luck of the guessed examples is informative.
        share = np.array([guessed / total for guessed, total in variances])
        self._information = (from_release + from_silence) * share[:, None]
        self._low = math.ceil((guess.fewest_wrong - vote) / self.cell) - 2
        self._solve(math.ceil(guess.n / self.cell) - self._low + 1)

    def _releases(self, deviation: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return, by shift and fall, the chance of the fall and the mean luck times it."""
        rule = self.rule
        wrong = self.shift[:, None] - deviation * _LUCK  # relative to the ladder's value
        crossed = _chance_below(-rule.step - wrong, rule.compare) * _WEIGHT
        edges = -self.cell * (self.falls - 0.5)
        reached = _chance_below(edges[:, None, None] - wrong, rule.release)
        reached[:-1] -= reached[1:]
        by_luck = crossed * reached  # by fall, shift and luck
        return by_luck.sum(axis=2).T, (by_luck @ _LUCK).T

    def _solve(self, cells: int) -> None:
        guess, prices = self.guess, np.arange(len(_PRICES))
        self.worth = np.zeros((cells, len(_PRICES)))
        self.expected_questions = np.zeros_like(self.worth)  # until the end
        self._action = np.full(
            self.worth.shape, -1
        )  # a shift; -1: stop; below -1: a cell to jump to
        shifts = np.arange(_SHIFTS)
        for cell in range(cells):
            value = (self._low + cell) * self.cell
            wrong = value + self.shift
            size = self._size_index(wrong)
            released = self._released[size, shifts]
            under = np.maximum(cell - self.falls, 0)
            inside = (cell >= self.falls)[:, None]
            gain = self._information[size, shifts] * self._guessed_share(wrong)
            later_worth = released @ np.where(inside, self.worth[under], 0.0)
            later_questions = released @ np.where(inside, self.expected_questions[under], 0.0)
            chance = released.sum(axis=1)[:, None]
            possible = (wrong >= guess.fewest_wrong - self.vote) & (wrong < guess.most_wrong)
            possible &= chance[:, 0] > _MIN_CHANCE
            worth = (gain[:, None] - _PRICES + later_worth) / np.maximum(chance, _MIN_CHANCE)
            worth[~possible] = -np.inf
            best = worth.argmax(axis=0)
            best_worth = worth[best, prices]
            spent = ((1 + later_questions) / np.maximum(chance, _MIN_CHANCE))[best, prices]
            stop = best_worth <= 0
            self.worth[cell] = np.where(stop, 0.0, best_worth)
            self.expected_questions[cell] = np.where(stop, 0.0, spent)
            self._action[cell] = np.where(stop, -1, best)
            if cell:  # one question that is sure to be released, to continue lower
                lower = self.worth[:cell].argmax(axis=0)
                jump_worth = self.worth[lower, prices] - _PRICES
                jump = jump_worth > self.worth[cell]
                self.worth[cell] = np.where(jump, jump_worth, self.worth[cell])
                self.expected_questions[cell] = np.where(
                    jump, self.expected_questions[lower, prices] + 1, self.expected_questions[cell]
                )
                self._action[cell] = np.where(jump, -2 - lower, self._action[cell])

    def _size_index(self, wrong: NDArray[np.float64]) -> NDArray[np.int64]:
        guess = self.guess
        part = (guess.most_wrong - wrong) / (guess.most_wrong - guess.fewest_wrong)
        near = np.rint(_SPREADS * np.sqrt(np.clip(part, 0, 1))).astype(np.int64)
        return np.maximum(near, 1) - 1

    def _guessed_share(self, wrong: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the share of the examples that is guessed; the vote answers the surest.

        Log-odds are about normal, so those beyond z deviations account for exp(-z^2/2) of what the
        vote gains.
        """
        if not self.vote:
            return np.ones(len(wrong))
        paid = np.clip((self.guess.fewest_wrong - wrong) / self.vote, 1e-9, 1.0)
        rest = np.array([math.erf(math.sqrt(-math.log(share))) for share in paid.tolist()])
        return np.where(wrong < self.guess.fewest_wrong, rest, 1.0)

    def information(self, questions: int) -> float:
        """Return roughly how much this many questions teach, in squared deviations."""
        expected = self.expected_questions[-1]
        price = min(int(np.searchsorted(-expected, -questions)), len(_PRICES) - 1)
        learned = self.worth[-1, price] + _PRICES[price] * expected[price]
        return float(learned * min(questions / max(expected[price], 1.0), 1.0))

    def expected_wrong(self, value: float, left: int) -> float | None:
        """Return the expected number of wrong examples of the next guess; None to stop asking."""
        cell = min(max(round(value / self.cell) - self._low, 0), len(self.worth) - 1)
        # A higher price asks fewer questions: take the lowest at which they last.
        price = min(int((self.expected_questions[cell] > left).sum()), len(_PRICES) - 1)
        action = int(self._action[cell, price])
        while action == -1 and price:  # lower the price: unused questions are worth nothing
            price -= 1
            action = int(self._action[cell, price])
        if action == -1:
            return None
        if action < -1:
            return (self._low - 2 - action) * self.cell
        return value + float(self.shift[action])

    def mean_luck(self, wrong: float, value: float, fallen: float | None) -> float:
        """Return the mean luck of a guess, given how far the value fell (None after silence).

        An infinite fall stands for a move whose value is not released.
        """
        size = int(self._size_index(np.array([wrong]))[0])
        spacing = self.shift[1] - self.shift[0]
        index = min(max(round((wrong - value - self.shift[0]) / spacing), 0), _SHIFTS - 1)
        released, luck = self._released[size, index], self._luck[size, index]
        if fallen is None:
            return float(-luck.sum() / max(self._quiet[size, index], _MIN_CHANCE))
        if math.isinf(fallen):
            return float(luck.sum() / max(released.sum(), _TINY))
        cell = min(max(round(fallen / self.cell), 1), len(self.falls)) - 1
        return float(luck[cell] / released[cell]) if released[cell] > _TINY else 0.0


@lru_cache(maxsize=8)
def plan_placements(rule: ComparisonRule, guess: PartialGuess, questions: int) -> PlacementPlan:
    """Return the placements for a game of this many questions."""
    without_vote = PlacementPlan(rule, guess)
    vote = math.sqrt(without_vote.information(questions) * guess.n / (2 * math.pi))
    return PlacementPlan(rule, guess, vote * 2 * guess.right)


def _chance_below(distance: NDArray[np.float64], noise: float) -> NDArray[np.float64]:
    """Return the chance that noise of this standard deviation stays below a distance."""
    if not noise:
        return (distance > 0).astype(np.float64)
    return np.interp(distance / noise, _KNOTS, _BELOW)


@dataclass(frozen=True)
class AbstainingAttack(Analyst):
    """Abstain on some examples and guess the others, where the release is most informative.

    A prediction that is not a class is surely wrong. It adds any amount to the risk of a question
    without knowing a label, for which the shifted majority attack must know half of them; and all
    labels can be attacked. How many to abstain on comes from dynamic programming over the ladder's
    value and the questions left. The examples whose labels are least sure so far
    are guessed, the surest are abstained on; once the ladder is below the risk of guesses, the
    surest are answered by the vote.

    Parameters
    ----------
    rare
        The share of labels of the class that it abstains with: 0 if predictions that are not a
        class are accepted, a small number if they are refused and one class is rare. ``None`` if
        there are only two declared classes: it cannot abstain then, and plays the shifted majority
        attack with no label known.

    Notes
    -----
    The placement is designed for ladders; against noise-free ones, flipping parts of the best
    model, as the shifted majority attack does, may gain more. Against a mechanism that scores every
    model it does not abstain.

    Examples
    --------
    >>> import ladderboard as lb
    >>> ladder = lb.ShakyLadder.calibrated(n=1_000, questions=1_000)
    >>> result = AbstainingAttack().play_against(ladder, n=1_000, questions=1_000, seed=1)
    >>> result.bias * 1_000**0.5 > 1.5
    True
    >>> without = AbstainingAttack(rare=None)
    >>> without.play_against(ladder, n=1_000, questions=1_000, seed=1).bias < result.bias
    True
    """

    name: ClassVar[str] = "abstaining"

    rare: float | None = 0.0

    def __post_init__(self) -> None:
        if self.rare is not None:
            rare = _settings.number("rare", self.rare, at_least=0, at_most=_MAX_RARE)
            _settings.set_frozen(self, rare=rare)

    def world(self, n: int, rng: np.random.Generator) -> World:
        """Return coin flips and a rare class; without one, coin flips."""
        return (
            CoinFlipWorld(n, rng) if self.rare is None else RareClassWorld(n, rng, rare=self.rare)
        )

    def play(self, game: Game) -> None:
        """Find out whether every model gets a score, learn the labels, then ask about the vote."""
        if self.rare is None:
            ShiftedMajority(easy=0).play(game)
            return
        shifter = RiskShifter(game.known, game.n)
        rule = ComparisonRule.from_mechanism(game.mechanism, game.n)
        search = LocalSearch(game, shifter, rule)
        if game.questions < MIN_QUESTIONS:
            shifter.ask(game, search.vote(), 0)
            return
        # A ladder releases nothing for a model that it has seen before.
        abstention = np.full(game.n, _ABSTAIN)
        first = game.ask(abstention)
        while first.improved and game.remaining > 1:
            first = game.ask(abstention)
        if first.score is not None:
            shifter.ask(game, play_with_scores(game, shifter, search).vote(), 0)
            return
        if rule.by_difference:  # two guesses differ on half of the examples
            rule = rule._replace(step=rule.margin(game.n // 2), grid=1.0, by_difference=0.0)
        climb = _AbstainingClimb(game, rule, PartialGuess(game.n, self.rare))
        if first.value is not None:
            climb.value = first.value * game.n
        game.register_final_model(lambda: climb.vote().astype(np.int64))
        climb.play()
        shifter.ask(game, climb.vote(), 0)


class _PlacedGuess(NamedTuple):
    """Which examples to guess, the rest of the model, its expected errors and their deviation."""

    guessed: NDArray[np.intp]
    model: NDArray[np.int8]
    wrong: float
    deviation: float


class _AbstainingClimb:
    """The state of the attack on a ladder: log-odds of each label, and the ladder's value."""

    def __init__(self, game: Game, rule: ComparisonRule, guess: PartialGuess) -> None:
        self.game, self.rule, self.guess = game, rule, guess
        self.odds = np.zeros(game.n)  # log-odds of the label 1
        self.value = float(game.n)
        self.plan = plan_placements(rule, guess, game.questions)

    def vote(self) -> NDArray[np.bool_]:
        """Return the likeliest labels."""
        return self.odds > 0

    def play(self) -> None:
        """Ask until one question is left, or none is worth asking."""
        quiet = replan_at = 0
        question: _PlacedGuess | None = None
        while (left := self.game.remaining - 1) > 0:
            if question is None or quiet >= replan_at:
                wanted = self.plan.expected_wrong(self.value, left)
                if wanted is None:
                    return
                replan_at = max(quiet + 1, int(quiet * _REPLAN_AFTER))
                question = self._place_guess(wanted)
            quiet += 1
            bits = self.game.rng.integers(0, 2, len(question.guessed), dtype=np.int8)
            question.model[question.guessed] = bits
            if self._learn(question, bits, self.game.ask(question.model)):
                quiet, question = 0, None

    def _place_guess(self, wanted: float) -> _PlacedGuess:
        guess, n = self.guess, self.game.n
        sure = np.abs(self.odds)
        order = np.argsort(sure + 1e-9 * self.game.rng.random(n))
        model = np.full(n, _ABSTAIN, np.int8)
        size = max(guess.size(wanted), 1)
        wrong, variance = guess.expected(size), guess.variance(size)[1]
        if wanted < guess.fewest_wrong:  # the vote answers the surest examples
            wins = 2 * guess.right * (0.5 - 1 / (1 + np.exp(sure[order[::-1]])))
            won = np.cumsum(wins)
            voted = int(np.searchsorted(won, guess.fewest_wrong - wanted)) + 1
            voted = min(voted, int(_MAX_VOTED * n))
            size = n - voted
            model[order[size:]] = self.vote()[order[size:]]
            wrong = guess.fewest_wrong - (float(won[voted - 1]) if voted else 0.0)
        return _PlacedGuess(order[:size], model, wrong, math.sqrt(variance))

    def _learn(self, question: _PlacedGuess, bits: NDArray[np.int8], release: Release) -> bool:
        """Let the guess vote by its expected luck; return whether the ladder moved."""
        n, value = self.game.n, self.value
        wrong, deviation = question.wrong, question.deviation
        if not release.improved:
            luck = self.plan.mean_luck(wrong, value, None)
        elif release.value is None:  # the value is not released: estimate it
            luck = self.plan.mean_luck(wrong, value, math.inf)
            estimate = min(wrong - luck * deviation, value - self.rule.step)
            self.value = max(estimate, 0.0)
        else:
            released = release.value * n
            luck = self.plan.mean_luck(wrong, value, value - released)
            if value - wrong > self.rule.step + 3 * self.rule.compare + 3 * deviation:
                # Sure to be released: the value is the risk plus noise.
                luck = (wrong - released) * deviation / (deviation**2 + self.rule.blur)
            self.value = min(released, value)
        right = self.guess.right
        share = right * (1 - right) / deviation  # of one example in the luck
        edge = min(max(luck * share, -_MAX_EDGE * 2 * right), _MAX_EDGE * 2 * right)
        weight = math.log((right + edge) / (right - edge))
        self.odds[question.guessed] += np.where(bits == 1, weight, -weight)
        return release.improved
