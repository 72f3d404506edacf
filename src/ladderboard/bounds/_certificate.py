"""A certificate: an interval for the best true risk so far, with its confidence and assumptions.

Clients read certificates and compute none, so this module imports neither NumPy nor mechanisms.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ladderboard._formatting import format_confidence, format_ends, format_promise, round_up
from ladderboard.errors import InvalidState

if TYPE_CHECKING:
    from collections.abc import Mapping

NO_THEOREM, AS_PRINTED = "none", "the paper's, as printed"
USEFUL_ERROR = 0.1
"""Wider intervals are of no use for planning."""
NOTHING_TO_PLAN_WITH = (
    "No useful guarantee can be proved in advance at this size. Use the simulated attacks as a "
    "guide."
)

_TRIVIAL = 1e-9
_KNOWN_BEFOREHAND, _NO_MORE = (
    "this was known before the first question",
    "this covers the whole range of risks",
)


@dataclass(frozen=True)
class Certificate:
    """An interval for the best true risk so far, with its confidence and assumptions.

    ``low`` and ``high`` are the ends for min_i R_D(f_i) itself if the released value (or, at close,
    the risk) was given; otherwise for its difference from the released value, min_i R_D(f_i) - R_t.
    They are infinite, written as None, if nothing is promised and a release may be any number.

    Parameters
    ----------
    low, high
        The interval.
    generalisation
        How far it may lie below and above the least risk on the holdout, through sampling error and
        adaptivity.
    sample
        The ends of R_t - min_i R_S(f_i), through step, grid and noise.
    beta
        The probability with which anything stated here may be false.
    nats
        The price of the transcript: n kl(R_S || R_D) is at most this for every model so far, and
        tails have at most probability e^-nats. None if nothing is promised.
    changer_nats
        The same for the model that made the last change; None if it is not needed.
    released
        The released value that it is about; None if it was not given.
    differences
        Whether the interval is for the difference from the released value.
    span
        The range in which risks lie.
    known
        The interval known beforehand, from the possible releases and the range of risks.
    theorem
        The theorem used.
    assumptions
        What must hold for it.
    """

    low: float
    high: float
    generalisation: tuple[float, float]
    sample: tuple[float, float]
    beta: float
    nats: float | None
    differences: bool
    span: tuple[float, float]
    known: tuple[float, float]
    theorem: str
    assumptions: tuple[str, ...]
    changer_nats: float | None = None
    released: float | None = None

    @property
    def overfitting(self) -> float | None:
        """How much too good the released value is at most; None if that is not limited.

        The best model's true risk is at most this much above it.
        """
        value = 0.0 if self.differences else self.released
        if value is None or self.high >= self.known[1] - self._near:
            return None
        return max(self.high - value, 0.0)

    @property
    def hidden(self) -> float | None:
        """By how much a better model may be hidden at most; None if that is not limited.

        No model so far has a true risk that is this much below the released value.
        """
        value = 0.0 if self.differences else self.released
        if value is None or self.low <= self.known[0] + self._near:
            return None
        return max(value - self.low, 0.0)

    @property
    def promise(self) -> str:
        """Both ends in words."""
        return format_promise(self.overfitting, self.hidden)

    @property
    def _near(self) -> float:
        return _TRIVIAL * (self.span[1] - self.span[0])

    @property
    def half_width(self) -> float:
        """Half the length of the interval: the error of its centre, quoted as leaderboard error."""
        return (self.high - self.low) / 2

    @property
    def centre(self) -> float | None:
        """The middle of the interval, a difference or a risk; None if it is unbounded."""
        middle = (self.low + self.high) / 2
        return middle if math.isfinite(middle) else None

    @property
    def error(self) -> float | None:
        """The bound on how far the released value lies from min_i R_D(f_i).

        At least ``half_width``, as the interval need not be symmetric. None for an interval of
        risks.
        """
        return max(-self.low, self.high) if self.differences else None

    @property
    def is_useful(self) -> bool:
        """Whether an interval of differences is narrow enough to plan with."""
        return not self.vacuous and self.error is not None and self.error < USEFUL_ERROR

    @property
    def promises_nothing(self) -> bool:
        """Whether there is no theorem for it."""
        return self.theorem == NO_THEOREM

    @property
    def as_printed(self) -> bool:
        """Whether it is the paper's theorem, as printed."""
        return self.theorem == AS_PRINTED

    @property
    def vacuous(self) -> bool:
        """Whether the interval says no more than was known beforehand."""
        near = self._near
        return self.low <= self.known[0] + near and self.high >= self.known[1] - near

    def describe(self) -> dict[str, Any]:
        """Return all fields, JSON-able; infinite numbers become None."""
        fields = {
            **vars(self),  # all values are immutable, so no copies are needed
            "half_width": self.half_width,
            "centre": self.centre,
            "error": self.error,
            "overfitting": self.overfitting,
            "hidden": self.hidden,
            "vacuous": self.vacuous,
        }
        for name, value in fields.items():
            if isinstance(value, float):
                if not math.isfinite(value):
                    fields[name] = None
            elif name == "assumptions" or (type(value) is tuple and math.isfinite(sum(value))):
                fields[name] = list(value)
            elif type(value) is tuple:
                fields[name] = [end if math.isfinite(end) else None for end in value]
        return fields

    @classmethod
    def read(cls, described: Mapping[str, Any]) -> Certificate:
        """Return the certificate from the result of ``describe``."""
        try:
            nats = described["nats"]
            # Certificates of older versions lack these two.
            changer_nats, released = map(described.get, ("changer_nats", "released"))
            return cls(
                low=_read_end(described["low"], -math.inf),
                high=_read_end(described["high"], math.inf),
                generalisation=_read_ends(described["generalisation"], math.inf),
                sample=_read_ends(described["sample"], -math.inf),
                beta=float(described["beta"]),
                nats=None if nats is None else float(nats),
                differences=bool(described["differences"]),
                span=_read_ends(described["span"], -math.inf),
                known=_read_ends(described["known"], -math.inf),
                theorem=str(described["theorem"]),
                assumptions=tuple(map(str, described["assumptions"])),
                changer_nats=None if changer_nats is None else float(changer_nats),
                released=None if released is None else float(released),
            )
        except (KeyError, TypeError, ValueError):
            raise InvalidState("This is not the result of a certificate's describe().") from None

    def __str__(self) -> str:
        lines = [self._first()]
        if self.overfitting is not None or self.hidden is not None:
            lines.append(f"  {self.promise}")
        if self.vacuous:
            counted = not (self.promises_nothing or self.as_printed)
            lines.append(f"  vacuous: {_KNOWN_BEFOREHAND if counted else _NO_MORE}")
        if self.promises_nothing:
            lines += [f"  {sentence}" for sentence in self.assumptions[:1]]
        else:
            lines.append(
                "  .assumptions lists what must hold; .describe() has the theorem and all numbers."
            )
        return "\n".join(lines)

    def _first(self) -> str:
        quantity, ends = "the best model's true loss", format_ends(self.low, self.high)
        if self.differences:
            quantity += " less the released value"
        if self.promises_nothing:
            return f"nothing is promised: {quantity} may be anything" + (
                "" if self.differences else f" in {ends}"
            )
        interval = f"{ends} (half width {round_up(self.half_width, 2)})"
        sure = f"with confidence {format_confidence(self.beta)}"
        if self.as_printed:
            sure = f"except with probability of a constant times {self.beta:g}"
        return f"T{quantity[1:]} lies in {interval} {sure}"


def _read_end(value: Any, otherwise: float) -> float:
    return otherwise if value is None else float(value)


def _read_ends(values: Any, first: float) -> tuple[float, float]:
    low, high = values
    return _read_end(low, first), _read_end(high, math.inf)
