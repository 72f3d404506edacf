"""The suite for analysts catches what it is there to catch."""

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
class Hoards(Guesser):
    """Keeps the labels when it makes the world."""

    name: ClassVar[str] = "hoards"
    kept: ClassVar[list] = []

    def world(self, n, rng):
        world = CoinFlipWorld(n, rng)
        self.kept[:] = [world._labels]
        return world

    def play(self, game):
        game.ask(self.kept[0])


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
    """Carries something over from game to game."""

    name: ClassVar[str] = "remembers"
    seen: ClassVar[list] = []

    def play(self, game):
        self.seen.append(1)
        game.ask(np.arange(game.n) % 7 < len(self.seen) % 7)


@dataclass(frozen=True)
class Shy(Guesser):
    name: ClassVar[str] = "shy"

    def play(self, game):
        pass


@dataclass(frozen=True)
class NeedsTwo(Guesser):
    name: ClassVar[str] = "needs_two"

    def play(self, game):
        for _ in range(game.questions - 1):
            game.ask(random_bits(game.rng, game.n))


@dataclass(frozen=True)
class NeedsRoom(Guesser):
    name: ClassVar[str] = "needs_room"

    def play(self, game):
        model = np.zeros(game.n)
        model[9] = 1
        game.ask(model)


@dataclass(frozen=True)
class Unspeakable(Guesser):
    name: ClassVar[str] = "unspeakable"
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
    """A setting that cannot be given."""

    name: ClassVar[str] = "derived"
    size: int = field(default=3, init=False)


@dataclass(frozen=True)
class Drifts(Guesser):
    """A setting that changes whenever it is read."""

    name: ClassVar[str] = "drifts"
    size: int = 3

    def __post_init__(self):
        object.__setattr__(self, "size", self.size + 1)


@dataclass(frozen=True)
class Taken(MajorityAttack):
    """An analyst of one's own under a name that is taken."""


@pytest.mark.parametrize(
    ("subject", "sentence"),
    [
        (Peeks(), "peek at labels"),
        (PeeksAtLast(), r"question 12.*peek at labels"),
        (Hoards(), "peek at labels"),
        (Unseeded(), "repeat a game"),
        (Remembers(), "repeat a game"),
        (GlobalNumpy(), "must not touch"),
        (GlobalPython(), "must not touch"),
        (LooksOnly(), "must not look at"),
        (Shy(), "at least one question"),
        (NeedsTwo(), "at least one question"),
        (NeedsRoom(), "cope with n=1 .*IndexError"),
        (Unspeakable(), "JSON-able"),
        (Tuples(), "survive JSON"),
        (Nameless(), "hold the name"),
        (Derived(), "come back from its settings"),
        (Drifts(), "come back from its settings"),
        (Taken(), "name of its own"),
    ],
    ids=lambda each: getattr(each, "name", ""),
)
def test_broken_analysts_are_caught(subject, sentence):
    with pytest.raises(AssertionError, match=sentence):
        check_analyst(subject, games=40)


def test_one_that_cannot_be_pickled_is_caught():
    @dataclass(frozen=True)
    class Local(Guesser):
        name: ClassVar[str] = "local"

    with pytest.raises(AssertionError, match="pickling"):
        check_analyst(Local())


def test_one_of_ones_own_passes_and_leaves_the_global_states_alone():
    before = random.getstate(), repr(numpy_global_state())
    check_analyst(Guesser())
    assert (random.getstate(), repr(numpy_global_state())) == before


@dataclass(frozen=True)
class PeeksWhenTold(Guesser):
    """Peeks only where something was said: a silent board sees nothing of it."""

    name: ClassVar[str] = "peeks_when_told"

    def play(self, game):
        told = False
        while game.remaining:
            model = game._world._labels if told else random_bits(game.rng, game.n)
            told = game.ask(model).score is not None


@dataclass(frozen=True)
class PeeksALittle(Guesser):
    """Peeks at a sixth of the labels every time: no single question gives it away."""

    name: ClassVar[str] = "peeks_a_little"

    def play(self, game):
        while game.remaining:
            model = unpack_bits(random_bits(game.rng, game.n), game.n).copy()
            seen = game.rng.random(game.n) < 1 / 6
            model[seen] = unpack_bits(game._world._labels, game.n)[seen]
            game.ask(model)


@dataclass(frozen=True)
class PeeksLate(Guesser):
    """Honest as long as the holdout is small and the game young."""

    name: ClassVar[str] = "peeks_late"

    def play(self, game):
        while game.remaining:
            late = game.n > 100 and game.asked > 12
            game.ask(game._world._labels if late else random_bits(game.rng, game.n))


@pytest.mark.parametrize("subject", [PeeksWhenTold(), PeeksALittle(), PeeksLate()], ids=repr)
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
def test_what_is_no_analyst_is_refused_and_left_as_it_was(subject):
    with pytest.raises(AssertionError, match="must be an Analyst that is made"):
        check_analyst(subject)
    assert Plain.name == "plain"


@pytest.mark.parametrize(
    "weak", [{"games": 0}, {"n": 1}, {"n": 20, "games": 2}, {"games": 2.5}, {"seed": -1}]
)
def test_numbers_that_would_catch_nobody_are_refused(weak):
    with pytest.raises(InvalidSetting):
        check_analyst(Guesser(), **weak)
