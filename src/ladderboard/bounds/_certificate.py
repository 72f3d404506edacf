"""A certificate: a bound with its confidence and its assumptions."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

__all__ = ["Certificate"]

_TRIVIAL = 1e-9


@dataclass(frozen=True)
class Certificate:
    """Where the best true risk so far lies, with which confidence, on which assumptions.

    ``low`` and ``high`` are the ends for min_i R_D(f_i) itself if the released value (or, at close,
    the risk) was given; otherwise for its difference from the released value, min_i R_D(f_i) - R_t.

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
    theorem: str
    assumptions: tuple[str, ...]

    @property
    def half_width(self) -> float:
        """Half the length of the interval: what is quoted as the leaderboard error."""
        return (self.high - self.low) / 2

    @property
    def vacuous(self) -> bool:
        """Whether the interval says nothing that was not known beforehand."""
        low, high = self._whole
        near = _TRIVIAL * (high - low)
        return self.low <= low + near and self.high >= high - near

    @property
    def _whole(self) -> tuple[float, float]:
        low, high = self.span
        return (low - high, high - low) if self.differences else (low, high)

    def describe(self) -> dict[str, Any]:
        """Return everything, JSON-able."""
        written = asdict(self)
        for name in ("generalisation", "sample", "span", "assumptions"):
            written[name] = list(written[name])
        return {**written, "half_width": self.half_width, "vacuous": self.vacuous}

    def __str__(self) -> str:
        what = "min true risk - released value" if self.differences else "min true risk"
        interval = f"[{self.low:.4g}, {self.high:.4g}] (half width {self.half_width:.4g})"
        lines = [f"{what} in {interval} with probability at least {1 - self.beta:g}"]
        if self.vacuous:
            lines.append("  vacuous: this was known beforehand")
        below, above = self.generalisation
        price = "" if self.nats is None else f", {self.nats:.1f} nats"
        least, most = self.sample
        lines += [
            f"  generalisation: {below:.4g} below, {above:.4g} above{price}",
            f"  released value - least risk on the holdout: in [{least:.4g}, {most:.4g}]",
            f"  theorem: {self.theorem}",
            *(f"  - {sentence}" for sentence in self.assumptions),
        ]
        return "\n".join(lines)
