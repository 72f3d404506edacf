"""The suite for callbacks finds what is broken."""

import pytest

from ladderboard.adapters import Stopping
from ladderboard.errors import BudgetSpent
from ladderboard.testing import check_stopping


def play(callback, scores):
    for step in range(len(scores)):
        callback.check(next(scores), "a model", step=step)
        if callback.reason is not None:
            break


def test_what_all_callbacks_are_made_of_passes():
    check_stopping(Stopping, play)


class Eager(Stopping):
    def check(self, score, model, *, step):
        self.predict(model)
        return super().check(score, model, step=step)


class Deaf(Stopping):
    @property
    def reason(self):
        return None

    @reason.setter
    def reason(self, _):
        pass


class Upside(Stopping):
    def check(self, score, model, *, step):
        return super().check(abs(score), model, step=step)


class Bursting(Stopping):
    def check(self, score, model, *, step):
        won = super().check(score, model, step=step)
        if self.judge.spent:
            raise BudgetSpent("no more")
        return won


class Forgetful(Stopping):
    def check(self, score, model, *, step):
        won = super().check(score, model, step=step)
        self.winner = self.judge.verdicts[0] if self.judge.verdicts else None
        return won


class Crowded(Stopping):
    def __init__(self, guard, predict, *, run, monitor, patience, mode="min", min_delta=0.0):
        words = {"monitor": monitor, "patience": patience, "mode": mode, "min_delta": min_delta}
        super().__init__(guard, predict, run="all", **words)


class Wordless(Stopping):
    def __init__(self, guard, predict, *, run, monitor, patience=3, mode="min", min_delta=0.0):
        words = {"monitor": monitor, "patience": patience, "mode": mode, "min_delta": min_delta}
        super().__init__(guard, predict, run=run, **words)


class Hasty(Stopping):
    def __init__(self, guard, predict, *, run, monitor, patience, mode="min", min_delta=0.0):
        super().__init__(guard, predict, run=run, monitor=monitor, patience=patience, mode=mode)


@pytest.mark.parametrize(
    ("broken", "told"),
    [
        (Eager, "at records of the score"),
        (Deaf, "training must stop"),
        (Upside, "budget"),
        (Bursting, None),
        (Forgetful, "last question that improved"),
        (Crowded, "ladder of its own"),
        (Wordless, "patience must be given as in all other callbacks"),
        (Hasty, "min_delta"),
    ],
)
def test_what_breaks_a_promise_is_told(broken, told):
    with pytest.raises((AssertionError, BudgetSpent), match=told):
        check_stopping(broken, play)


def test_a_library_that_takes_two_scores_a_step_is_found():
    def twice(callback, scores):
        for step in range(len(scores)):
            next(scores)
            callback.check(next(scores), "a model", step=step)

    with pytest.raises(AssertionError, match="one score a step"):
        check_stopping(Stopping, twice)
