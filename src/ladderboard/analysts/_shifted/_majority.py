"""The shifted majority attack, with its variants that abstain or hold many accounts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from ladderboard import _settings
from ladderboard.analysts._game import Analyst
from ladderboard.analysts._shifted._comparison_rule import ComparisonRule, RiskShifter
from ladderboard.analysts._shifted._local_search import LocalSearch
from ladderboard.analysts._shifted._placement import GuessModel, LadderRungs, plan_placements
from ladderboard.analysts._shifted._random_guesses import RandomGuesses
from ladderboard.analysts._worlds import CoinFlipWorld, RareClassWorld, unpack_bits

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ladderboard.analysts._game import Game
    from ladderboard.analysts._worlds import World
    from ladderboard.mechanisms import Release


MIN_QUESTIONS = 4  # fewer teach nothing
MAX_ACCOUNTS = 2**62


@dataclass(frozen=True)
class ShiftedMajority(Analyst):
    """Use known labels to keep every guess where its release, or silence, is most informative.

    A ladder releases a value only for a model that beats the best so far, so random guesses soon
    get no release. An analyst that knows some labels (the easy examples) starts with all of them
    wrong and corrects them gradually: that pays for the ladder's steps, while guesses on the hard
    examples accumulate luck. Each guess is placed above the threshold, so that only a lucky one is
    released, as lucky as the remaining questions and steps can pay for.

    Parameters
    ----------
    easy
        The share of the labels that is known, in [0, 1).
    walk
        Whether to search locally against noisy ladders, too.

    Notes
    -----
    If comparisons are free of noise it searches locally: it flips small sets of the best model so
    far and keeps those that were released. If they are noisy it asks random guesses and votes; each
    is placed by dynamic programming, or if noise stays until the ladder moves, by its odds.

    Examples
    --------
    >>> import ladderboard as lb
    >>> attack = ShiftedMajority(easy=0.5)
    >>> round(attack.play_against(lb.Ladder(step=0.01), n=10_000, questions=1_000, seed=1).bias, 2)
    0.05

    References
    ----------
    Hardt, "Climbing a shaky ladder: Better adaptive risk estimation", 2017, Section 4.
    """

    name: ClassVar[str] = "shifted_majority"

    easy: float = 0.5
    walk: bool = False

    def __post_init__(self) -> None:
        _settings.set_frozen(
            self,
            easy=_settings.number("easy", self.easy, at_least=0, below=1),
            walk=bool(self.walk),
        )

    def world(self, n: int, rng: np.random.Generator) -> CoinFlipWorld:
        """Return coin flips, some of them known."""
        return CoinFlipWorld(n, rng, easy=self.easy)

    def play(self, game: Game) -> None:
        """Find out whether every model gets a score, learn the labels, then ask about the vote."""
        shifter = RiskShifter(game.known, game.n)
        rule = ComparisonRule.from_mechanism(game.mechanism, game.n)
        search = LocalSearch(game, shifter, rule)
        game.register_final_model(lambda: shifter.model(search.vote(), 0))
        if game.questions < MIN_QUESTIONS:
            shifter.ask(game, search.vote(), 0)
            return
        value = search.open_ladder()
        again = repeat_first_model(game, shifter, search)
        tactic: LocalSearch | RandomGuesses = search
        if again.score is not None:
            tactic = play_with_scores(game, shifter, search)
        else:
            noisy = rule.compare and not self.walk
            if noisy and not rule.standing:
                play_placed_guesses(game, GuessModel(game.n, shifter.size, None))
                return
            if noisy:
                tactic = start_random_guesses(game, shifter, rule)
            tactic.climb(value if again.value is None else game.n * again.value)
        shifter.ask(game, tactic.vote(), 0)


def repeat_first_model(game: Game, shifter: RiskShifter, search: LocalSearch) -> Release:
    """Ask the first model again; a score shows that the mechanism scores every model."""
    again = shifter.ask(game, search.beliefs.base, shifter.size)
    while again.improved and game.remaining > 1:  # moved by noise alone
        again = shifter.ask(game, search.beliefs.base, shifter.size)
    return again


def play_with_scores(
    game: Game, shifter: RiskShifter, search: LocalSearch
) -> LocalSearch | RandomGuesses:
    """Spend all questions but one against a mechanism that scores every model."""
    tactic: LocalSearch | RandomGuesses = search
    if search.rule.hides_few_examples:
        tactic = start_random_guesses(game, shifter, search.rule)
    tactic.play_with_scores()
    return tactic


def start_random_guesses(game: Game, shifter: RiskShifter, rule: ComparisonRule) -> RandomGuesses:
    """Switch to random guesses and their vote."""
    tactic = RandomGuesses(game, shifter, rule)
    game.register_final_model(lambda: shifter.model(tactic.vote(), 0))
    return tactic


@dataclass(frozen=True)
class SybilAttack(Analyst):
    """Register many accounts, use the first release of each, then attack every ladder.

    A ladder starts from the worst risk, so the first question on it always gets a release. With a
    ladder for every account, m accounts give m scores, as precise as the release noise allows: the
    majority attack over accounts. The remaining questions are spent like those of the shifted
    majority attack, on every ladder.

    Parameters
    ----------
    accounts
        How many accounts; at most the number of questions is used.
    easy
        The share of the labels that is known, in [0, 1).

    Examples
    --------
    >>> import ladderboard as lb
    >>> ladder = lb.Ladder(step=0.01)
    >>> one = SybilAttack(accounts=1).play_against(ladder, n=10_000, questions=1_000, seed=1)
    >>> many = SybilAttack(accounts=500).play_against(ladder, n=10_000, questions=1_000, seed=1)
    >>> round(one.bias, 2), round(many.bias, 2)
    (0.05, 0.07)
    """

    name: ClassVar[str] = "sybil"

    accounts: int = 100
    easy: float = 0.5

    def __post_init__(self) -> None:
        _settings.set_frozen(
            self,
            accounts=_settings.integer("accounts", self.accounts, at_least=1, at_most=MAX_ACCOUNTS),
            easy=_settings.number("easy", self.easy, at_least=0, below=1),
        )

    def world(self, n: int, rng: np.random.Generator) -> CoinFlipWorld:
        """Return coin flips, some of them known."""
        return CoinFlipWorld(n, rng, easy=self.easy)

    def play(self, game: Game) -> None:
        """Open every account, climb every ladder, then ask about the vote."""
        shifter = RiskShifter(game.known, game.n)
        rule = ComparisonRule.from_mechanism(game.mechanism, game.n)
        search = LocalSearch(game, shifter, rule)
        tactic: LocalSearch | RandomGuesses = search
        if game.questions < MIN_QUESTIONS:
            shifter.ask(game, tactic.vote(), 0)
            return
        values = [search.open_ladder()]
        if repeat_first_model(game, shifter, search).score is not None:
            # If every model gets a score, one account learns as much as many.
            shifter.ask(game, play_with_scores(game, shifter, search).vote(), 0)
            return
        count = min(self.accounts, game.remaining)
        if rule.compare and not rule.standing:
            play_placed_guesses(game, GuessModel(game.n, shifter.size, None), count)
            return
        if rule.compare or rule.hides_few_examples:
            tactic = RandomGuesses(game, shifter, rule)
        values += [tactic.open_ladder(account) for account in range(1, count)]
        if not rule.compare and isinstance(tactic, RandomGuesses):
            tactic = LocalSearch(game, shifter, rule, votes=tactic.votes)
        spare = game.remaining - 1
        for account, value in enumerate(values):
            keep = 1 + spare * (count - 1 - account) // count
            tactic.climb(value, account=account, keep=keep)
        shifter.ask(game, tactic.vote(), 0)


_ABSTAIN = 2
_MAX_RARE = 0.3  # a class as common as the two others shifts nothing


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
        attack.
    easy
        The share of the labels that is known, in [0, 1).
    accounts
        How many accounts it holds. It plays their ladders one after the other.

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
    easy: float = 0.0
    accounts: int = 1

    def __post_init__(self) -> None:
        rare = self.rare
        if rare is not None:
            rare = _settings.number("rare", rare, at_least=0, at_most=_MAX_RARE)
        _settings.set_frozen(
            self,
            rare=rare,
            easy=_settings.number("easy", self.easy, at_least=0, below=1),
            accounts=_settings.integer("accounts", self.accounts, at_least=1, at_most=MAX_ACCOUNTS),
        )

    def world(self, n: int, rng: np.random.Generator) -> World:
        """Return coin flips and a rare class; without one, coin flips."""
        if self.rare is None:
            return CoinFlipWorld(n, rng, easy=self.easy)
        return RareClassWorld(n, rng, rare=self.rare, easy=self.easy)

    def play(self, game: Game) -> None:
        """Find out whether every model gets a score, learn the labels, then ask about the vote."""
        if self.rare is None:
            SybilAttack(self.accounts, self.easy).play(game)
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
        guess = GuessModel(game.n, shifter.size, self.rare)
        play_placed_guesses(game, guess, min(self.accounts, game.remaining))


_REPLAN_AFTER = 1.25  # choose a new placement after a silence this much longer
_MAX_VOTED = 0.8  # at most this share of the examples is left to the vote
_MIN_EDGE = 1e-3  # examples that the vote is less sure of are guessed
_MAX_EDGE = 0.49  # the surest belief about a guess, beyond chance


class _PlacedGuess(NamedTuple):
    """Which examples to guess, the rest of the model, its expected errors and their deviation."""

    guessed: NDArray[np.intp]
    model: NDArray[np.int8]
    wrong: float
    deviation: float


class PlannedClimb:
    """Place guesses where dynamic programming says, and vote by the luck that releases imply.

    The known examples are the first ones. Those whose labels are least sure are guessed, the surest
    are abstained on; below the risk of guesses the surest are answered by the vote.
    """

    def __init__(self, game: Game, guess: GuessModel, accounts: int = 1) -> None:
        self.game, self.guess = game, guess
        self.rungs = LadderRungs.from_mechanism(game.mechanism, game.n)
        self.plan = plan_placements(self.rungs, guess, game.questions)
        self.odds = np.zeros(guess.unknown)  # log-odds of the label 1
        released = [game.value_of(account) for account in range(accounts)]
        self.values = [game.n * (1.0 if value is None else value) for value in released]
        self._known = unpack_bits(game.known.labels, game.n)[: guess.known]

    def vote(self) -> NDArray[np.int8]:
        """Return the model of known and likeliest labels."""
        return np.concatenate((self._known, self.odds > 0)).astype(np.int8)

    def play(self) -> None:
        """Ask until one question is left, or none is worth asking."""
        for account in range(len(self.values)):
            self._play_ladder(account)

    def _play_ladder(self, account: int) -> None:
        quiet = replan_at = 0
        question: _PlacedGuess | None = None
        while (left := self.game.remaining - 1) > 0:
            if question is None or quiet >= replan_at:
                # Ladders before this one are spent; those after it share the questions left.
                ladders = [
                    (self.values[index], self._effective_changes(index))
                    for index in range(account, len(self.values))
                ]
                wanted = self.plan.expected_wrong(ladders, 0, left)
                if wanted is None:
                    return
                replan_at = max(quiet + 1, int(quiet * _REPLAN_AFTER))
                question = self._place_guess(wanted)
            quiet += 1
            bits = self.game.rng.integers(0, 2, len(question.guessed), dtype=np.int8)
            question.model[self.guess.known + question.guessed] = bits
            rule = self.rungs.rule_at(self.values[account], self._effective_changes(account))
            release = self.game.ask(question.model, account=account)
            luck = self._expected_luck(question, rule, release, account)
            self._add_vote(question, bits, luck)
            if release.improved:
                quiet, question = 0, None

    def _effective_changes(self, account: int) -> float:
        """Return the changes after which the next step would be as large without the others'."""
        changes, others = self.game.changes_of(account), self.game.changes_of_others(account)
        growth = self.game.mechanism.rung_growth(changes + 1, others) if others else None
        return self.rungs.changes_at(growth[-1]) if growth else changes

    def _place_guess(self, wanted: float) -> _PlacedGuess:
        guess = self.guess
        sure = np.abs(self.odds)
        order = np.argsort(sure + 1e-9 * self.game.rng.random(guess.unknown))
        size, mistakes = guess.size(wanted), guess.mistakes(wanted)
        wrong = guess.expected(size, mistakes)
        variance = sum(guess.variances(size))
        answers = np.full(guess.unknown, _ABSTAIN, np.int8)
        if wanted < guess.fewest_wrong:  # the vote answers the surest examples
            edge = 0.5 - 1 / (1 + np.exp(sure[order[::-1]]))
            won = np.cumsum(2 * guess.right * edge)
            voted = int(np.searchsorted(won, guess.fewest_wrong - wanted)) + 1
            voted = min(voted, int(_MAX_VOTED * guess.unknown), int((edge > _MIN_EDGE).sum()))
            size = guess.unknown - voted
            answers[order[size:]] = self.odds[order[size:]] > 0
            wrong -= float(won[voted - 1]) if voted else 0.0
            variance -= float(np.sum(edge[:voted] ** 2))
        model = np.concatenate((self._known, answers)).astype(np.int8)
        model[:mistakes] ^= 1
        return _PlacedGuess(order[:size], model, wrong, math.sqrt(max(variance, 0.25)))

    def _expected_luck(
        self, question: _PlacedGuess, rule: ComparisonRule, release: Release, account: int
    ) -> float:
        """Return the mean luck of a guess after its release, and note the ladder's new value."""
        value, deviation = self.values[account], question.deviation
        distance = question.wrong - value
        if not release.improved:
            return rule.luck_if_silent(distance, deviation)
        if release.value is None:  # the value is not released: estimate it
            luck = rule.luck_if_crossed(distance, deviation)
            estimate = min(question.wrong - luck * deviation, value - rule.step)
            self.values[account] = max(estimate, 0.0)
            return luck
        released = release.value * self.game.n
        self.values[account] = min(released, value)
        return rule.luck_if_released(distance, deviation, value - released)

    def _add_vote(self, question: _PlacedGuess, bits: NDArray[np.int8], luck: float) -> None:
        """Let a guess vote by the log-odds that it is right on an example."""
        right = self.guess.right
        share = right * (1 - right) / question.deviation  # of one example in the luck
        edge = min(max(luck * share, -_MAX_EDGE * 2 * right), _MAX_EDGE * 2 * right)
        weight = math.log((right + edge) / (right - edge))
        self.odds[question.guessed] += np.where(bits == 1, weight, -weight)


def play_placed_guesses(game: Game, guess: GuessModel, accounts: int = 1) -> None:
    """Learn labels with all questions but one, then ask about the vote."""
    climb = PlannedClimb(game, guess, accounts)
    game.register_final_model(climb.vote)
    climb.play()
    game.ask(climb.vote())
