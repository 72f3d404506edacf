"""The suite for callbacks finds broken callbacks."""

import pytest

from ladderboard.adapters import Stopping
from ladderboard.errors import BudgetSpent
from ladderboard.testing import check_stopping


def play(callback, scores):
    for step in range(len(scores)):
        callback.check(next(scores), "a model", step=step)
        if callback.reason is not None:
            break


def test_the_base_class_passes():
    check_stopping(Stopping, play)


class AsksAlways(Stopping):
    def check(self, score, model, *, step):
        self.predict(model)
        return super().check(score, model, step=step)


class NeverStops(Stopping):
    @property
    def reason(self):
        return None

    @reason.setter
    def reason(self, _):
        pass


class IgnoresSign(Stopping):
    def check(self, score, model, *, step):
        return super().check(abs(score), model, step=step)


class RaisesBudgetSpent(Stopping):
    def check(self, score, model, *, step):
        won = super().check(score, model, step=step)
        if self.judge.budget_spent:
            raise BudgetSpent("no more")
        return won


class ForgetsWinner(Stopping):
    def check(self, score, model, *, step):
        won = super().check(score, model, step=step)
        self.winner = self.judge.judgements[0] if self.judge.judgements else None
        return won


class SharesLadder(Stopping):
    def __init__(self, guard, predict, *, run, monitor, patience, mode="min", min_delta=0.0):
        settings = {"monitor": monitor, "patience": patience, "mode": mode, "min_delta": min_delta}
        super().__init__(guard, predict, run="all", **settings)


class OtherDefault(Stopping):
    def __init__(self, guard, predict, *, run, monitor, patience=3, mode="min", min_delta=0.0):
        settings = {"monitor": monitor, "patience": patience, "mode": mode, "min_delta": min_delta}
        super().__init__(guard, predict, run=run, **settings)


class IgnoresMinDelta(Stopping):
    def __init__(self, guard, predict, *, run, monitor, patience, mode="min", min_delta=0.0):
        super().__init__(guard, predict, run=run, monitor=monitor, patience=patience, mode=mode)


@pytest.mark.parametrize(
    ("broken", "sentence"),
    [
        (AsksAlways, "at records of the score"),
        (NeverStops, "training must stop"),
        (IgnoresSign, "budget"),
        (RaisesBudgetSpent, None),
        (ForgetsWinner, "last question that improved"),
        (SharesLadder, "its own ladder"),
        (OtherDefault, "patience must be given as in all other callbacks"),
        (IgnoresMinDelta, "min_delta"),
    ],
)
def test_a_broken_callback_is_found(broken, sentence):
    with pytest.raises((AssertionError, BudgetSpent), match=sentence):
        check_stopping(broken, play)


def test_a_library_that_takes_two_scores_in_a_step_is_found():
    def twice(callback, scores):
        for step in range(len(scores)):
            next(scores)
            callback.check(next(scores), "a model", step=step)

    with pytest.raises(AssertionError, match="one score a step"):
        check_stopping(Stopping, twice)
