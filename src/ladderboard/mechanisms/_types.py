"""Inputs and outputs of a mechanism's step, releases, changes, and the leaderboard error."""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np

from ladderboard.errors import InvalidRisk
from ladderboard.mechanisms import _fixed_point

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import ArrayLike, NDArray

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


def changes_of_others(own: int, largest_sum: int, smallest: int) -> int:
    """Return the changes of the k other ladders that changed most.

    ``largest_sum`` and ``smallest`` are the sum and the minimum of the k + 1 largest numbers of
    changes, this ladder's among them; of all numbers if there are fewer ladders. If this ladder is
    one of the k + 1, the others are the k wanted; if not, the smallest is left out.

    >>> changes_of_others(own=7, largest_sum=7 + 4, smallest=4)
    4
    >>> changes_of_others(own=1, largest_sum=7 + 4, smallest=4)
    7
    """
    return largest_sum - max(own, smallest)


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
        own = self._by_ladder[ladder]
        self._by_ladder[ladder] = own + 1
        self._ascending[bisect_right(self._ascending, own) - 1] = own + 1
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
        masked = isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values)
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
