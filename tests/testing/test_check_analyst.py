"""The suite for analysts finds broken analysts."""

import random
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import pytest

import ladderboard as lb
from ladderboard.analysts import Analyst, CoinFlipWorld, MajorityAttack, random_bits, unpack_bits
from ladderboard.errors import InvalidSetting
from ladderboard.testing import check_analyst
from ladderboard.testing._assertions import numpy_global_state


@dataclass(frozen=True)
class Guesser(Analyst):
    name: ClassVar[str] = "guesser"

    def play(self, game):
        while True:  # over-asking is fine: the budget ends it
            game.ask(random_bits(game.rng, game.n))


@dataclass(frozen=True)
class Peeks(Guesser):
    name: ClassVar[str] = "peeks"

    def play(self, game):
        game.ask(game._world._labels)


@dataclass(frozen=True)
class PeeksAtLast(Guesser):
    """Honest until the last question, and then only for a third of the labels."""

    name: ClassVar[str] = "peeks_at_last"

    def play(self, game):
        model = random_bits(game.rng, game.n)
        for _ in range(game.questions - 1):
            game.ask(model)
        third = random_bits(game.rng, game.n) & random_bits(game.rng, game.n)
        game.ask((model & ~third) | (game._world._labels & third))


@dataclass(frozen=True)
class KeepsLabels(Guesser):
    """Keeps the labels when it makes the world."""

    name: ClassVar[str] = "keeps_labels"
    labels: ClassVar[list] = []

    def world(self, n, rng):
        world = CoinFlipWorld(n, rng)
        self.labels[:] = [world._labels]
        return world

    def play(self, game):
        game.ask(self.labels[0])


@dataclass(frozen=True)
class Unseeded(Guesser):
    name: ClassVar[str] = "unseeded"

    def play(self, game):
        # Every question: a single one would have the same risk by chance once in ten times.
        rng = np.random.default_rng()
        while True:
            game.ask(random_bits(rng, game.n))


@dataclass(frozen=True)
class GlobalNumpy(Guesser):
    name: ClassVar[str] = "global_numpy"

    def play(self, game):
        game.ask(np.random.randint(0, 2, game.n))  # noqa: NPY002


@dataclass(frozen=True)
class GlobalPython(Guesser):
    name: ClassVar[str] = "global_python"

    def play(self, game):
        game.ask([random.randint(0, 1) for _ in range(game.n)])  # noqa: S311


@dataclass(frozen=True)
class LooksOnly(Guesser):
    """Reads the global state without moving it."""

    name: ClassVar[str] = "looks_only"

    def play(self, game):
        seed = int(numpy_global_state()["state"]["key"][0])
        game.ask(random_bits(np.random.default_rng(seed), game.n))


@dataclass(frozen=True)
class Remembers(Guesser):
    """Keeps state between games."""

    name: ClassVar[str] = "remembers"
    seen: ClassVar[list] = []

    def play(self, game):
        self.seen.append(1)
        game.ask(np.arange(game.n) % 7 < len(self.seen) % 7)


@dataclass(frozen=True)
class AsksNothing(Guesser):
    name: ClassVar[str] = "asks_nothing"

    def play(self, game):
        pass


@dataclass(frozen=True)
class NeedsTwo(Guesser):
    name: ClassVar[str] = "needs_two"

    def play(self, game):
        for _ in range(game.questions - 1):
            game.ask(random_bits(game.rng, game.n))


@dataclass(frozen=True)
class NeedsTenExamples(Guesser):
    name: ClassVar[str] = "needs_ten_examples"

    def play(self, game):
        model = np.zeros(game.n)
        model[9] = 1
        game.ask(model)


@dataclass(frozen=True)
class NotJson(Guesser):
    name: ClassVar[str] = "not_json"
    loss: lb.Loss = field(default_factory=lambda: lb.loss("zero_one"))


@dataclass(frozen=True)
class Tuples(Guesser):
    name: ClassVar[str] = "tuples"
    sizes: tuple = (1, 2)


@dataclass(frozen=True)
class Nameless(Guesser):
    name: ClassVar[str] = "nameless"

    def describe(self):
        return {}


@dataclass(frozen=True)
class Derived(Guesser):
    """Has a setting that its constructor does not take."""

    name: ClassVar[str] = "derived"
    size: int = field(default=3, init=False)


@dataclass(frozen=True)
class Drifts(Guesser):
    """Has a setting that changes with every copy."""

    name: ClassVar[str] = "drifts"
    size: int = 3

    def __post_init__(self):
        object.__setattr__(self, "size", self.size + 1)


@dataclass(frozen=True)
class UsedName(MajorityAttack):
    """A custom analyst with the name of one of ours."""


@pytest.mark.parametrize(
    ("subject", "sentence"),
    [
        (Peeks(), "peek at labels"),
        (PeeksAtLast(), r"question 12.*peek at labels"),
        (KeepsLabels(), "peek at labels"),
        (Unseeded(), "repeat a game"),
        (Remembers(), "repeat a game"),
        (GlobalNumpy(), "must not touch"),
        (GlobalPython(), "must not touch"),
        (LooksOnly(), "must not look at"),
        (AsksNothing(), "at least one question"),
        (NeedsTwo(), "at least one question"),
        (NeedsTenExamples(), "cope with n=1 .*IndexError"),
        (NotJson(), "JSON-able"),
        (Tuples(), "survive JSON"),
        (Nameless(), "hold the name"),
        (Derived(), "reconstructible from its settings"),
        (Drifts(), "reconstructible from its settings"),
        (UsedName(), "name of its own"),
    ],
    ids=lambda analyst: getattr(analyst, "name", ""),
)
def test_broken_analysts_are_caught(subject, sentence):
    with pytest.raises(AssertionError, match=sentence):
        check_analyst(subject, games=40)


def test_an_analyst_that_cannot_be_pickled_is_found():
    @dataclass(frozen=True)
    class Local(Guesser):
        name: ClassVar[str] = "local"

    with pytest.raises(AssertionError, match="pickling"):
        check_analyst(Local())


def test_a_custom_analyst_passes_and_global_states_are_unchanged():
    before = random.getstate(), repr(numpy_global_state())
    check_analyst(Guesser())
    assert (random.getstate(), repr(numpy_global_state())) == before


@dataclass(frozen=True)
class PeeksAfterScores(Guesser):
    """Peeks only after a score was released, so not against a silent mechanism."""

    name: ClassVar[str] = "peeks_after_scores"

    def play(self, game):
        released = False
        while game.remaining:
            model = game._world._labels if released else random_bits(game.rng, game.n)
            released = game.ask(model).score is not None


@dataclass(frozen=True)
class PeeksALittle(Guesser):
    """Peeks at a sixth of the labels every time, too few to see in a single question."""

    name: ClassVar[str] = "peeks_a_little"

    def play(self, game):
        while game.remaining:
            model = unpack_bits(random_bits(game.rng, game.n), game.n).copy()
            peeked = game.rng.random(game.n) < 1 / 6
            model[peeked] = unpack_bits(game._world._labels, game.n)[peeked]
            game.ask(model)


@dataclass(frozen=True)
class PeeksLate(Guesser):
    """Peeks only on a larger holdout and late in the game."""

    name: ClassVar[str] = "peeks_late"

    def play(self, game):
        while game.remaining:
            late = game.n > 100 and game.asked > 12
            game.ask(game._world._labels if late else random_bits(game.rng, game.n))


@pytest.mark.parametrize("subject", [PeeksAfterScores(), PeeksALittle(), PeeksLate()], ids=repr)
def test_careful_peeking_is_caught_too(subject):
    with pytest.raises(AssertionError, match="there must be no bias"):
        check_analyst(subject)


class Plain(Analyst):
    """A subclass without settings needs no decorator."""

    name = "plain"

    def play(self, game):
        game.ask(random_bits(game.rng, game.n))


def test_a_plain_subclass_without_settings_passes():
    check_analyst(Plain())


@pytest.mark.parametrize("subject", [Plain, "plain", None])
def test_anything_but_an_analyst_is_refused_and_unchanged(subject):
    with pytest.raises(AssertionError, match="must be an instance of Analyst"):
        check_analyst(subject)
    assert Plain.name == "plain"


@pytest.mark.parametrize(
    "weak", [{"games": 0}, {"n": 1}, {"n": 20, "games": 2}, {"games": 2.5}, {"seed": -1}]
)
def test_numbers_too_small_to_find_peeking_are_refused(weak):
    with pytest.raises(InvalidSetting):
        check_analyst(Guesser(), **weak)
