"""The conformance suite of analysts."""

from __future__ import annotations

import json
import math
import random
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from ladderboard import _settings
from ladderboard.analysts import ANALYSTS, Analyst, Game, analyst
from ladderboard.errors import BudgetSpent, InvalidSetting
from ladderboard.mechanisms import (
    Exact,
    Ladder,
    Mechanism,
    Observation,
    OneBit,
    Release,
    Setup,
    Step,
)
from ladderboard.tape import NumpyTape
from ladderboard.testing._assertions import (
    numpy_global_state,
    pickled_copy,
    require,
    require_instance,
    require_refusal,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ladderboard.tape import Draws

_DEVIATIONS = 5
_MAX_BIAS_LIMIT = 0.2  # a larger limit would let much peeking pass


def check_analyst(
    subject: Analyst, *, n: int = 60, questions: int = 12, games: int = 20, seed: int = 0
) -> None:
    """Check that ``subject`` meets the requirements of an analyst.

    A seed repeats a game bit for bit; at least one question is asked, even if only one is allowed
    and the holdout is tiny; random numbers come only from the given generators; settings survive
    JSON and pickling. And without information there is no bias: against mechanisms whose answers do
    not depend on the risk, its models are no better on the holdout than in truth. This catches an
    analyst that peeks at labels, unless it peeks only outside of these checks.

    Parameters
    ----------
    subject
        The analyst to check.
    n, questions, games
        Examples, questions and games against each of two uninformative mechanisms; half as many
        games are also played with three times the examples and twice the questions.
    seed
        The seed of all random numbers.

    Notes
    -----
    For models that know nothing of the labels, R_D - R_S is a mean of n independent terms, each
    within an interval of length 1, so by Hoeffding's lemma its mean over the games exceeds 5 times
    ``1/(2 sqrt(n games))`` with probability at most exp(-12.5) < 4e-6. This is checked for each
    question and for their mean: an honest analyst fails with probability below
    ``8e-6 (3 questions + 2)``, about 3e-4 with the default numbers, and for a fixed seed always or
    never. In a world whose examples depend on each other the bound does not hold.

    Examples
    --------
    >>> import ladderboard as lb
    >>> check_analyst(lb.analysts.MajorityAttack())
    """
    n = _settings.integer("n", n, at_least=1)
    questions = _settings.integer("questions", questions, at_least=1)
    games = _settings.integer("games", games, at_least=2)
    seed = _settings.integer("seed", seed, at_least=0)
    if _bias_limit(n, games) > _MAX_BIAS_LIMIT:
        raise InvalidSetting(
            f"n={n} and games={games} are too few to tell a peeking analyst from a lucky one; "
            f"n times games must be at least {math.ceil((_DEVIATIONS / 2 / _MAX_BIAS_LIMIT) ** 2)}."
        )
    require_instance(subject, Analyst, "analyst")
    _check_identity(subject)
    silent, babbling = (
        _UninformativeMechanism(fixed_answers=False),
        _UninformativeMechanism(fixed_answers=True),
    )
    with _global_states(0):  # a library may change them when it is first imported; do that here
        _play(subject, Exact(), n, questions, seed)
    for mechanism in (Exact(), Ladder(step=0.05), OneBit(step=0.05), silent, babbling):
        _check_repeats(subject, mechanism, n, questions, seed)
    for few, short in ((1, 1), (1, 3), (2, 2), (3, questions), (n, 1), (n, 2)):
        for mechanism in (Exact(), silent, babbling):
            _play(subject, mechanism, few, short, seed)
    for mechanism in (silent, babbling):
        _check_no_bias(subject, mechanism, n=n, questions=questions, games=games, seed=seed)
        _check_no_bias(
            subject, mechanism, n=3 * n, questions=2 * questions, games=games // 2, seed=seed
        )


class _RecordedQuestion(NamedTuple):
    """One question of a game."""

    true_risk: float
    risk: float
    release: Release


class _RecordingGame(Game):
    """A game that records every question."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.recorded: list[_RecordedQuestion] = []

    def _record(self, account: int, true_risk: float, risk: float, release: Release) -> None:
        super()._record(account, true_risk, risk, release)
        self.recorded.append(_RecordedQuestion(true_risk, risk, release))


@dataclass(frozen=True)
class _UninformativeMechanism(Mechanism):
    """Gives answers that do not depend on the risk: none, or a fixed sequence of numbers."""

    name: ClassVar[str] = "mute"
    state_type: ClassVar[Any] = None

    fixed_answers: bool

    def begin(self, setup: Setup, draws: Draws) -> int:
        """Count the questions."""
        return 0

    def advance(self, setup: Setup, state: int, observation: Observation, draws: Draws) -> Step:
        """Return an answer that does not depend on the risk."""
        if not self.fixed_answers:
            return Step(state + 1, 0.5, None, False)
        chatter = (state * 0.6180339887) % 1  # spread over the whole range, in no order
        return Step(state + 1, 1 / (state + 2), chatter, state % 3 == 0)

    def value(self, state: int) -> float:
        """Return the same in any state."""
        return 0.5


def _play(
    subject: Analyst, mechanism: Mechanism, n: int, questions: int, seed: int
) -> list[_RecordedQuestion]:
    world_seed, analyst_seed = np.random.SeedSequence(seed).spawn(2)
    game = _RecordingGame(
        subject.world(n, np.random.default_rng(world_seed)),
        mechanism,
        questions=questions,
        tape=NumpyTape(seed=seed),
        rng=np.random.default_rng(analyst_seed),
    )
    try:
        with suppress(BudgetSpent):
            subject.play(game)
    except (Exception, SystemExit) as error:
        raise AssertionError(
            f"An analyst must cope with n={n} and questions={questions}. "
            f"Got {type(error).__name__}: {error}"
        ) from error
    require(
        1 <= len(game.recorded) <= questions,
        f"An analyst must ask at least one question, and no more than {questions}; "
        f"it asked {len(game.recorded)}.",
    )
    return game.recorded


def _check_repeats(
    subject: Analyst, mechanism: Mechanism, n: int, questions: int, seed: int
) -> None:
    with _global_states(1) as untouched:
        first = _play(subject, mechanism, n, questions, seed)
        require(untouched(), "An analyst must not touch the global random states.")
    with _global_states(1):
        again = _play(subject, mechanism, n, questions, seed)
        require(first == again, "A seed must repeat a game bit for bit.")
    with _global_states(2):
        again = _play(subject, mechanism, n, questions, seed)
        require(first == again, "An analyst must not look at the global random states.")


@contextmanager
def _global_states(seed: int) -> Iterator[Any]:
    """Seed the global random states; yield a check that they are unchanged; restore them."""
    saved = random.getstate(), numpy_global_state()
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002

    def states() -> str:
        return repr((random.getstate(), numpy_global_state()))

    before = states()
    try:
        yield lambda: states() == before
    finally:
        random.setstate(saved[0])
        np.random.set_state(saved[1])  # noqa: NPY002


def _check_no_bias(
    subject: Analyst, mechanism: Mechanism, *, n: int, questions: int, games: int, seed: int
) -> None:
    bias = np.full((games, questions), np.nan)
    for index in range(games):
        recorded = _play(subject, mechanism, n, questions, seed + 1 + index)
        bias[index, : len(recorded)] = [question.true_risk - question.risk for question in recorded]
    sentence = (
        "Without information there must be no bias: its models are better on the holdout than in "
        "truth, by {:.3f} in the mean of {}; an honest analyst stays below {:.3f}. Does it peek at "
        "labels, or do the examples of its world depend on each other?"
    )
    means = [("all questions", np.nanmean(bias, axis=1))]
    means += [(f"question {index + 1}", column) for index, column in enumerate(bias.T)]
    for label, values in means:
        measured = values[~np.isnan(values)]
        if len(measured):
            limit = _bias_limit(n, len(measured))
            excess = float(measured.mean())
            require(excess < limit, sentence.format(excess, label, limit))


def _bias_limit(n: int, games: int) -> float:
    """Return a limit that an honest analyst's bias exceeds only with tiny probability."""
    return _DEVIATIONS / (2 * math.sqrt(n * games))


def _check_identity(subject: Analyst) -> None:
    require(hash(subject) == hash(subject), "An analyst must be hashable.")
    for field in fields(subject):
        with require_refusal(
            AttributeError,
            "An analyst must be frozen: write @dataclass(frozen=True) above its class.",
        ):
            setattr(subject, field.name, getattr(subject, field.name))
    try:
        text = json.dumps(subject.describe(), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise AssertionError(f"A description must be JSON-able: {error}.") from error
    description = json.loads(text)
    require(description == subject.describe(), "A description must survive JSON.")
    require(description.pop("analyst", None) == subject.name, "A description must hold the name.")
    try:
        rebuilt = type(subject)(**description)
    except Exception as error:
        raise AssertionError(
            "An analyst must be reconstructible from its settings. Got "
            f"{type(error).__name__}: {error}"
        ) from error
    require(rebuilt == subject, "An analyst must be reconstructible from its settings.")
    if subject.name in ANALYSTS:
        require(
            type(subject) is ANALYSTS[subject.name],
            f"An analyst of your own needs a name of its own; {subject.name!r} is taken.",
        )
        require(
            analyst(subject.describe()) == subject,
            "An analyst must be reconstructible by its name.",
        )
    try:
        copied = pickled_copy(subject)
    except Exception as error:
        raise AssertionError(f"An analyst must survive pickling: {error}.") from error
    require(copied == subject, "An analyst must survive pickling.")
