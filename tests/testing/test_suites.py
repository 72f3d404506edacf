"""The public suites find broken mechanisms and losses."""

import importlib
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import pytest

import ladderboard as lb
from ladderboard.losses import Custom, Loss, ZeroOne
from ladderboard.mechanisms import Exact, Ladder, Mechanism, Noisy, ParameterFreeLadder, Step
from ladderboard.testing import check_loss, check_mechanism
from support.tutorials import ROOT


@dataclass(frozen=True)
class UnseededScores(Exact):
    name: ClassVar[str] = "unseeded"

    def score(self, risk, draws):
        return risk + float(np.random.default_rng().random()) * 1e-3


@dataclass(frozen=True)
class GlobalNoise(Exact):
    name: ClassVar[str] = "global_noise"

    def score(self, risk, draws):
        np.random.random()  # noqa: NPY002
        return risk


@dataclass(frozen=True)
class Forgetful(Noisy):
    name: ClassVar[str] = "forgetful"

    def dump_state(self, state):
        return {"best": None if state.best is None else round(state.best, 1)}


@dataclass(frozen=True)
class BulkDiffers(Exact):
    name: ClassVar[str] = "bulk_differs"

    def score_many(self, risks, draws):
        return risks + 1e-9


@dataclass(frozen=True)
class NotFinite(Exact):
    name: ClassVar[str] = "not_finite"

    def score(self, risk, draws):
        return float("inf")


@dataclass(frozen=True)
class AcceptsAnything(Ladder):
    name: ClassVar[str] = "accepts_anything"

    def start(self, n, tape=None, risk_range=(0, 1), ladder=0):
        return super().start(n, tape, (-1000, 1000), ladder)


class SeenRisks(NamedTuple):
    best: float
    seen: list


@dataclass(frozen=True)
class ChangesState(Mechanism):
    name: ClassVar[str] = "changes_state"
    state_type: ClassVar = SeenRisks

    def begin(self, setup, draws):
        return SeenRisks(1.0, [])

    def load_state(self, written, setup, fresh):
        return SeenRisks(written["best"], list(written["seen"]))

    def advance(self, setup, state, observation, draws):
        state.seen.append(observation.risk)
        best = min(state.seen)
        return Step(SeenRisks(best, state.seen), best, None, False)


@dataclass(frozen=True)
class ChangesLosses(ParameterFreeLadder):
    name: ClassVar[str] = "changes_losses"

    def advance(self, setup, state, observation, draws):
        observation.losses[0] = 0.5
        return super().advance(setup, state, observation, draws)


@dataclass(frozen=True)
class NeverCloses(Exact):
    name: ClassVar[str] = "never_closes"

    def close(self, state):
        return None


@dataclass(frozen=True)
class TupleSetting(Exact):
    name: ClassVar[str] = "not_json"
    odd: tuple = (1, 2)  # JSON brings back a list


@dataclass(frozen=True)
class UsedMechanismName(Exact):
    """A custom mechanism with the name of one of ours."""


@dataclass(frozen=True)
class SaysYes(Mechanism):
    name: ClassVar[str] = "says_yes"
    state_type: ClassVar = SeenRisks

    def begin(self, setup, draws):
        return SeenRisks(1.0, [])

    def advance(self, setup, state, observation, draws):
        return Step(state, observation.risk, None, "yes")


@pytest.mark.parametrize(
    ("mechanism", "sentence"),
    [
        (UnseededScores(), "the same answers"),
        (GlobalNoise(), "global random state"),
        (Forgetful(sd=0.1), "same future"),
        (BulkDiffers(), "one by one"),
        (NotFinite(), "finite floats"),
        (AcceptsAnything(step=0.1), "must refuse"),
        (SaysYes(), "improved must be True or False"),
        (UsedMechanismName(), "name of its own"),
        (ChangesState(), "twice from one state|state given"),
        (ChangesLosses(), "losses given"),
        (NeverCloses(), "last estimate"),
        (TupleSetting(), "survive JSON"),
    ],
)
def test_broken_mechanisms_are_caught(mechanism, sentence):
    with pytest.raises(AssertionError, match=sentence):
        check_mechanism(mechanism, n=20, questions=8)


def test_a_frozen_custom_mechanism_passes():
    @dataclass(frozen=True)
    class Halved(Exact):
        name: ClassVar[str] = "halved"

        def score(self, risk, draws):
            return risk / 2

        def score_many(self, risks, draws):
            return risks / 2

    check_mechanism(Halved())


@dataclass(frozen=True)
class DependsOnOthers(Loss):
    """Depends on the other examples."""

    name: ClassVar[str] = "depends_on_others"

    def read_predictions(self, predictions, shape):
        return ZeroOne().read_predictions(predictions, shape)

    def per_example(self, labels, predictions):
        order = np.argsort(np.argsort(predictions))
        return order / len(order)


@dataclass(frozen=True)
class AcceptsNan(ZeroOne):
    """Accepts NaN."""

    name: ClassVar[str] = "accepts_nan"

    def read_predictions(self, predictions, shape):
        return np.asarray(predictions)


@dataclass(frozen=True)
class FirstIsFree(ZeroOne):
    """Depends on the position."""

    name: ClassVar[str] = "first_is_free"

    def per_example(self, labels, predictions):
        values = super().per_example(labels, predictions).astype(float)
        values[0] = 0
        return values


@dataclass(frozen=True)
class AcceptsFewRows(ZeroOne):
    """Accepts too few rows."""

    name: ClassVar[str] = "accepts_few_rows"

    def read_predictions(self, predictions, shape):
        return super().read_predictions(predictions, (len(predictions),))


@dataclass(frozen=True)
class UsedLossName(ZeroOne):
    """A custom loss with the name of one of ours."""


class NotFrozenLoss(ZeroOne):
    """Can be changed."""

    def __setattr__(self, name, value):
        object.__setattr__(self, name, value)


@pytest.mark.parametrize(
    ("loss", "sentence"),
    [
        (DependsOnOthers(), "other examples|place among"),
        (AcceptsNan(), "None must be refused"),
        (NotFrozenLoss(), "frozen"),
        (FirstIsFree(), "place among"),
        (AcceptsFewRows(), "missing row must be refused"),
        (UsedLossName(), "name of its own"),
        (Custom(lambda labels, predictions: np.random.default_rng().random(3)), "twice"),
    ],
)
def test_broken_losses_are_caught(loss, sentence):
    with pytest.raises(AssertionError, match=sentence):
        check_loss(loss, [1.0, 2.0, 3.0], [3.0, 1.0, 3.0])


def test_a_loss_that_leaves_its_range_on_far_predictions_is_caught():
    """A refusal that depends on the labels would leak them."""
    distance = lb.loss(lambda labels, predictions: abs(labels - predictions) / 10)
    with pytest.raises(AssertionError, match="every prediction it accepts; clip it"):
        check_loss(distance, [1.0, 2.0, 3.0], [1.0, 2.0, 3.0])


def test_a_loss_outside_its_range_is_caught():
    with pytest.raises(AssertionError, match=r"numbers in \[0, 1\]"):
        check_loss(lb.loss(lambda labels, predictions: labels * 2), [1, 2, 3], [1, 2, 3])


class NotFrozenMechanism(Exact):
    name: ClassVar[str] = "not_frozen"

    def __setattr__(self, name, value):
        object.__setattr__(self, name, value)


def test_a_mechanism_that_is_not_frozen_gets_the_remedy():
    with pytest.raises(AssertionError, match=r"must be frozen: write @dataclass\(frozen=True\)"):
        check_mechanism(NotFrozenMechanism())


def test_the_mechanism_of_the_page_on_experiments_passes(tmp_path, monkeypatch):
    page = (ROOT / "docs/how-to/run-experiments.md").read_text()
    module = page.partition("# my_board.py\n")[2].partition("```")[0]
    (tmp_path / "my_board.py").write_text(module)
    monkeypatch.syspath_prepend(tmp_path)
    check_mechanism(importlib.import_module("my_board").Coarse())


def test_a_class_and_a_mechanism_without_a_name_are_refused_in_words():
    with pytest.raises(AssertionError, match=r"got the class Exact itself; add \(\)"):
        check_mechanism(Exact)

    @dataclass(frozen=True)
    class NamelessMechanism(Mechanism):
        def begin(self, setup, draws):
            return 0

        def advance(self, setup, state, observation, draws):
            raise NotImplementedError

    with pytest.raises(AssertionError, match="must have a name"):
        check_mechanism(NamelessMechanism())
