"""An attack on ladders whose steps follow the new model's own standard error, by counting.

Under losses other than zero-one a guess can be as quiet as wanted: with Brier loss, predictions of
1/2 ± d have a luck of standard deviation d/sqrt(n). Steps that follow the model shrink with it, so
that there is room for any number of them and only their growth ends what is learned. The attack is
the planned one without a limit on room, and so an upper estimate: it places every guess where it
wants, at a scale just below a class of standard errors. A guess then matters only through its luck.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ladderboard.analysts import ComparisonRule, normal_cdf

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
