"""The paper's Fig. 2, corrected: any leaderboard answers general queries.

Proofs: docs/explanation/reduction.md.
"""

from __future__ import annotations

import hashlib
import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from ladderboard import _settings
from ladderboard.errors import BudgetSpent, InvalidRisk, InvalidSetting, InvalidState
from ladderboard.mechanisms import OneBit
from ladderboard.mechanisms._vector import read_vector
from ladderboard.reduction._accuracy import Accuracy
from ladderboard.reduction._answer import Answer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import ArrayLike, NDArray

    from ladderboard.mechanisms import Mechanism, Release, Session
    from ladderboard.tape import Tape

__all__ = ["RISK_RANGE", "GeneralEstimator", "check_tells"]

_FORMAT = 1
_HALF = Fraction(1, 2)
_DAMAGED = "The saved state is damaged; give back what estimator.state returned."
# Where the classifiers' values lie: docs/explanation/reduction.md, "The range".
RISK_RANGE = (-0.5, 1.0)


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
        self, mechanism: Mechanism, *, n: int, alpha: float | Fraction, tape: Tape | None = None
    ) -> None:
        self._accuracy = Accuracy.read(alpha)
        self._n = _settings.whole("n", n, at_least=1)
        check_tells(mechanism)
        self._mechanism = mechanism
        self._session: Session = mechanism.start(n=self._n, tape=tape, risk_range=RISK_RANGE)
        self._last: Fraction | None = None
        self._asked = 0
        self._consistent = True

    @classmethod
    def resume(
        cls, mechanism: Mechanism, state: Mapping[str, Any], tape: Tape | None = None
    ) -> GeneralEstimator:
        """Go on from ``estimator.state``, with the mechanism and the tape it was started with."""
        check_tells(mechanism)
        try:
            if state["format"] != _FORMAT:
                raise InvalidState(
                    f"The saved state has format {_settings.shown(state['format'])}; "
                    f"this version reads format {_FORMAT}."
                )
            inner, consistent = state["session"], state["consistent"]
            alpha = Accuracy.read(Fraction(state["alpha"])).alpha
            answered = _settings.whole("answered", state["answered"], at_least=0)
            n = _settings.whole("n", inner["n"], at_least=1)
            if type(consistent) is not bool or tuple(inner["risk_range"]) != RISK_RANGE:
                raise InvalidState(_DAMAGED)
        except InvalidState:
            raise
        except (ArithmeticError, KeyError, TypeError, ValueError) as error:
            raise InvalidState(_DAMAGED) from error
        made = cls(mechanism, n=n, alpha=alpha, tape=tape)
        made._go_on(answered, consistent, mechanism.resume(inner, tape))
        return made

    def _go_on(self, answered: int, consistent: bool, session: Session) -> None:
        """Take up what was read from a saved state."""
        if answered > self.queries:
            raise InvalidState(_DAMAGED)
        self._asked, self._consistent, self._session = answered, consistent, session
        value = session.value if session.questions else None
        self._last = None if value is None else exact(value)

    @property
    def state(self) -> dict[str, Any]:
        """Everything needed to go on later, JSON-able. Secret, as a session's is."""
        return {
            "format": _FORMAT,
            "alpha": str(self._accuracy.alpha),
            "answered": self._asked,
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
    def answered(self) -> int:
        """How many queries were answered."""
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
    def most_classifiers(self) -> int:
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
    ) -> Answer:
        """Ask for the mean of a query.

        Parameters
        ----------
        values
            The query on every example of the sample: numbers in [0, 1].
        training
            Its values on the training data, for ``Thresholdout``.
        context
            Bytes that make the noise of this query its own. The values themselves always do, so
            that another query asked from the same saved state meets other noise.
        """
        read = _read_values("values", values)
        if len(read) != self._n:
            raise InvalidRisk(
                f"values must hold one number for each of the {self._n} examples; got {len(read)}."
            )
        question = self._classifier(read, training)
        if not isinstance(context, bytes):
            raise InvalidSetting(f"context must be bytes; got {type(context).__name__}.")
        self._refuse_if_spent()
        # Counted before the mechanism says anything: a query that breaks off has been asked.
        self._asked += 1
        mark = hashlib.blake2b(read.tobytes() + context, digest_size=32).digest()
        return self._search(lambda shift: self._session.ask(context=mark, **question(shift)))

    def _search(self, give: Callable[[Fraction], Release]) -> Answer:
        """Lower the classifiers rung by rung until what is said crosses the threshold."""
        alpha, before, used = self._accuracy.alpha, self._threshold, 0
        crossed = False
        shift = before
        for _ in range(self._accuracy.rungs + 1):
            said = give(shift).value
            used += 1
            if said is None:
                raise InvalidSetting("The mechanism told no value; a query cannot be answered.")
            self._last = exact(said)
            crossed = self._last < before - alpha / 2
            if crossed:
                break
            shift -= alpha / 2
        assert self._last is not None  # noqa: S101 - there is at least one rung
        value = 2 * (self._last - shift) if crossed else 1 - 3 * alpha / 4
        self._consistent &= used > 1 and before - self._last < self._accuracy.most
        self._consistent &= -alpha / 2 < value < 1 + alpha / 2
        return Answer(
            value=float(value),
            query=self._asked,
            remaining=self.remaining,
            classifiers=used,
            before=float(before),
            after=float(self._threshold),
            crossed=crossed,
            consistent=self._consistent,
        )

    def _classifier(
        self, values: NDArray[np.float64], training: ArrayLike | None
    ) -> Callable[[Fraction], dict[str, Any]]:
        """Return how the classifier shift + g/2 is put to the mechanism; its mean is exact."""
        mechanism = self._mechanism
        half_training: Fraction | None = None
        if mechanism.needs_training:
            if training is None:
                raise InvalidRisk(
                    f"{mechanism.name} needs training=, the query's values on the training data."
                )
            half_training = _mean(_read_values("training", training)) / 2
        elif training is not None:
            raise InvalidSetting(f"{mechanism.name} does not look at training=; leave it out.")

        def more(shift: Fraction) -> dict[str, Any]:
            return {} if half_training is None else {"training": float(shift + half_training)}

        if mechanism.needs == "losses":
            return lambda shift: {"losses": float(shift) + values / 2, **more(shift)}
        half = _mean(values) / 2
        return lambda shift: {"risk": float(shift + half), **more(shift)}

    def _spent(self) -> bool:
        # While the leaderboard error is below alpha/4 this never happens before the last query.
        return self._threshold < self._accuracy.most

    def _refuse_if_spent(self) -> None:
        if self._asked >= self.queries:
            raise BudgetSpent(
                f"The {self.queries} queries that fit alpha = {self._accuracy} are answered; "
                "a smaller alpha allows more of them, and asks more of the mechanism."
            )
        if self._spent():
            raise BudgetSpent(
                f"The threshold is spent: it is {float(self._threshold):.4g} after "
                f"{self._asked} of {self.queries} queries, and the next may take "
                f"{float(self._accuracy.most):.4g}. The mechanism's leaderboard error reached "
                f"alpha/4 = {float(self._accuracy.alpha / 4):.4g}; a larger alpha, more examples "
                "or a finer mechanism would do."
            )


def exact(value: float) -> Fraction:
    """Return a double as the decimal number it prints as: 0.475 is 475/1000.

    Releases are decimal, and ties between them must be ties.
    """
    if not math.isfinite(value):
        raise InvalidSetting("The mechanism told a value that is not a finite number.")
    return Fraction(repr(float(value)))


def check_tells(mechanism: Any) -> None:
    """Refuse what is not a mechanism, or one that keeps its value to itself."""
    if not callable(getattr(mechanism, "start", None)) or isinstance(mechanism, type):
        raise InvalidSetting(
            "mechanism must be a mechanism, such as Ladder(step=0.01); "
            f"got {_settings.shown(mechanism)}."
        )
    if isinstance(mechanism, OneBit):
        raise InvalidSetting(
            "OneBit tells no value before it is closed, and a value is needed here; take a Ladder."
        )


def _read_values(name: str, values: Any) -> NDArray[np.float64]:
    read = read_vector(name, values)
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


def _mean(values: NDArray[np.float64]) -> Fraction:
    """Return the mean of a vector, rounded once."""
    return Fraction(math.fsum(values.tolist())) / len(values)
