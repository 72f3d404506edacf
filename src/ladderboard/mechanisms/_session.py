"""Sessions: a mechanism at work on one ladder; what it is asked, what it releases, its error."""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np

from ladderboard import _settings
from ladderboard.errors import InvalidRisk, InvalidSetting, InvalidState, SessionClosed
from ladderboard.mechanisms import _fixed_point
from ladderboard.tape import Tape

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import ArrayLike, NDArray

    from ladderboard.mechanisms._base import Mechanism
    from ladderboard.tape import Draws


DAMAGED_STATE = "The saved state is damaged; pass what session.state returned."


class Setup(NamedTuple):
    """The constants of a session: the number of examples and the range of the risk."""

    n: int
    low: float
    high: float


class Observation(NamedTuple):
    """What a mechanism gets to see of one question.

    ``standard_error`` is that of the risk, as an estimate of the expected one. ``others`` counts
    the changes of other ladders that may belong to the same attacker.
    """

    risk: float
    losses: NDArray[np.float64] | None
    training: float | None
    standard_error: float | None = None
    others: int = 0

    def require_losses(self) -> NDArray[np.float64]:
        """Return the losses; a session always passes them to a mechanism that needs them."""
        if self.losses is None:
            raise InvalidRisk("This mechanism needs losses=, one number for each example.")
        return self.losses

    def require_training(self) -> float:
        """Return the training loss; a session always passes it to a mechanism that needs it."""
        if self.training is None:
            raise InvalidRisk("This mechanism needs training=, the mean loss on the training data.")
        return self.training

    def require_standard_error(self) -> float:
        """Return the standard error of the risk, computed from the losses if it was not given."""
        if self.standard_error is not None:
            return self.standard_error
        if self.losses is None:
            raise InvalidRisk("This mechanism needs standard_error=, that of the risk, or losses=.")
        return _fixed_point.exact_standard_error(self.losses)


class Observations(NamedTuple):
    """What a mechanism gets to see of many questions that were chosen beforehand."""

    risks: NDArray[np.float64]
    training: NDArray[np.float64] | None


class Step(NamedTuple):
    """The result of one question: the next state and the release.

    ``error_class`` is released with a value if that depends on the model's standard error.
    """

    state: Any
    value: float | None
    score: float | None
    improved: bool
    error_class: int | None = None


class StepMany(NamedTuple):
    """The result of many questions: the last state and all releases (None as NaN)."""

    state: Any
    value: NDArray[np.float64]
    score: NDArray[np.float64]
    improved: NDArray[np.bool_]


class Release(NamedTuple):
    """The release after a question.

    ``value`` is the leaderboard's estimate after it (the paper's R_t, the best so far), ``score``
    the released score of this model (None if there is none), ``improved`` whether the value went
    down, ``question`` its number, from 1. ``error_class`` is the class of the model's standard
    error, released with a new best by mechanisms whose values depend on it. ``proven`` says whether
    a new best was proven better than the one before on its ladder; None if that was not tested.
    """

    value: float | None
    score: float | None
    improved: bool
    question: int
    error_class: int | None = None
    proven: bool | None = None

    @property
    def standard_error(self) -> float | None:
        """The released upper bound of this model's standard error, as a risk."""
        return None if self.error_class is None else largest_standard_error(self.error_class)

    def __repr__(self) -> str:
        shown = [
            f"{name}={value!r}"
            for name, value in self._asdict().items()
            if value is not None or name not in {"error_class", "proven"}
        ]
        return f"Release({', '.join(shown)})"


@dataclass(frozen=True, eq=False)
class Releases:
    """Many releases as arrays, in the order of their questions; None is written as NaN."""

    value: NDArray[np.float64]
    score: NDArray[np.float64]
    improved: NDArray[np.bool_]
    question: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.question)

    @overload
    def __getitem__(self, index: int) -> Release: ...
    @overload
    def __getitem__(self, index: slice) -> Releases: ...
    def __getitem__(self, index: int | slice) -> Release | Releases:
        if isinstance(index, slice):
            return Releases(
                self.value[index], self.score[index], self.improved[index], self.question[index]
            )
        value, score = float(self.value[index]), float(self.score[index])
        return Release(
            None if np.isnan(value) else value,
            None if np.isnan(score) else score,
            bool(self.improved[index]),
            int(self.question[index]),
        )

    def __iter__(self) -> Iterator[Release]:
        return (self[index] for index in range(len(self)))


class ComparisonSettings(NamedTuple):
    """How a mechanism compares a model with the best so far: public, so an attacker knows it too.

    All lengths are risks, all noises standard deviations. ``step`` is the margin that a model must
    win by, ``compare_noise`` is drawn for one comparison, ``standing_noise`` kept until the ladder
    moves, ``release_noise`` added to a released value, ``grid`` the distance between two values
    that can be released. ``standard_errors``: the margin is this many standard errors of the
    paired difference to the leader's true losses instead. ``compares_released``: the released
    score itself is compared, so its noise stays in the best.
    """

    step: float = 0.0
    compare_noise: float = 0.0
    standing_noise: float = 0.0
    release_noise: float = 0.0
    grid: float = 0.0
    standard_errors: float = 0.0
    compares_released: bool = False


def changes_of_others(own_changes: int, largest_sum: int, smallest: int) -> int:
    """Return the changes of the k other ladders that changed most.

    ``largest_sum`` and ``smallest`` are the sum and the minimum of the k + 1 largest numbers of
    changes, this ladder's among them; of all numbers if there are fewer ladders. If this ladder is
    one of the k + 1, the others are the k wanted; if not, the smallest is left out.

    >>> changes_of_others(own_changes=7, largest_sum=7 + 4, smallest=4)
    4
    >>> changes_of_others(own_changes=1, largest_sum=7 + 4, smallest=4)
    7
    """
    return largest_sum - max(own_changes, smallest)


class LadderChanges:
    """Counts the changes of all ladders while the questions of a ledger are asked again.

    ``shared_ladders`` is the mechanism's number of other ladders whose changes count.

    >>> changes = LadderChanges(shared_ladders=1)
    >>> for _ in range(3):
    ...     changes.start_ladder()
    >>> for ladder in (0, 0, 1):
    ...     changes.count(ladder, changed=True)
    >>> [changes.of_others(ladder) for ladder in range(3)]
    [1, 2, 2]
    """

    def __init__(self, shared_ladders: int) -> None:
        self._largest_count = shared_ladders + 1
        self._by_ladder: list[int] = []
        self._ascending: list[int] = []
        self._largest: tuple[int, int] | None = None  # sum and minimum, until the next change

    def start_ladder(self) -> None:
        """Add a ladder, without changes."""
        self._by_ladder.append(0)
        self._ascending.insert(0, 0)
        self._largest = None

    def count(self, ladder: int, *, changed: bool) -> None:
        """Count a question that may have changed a ladder."""
        if not changed:
            return
        changes = self._by_ladder[ladder]
        self._by_ladder[ladder] = changes + 1
        self._ascending[bisect_right(self._ascending, changes) - 1] = changes + 1
        self._largest = None

    def of(self, ladder: int) -> int:
        """Return how often a ladder has changed."""
        return self._by_ladder[ladder]

    def of_others(self, ladder: int) -> int:
        """Return the changes of the other ladders that count on this one."""
        if self._largest_count == 1:
            return 0
        if self._largest is None:
            largest = self._ascending[-self._largest_count :]
            self._largest = sum(largest), largest[0]
        return changes_of_others(self._by_ladder[ladder], *self._largest)


def standard_error_class(standard_error: float) -> int:
    """Return the least whole c with a standard error of at most 2^(c/2) units.

    >>> standard_error_class(0.0), standard_error_class(2e-12), standard_error_class(0.01)
    (0, 2, 67)
    """
    units = _fixed_point.to_units(standard_error)
    return max(units * units - 1, 0).bit_length()


def largest_standard_error(error_class: int) -> float:
    """Return the largest standard error of a class, as a risk.

    >>> round(largest_standard_error(67), 4)
    0.0121
    """
    return math.sqrt(2.0**error_class) / _fixed_point.UNITS


def risk_from_losses(setup: Setup, losses: NDArray[np.float64]) -> float:
    """Return the risk of a model with these losses, one for each example."""
    return min(max(_fixed_point.exact_mean(losses), setup.low), setup.high)


def to_float_vector(name: str, values: Any) -> NDArray[np.float64]:
    """Return a copy as a vector of doubles, without negative zeros; raise for anything else."""
    try:
        vector = np.asarray(values)
        masked = _settings.is_masked_array(values) and np.ma.is_masked(values)
    except Exception as error:  # ragged rows, or any error of a foreign object
        raise InvalidRisk(f"{name} must be a vector of numbers.") from error
    if masked:
        raise InvalidRisk(f"{name} must not be masked; fill the gaps first.")
    if vector.ndim != 1 or vector.dtype.kind not in "biuf" or vector.dtype.itemsize > 8:
        raise InvalidRisk(f"{name} must be a vector of numbers.")
    return vector.astype(np.float64) + 0.0


def leaderboard_error(true_risks: ArrayLike, released_values: ArrayLike) -> float:
    """Return the largest gap between the best true risk so far and the value released then.

    Definition 1: ``max_t |min_{i<=t} R_D(f_i) - R_t|``.

    Parameters
    ----------
    true_risks
        R_D(f_1), ..., R_D(f_k): each model's risk on the distribution.
    released_values
        R_1, ..., R_k: ``Release.value`` after each question.

    Examples
    --------
    >>> leaderboard_error([0.5, 0.25, 0.4], [0.5, 0.375, 0.25])
    0.125
    """
    risks = to_float_vector("true_risks", true_risks)
    released = to_float_vector("released_values", released_values)
    for name, read in (("true_risks", risks), ("released_values", released)):
        if not len(read) or not np.isfinite(read).all():
            raise InvalidRisk(f"{name} must be finite numbers, at least one.")
    if len(risks) != len(released):
        raise InvalidRisk(
            "true_risks and released_values must have the same length; "
            f"got {len(risks)} and {len(released)}."
        )
    return float(np.abs(np.minimum.accumulate(risks) - released).max())


_FORMAT = 1
_MAX_ADDRESS = 2**63


class Session:
    """A mechanism at work: holds the state, draws from the tape and counts questions.

    Made by ``mechanism.start`` or ``mechanism.resume``. An error changes nothing. Not
    thread-safe; a guard is.

    Examples
    --------
    >>> import ladderboard as lb
    >>> session = lb.Ladder(step=0.05).start(n=1000)
    >>> session.ask(risk=0.31)
    Release(value=0.3, score=0.3, improved=True, question=1)
    >>> session.ask(risk=0.29)
    Release(value=0.3, score=None, improved=False, question=2)
    >>> again = lb.Ladder(step=0.05).resume(session.state)
    >>> again.ask(risk=0.2) == session.ask(risk=0.2)
    True
    """

    __slots__ = (
        "_closed",
        "_gain",
        "_ladder",
        "_laws",
        "_question",
        "_setup",
        "_state",
        "_tape",
        "draws",
        "mechanism",
    )

    def __init__(
        self,
        mechanism: Mechanism,
        setup: Setup,
        tape: Tape,
        ladder: int,
        *,
        state: Any,
        question: int = 0,
        closed: bool = False,
    ) -> None:
        self.mechanism = mechanism
        """The mechanism at work."""
        self._setup = setup
        self._tape = tape
        self._ladder = ladder
        self._laws = mechanism.laws
        self._state = state
        self._question = question
        self._closed = closed
        self._gain: tuple[Any, int, float] | None = None  # the last one, with what it follows from
        self.draws: Draws = ()
        """All numbers drawn for the last call of ``ask``. Secret."""

    @classmethod
    def start(
        cls,
        mechanism: Mechanism,
        *,
        n: int,
        tape: Tape | None,
        risk_range: tuple[float, float],
        ladder: int,
    ) -> Session:
        """See ``Mechanism.start``."""
        setup = Setup(
            _settings.integer("n", n, at_least=1),
            *_settings.interval("risk_range", risk_range, within=_fixed_point.MAX_MAGNITUDE),
        )
        ladder = _settings.integer("ladder", ladder, at_least=0, at_most=_MAX_ADDRESS)
        mechanism.check(setup)
        tape = _read_tape(tape)
        draws = tape.draw(mechanism.laws, ladder=ladder, question=0)
        return cls(mechanism, setup, tape, ladder, state=mechanism.begin(setup, draws))

    @classmethod
    def resume(
        cls, mechanism: Mechanism, written: Mapping[str, Any], *, tape: Tape | None
    ) -> Session:
        """See ``Mechanism.resume``."""
        tape = _read_tape(tape)
        try:
            if written["format"] != _FORMAT:
                raise InvalidState(
                    f"The saved state has format {_settings.safe_repr(written['format'])}; "
                    f"this version reads format {_FORMAT}."
                )
            if written["mechanism"] != mechanism.describe():
                raise InvalidState(
                    "The saved state belongs to another mechanism; resume it with the settings "
                    "it was started with."
                )
            if mechanism.laws and written["tape"] != tape.fingerprint:
                raise InvalidState(
                    "The saved state belongs to another tape; resume it with the seed or key it "
                    "was started with."
                )
            setup = Setup(
                _settings.integer("n", written["n"], at_least=1),
                *_settings.interval(
                    "risk_range", written["risk_range"], within=_fixed_point.MAX_MAGNITUDE
                ),
            )
            ladder = _settings.integer(
                "ladder", written["ladder"], at_least=0, at_most=_MAX_ADDRESS
            )
            if not isinstance(written["closed"], bool):
                raise InvalidState(DAMAGED_STATE)
            fresh = mechanism.begin(setup, tape.draw(mechanism.laws, ladder=ladder, question=0))
            return cls(
                mechanism,
                setup,
                tape,
                ladder,
                state=mechanism.load_state(written["state"], setup, fresh),
                question=_settings.integer(
                    "question", written["question"], at_least=0, at_most=_MAX_ADDRESS
                ),
                closed=written["closed"],
            )
        except InvalidState:
            raise
        except (KeyError, OverflowError, TypeError, ValueError) as error:
            raise InvalidState(DAMAGED_STATE) from error

    @property
    def state(self) -> dict[str, Any]:
        """Everything needed to resume, JSON-able. Secret: it may hold noise still in use."""
        return {
            "format": _FORMAT,
            "mechanism": self.mechanism.describe(),
            "n": self._setup.n,
            "risk_range": [self._setup.low, self._setup.high],
            "ladder": self._ladder,
            "tape": self._tape.fingerprint if self._laws else None,
            **self.mutable_state,
        }

    @property
    def mutable_state(self) -> dict[str, Any]:
        """The part of ``state`` that changes with each question."""
        return {
            "question": self._question,
            "closed": self._closed,
            "state": self.mechanism.dump_state(self._state),
        }

    @property
    def questions(self) -> int:
        """How many questions were answered."""
        return self._question

    @property
    def closed(self) -> bool:
        """Whether the session was closed."""
        return self._closed

    @property
    def value(self) -> float | None:
        """The current estimate; R_0 before the first question, None if it is not released."""
        if self._closed:
            return self.mechanism.close(self._state)
        return self.mechanism.value(self._state)

    def smallest_visible_gain(self, others: int = 0) -> float:
        """Return the gain that the next question must have to be shown 19 times out of 20."""
        last, state = self._gain, self._state
        if last is None or last[0] is not state or last[1] != others:
            gain = self.mechanism.visible_gain_after(self._setup, state, others)
            self._gain = last = (state, others, gain)
        return last[2]

    def close(self) -> float | None:
        """End the session and return its last estimate, even if it was withheld so far."""
        self._closed = True
        return self.value

    def ask(
        self,
        *,
        risk: float | None = None,
        losses: ArrayLike | None = None,
        training: float | None = None,
        standard_error: float | None = None,
        others: int = 0,
        context: bytes = b"",
    ) -> Release:
        """Ask one question.

        Parameters
        ----------
        risk
            The model's mean loss on the holdout.
        losses
            Or its loss on every example; some mechanisms need this.
        training
            The model's mean loss on its training data, for ``Thresholdout``.
        standard_error
            That of the risk, for a ``GrowingLadder`` with ``scale="model"``; computed if losses are
            given.
        others
            How often the other ladders changed that may belong to the same attacker.
        context
            Bytes on which the noise of this question depends, such as the submission's digest.
        """
        if self._closed:
            raise SessionClosed("The session is closed; start another to ask again.")
        mechanism = self.mechanism
        if standard_error is not None:
            standard_error = self._standard_error(standard_error)
        observation = self._read_question(risk, losses, training, standard_error)
        if others:
            others = _settings.integer("others", others, at_least=0, at_most=_MAX_ADDRESS)
            observation = observation._replace(others=others)
        if not isinstance(context, bytes):
            raise InvalidSetting(f"context must be bytes; got {type(context).__name__}.")
        question = self._question + 1
        draws = self._tape.draw(self._laws, ladder=self._ladder, question=question, context=context)
        step = mechanism.advance(self._setup, self._state, observation, draws)
        self._state = step.state
        self._question = question
        self.draws = draws
        return Release(step.value, step.score, step.improved, question, step.error_class)

    def ask_many(self, risks: ArrayLike, *, training: ArrayLike | None = None) -> Releases:
        """Ask about many models that were chosen beforehand; the same as asking one by one.

        If one is invalid, none is answered.
        """
        if self._closed:
            raise SessionClosed("The session is closed; start another to ask again.")
        mechanism = self.mechanism
        if mechanism.needs != "risk":
            raise InvalidRisk(_needs_losses_message(mechanism))
        vector = to_float_vector("risks", risks)
        self._check_risks(vector)
        training_losses = self._training_many(training, len(vector))
        first = self._question + 1
        draws = self._tape.draw_many(
            self._laws, ladder=self._ladder, first=first, count=len(vector)
        )
        state, value, score, improved = mechanism.advance_many(
            self._setup, self._state, Observations(vector, training_losses), draws
        )
        self._state = state
        self._question += len(vector)
        return Releases(value, score, improved, np.arange(first, first + len(vector)))

    def _read_question(
        self,
        risk: float | None,
        losses: ArrayLike | None,
        training: float | None,
        standard_error: float | None,
    ) -> Observation:
        mechanism = self.mechanism
        vector = None
        if losses is not None:
            if risk is not None:
                raise InvalidRisk("Give risk or losses, not both.")
            if standard_error is not None:
                raise InvalidRisk("Give losses or their standard_error, not both.")
            vector = self._losses(losses)
            risk = risk_from_losses(self._setup, vector)
        elif mechanism.needs != "risk" and standard_error is None:
            raise InvalidRisk(_needs_losses_message(mechanism))
        low, high = self._setup.low, self._setup.high
        # Messages never show the value: a risk is secret.
        if type(risk) is not float:
            if not isinstance(risk, Real) or isinstance(risk, bool):
                raise InvalidRisk("ask needs risk=, one number, or losses=, one for each example.")
            risk = math.nan if abs(risk) > _fixed_point.MAX_MAGNITUDE else float(risk)
        risk += 0.0  # no negative zero
        if not low <= risk <= high:
            raise InvalidRisk(f"risk must be a finite number in [{low:g}, {high:g}].")
        if training is not None or mechanism.needs_training:
            training = self._training(training)
        return Observation(risk, vector, training, standard_error)

    def _losses(self, losses: ArrayLike) -> NDArray[np.float64]:
        vector = to_float_vector("losses", losses)
        if len(vector) != self._setup.n:
            raise InvalidRisk(
                f"losses must hold one number for each of the {self._setup.n} examples; "
                f"got {len(vector)}."
            )
        self._check_risks(vector, "losses")
        return vector

    def _check_risks(self, vector: NDArray[np.float64], name: str = "risks") -> None:
        low, high = self._setup.low, self._setup.high
        in_range = (vector >= low) & (vector <= high)  # False for NaN
        if not in_range.all():
            out_of_range = np.flatnonzero(~in_range)
            raise InvalidRisk(
                f"{name} must be finite numbers in [{low:g}, {high:g}]; "
                f"{len(out_of_range)} are not.",
                positions=tuple(out_of_range[:10].tolist()),
            )

    def _standard_error(self, standard_error: float) -> float:
        if self.mechanism.needs != "standard_error":
            raise InvalidSetting(
                f"{self.mechanism.name} does not use standard_error=; leave it out."
            )
        width = self._setup.high - self._setup.low
        if (
            not isinstance(standard_error, Real)
            or isinstance(standard_error, bool)
            or not 0 <= standard_error <= width  # False for NaN; the value is secret
        ):
            raise InvalidRisk(f"standard_error must be a finite number in [0, {width:g}].")
        return float(standard_error)

    def _training(self, training: float | None) -> float:
        if not self.mechanism.needs_training:
            raise InvalidSetting(f"{self.mechanism.name} does not use training=; leave it out.")
        low, high = self._setup.low, self._setup.high
        if (
            not isinstance(training, Real)
            or isinstance(training, bool)
            or not low <= training <= high
        ):
            raise InvalidRisk(
                f"{self.mechanism.name} needs training=, the mean loss on the training data, "
                f"in [{low:g}, {high:g}]; got {_settings.safe_repr(training)}."
            )
        return float(training)

    def _training_many(self, training: ArrayLike | None, count: int) -> NDArray[np.float64] | None:
        if not self.mechanism.needs_training:
            if training is not None:
                self._training(None)
            return None
        if training is None:
            raise InvalidRisk(
                f"{self.mechanism.name} needs training=, one mean training loss for each risk."
            )
        vector = to_float_vector("training", training)
        self._check_risks(vector, "training")
        if len(vector) != count:
            raise InvalidRisk(
                f"training must hold one number for each of the {count} risks; got {len(vector)}."
            )
        return vector


def _read_tape(tape: Tape | None) -> Tape:
    if tape is None:
        return Tape()
    if not isinstance(tape, Tape):
        raise InvalidSetting(f"tape must be a Tape; got {type(tape).__name__}; try Tape(seed=7).")
    return tape


def _needs_losses_message(mechanism: Mechanism) -> str:
    if mechanism.needs == "standard_error":
        return (
            f"{mechanism.name} needs standard errors; ask one question at a time with losses=, or "
            "with risk= and standard_error=."
        )
    return (
        f"{mechanism.name} compares models example by example; "
        "ask one question at a time with losses=, the vector of per-example losses."
    )
