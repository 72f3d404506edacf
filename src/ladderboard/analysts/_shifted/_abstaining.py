"""The abstaining attack: what is surely wrong shifts a question without knowing a label.

An analyst who can add any amount to a question's risk chooses, for every question, how far above or
below the ladder's value the guess is expected. A guess put high is told rarely, and is lucky when
it is; one put low is told often, teaches little, and uses up the ladder. The best placement depends
on the value that stands and on the questions left; dynamic programming finds it.

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
_BELOW = np.array([normal_cdf(each) for each in _KNOTS.tolist()])
_SHIFTS = 71
_SPREADS = 24  # sizes of a guess that are told apart
_FALLS = 60  # rungs that one release can fall, at most
_CELLS = 2_000  # rungs in all, at most
_PRICES = np.geomspace(1e-6, 2.0, 120)  # of a question, in squared standard deviations of luck
_MIN_CHANCE = 1e-7  # a chance this small is none
_TINY = 1e-300

_REPLAN_AFTER = 1.25  # a silence this much longer calls for another placement
_ABSTAIN = 2
_MAX_RARE = 0.3  # a class as common as the two others shifts nothing
_MAX_VOTED = 0.8  # no larger part of the examples is left to the vote
_MAX_EDGE = 0.49  # no guess is believed surer than this beyond chance


class PartialGuess(NamedTuple):
    """Examples of which a part is guessed, a part abstained on.

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
    def least(self) -> float:
        """How many examples are expected wrong if all are guessed."""
        return self.n * (1 - self.right)

    @property
    def most(self) -> float:
        """How many examples are expected wrong if none is guessed."""
        return self.n * (1 - self.rare)

    def size(self, wrong: float) -> int:
        """Return how many examples to guess so that so many are expected wrong."""
        each = self.right - self.rare  # what a guess wins over an abstention
        return min(max(round((self.most - wrong) / each), 0), self.n)

    def expected(self, size: int) -> float:
        """Return how many are expected wrong with so many guessed."""
        return self.most - size * (self.right - self.rare)

    def variance(self, size: float) -> tuple[float, float]:
        """Return the variance of the wrong ones among the guessed, and among all."""
        own = size * self.right * (1 - self.right)
        return own, own + (self.n - size) * self.rare * (1 - self.rare)


class PlacementPlan:
    """The best placement of a guess, for every value of a ladder and every price of a question.

    What a question is worth is the square of the mean luck that its answer lets expect: these add
    up, and the final vote is right on an example with probability Phi(sqrt(sum / n)). With a price
    for each question, the worth V(v) of a ladder that stands at v solves

        V(v) = max over shifts of (information - price + sum_f P(f) V(v - f)) / P(told),

    f being how far the value falls, so one sweep from the lowest value upwards does it. The price
    is the one at which the questions left are expected to last. ``vote`` is how many examples the
    vote is expected to win by: below the risk of guesses the surest examples are answered by vote.

    Noise that stands until the next crossing is taken for fresh.
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
        parts = [guess.variance(each) for each in sizes.tolist()]
        answers = [self._answers(math.sqrt(whole)) for _, whole in parts]
        self._told = np.array([each[0] for each in answers])  # by size, shift and fall
        self._luck = np.array([each[1] for each in answers])  # summed over the chance of it
        self._quiet = 1 - self._told.sum(axis=2)
        heard = (self._luck**2 / np.maximum(self._told, _TINY)).sum(axis=2)
        unheard = self._luck.sum(axis=2) ** 2 / np.maximum(self._quiet, _MIN_CHANCE)
        # Of the luck, only that of the guessed part teaches anything.
        share = np.array([own / whole for own, whole in parts])
        self._information = (heard + unheard) * share[:, None]
        self._low = math.ceil((guess.least - vote) / self.cell) - 2
        self._solve(math.ceil(guess.n / self.cell) - self._low + 1)

    def _answers(self, deviation: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return, by shift and fall, the chance of the fall and the mean luck times it."""
        rule = self.rule
        wrong = self.shift[:, None] - deviation * _LUCK  # from the value that stands
        crossed = _chance_below(-rule.step - wrong, rule.compare) * _WEIGHT
        edges = -self.cell * (self.falls - 0.5)
        reached = _chance_below(edges[:, None, None] - wrong, rule.release)
        reached[:-1] -= reached[1:]
        by_luck = crossed * reached  # by fall, shift and luck
        return by_luck.sum(axis=2).T, (by_luck @ _LUCK).T

    def _solve(self, cells: int) -> None:
        guess, prices = self.guess, np.arange(len(_PRICES))
        self.worth = np.zeros((cells, len(_PRICES)))
        self.asked = np.zeros_like(self.worth)  # questions expected until the end
        self._action = np.full(self.worth.shape, -1)  # a shift, -1: stop, below: a cell to fall to
        at_shift = np.arange(_SHIFTS)
        for cell in range(cells):
            value = (self._low + cell) * self.cell
            wrong = value + self.shift
            size = self._levels(wrong)
            told = self._told[size, at_shift]
            under = np.maximum(cell - self.falls, 0)
            inside = (cell >= self.falls)[:, None]
            gain = self._information[size, at_shift] * self._guessed(wrong)
            after = told @ np.where(inside, self.worth[under], 0.0)
            asked = told @ np.where(inside, self.asked[under], 0.0)
            chance = told.sum(axis=1)[:, None]
            possible = (wrong >= guess.least - self.vote) & (wrong < guess.most)
            possible &= chance[:, 0] > _MIN_CHANCE
            worth = (gain[:, None] - _PRICES + after) / np.maximum(chance, _MIN_CHANCE)
            worth[~possible] = -np.inf
            best = worth.argmax(axis=0)
            found = worth[best, prices]
            spent = ((1 + asked) / np.maximum(chance, _MIN_CHANCE))[best, prices]
            stop = found <= 0
            self.worth[cell] = np.where(stop, 0.0, found)
            self.asked[cell] = np.where(stop, 0.0, spent)
            self._action[cell] = np.where(stop, -1, best)
            if cell:  # one question that is sure to be told, to begin lower
                lower = self.worth[:cell].argmax(axis=0)
                there = self.worth[lower, prices] - _PRICES
                leap = there > self.worth[cell]
                self.worth[cell] = np.where(leap, there, self.worth[cell])
                self.asked[cell] = np.where(leap, self.asked[lower, prices] + 1, self.asked[cell])
                self._action[cell] = np.where(leap, -2 - lower, self._action[cell])

    def _levels(self, wrong: NDArray[np.float64]) -> NDArray[np.int64]:
        guess = self.guess
        part = (guess.most - wrong) / (guess.most - guess.least)
        near = np.rint(_SPREADS * np.sqrt(np.clip(part, 0, 1))).astype(np.int64)
        return np.maximum(near, 1) - 1

    def _guessed(self, wrong: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the part of the examples that is left to guesses; the vote answers the surest.

        Log-odds are about normal, so those beyond z deviations have exp(-z^2/2) of all that the
        vote wins.
        """
        if not self.vote:
            return np.ones(len(wrong))
        paid = np.clip((self.guess.least - wrong) / self.vote, 1e-9, 1.0)
        rest = np.array([math.erf(math.sqrt(-math.log(each))) for each in paid.tolist()])
        return np.where(wrong < self.guess.least, rest, 1.0)

    def information(self, questions: int) -> float:
        """Return about how much is learned in so many questions, in squared deviations."""
        asked = self.asked[-1]
        at = min(int(np.searchsorted(-asked, -questions)), len(_PRICES) - 1)
        learned = self.worth[-1, at] + _PRICES[at] * asked[at]
        return float(learned * min(questions / max(asked[at], 1.0), 1.0))

    def place(self, value: float, left: int) -> float | None:
        """Return how many examples the next guess should have wrong; None to ask no more."""
        cell = min(max(round(value / self.cell) - self._low, 0), len(self.worth) - 1)
        # A higher price asks fewer questions: the lowest at which they last.
        at = min(int((self.asked[cell] > left).sum()), len(_PRICES) - 1)
        action = int(self._action[cell, at])
        while action == -1 and at:  # too dear: rather ask than keep questions for nothing
            at -= 1
            action = int(self._action[cell, at])
        if action == -1:
            return None
        if action < -1:
            return (self._low - 2 - action) * self.cell
        return value + float(self.shift[action])

    def believed(self, wrong: float, value: float, fallen: float | None) -> float:
        """Return the mean luck of a guess after its answer: how far the value fell, or None.

        An infinite fall stands for one that is not told.
        """
        size = int(self._levels(np.array([wrong]))[0])
        apart = self.shift[1] - self.shift[0]
        at = min(max(round((wrong - value - self.shift[0]) / apart), 0), _SHIFTS - 1)
        told, luck = self._told[size, at], self._luck[size, at]
        if fallen is None:
            return float(-luck.sum() / max(self._quiet[size, at], _MIN_CHANCE))
        if math.isinf(fallen):
            return float(luck.sum() / max(told.sum(), _TINY))
        cell = min(max(round(fallen / self.cell), 1), len(self.falls)) - 1
        return float(luck[cell] / told[cell]) if told[cell] > _TINY else 0.0


@lru_cache(maxsize=8)
def plan_placements(rule: ComparisonRule, guess: PartialGuess, questions: int) -> PlacementPlan:
    """Return the placements for a game of so many questions."""
    blind = PlacementPlan(rule, guess)
    vote = math.sqrt(blind.information(questions) * guess.n / (2 * math.pi))
    return PlacementPlan(rule, guess, vote * 2 * guess.right)


def _chance_below(distance: NDArray[np.float64], noise: float) -> NDArray[np.float64]:
    """Return the chance that noise of this standard deviation stays below a distance."""
    if not noise:
        return (distance > 0).astype(np.float64)
    return np.interp(distance / noise, _KNOTS, _BELOW)


@dataclass(frozen=True)
class AbstainingAttack(Analyst):
    """Abstain on some examples, guess the others, and put every guess where its answer says most.

    A prediction that is no class is surely wrong. So any amount can be added to the risk of a
    question without knowing a label, which the shifted majority attack needs half of the labels
    for; and all labels can be attacked. How many to abstain on comes from dynamic programming over
    the value that stands and the questions left. The examples whose labels are least sure so far
    are guessed, the surest are abstained on; once the ladder is below the risk of guesses, the
    surest are answered by the vote.

    Parameters
    ----------
    rare
        The share of labels of the class that it abstains with: 0 where a prediction that is no
        class is accepted, a small number where that is refused and a class is rare. ``None`` where
        two classes are declared: it cannot abstain then, and plays the shifted majority attack
        with no label known.

    Notes
    -----
    The placement is made for ladders; against noise-free ones, flipping parts of the best model,
    as the shifted majority attack does, may gain more. A mechanism that tells every model's score
    is listened to, without abstaining.

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
        """Find out whether every model is told of, climb or listen, and ask the vote last."""
        if self.rare is None:
            ShiftedMajority(easy=0).play(game)
            return
        easy = RiskShifter(game.known, game.n)
        rule = ComparisonRule.of(game.mechanism, game.n)
        walking = LocalSearch(game, easy, rule)
        if game.questions < MIN_QUESTIONS:
            easy.ask(game, walking.vote(), 0)
            return
        # A ladder says nothing about a model that it was told of before.
        nothing = np.full(game.n, _ABSTAIN)
        first = game.ask(nothing)
        while first.improved and game.remaining > 1:
            first = game.ask(nothing)
        if first.score is not None:
            easy.ask(game, play_with_scores(game, easy, walking).vote(), 0)
            return
        if rule.by_difference:  # two guesses differ on half of the examples
            rule = rule._replace(step=rule.margin(game.n // 2), grid=1.0, by_difference=0.0)
        climb = _AbstainingClimb(game, rule, PartialGuess(game.n, self.rare))
        if first.value is not None:
            climb.value = first.value * game.n
        game.register_final_model(lambda: climb.vote().astype(np.int64))
        climb.play()
        easy.ask(game, climb.vote(), 0)


class _PlacedGuess(NamedTuple):
    """Which examples to guess, the rest of the model, its expected errors and their deviation."""

    guessed: NDArray[np.intp]
    model: NDArray[np.int8]
    wrong: float
    deviation: float


class _AbstainingClimb:
    """The state of the attack on a ladder: log-odds of each label, and the value that stands."""

    def __init__(self, game: Game, rule: ComparisonRule, guess: PartialGuess) -> None:
        self.game, self.rule, self.guess = game, rule, guess
        self.odds = np.zeros(game.n)  # log-odds of the label 1
        self.value = float(game.n)
        self.rungs = plan_placements(rule, guess, game.questions)

    def vote(self) -> NDArray[np.bool_]:
        """Return the likeliest labels."""
        return self.odds > 0

    def play(self) -> None:
        """Ask until one question is left, or none is worth asking."""
        quiet = patience = 0
        question: _PlacedGuess | None = None
        while (left := self.game.remaining - 1) > 0:
            if question is None or quiet >= patience:
                wanted = self.rungs.place(self.value, left)
                if wanted is None:
                    return
                patience = max(quiet + 1, int(quiet * _REPLAN_AFTER))
                question = self._prepare(wanted)
            quiet += 1
            bits = self.game.rng.integers(0, 2, len(question.guessed), dtype=np.int8)
            question.model[question.guessed] = bits
            if self._learn(question, bits, self.game.ask(question.model)):
                quiet, question = 0, None

    def _prepare(self, wanted: float) -> _PlacedGuess:
        guess, n = self.guess, self.game.n
        sure = np.abs(self.odds)
        order = np.argsort(sure + 1e-9 * self.game.rng.random(n))
        model = np.full(n, _ABSTAIN, np.int8)
        size = max(guess.size(wanted), 1)
        wrong, variance = guess.expected(size), guess.variance(size)[1]
        if wanted < guess.least:  # the vote answers the surest examples
            wins = 2 * guess.right * (0.5 - 1 / (1 + np.exp(sure[order[::-1]])))
            won = np.cumsum(wins)
            voted = int(np.searchsorted(won, guess.least - wanted)) + 1
            voted = min(voted, int(_MAX_VOTED * n))
            size = n - voted
            model[order[size:]] = self.vote()[order[size:]]
            wrong = guess.least - (float(won[voted - 1]) if voted else 0.0)
        return _PlacedGuess(order[:size], model, wrong, math.sqrt(variance))

    def _learn(self, question: _PlacedGuess, bits: NDArray[np.int8], release: Release) -> bool:
        """Let the guess vote by what its answer lets expect; return whether the ladder moved."""
        n, value = self.game.n, self.value
        wrong, deviation = question.wrong, question.deviation
        if not release.improved:
            luck = self.rungs.believed(wrong, value, None)
        elif release.value is None:  # the value is kept back: about where the guess is believed
            luck = self.rungs.believed(wrong, value, math.inf)
            told = min(wrong - luck * deviation, value - self.rule.step)
            self.value = max(told, 0.0)
        else:
            told = release.value * n
            luck = self.rungs.believed(wrong, value, value - told)
            if value - wrong > self.rule.step + 3 * self.rule.compare + 3 * deviation:
                # Told for sure: what is told is the risk, blurred.
                luck = (wrong - told) * deviation / (deviation**2 + self.rule.blur)
            self.value = min(told, value)
        right = self.guess.right
        share = right * (1 - right) / deviation  # of one example in the luck
        edge = min(max(luck * share, -_MAX_EDGE * 2 * right), _MAX_EDGE * 2 * right)
        weight = math.log((right + edge) / (right - edge))
        self.odds[question.guessed] += np.where(bits == 1, weight, -weight)
        return release.improved
