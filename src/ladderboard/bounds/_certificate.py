"""A certificate: a bound with its confidence and its assumptions, and the sentences it carries."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ladderboard._formatting import format_confidence, round_down, round_up
from ladderboard.errors import InvalidState
from ladderboard.mechanisms import (
    BootstrapLadder,
    Exact,
    Mechanism,
    Noisy,
    ParameterFreeLadder,
    ShakyLadder,
    Thresholdout,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

NONE, AS_PRINTED = "none", "the paper's, as printed"

_TRIVIAL = 1e-9
_KNOWN, _NO_MORE = "this was known beforehand", "this says no more than the range of risks does"

_ZERO_ONE = (
    "has a finite transcript under zero-one loss only, without weights and groups and with risks "
    "in [0, 1]."
)
UNPROMISED: dict[type[Mechanism], str] = {
    Noisy: "Noisy says an unrounded number about every model; its transcripts cannot be counted.",
    Thresholdout: "Thresholdout says unrounded numbers; its transcripts cannot be counted.",
    BootstrapLadder: (
        "BootstrapLadder resamples the holdout; nothing is proved about its releases."
    ),
    ShakyLadder: (
        "A ShakyLadder without a grid says unrounded numbers; give it a grid, or take "
        "ShakyLadder.from_paper where the paper's theorem speaks."
    ),
    Exact: f"Exact {_ZERO_ONE}",
    ParameterFreeLadder: f"ParameterFreeLadder {_ZERO_ONE}",
}

PAPER = (
    "This is the paper's bound with the constants of its proof, taken as printed: its failure "
    "probability is beta only up to a constant, and the privacy lemma it rests on does not follow "
    "with the stated noise (the documentation's errata, 5)."
)
_WHEN = (
    "With probability at least {} over the holdout and the tape, this holds at every time at "
    "once, for certificates of this form on this board."
)
_SAMPLE = (
    "The labels are an independent sample, and models see the holdout only through what the "
    "mechanism says: no other output, and nothing that the owner does in public, depends on the "
    "labels."
)
_INPUTS = (
    "If the test inputs are public, R_D is the input-conditional risk, the mean over the holdout's "
    "inputs of the expected loss, with labels independent given inputs; if labels are a function "
    "of the inputs this says nothing about new data."
)
CORRECTED = (
    "Labels were corrected: each new label depends on its own example, its old label and what is "
    "public, and on no other label."
)


@dataclass(frozen=True)
class Certificate:
    """Where the best true risk so far lies, with which confidence, on which assumptions.

    ``low`` and ``high`` are the ends for min_i R_D(f_i) itself if the released value (or, at close,
    the risk) was given; otherwise for its difference from the released value, min_i R_D(f_i) - R_t.
    Where a release may be any number and nothing is promised they are infinite, written None.

    Parameters
    ----------
    low, high
        The interval.
    generalisation
        How far below and above the least risk on the holdout it may lie: what the data's luck and
        peeking add.
    sample
        The ends of R_t - min_i R_S(f_i): what step, grid and noise add.
    beta
        The probability with which anything stated here may be false.
    nats
        The price of the transcript: n kl(R_S || R_D) is at most this for every model so far.
        Infinite, written None, where nothing is promised.
    differences
        Whether the interval is one of differences.
    span
        The range in which risks lie.
    known
        The interval that was known beforehand: ends of what can be said and of where risks lie.
    theorem
        What was used.
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

    @property
    def half_width(self) -> float:
        """Half the length of the interval: the error of its centre, quoted as leaderboard error."""
        return (self.high - self.low) / 2

    @property
    def centre(self) -> float | None:
        """The middle of the interval, a difference or a risk; None where it has no ends."""
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
    def vacuous(self) -> bool:
        """Whether the interval says nothing that was not known beforehand."""
        near = _TRIVIAL * (self.span[1] - self.span[0])
        return self.low <= self.known[0] + near and self.high >= self.known[1] - near

    def describe(self) -> dict[str, Any]:
        """Return everything, JSON-able: what is infinite is None."""
        written = {
            **vars(self),  # nothing in it can change, so nothing need be copied
            "half_width": self.half_width,
            "centre": self.centre,
            "error": self.error,
            "vacuous": self.vacuous,
        }
        return {name: _plain(value) for name, value in written.items()}

    @classmethod
    def read(cls, described: Mapping[str, Any]) -> Certificate:
        """Return the certificate that ``describe`` wrote, ends at infinity included."""
        try:
            nats = described["nats"]
            return cls(
                low=_end(described["low"], -math.inf),
                high=_end(described["high"], math.inf),
                generalisation=_ends(described["generalisation"], math.inf),
                sample=_ends(described["sample"], -math.inf),
                beta=float(described["beta"]),
                nats=None if nats is None else float(nats),
                differences=bool(described["differences"]),
                span=_ends(described["span"], -math.inf),
                known=_ends(described["known"], -math.inf),
                theorem=str(described["theorem"]),
                assumptions=tuple(map(str, described["assumptions"])),
            )
        except (KeyError, TypeError, ValueError):
            raise InvalidState("This is not what a certificate's describe returned.") from None

    def __str__(self) -> str:
        lines = [self._first()]
        if self.vacuous:
            counted = self.theorem not in {NONE, AS_PRINTED}
            lines.append(f"  vacuous: {_KNOWN if counted else _NO_MORE}")
        if self.theorem != NONE:
            below, above = self.generalisation
            price = "" if self.nats is None else f", {self.nats:.1f} nats"
            least, most = self.sample
            # The parts are told to four digits, the interval so that it stays true.
            lines += [
                f"  generalisation: {below:.4g} below, {above:.4g} above{price}",
                f"  released value - least risk on the holdout: in [{least:.4g}, {most:.4g}]",
            ]
        lines += [
            f"  theorem: {self.theorem}",
            *(f"  - {sentence}" for sentence in self.assumptions),
        ]
        return "\n".join(lines)

    def _first(self) -> str:
        what = "min true risk - released value" if self.differences else "min true risk"
        if self.theorem == NONE:
            return f"nothing is promised: {what} may be anything" + (
                "" if self.differences else f" in [{round_down(self.low)}, {round_up(self.high)}]"
            )
        half_width = round_up(self.half_width)
        interval = f"[{round_down(self.low)}, {round_up(self.high)}] (half width {half_width})"
        if self.theorem == AS_PRINTED:
            return f"{what} in {interval} but for a probability of a constant times {self.beta:g}"
        return f"{what} in {interval} with probability at least {format_confidence(self.beta)}"


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _end(written: Any, otherwise: float) -> float:
    return otherwise if written is None else float(written)


def _ends(written: Any, first: float) -> tuple[float, float]:
    low, high = written
    return _end(low, first), _end(high, math.inf)


def sentences(
    beta: float | None, *, ladders: int, private: bool, noisy: bool, closed: bool, rounds: bool
) -> tuple[str, ...]:
    """Return what must hold for a certificate; beta is None where it is not exactly kept."""
    said = [] if beta is None else [_WHEN.format(format_confidence(beta))]
    said += [_SAMPLE, _INPUTS]
    if rounds:
        said.append("That rounds, and not only their number, would be given was fixed beforehand.")
    if noisy:
        said.append("Noise is drawn from one tape, independent of the data, and never redrawn.")
    if private:
        said.append(
            f"No team sees anything of the releases of another, the board's best included; the "
            f"failure probability is shared among {ladders} teams, and this is about one of them."
        )
    elif ladders > 1:
        said.append(
            f"All visible changes on all {ladders} ladders count together, and questions are "
            "numbered over all ladders: teams may see each other's releases, and may collude."
        )
    if closed:
        said.append(
            "The exact risk on the holdout was used. It depends on the labels, so this may be "
            "published only when no question will follow."
        )
    return tuple(said)
