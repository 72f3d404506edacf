"""An attack on ladders whose steps follow the new model's own standard error, counted or played.

Under losses other than zero-one a guess can be as quiet as wanted: with Brier loss, predictions of
1/2 ± d have a luck of standard deviation d/sqrt(n). Steps that follow the model shrink with it, so
that there is room for any number of them and only their growth ends what is learned. The attack is
the planned one without a limit on room, and so an upper estimate: it places every guess where it
wants, at a scale just below a class of standard errors. A guess then matters only through its luck.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ladderboard.analysts import ComparisonRule, normal_cdf
from ladderboard.tape import NumpyTape

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from ladderboard.mechanisms import Mechanism

_LEVELS = 400  # numbers of changes that are distinguished
_PLACES = np.linspace(-1, 5, 61)  # of a guess, in deviations of luck and noise above the step
_PRICES = np.geomspace(1e-6, 2.0, 60)  # of a question, in squared deviations of luck
_MIN_CHANCE = 1e-9
_LUCK = 1_000.0  # the standard deviation of luck, in the unit of rules
_REPLAN_AFTER = 1.25
_LEAST_LOSS = 0.151  # of log loss clipped at 0.01, with a half for each of two classes
_SURELY = 3.05  # standard deviations; noise is cut at three


class QuietPlan(NamedTuple):
    """For every number of changes and price: where to place a guess, and the questions needed."""

    place: NDArray[np.int64]  # -1: stop
    expected_questions: NDArray[np.float64]


def plan_quiet_attack(rules: Sequence[ComparisonRule]) -> QuietPlan:
    """Solve V(b) = max over places of (information - price) / P(released) + V(b + 1)."""
    shape = (len(rules) + 1, len(_PRICES))
    worth, expected = np.zeros(shape), np.zeros(shape)
    place = np.full(shape, -1)
    for level in range(len(rules) - 1, -1, -1):
        chance, information = _odds(rules[level])
        value = (information[:, None] - _PRICES) / chance[:, None] + worth[level + 1]
        best = value.argmax(axis=0)
        reached = np.take_along_axis(value, best[None, :], axis=0)[0]
        stop = reached <= 0
        worth[level] = np.where(stop, 0.0, reached)
        expected[level] = np.where(stop, 0.0, 1 / chance[best] + expected[level + 1])
        place[level] = np.where(stop, -1, best)
    return QuietPlan(place, expected)


def _odds(rule: ComparisonRule) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return, by place, the chance of a release and the information of a question."""
    noise = math.hypot(_LUCK, rule.compare)
    chances, information = [], []
    for place in _PLACES.tolist():
        chance, luck = rule.crossing_odds(place * noise - rule.step, _LUCK)
        chance = max(chance, _MIN_CHANCE)
        mean = luck / chance
        # The variance of luck that is left after crossing, of which the release shows a part.
        variance = max(1 - mean * mean + mean * place * _LUCK / noise, 0.0)
        shown = variance * variance / (variance + rule.blur / _LUCK**2 + _MIN_CHANCE)
        quiet = luck * luck / max(1 - chance, _MIN_CHANCE)
        chances.append(chance)
        information.append(chance * (mean * mean + shown) + quiet)
    return np.array(chances), np.array(information)


class QuietPlanner:
    """Where the attack places its guesses on a growing ladder."""

    def __init__(self, mechanism: Mechanism, n: int, questions: int) -> None:
        growth = mechanism.rung_growth(min(_LEVELS, questions)) or (1.0,)
        # At one half a standard error is the deviation of a guess of all labels, zero-one loss.
        first = ComparisonRule.from_mechanism(mechanism, n).scaled(_LUCK / (math.sqrt(n) / 2))
        self.rules = [first.scaled(multiple) for multiple in growth]
        self.plan = plan_quiet_attack(self.rules)

    def rule(self, changes: int) -> ComparisonRule:
        """Return the rule after a number of changes."""
        return self.rules[min(changes, len(self.rules) - 1)]

    def place(self, changes: int, left: int) -> float | None:
        """Return where to place a guess, in deviations of luck and noise above the step.

        At the lowest price at which the questions last; None if no guess is worth a question.
        """
        level = min(changes, len(self.rules) - 1)
        price = min(int((self.plan.expected_questions[level] > left).sum()), len(_PRICES) - 1)
        while self.plan.place[level, price] < 0 and price:
            price -= 1
        chosen = int(self.plan.place[level, price])
        return None if chosen < 0 else float(_PLACES[chosen])


def quiet_attack_biases(
    mechanism: Mechanism, *, n: int, questions: int, games: int, seed: int = 0
) -> NDArray[np.float64]:
    """Return the bias of the attack's last vote times sqrt(n), one number for each game.

    ``mechanism`` is a growing ladder.
    """
    planner = QuietPlanner(mechanism, n, questions)
    return np.array(
        [_play(planner, n, questions, np.random.default_rng([seed, game])) for game in range(games)]
    )


def _play(planner: QuietPlanner, n: int, questions: int, rng: np.random.Generator) -> float:
    """Play one game by counting; return the bias times sqrt(n)."""
    agreed = squared = 0.0
    changes = quiet = replan_at = 0
    distance = 0.0
    for left in range(questions - 1, 0, -1):
        rule = planner.rule(changes)
        if quiet >= replan_at:
            place = planner.place(changes, left)
            if place is None:
                break
            distance = place * math.hypot(_LUCK, rule.compare) - rule.step
            replan_at = max(quiet + 1, int(quiet * _REPLAN_AFTER))
        quiet += 1
        luck, on_compare, on_release = rng.standard_normal(3).tolist()
        if distance - _LUCK * luck + rule.compare * on_compare < -rule.step:
            fallen = _LUCK * luck - distance + math.sqrt(rule.blur) * on_release
            believed = rule.luck_if_released(distance, _LUCK, fallen)
            changes += 1
            quiet = replan_at = 0
        else:
            believed = rule.luck_if_silent(distance, _LUCK)
        agreed += believed * luck
        squared += believed * believed
    return math.sqrt(n) * (normal_cdf(agreed / math.sqrt(squared * n)) - 0.5) if squared else 0.0


@dataclass(frozen=True)
class PlayedQuietAttack:
    """The attack played on real sessions: a right guess costs ``u - d``, a wrong one ``u + d``.

    Log and Brier loss allow that for any ``u``, where a class is declared that no example has.

    Parameters
    ----------
    start
        The loss ``u`` of the first guess.
    deviation
        The loudness ``d``.
    patience
        The least place of a guess, in deviations of luck and noise above the step.
    alternates
        Whether after each record a model sixteen times quieter takes it, to be compared with.
    accounts
        How many ladders it plays.
    """

    start: float = 0.6
    deviation: float = 0.3
    patience: float = -math.inf
    alternates: bool = False
    accounts: int = 1

    def biases(
        self, mechanism: Mechanism, *, n: int, questions: int, games: int, seed: int = 0
    ) -> NDArray[np.float64]:
        """Return the bias of the last vote times sqrt(n), one number for each game.

        ``mechanism`` is a growing ladder with ``scale="model"``.
        """
        # An attack that alternates spends two changes on each guess that is released.
        stride = 2 if self.alternates else 1
        growth = mechanism.rung_growth(min(_LEVELS, questions) * stride + 1) or (1.0,)
        first = ComparisonRule.from_mechanism(mechanism, n).scaled(_LUCK / (math.sqrt(n) / 2))
        plan = plan_quiet_attack([first.scaled(multiple) for multiple in growth[1::stride]])
        return np.array(
            [
                _PlayedGame(self, mechanism, plan, n, questions, [seed, game]).play()
                for game in range(games)
            ]
        )


def best_played_attack(
    mechanism: Mechanism,
    *,
    n: int,
    questions: int,
    games: int,
    alternates: bool = False,
    accounts: int = 1,
    seed: int = 0,
) -> PlayedQuietAttack:
    """Return the attack that gains most among eighteen of different start, loudness and patience.

    Play it anew, with another seed, to know what it gains.
    """
    attacks = [
        PlayedQuietAttack(start, loudness * start, patience, alternates, accounts)
        for start in (0.6, 0.9)
        for loudness in (0.175, 0.3, 0.5)
        for patience in (-math.inf, 0.5, 1.0)
    ]
    return max(
        attacks,
        key=lambda attack: attack.biases(
            mechanism, n=n, questions=questions, games=games, seed=seed
        ).mean(),
    )


class _PlayedGame:
    """One game: the sessions, what was learned, and how each ladder stands.

    All right guesses are 1, which changes no law: a guess is a row of fair bits.
    """

    def __init__(  # noqa: PLR0917 - the parts of a game
        self,
        attack: PlayedQuietAttack,
        mechanism: Mechanism,
        plan: QuietPlan,
        n: int,
        questions: int,
        seed: list[int],
    ) -> None:
        self.attack, self.mechanism, self.plan, self.n = attack, mechanism, plan, n
        self.left = questions - 1
        self.rng = np.random.default_rng(seed)
        # A vote for 1 counts ``believed``, a vote for 0 as much against it.
        self.votes_for_one, self.total_votes = np.zeros(n), 0.0
        tape = NumpyTape(seed=int(self.rng.integers(2**32)))
        ladders = range(attack.accounts)
        self.sessions = [mechanism.start(n=n, tape=tape, ladder=ladder) for ladder in ladders]
        self.values, self.changes = [1.0] * attack.accounts, [0] * attack.accounts
        self.errors = [0.5 / math.sqrt(n)] * attack.accounts
        self.quiet, self.replan_at = [0] * attack.accounts, [0] * attack.accounts
        self.places: list[float | None] = [0.0] * attack.accounts
        self.first = ComparisonRule.from_mechanism(mechanism, n).scaled(2 / math.sqrt(n))
        self.shares = mechanism.describe().get("least_deviation", 0.0)

    def play(self) -> float:
        """Ask until no question is left or worth its price; return the bias times sqrt(n)."""
        attack, luck = self.attack, self.attack.deviation / math.sqrt(self.n)
        for ladder in range(min(attack.accounts, self.left)):
            rule, value = self._rule(ladder, luck), self.values[ladder]
            self._guess(ladder, attack.start - value, rule, luck)
        while self.left and any(place is not None for place in self.places):
            open_ladders = [ladder for ladder, place in enumerate(self.places) if place is not None]
            ladder = min(open_ladders, key=self.changes.__getitem__)
            if attack.alternates and self.errors[ladder] > luck / 8:
                self._take_record(ladder, luck / 16)
            else:
                self._place(ladder, open_ladders)
                place, rule = self.places[ladder], self._rule(ladder, luck)
                if place is not None:
                    distance = place * math.hypot(luck, rule.compare) - rule.step
                    self._guess(ladder, distance, rule, luck)
        margins = 2 * self.votes_for_one - self.total_votes
        return math.sqrt(self.n) * float(np.sign(margins).mean()) / 2

    def _rule(self, ladder: int, own_error: float) -> ComparisonRule:
        """Return the comparison with a ladder's value, in losses."""
        min_deviation = self.shares * self.values[ladder] / math.sqrt(self.n)
        compared = max(own_error, self.errors[ladder], min_deviation)
        growth = (
            self.mechanism.rung_growth(self.changes[ladder] + 1, self._others(ladder)) or (1,)
        )[-1]
        in_errors = self.first.scaled(growth)
        return in_errors.scaled(compared)._replace(
            release=in_errors.release * own_error, grid=in_errors.grid * own_error
        )

    def _others(self, ladder: int) -> int:
        counts = sorted(self.changes[:ladder] + self.changes[ladder + 1 :], reverse=True)
        return sum(counts[: self.mechanism.shared_ladders])

    def _place(self, ladder: int, open_ladders: list[int]) -> None:
        """Choose the place of the next guess at the price at which the questions last."""
        if self.quiet[ladder] < self.replan_at[ladder]:
            return
        stride, rows = 2 if self.attack.alternates else 1, len(self.plan.place)
        levels = {
            number: min(max(self.changes[number] - 1, 0) // stride, rows - 1)
            for number in open_ladders
        }
        expected = sum(self.plan.expected_questions[level] for level in levels.values())
        price = min(int((expected > self.left).sum()), len(_PRICES) - 1)
        while self.plan.place[levels[ladder], price] < 0 and price:
            price -= 1
        chosen = int(self.plan.place[levels[ladder], price])
        self.places[ladder] = (
            None if chosen < 0 else max(float(_PLACES[chosen]), self.attack.patience)
        )
        self.replan_at[ladder] = max(
            self.quiet[ladder] + 1, int(self.quiet[ladder] * _REPLAN_AFTER)
        )

    def _take_record(self, ladder: int, own_error: float) -> None:
        """Let a quiet model take the record, surely."""
        rule = self._rule(ladder, own_error)
        fall = rule.step + _SURELY * rule.compare + rule.grid + _SURELY * rule.release
        self._ask(ladder, self.values[ladder] - fall, own_error * math.sqrt(self.n))

    def _guess(self, ladder: int, distance: float, rule: ComparisonRule, luck: float) -> None:
        """Ask about a guess, and learn from the answer."""
        before = self.values[ladder]
        guess = self._ask(ladder, before + distance, self.attack.deviation)
        if guess is None:
            return
        self.quiet[ladder] += 1
        if self.values[ladder] < before:
            self.quiet[ladder] = self.replan_at[ladder] = 0
            believed = rule.luck_if_released(distance, luck, before - self.values[ladder])
        else:
            believed = rule.luck_if_silent(distance, luck)
        self.votes_for_one += believed * guess
        self.total_votes += believed

    def _ask(self, ladder: int, expected: float, deviation: float) -> NDArray[np.uint8] | None:
        """Ask about a guess of an expected loss; None, and no more, if no such losses exist."""
        if not _LEAST_LOSS + deviation <= expected <= 1:
            self.places[ladder] = None
            return None
        drawn = np.frombuffer(self.rng.bytes(-(-self.n // 8)), np.uint8)
        guess = np.unpackbits(drawn, count=self.n)
        luck = 2 * int(np.count_nonzero(guess)) / self.n - 1
        risk, error = expected - deviation * luck, deviation * math.sqrt((1 - luck**2) / self.n)
        release = self.sessions[ladder].ask(
            risk=round(min(risk, 1.0), 12),
            standard_error=round(error, 12),
            others=self._others(ladder),
        )
        self.left -= 1
        if release.improved and release.value is not None:
            self.changes[ladder] += 1
            self.values[ladder] = release.value
            self.errors[ladder] = release.standard_error or 0.0
        return guess
