"""The general estimator: answers to statistical queries through any mechanism (corrected Fig. 2).

Proofs: docs/explanation/reduction.md.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from numbers import Rational, Real
from typing import TYPE_CHECKING, Any

import numpy as np

from ladderboard import _settings
from ladderboard._formatting import format_count
from ladderboard.bounds import certificate
from ladderboard.errors import (
    BrokenMechanism,
    BudgetSpent,
    InvalidRisk,
    InvalidSetting,
    InvalidState,
    OutsideTheorem,
)
from ladderboard.mechanisms import Ladder, to_float_vector

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
    """The answer to a query.

    Parameters
    ----------
    value
        The estimate. While the mechanism's leaderboard error is below alpha/4 it is within
        3 alpha/4 of the true mean; it may leave [0, 1] by less than alpha/2.
    query
        The query's number, from 1.
    remaining
        How many queries are left, at most.
    classifiers
        How many classifiers the mechanism was asked about for this query.
    before, after
        The threshold, in [0, 1/2], before and after the query. It never rises again.
    crossed
        Whether a classifier crossed the threshold; if none did, the mean is known to be above
        1 - 3 alpha/2, and the value is 1 - 3 alpha/4.
    consistent
        False once the released values prove an error above alpha/4: then no answer is guaranteed,
        earlier ones included. True proves nothing: such an error need not show.
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
    """The required accuracy alpha as a fraction, so that comparisons with it are exact."""

    alpha: Fraction

    @classmethod
    def parse(cls, alpha: Any) -> QueryAccuracy:
        """Return the accuracy for alpha, reading a float as the simplest fraction for it.

        >>> QueryAccuracy.parse(1 / 21), QueryAccuracy.parse(0.05)
        (QueryAccuracy(alpha=Fraction(1, 21)), QueryAccuracy(alpha=Fraction(1, 20)))
        """
        fraction = _simplest_fraction(alpha)
        if fraction is None or not 0 < fraction <= LARGEST_ALPHA:
            raise InvalidSetting(
                "alpha must be above 0 and at most 1/3, which allows one query; "
                f"got {_settings.safe_repr(alpha)}."
            )
        return cls(fraction)

    @property
    def queries(self) -> int:
        """How many queries fit: each may take 3 alpha/2 of a threshold that starts at 1/2."""
        return math.floor(1 / (3 * self.alpha))

    @property
    def last_classifier(self) -> int:
        """The number of the last classifier: this many steps of alpha/2 end below the threshold."""
        return math.ceil(1 / self.alpha)

    @property
    def max_classifiers(self) -> int:
        """How many classifiers all queries need at most, which is at most 1/alpha^2."""
        return self.queries * (self.last_classifier + 1)

    @property
    def max_decrease(self) -> Fraction:
        """How much a query may lower the threshold."""
        return 3 * self.alpha / 2

    def __str__(self) -> str:
        short = f"{float(self.alpha):.6g}"
        return short if Fraction(short) == self.alpha else str(self.alpha)


def _simplest_fraction(alpha: Any) -> Fraction | None:
    """Return the simplest fraction that rounds to this number; None if it is not a number."""
    if isinstance(alpha, bool) or not isinstance(alpha, Real):
        return None
    if isinstance(alpha, Rational):
        return Fraction(alpha)
    if not math.isfinite(alpha):
        return None
    precise = Fraction(float(alpha))
    kind: Any = type(alpha)  # float or a NumPy type, which round differently
    for digits in range(1, _DIGITS):
        simple = precise.limit_denominator(10**digits)
        if kind(float(simple)) == alpha:
            return simple
    return precise


class GeneralEstimator:
    """Estimate means of functions chosen one after the other, through a leaderboard.

    For a query g the mechanism is asked about classifiers c + (g - i alpha)/2 for i = 0, 1, ...,
    each alpha/2 lower than the last, until its released value falls below c - alpha/2, where the
    threshold c is the value released before. The index i and the value give the answer.

    Parameters
    ----------
    mechanism
        Any mechanism that releases values. If its leaderboard error stays below alpha/4, every
        answer is within alpha of the true mean (within 3 alpha/4, in fact).
    n
        Number of examples in the sample.
    alpha
        The required accuracy, at most 1/3. It allows floor(1/(3 alpha)) queries. A float is read
        as the simplest fraction that rounds to it: 1/(3 * 7) allows seven queries.
    tape
        The source of noise; by default a new tape with a key from the operating system.
    ladder
        The number of this ladder; estimators and sessions on one tape need different ones.

    Not thread-safe.

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
    Hardt, "Climbing a shaky ladder", 2017, Fig. 2, as corrected in
    docs/explanation/paper.md.
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
        self._accuracy = QueryAccuracy.parse(alpha)
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
        """Return an estimator that continues from ``state``, with the same mechanism and tape."""
        require_released_values(mechanism)
        try:
            if state["format"] != _FORMAT:
                raise InvalidState(
                    f"The saved state has format {_settings.safe_repr(state['format'])}; "
                    f"this version reads format {_FORMAT}."
                )
            inner, consistent = state["session"], state["consistent"]
            alpha = QueryAccuracy.parse(Fraction(state["alpha"])).alpha
            asked = _settings.integer("asked", state["asked"], at_least=0)
            last = None if state["last"] is None else Fraction(state["last"])
            n = _settings.integer("n", inner["n"], at_least=1)
            if type(consistent) is not bool or tuple(inner["risk_range"]) != RISK_RANGE:
                raise InvalidState(_DAMAGED)
        except InvalidState:
            raise
        except (ArithmeticError, KeyError, TypeError, ValueError) as error:
            raise InvalidState(_DAMAGED) from error
        estimator = cls(mechanism, n=n, alpha=alpha, tape=tape)
        estimator._session = mechanism.resume(inner, tape)
        estimator._asked, estimator._last, estimator._consistent = asked, last, consistent
        if not estimator._counts_agree():
            raise InvalidState(_DAMAGED)
        return estimator

    def _counts_agree(self) -> bool:
        """Return whether the numbers of queries and classifiers can belong together."""
        used, per_query = self._session.questions, self._accuracy.last_classifier + 1
        return (
            self._asked <= self.queries
            and (self._last is None or used > 0)
            and used <= self._asked * per_query
        )

    @property
    def state(self) -> dict[str, Any]:
        """Everything needed to resume, JSON-able. Secret, like the state of a session."""
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
        """The required accuracy."""
        return float(self._accuracy.alpha)

    @property
    def queries(self) -> int:
        """How many queries may be asked in total: floor(1/(3 alpha))."""
        return self._accuracy.queries

    @property
    def asked(self) -> int:
        """How many queries were asked, including failed ones."""
        return self._asked

    @property
    def remaining(self) -> int:
        """How many queries are left, at most: none once the threshold is spent."""
        return 0 if self._threshold_spent() else self.queries - self._asked

    @property
    def classifiers(self) -> int:
        """How many classifiers the mechanism was asked about so far."""
        return self._session.questions

    @property
    def max_classifiers(self) -> int:
        """How many questions the mechanism must allow, at most 1/alpha^2."""
        return self._accuracy.max_classifiers

    @property
    def threshold(self) -> float:
        """Where the next classifiers start; it begins at 1/2 and only falls."""
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
            Extra bytes that the noise of this query depends on, beside the values.
        """
        sample = _read_values("values", values)
        if len(sample) != self._n:
            raise InvalidRisk(
                f"values must hold one number for each of the {self._n} examples; "
                f"got {len(sample)}."
            )
        training_values = self._read_training(training)
        if not isinstance(context, bytes):
            raise InvalidSetting(f"context must be bytes; got {type(context).__name__}.")
        self._refuse_if_spent()
        # Counted before the mechanism releases anything, so that a failed query counts.
        self._asked += 1
        digest = hashlib.blake2b(digest_size=32)
        trained_bytes = b"" if training_values is None else training_values.tobytes()
        for part in (sample.tobytes(), trained_bytes, context):
            digest.update(len(part).to_bytes(8, "big") + part)
        arguments = self._classifier_arguments(sample, training_values)
        query_context = digest.digest()
        return self._search(
            lambda shift: self._session.ask(context=query_context, **arguments(shift))
        )

    def _search(self, ask: Callable[[Fraction], Release]) -> QueryAnswer:
        """Lower the classifiers step by step until the released value crosses the threshold."""
        alpha, before, used = self._accuracy.alpha, self._threshold, 0
        crossed = False
        shift = released = before
        for _ in range(self._accuracy.last_classifier + 1):
            released = parse_released_value(ask(shift).value)
            used += 1
            self._consistent &= released < shift + _HALF + alpha / 4
            self._consistent &= self._last is None or released < self._last + alpha / 2
            self._last = released
            crossed = released < before - alpha / 2
            if crossed:
                break
            shift -= alpha / 2
        value = 2 * (released - shift) if crossed else 1 - 3 * alpha / 4
        self._consistent &= value > -alpha / 2 and before - released < self._accuracy.max_decrease
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

    def _read_training(self, training: ArrayLike | None) -> NDArray[np.float64] | None:
        """Return the values on the training data, if the mechanism uses them."""
        mechanism = self._mechanism
        if not mechanism.needs_training:
            if training is not None:
                raise InvalidSetting(f"{mechanism.name} does not use training=; leave it out.")
            return None
        if training is None:
            raise InvalidRisk(
                f"{mechanism.name} needs training=, the query's values on the training data."
            )
        return _read_values("training", training)

    def _classifier_arguments(
        self, values: NDArray[np.float64], training: NDArray[np.float64] | None
    ) -> Callable[[Fraction], dict[str, Any]]:
        """Return the arguments of ``session.ask`` for the classifier shift + g/2, by shift."""
        trained = None if training is None else _exact_mean(training) / 2

        def training_argument(shift: Fraction) -> dict[str, Any]:
            return {} if trained is None else {"training": float(shift + trained)}

        if self._mechanism.needs != "risk":
            return lambda shift: {"losses": float(shift) + values / 2, **training_argument(shift)}
        half = _exact_mean(values) / 2
        return lambda shift: {"risk": float(shift + half), **training_argument(shift)}

    def _threshold_spent(self) -> bool:
        # While the leaderboard error is below alpha/4 this never happens before the last query.
        return self._threshold < self._accuracy.max_decrease

    def _refuse_if_spent(self) -> None:
        if self._asked >= self.queries:
            raise BudgetSpent(
                f"Alpha = {self._accuracy} allows "
                f"{format_count(self.queries, 'query', 'queries')}, and all were asked. "
                "Start a new estimator with a smaller alpha, which needs a more accurate mechanism."
            )
        if self._threshold_spent():
            raise BudgetSpent(
                f"The threshold is spent: it is {float(self._threshold):.4g} after "
                f"{self._asked} of {self.queries} queries, and the next may take "
                f"{float(self._accuracy.max_decrease):.4g}. The mechanism's leaderboard error "
                f"reached alpha/4 = {float(self._accuracy.alpha / 4):.4g}. Use a larger alpha, "
                "more examples or a more accurate mechanism."
            )


def parse_released_value(value: Any) -> Fraction:
    """Return a released value as the decimal number that it prints as: 0.475 is 475/1000.

    Releases are decimal, so this keeps equal releases equal.
    """
    if isinstance(value, Real) and math.isfinite(value):
        return Fraction(repr(float(value)))
    raise BrokenMechanism("The mechanism must release a finite value; it released something else.")


def require_released_values(mechanism: Any) -> None:
    """Raise unless this is a mechanism that releases values."""
    attributes = ("start", "name", "needs", "needs_training")
    if isinstance(mechanism, type) or not all(hasattr(mechanism, name) for name in attributes):
        raise InvalidSetting(
            "mechanism must be a mechanism, such as Ladder(step=0.01); "
            f"got {_settings.safe_repr(mechanism)}."
        )
    if getattr(mechanism, "hides_value", False):
        raise InvalidSetting(
            f"{type(mechanism).__name__} releases no value before it is closed; "
            "use a Ladder instead."
        )


def _read_values(name: str, values: Any) -> NDArray[np.float64]:
    vector = to_float_vector(name, values)
    good = (vector >= 0) & (vector <= 1)  # False for NaN
    if not good.all():
        bad = np.flatnonzero(~good)
        raise InvalidRisk(
            f"{name} must be finite numbers in [0, 1]; {len(bad)} are not.",
            positions=tuple(bad[:10].tolist()),
        )
    if not len(vector):
        raise InvalidRisk(f"{name} must hold at least one number.")
    return vector


def _exact_mean(values: NDArray[np.float64]) -> Fraction:
    """Return the mean of a vector, rounded once."""
    return Fraction(math.fsum(values.tolist())) / len(values)


_GUARANTEE_DIGITS = 3
_STEPS = (0.07, 0.1, 0.14, 0.2, 0.28, 0.4, 0.57)  # of alpha/4
_CELLS = (0.5, 1.0, 2.0)  # of the step
_MAX_N = 10**15


@dataclass(frozen=True)
class AccuracyGuarantee:
    """With probability 1 - beta all answers are within alpha of the true means.

    Parameters
    ----------
    n
        Examples in the sample, drawn independently.
    beta
        The probability that the guarantee fails.
    alpha
        The largest error of an answer.
    queries
        How many queries it allows.
    classifiers
        How many questions to the mechanism they may need.
    mechanism
        The Ladder to give to ``GeneralEstimator``.
    error
        The bound on its leaderboard error, below alpha/4.
    """

    n: int
    beta: float
    alpha: float
    queries: int
    classifiers: int
    mechanism: Ladder
    error: float


def accuracy_guarantee(n: int, beta: float = 0.05) -> AccuracyGuarantee:
    """Return the smallest alpha, to three digits, that n examples can guarantee.

    It holds for every analyst that sees the sample only through the answers.

    Examples
    --------
    >>> import ladderboard as lb
    >>> guarantee = lb.reduction.accuracy_guarantee(n=1_000_000)
    >>> guarantee.alpha, guarantee.queries
    (0.0371, 8)
    >>> ladder, alpha = guarantee.mechanism, guarantee.alpha
    >>> estimator = lb.GeneralEstimator(ladder, n=guarantee.n, alpha=alpha)
    """
    n = _settings.integer("n", n, at_least=1, at_most=_MAX_N)
    beta = _settings.number("beta", beta, above=0, below=1)
    guarantee = _smallest_alpha(n, beta)
    if guarantee is not None:
        return guarantee
    low, high = n, 2 * n
    while _smallest_alpha(high, beta) is None:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _smallest_alpha(middle, beta) is None else (low, middle)
    raise OutsideTheorem(
        f"No alpha up to 1/3 can be guaranteed for n = {n}; use at least n = {high}.", least_n=high
    )


@lru_cache(maxsize=256)
def _smallest_alpha(n: int, beta: float) -> AccuracyGuarantee | None:
    """Return the guarantee with the smallest alpha, by bisection, then over three-digit values."""
    if _guarantee_for(n, beta, float(LARGEST_ALPHA)) is None:
        return None
    low, high = 0.0, float(LARGEST_ALPHA)
    while high - low > high / 100:
        middle = (low + high) / 2
        low, high = (middle, high) if _guarantee_for(n, beta, middle) is None else (low, middle)
    scale = 10 ** (_GUARANTEE_DIGITS - 1 - math.floor(math.log10(low)))
    # The number of queries jumps with alpha, and the guarantee with it: search on both sides.
    candidates = range(math.floor(low * 0.98 * scale), math.ceil(high * scale) + 1)
    tried = (
        _guarantee_for(n, beta, candidate / scale)
        for candidate in candidates
        if candidate / scale <= LARGEST_ALPHA
    )
    return next((guarantee for guarantee in tried if guarantee), None) or _guarantee_for(
        n, beta, high
    )


def _guarantee_for(n: int, beta: float, alpha: float) -> AccuracyGuarantee | None:
    """Return the guarantee for this alpha with the most accurate Ladder, or None."""
    accuracy = QueryAccuracy.parse(alpha)
    best = None
    for part in _STEPS:
        for cells in _CELLS:
            step = float(f"{part * alpha / 4:.2g}")
            ladder = Ladder(step=step, grid=float(f"{cells * step:.2g}"))
            error = _error_bound(n, beta, accuracy.max_classifiers, ladder)
            if error < alpha / 4 and (best is None or error < best.error):
                best = AccuracyGuarantee(
                    n, beta, alpha, accuracy.queries, accuracy.max_classifiers, ladder, error
                )
    return best


def _error_bound(n: int, beta: float, questions: int, ladder: Ladder) -> float:
    """Bound the leaderboard error on classifiers whose values spread over 1/2."""
    bound = certificate(
        n=n, questions=questions, changes=None, mechanism=ladder, beta=beta, risk_range=RISK_RANGE
    )
    if bound.nats is None:
        raise ValueError("the transcripts of this Ladder cannot be counted")
    return max(map(abs, bound.sample)) + math.sqrt(bound.nats / (2 * n)) / 2
