"""Games played to the end and kept whole, and the one question asked of them all."""

from contextlib import suppress
from typing import NamedTuple

import numpy as np
import pytest

import ladderboard as lb
from ladderboard.analysts import Game
from ladderboard.bounds import VisibleChange, certificate
from ladderboard.errors import BudgetSpent


class Record(NamedTuple):
    """What a game recorded: the true risks, what was released, and the last estimate."""

    n: int
    questions: int
    true_risks: list
    values: list
    improved: list
    last: float
    accounts: list = ()


class Recorder(Game):
    """A game that keeps what is recorded of each question."""

    def __init__(self, *given, **named):
        super().__init__(*given, **named)
        self.true_risks, self.values, self.improved, self.accounts = [], [], [], []

    def _record(self, account, true_risk, risk, release):
        super()._record(account, true_risk, risk, release)
        self.true_risks.append(true_risk)
        self.values.append(self._board)  # with several accounts, the least
        self.improved.append(release.improved)
        self.accounts.append(account)


def play(analyst, mechanism, n, questions, seed):
    """Play one game, as ``Analyst.play_against`` does, and return its record."""
    hidden, choices = np.random.SeedSequence(seed).spawn(2)
    game = Recorder(
        analyst.world(n, np.random.default_rng(hidden)),
        mechanism,
        questions=questions,
        tape=lb.NumpyTape(seed=seed),
        rng=np.random.default_rng(choices),
    )
    with suppress(BudgetSpent):
        analyst.play(game)
    last = min(session.close() for session in game._sessions.values())
    return Record(n, questions, game.true_risks, game.values, game.improved, last, game.accounts)


def misses(record, certified, beta, form, **several):
    """Return whether a certificate, issued after each question, was ever false.

    ``form`` is what it is given: the number of changes, the rounds, the number and the released
    value, or all of it ("changes", of one ladder); ``several`` are the ladders. A mechanism that
    tells nothing before the end is certified at the end.
    """
    rounds, changes, best = [], [], np.inf
    silent = record.values[0] is None
    certificates = {}
    for t, true_risk in enumerate(record.true_risks, 1):
        best = min(best, true_risk)
        if record.improved[t - 1]:
            rounds.append(t)
            changes.append(VisibleChange(t, record.values[t - 1]))
        if silent and t < len(record.true_risks):
            continue
        value = record.last if silent else record.values[t - 1]
        # Only the rounds form depends on how many were asked; others are the same until a change.
        by_round = form in {"rounds", "changes"}
        key = (len(rounds), t if by_round else min(t, len(rounds) + 1))
        known = {"rounds": list(rounds), "changes": changes or 0}.get(form, len(rounds))
        if key not in certificates:
            certificates[key] = certificate(
                record.n,
                record.questions,
                known,
                certified,
                beta,
                released=value if form in {"kl", "changes"} else None,
                asked=t,
                **several,
            )
        result = certificates[key]
        target = best - value if result.differences else best
        if not result.low <= target <= result.high:
            return True
    return False


@pytest.fixture(name="play")
def _play():
    return play


@pytest.fixture(name="misses")
def _misses():
    return misses


@pytest.fixture
def record_type():
    return Record
