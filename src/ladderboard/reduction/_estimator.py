"""The general estimator: answers to statistical queries through any mechanism (corrected Fig. 2).

Proofs: docs/explanation/reduction.md.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from fractions import Fraction
from numbers import Rational, Real
from typing import TYPE_CHECKING, Any

import numpy as np

from ladderboard import _settings
from ladderboard.errors import (
    BrokenMechanism,
    BudgetSpent,
    InvalidRisk,
    InvalidSetting,
    InvalidState,
)
from ladderboard.mechanisms import OneBit, to_float_vector

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import ArrayLike, NDArray

    from ladderboard.mechanisms import Mechanism, Release, Session
    from ladderboard.tape import Tape

LARGEST_ALPHA = Fraction(1, 3)
_DIGITS = 18
_FORMAT = 1
_HALF = Fraction(1, 2)
_DAMAGED = "The saved state is damaged; give back what estimator.state returned."
# Where the classifiers' values lie: docs/explanation/reduction.md, "The range".
RISK_RANGE = (-0.5, 1.0)


@dataclass(frozen=True)
class QueryAnswer:
    """What was said about the mean of a query.

    Parameters
    ----------
    value
        The estimate. While the mechanism's leaderboard error is below alpha/4 it is within
        3 alpha/4 of the true mean; it may leave [0, 1] by less than alpha/2.
    query
        Its number, from 1.
    remaining
        How many queries are left, at most.
    classifiers
        How many classifiers were given to the mechanism for it.
    before, after
        The threshold, in [0, 1/2], before and after it. What a query lowers it by is gone.
    crossed
        Whether a classifier crossed the threshold; if none did, the mean is known to be above
        1 - 3 alpha/2, and the value is 1 - 3 alpha/4.
    consistent
        False once what the mechanism said cannot be within alpha/4 of the truth throughout: from
        then on nothing is promised, about earlier answers neither. True proves nothing: an error
        above alpha/4 need not show.
    """

    value: float
    query: int
    remaining: int
    classifiers: int
    before: float
    after: float
    crossed: bool
    consistent: bool

    def __float__(self) -> float:
        return self.value


@dataclass(frozen=True)
class QueryAccuracy:
    """How accurate answers shall be, as a fraction: comparisons with it must be exact."""

    alpha: Fraction

    @classmethod
    def read(cls, alpha: Any) -> QueryAccuracy:
        """Read alpha, a float as the simplest fraction that it stands for.

        >>> QueryAccuracy.read(1 / 21), QueryAccuracy.read(0.05)
        (QueryAccuracy(alpha=Fraction(1, 21)), QueryAccuracy(alpha=Fraction(1, 20)))
        """
        read = _simplest_fraction(alpha)
        if read is None or not 0 < read <= LARGEST_ALPHA:
            raise InvalidSetting(
                "alpha must be a number above 0 and at most 1/3, where one query fits; "
                f"got {_settings.safe_repr(alpha)}."
            )
        return cls(read)

    @property
    def queries(self) -> int:
        """How many queries fit: each may take 3 alpha/2 of a threshold that starts at 1/2."""
        return math.floor(1 / (3 * self.alpha))

    @property
    def rungs(self) -> int:
        """The last classifier's number: so many steps of alpha/2 lead below the threshold."""
        return math.ceil(1 / self.alpha)

    @property
    def classifiers(self) -> int:
        """How many classifiers all queries take at most, which is at most 1/alpha^2."""
        return self.queries * (self.rungs + 1)

    @property
    def most(self) -> Fraction:
        """What a query may take of the threshold."""
        return 3 * self.alpha / 2

    def __str__(self) -> str:
        short = f"{float(self.alpha):.6g}"
        return short if Fraction(short) == self.alpha else str(self.alpha)


def _simplest_fraction(alpha: Any) -> Fraction | None:
    """Return the simplest fraction that rounds to this number; None if it is none."""
    if isinstance(alpha, bool) or not isinstance(alpha, Real):
        return None
    if isinstance(alpha, Rational):
        return Fraction(alpha)
    if not math.isfinite(alpha):
        return None
    precise = Fraction(float(alpha))
    kind: Any = type(alpha)  # a float, or one of NumPy's: each rounds in its own way
    for digits in range(1, _DIGITS):
        simple = precise.limit_denominator(10**digits)
        if kind(float(simple)) == alpha:
            return simple
    return precise


class GeneralEstimator:
    """Estimate means of functions chosen one after the other, through a leaderboard.

    For a query g the mechanism is given classifiers c + (g - i alpha)/2 for i = 0, 1, ..., each
    alpha/2 lower than the last, until what it says falls below c - alpha/2, where the threshold c
    is what it had said before. Which one it was, and what was said, give the answer.

    Parameters
    ----------
    mechanism
        Any mechanism that tells values. If its leaderboard error stays below alpha/4, every answer
        is within alpha of the true mean (within 3 alpha/4, in fact).
    n
        Number of examples in the sample.
    alpha
        How accurate answers shall be, at most 1/3. There are floor(1/(3 alpha)) queries. A float
        is read as the simplest fraction that it stands for: 1/(3 * 7) allows seven queries.
    tape
        Where noise comes from; without one, a fresh tape with a key from the operating system.
    ladder
        Which ladder of the tape this is; estimators and sessions on one tape need their own.

    Not for use by several threads at once.

    Examples
    --------
    >>> import numpy as np
    >>> import ladderboard as lb
    >>> sample = np.random.default_rng(1).random(10_000)
    >>> estimator = lb.GeneralEstimator(lb.Ladder(step=0.01), n=10_000, alpha=0.1)
    >>> estimator.queries
    3
    >>> answer = estimator.ask(sample**2)  # true mean 1/3
    >>> round(answer.value, 3), answer.classifiers
    (0.34, 6)
    >>> answer.before, answer.after
    (0.5, 0.42)

    References
    ----------
    Hardt, "Climbing a shaky ladder", 2017, Fig. 2, with what docs/explanation/errata.md says of it.
    """

    def __init__(
        self,
        mechanism: Mechanism,
        *,
        n: int,
        alpha: float | Fraction,
        tape: Tape | None = None,
        ladder: int = 0,
    ) -> None:
        self._accuracy = QueryAccuracy.read(alpha)
        self._n = _settings.integer("n", n, at_least=1)
        require_released_values(mechanism)
        self._mechanism = mechanism
        self._session: Session = mechanism.start(
            n=self._n, tape=tape, risk_range=RISK_RANGE, ladder=ladder
        )
        self._last: Fraction | None = None
        self._asked = 0
        self._consistent = True

    @classmethod
    def resume(
        cls, mechanism: Mechanism, state: Mapping[str, Any], tape: Tape | None = None
    ) -> GeneralEstimator:
        """Go on from ``estimator.state``, with the mechanism and the tape it was started with."""
        require_released_values(mechanism)
        try:
            if state["format"] != _FORMAT:
                raise InvalidState(
                    f"The saved state has format {_settings.safe_repr(state['format'])}; "
                    f"this version reads format {_FORMAT}."
                )
            inner, consistent = state["session"], state["consistent"]
            alpha = QueryAccuracy.read(Fraction(state["alpha"])).alpha
            asked = _settings.integer("asked", state["asked"], at_least=0)
            last = None if state["last"] is None else Fraction(state["last"])
            n = _settings.integer("n", inner["n"], at_least=1)
            if type(consistent) is not bool or tuple(inner["risk_range"]) != RISK_RANGE:
                raise InvalidState(_DAMAGED)
        except InvalidState:
            raise
        except (ArithmeticError, KeyError, TypeError, ValueError) as error:
            raise InvalidState(_DAMAGED) from error
        made = cls(mechanism, n=n, alpha=alpha, tape=tape)
        made._session = mechanism.resume(inner, tape)
        made._asked, made._last, made._consistent = asked, last, consistent
        if not made._possible():
            raise InvalidState(_DAMAGED)
        return made

    def _possible(self) -> bool:
        """Tell whether so many queries, and what was said last, go with so many classifiers."""
        used, most = self._session.questions, self._accuracy.rungs + 1
        return (
            self._asked <= self.queries
            and (self._last is None or used > 0)
            and used <= self._asked * most
        )

    @property
    def state(self) -> dict[str, Any]:
        """Everything needed to go on later, JSON-able. Secret, as a session's is."""
        return {
            "format": _FORMAT,
            "alpha": str(self._accuracy.alpha),
            "asked": self._asked,
            "last": None if self._last is None else str(self._last),
            "consistent": self._consistent,
            "session": self._session.state,
        }

    @property
    def alpha(self) -> float:
        """How accurate answers shall be."""
        return float(self._accuracy.alpha)

    @property
    def queries(self) -> int:
        """How many queries there are in all: floor(1/(3 alpha))."""
        return self._accuracy.queries

    @property
    def asked(self) -> int:
        """How many queries were asked, with any that broke off."""
        return self._asked

    @property
    def remaining(self) -> int:
        """How many queries are left, at most: none once the threshold is spent."""
        return 0 if self._spent() else self.queries - self._asked

    @property
    def classifiers(self) -> int:
        """How many classifiers were given to the mechanism so far."""
        return self._session.questions

    @property
    def max_classifiers(self) -> int:
        """How many questions the mechanism must allow, at most 1/alpha^2."""
        return self._accuracy.classifiers

    @property
    def threshold(self) -> float:
        """What the next classifiers are measured from; it starts at 1/2 and is spent downwards."""
        return float(self._threshold)

    @property
    def _threshold(self) -> Fraction:
        return _HALF if self._last is None else min(_HALF, self._last)

    def ask(
        self, values: ArrayLike, *, training: ArrayLike | None = None, context: bytes = b""
    ) -> QueryAnswer:
        """Ask for the mean of a query.

        Parameters
        ----------
        values
            The query on every example of the sample: numbers in [0, 1].
        training
            Its values on the training data, for ``Thresholdout``.
        context
            Bytes that make the noise of this query its own. The values themselves always do.
        """
        read = _read_values("values", values)
        if len(read) != self._n:
            raise InvalidRisk(
                f"values must hold one number for each of the {self._n} examples; got {len(read)}."
            )
        trained = self._training(training)
        if not isinstance(context, bytes):
            raise InvalidSetting(f"context must be bytes; got {type(context).__name__}.")
        self._refuse_if_spent()
        # Counted before the mechanism says anything: a query that breaks off has been asked.
        self._asked += 1
        mark = hashlib.blake2b(digest_size=32)
        for part in (read.tobytes(), b"" if trained is None else trained.tobytes(), context):
            mark.update(len(part).to_bytes(8, "big") + part)
        question, seal = self._classifier(read, trained), mark.digest()
        return self._search(lambda shift: self._session.ask(context=seal, **question(shift)))

    def _search(self, give: Callable[[Fraction], Release]) -> QueryAnswer:
        """Lower the classifiers rung by rung until what is said crosses the threshold."""
        alpha, before, used = self._accuracy.alpha, self._threshold, 0
        crossed = False
        shift = before
        for _ in range(self._accuracy.rungs + 1):
            said = parse_released_value(give(shift).value)
            used += 1
            self._consistent &= said < shift + _HALF + alpha / 4
            self._consistent &= self._last is None or said < self._last + alpha / 2
            self._last = said
            crossed = said < before - alpha / 2
            if crossed:
                break
            shift -= alpha / 2
        assert self._last is not None  # noqa: S101 - there is at least one rung
        value = 2 * (self._last - shift) if crossed else 1 - 3 * alpha / 4
        self._consistent &= value > -alpha / 2 and before - self._last < self._accuracy.most
        return QueryAnswer(
            value=float(value),
            query=self._asked,
            remaining=self.remaining,
            classifiers=used,
            before=float(before),
            after=float(self._threshold),
            crossed=crossed,
            consistent=self._consistent,
        )

    def _training(self, training: ArrayLike | None) -> NDArray[np.float64] | None:
        """Read the values on the training data, if the mechanism looks at them."""
        mechanism = self._mechanism
        if not mechanism.needs_training:
            if training is not None:
                raise InvalidSetting(f"{mechanism.name} does not look at training=; leave it out.")
            return None
        if training is None:
            raise InvalidRisk(
                f"{mechanism.name} needs training=, the query's values on the training data."
            )
        return _read_values("training", training)

    def _classifier(
        self, values: NDArray[np.float64], training: NDArray[np.float64] | None
    ) -> Callable[[Fraction], dict[str, Any]]:
        """Return how the classifier shift + g/2 is put to the mechanism; its mean is exact."""
        trained = None if training is None else _exact_mean(training) / 2

        def more(shift: Fraction) -> dict[str, Any]:
            return {} if trained is None else {"training": float(shift + trained)}

        if self._mechanism.needs == "losses":
            return lambda shift: {"losses": float(shift) + values / 2, **more(shift)}
        half = _exact_mean(values) / 2
        return lambda shift: {"risk": float(shift + half), **more(shift)}

    def _spent(self) -> bool:
        # While the leaderboard error is below alpha/4 this never happens before the last query.
        return self._threshold < self._accuracy.most

    def _refuse_if_spent(self) -> None:
        if self._asked >= self.queries:
            raise BudgetSpent(
                f"Alpha = {self._accuracy} allows {self.queries} quer"
                f"{'y' if self.queries == 1 else 'ies'}, and no more; "
                "a smaller alpha allows more, and asks more of the mechanism."
            )
        if self._spent():
            raise BudgetSpent(
                f"The threshold is spent: it is {float(self._threshold):.4g} after "
                f"{self._asked} of {self.queries} queries, and the next may take "
                f"{float(self._accuracy.most):.4g}. The mechanism's leaderboard error reached "
                f"alpha/4 = {float(self._accuracy.alpha / 4):.4g}; a larger alpha, more examples "
                "or a finer mechanism would do."
            )


def parse_released_value(value: Any) -> Fraction:
    """Return a value that was told as the decimal number it prints as: 0.475 is 475/1000.

    Releases are decimal, and ties between them must be ties.
    """
    if isinstance(value, Real) and math.isfinite(value):
        return Fraction(repr(float(value)))
    raise BrokenMechanism("The mechanism told no finite number where it should tell a value.")


def require_released_values(mechanism: Any) -> None:
    """Refuse what is not a mechanism, or one that keeps its value to itself."""
    parts = ("start", "name", "needs", "needs_training")
    if isinstance(mechanism, type) or not all(hasattr(mechanism, part) for part in parts):
        raise InvalidSetting(
            "mechanism must be a mechanism, such as Ladder(step=0.01); "
            f"got {_settings.safe_repr(mechanism)}."
        )
    if isinstance(mechanism, OneBit):
        raise InvalidSetting(
            "OneBit tells no value before it is closed, and a value is needed here; take a Ladder."
        )


def _read_values(name: str, values: Any) -> NDArray[np.float64]:
    read = to_float_vector(name, values)
    good = (read >= 0) & (read <= 1)  # False for NaN
    if not good.all():
        bad = np.flatnonzero(~good)
        raise InvalidRisk(
            f"{name} must be finite numbers in [0, 1]; {len(bad)} are not.",
            positions=tuple(bad[:10].tolist()),
        )
    if not len(read):
        raise InvalidRisk(f"{name} must hold at least one number.")
    return read


def _exact_mean(values: NDArray[np.float64]) -> Fraction:
    """Return the mean of a vector, rounded once."""
    return Fraction(math.fsum(values.tolist())) / len(values)
