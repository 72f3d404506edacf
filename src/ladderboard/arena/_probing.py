"""A probing: whether one mechanism is faithful at one size."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from ladderboard.arena._lineup import LINEUP
from ladderboard.mechanisms import Ladder, OneBit, ShakyLadder
from ladderboard.reduction import is_faithful

if TYPE_CHECKING:
    from collections.abc import Callable

    from ladderboard.mechanisms import Mechanism

__all__ = ["PROBED", "Probing", "Verdict"]

_SILENT = "tells no value"
# Seconds a question, as measured on one core: mechanisms that see a risk, or every loss.
_BY_RISK, _BY_LOSSES = 1e-5, 1e-4

PROBED: dict[str, Callable[[int, int], Mechanism]] = {
    **LINEUP,
    "ladder_half": lambda n, _k: Ladder(step=0.5 / math.sqrt(n)),
    "ladder_coarse": lambda n, _k: Ladder(step=4 / math.sqrt(n)),
    # Calibrated for longer games than are played here.
    "shaky_ladder, 1,000": lambda n, _k: ShakyLadder.calibrated(n=n, questions=1_000),
    "shaky_ladder, 10,000": lambda n, _k: ShakyLadder.calibrated(n=n, questions=10_000),
}


@dataclass(frozen=True)
class Verdict:
    """What ``is_faithful`` said of a mechanism, with its worst probe.

    ``kept`` of ``games`` had every update within 1/(2 sqrt n) of the risk, and ``within`` is the
    part of ``updates`` that were; ``low`` and ``high`` limit the probability that a game is kept.
    """

    mechanism: str
    n: int
    verdict: str
    questions: int
    games: int
    confidence: float | None = None
    probe: str | None = None
    kept: int | None = None
    low: float | None = None
    high: float | None = None
    updates: int | None = None
    within: float | None = None


@dataclass(frozen=True)
class Probing:
    """All probes against one mechanism."""

    label: str
    n: int
    questions: int
    games: int
    seed: int

    @property
    def _made(self) -> Mechanism:
        return PROBED[self.label](self.n, self.questions)

    @property
    def weight(self) -> float:
        """About how many seconds it takes."""
        slow = self._made.needs == "losses"
        return 5 * self.games * self.questions * (_BY_LOSSES if slow else _BY_RISK)

    def describe(self) -> dict[str, Any]:
        """Who is probed, how much, with which seed."""
        return {"kind": "probing", **vars(self), "mechanism": self._made.describe()}

    def accepts(self, result: Any) -> bool:
        """Tell whether a kept verdict is about this mechanism at this size."""
        try:
            found = Verdict(**result)
        except TypeError:
            return False
        mine = (self.label, self.n, self.questions, self.games)
        return (found.mechanism, found.n, found.questions, found.games) == mine and (
            found.verdict == _SILENT or type(found.kept) is int
        )

    def run(self, threads: int | None) -> dict[str, Any]:
        """Probe."""
        mechanism = self._made
        about = (self.label, self.n)
        if isinstance(mechanism, OneBit):
            return asdict(Verdict(*about, _SILENT, self.questions, self.games))
        found = is_faithful(
            mechanism, self.n, questions=self.questions, games=self.games, seed=self.seed
        )
        worst = found.worst
        return asdict(
            Verdict(
                *about,
                found.verdict,
                self.questions,
                self.games,
                found.confidence,
                worst.probe,
                worst.kept,
                worst.low,
                worst.high,
                worst.updates,
                found.within,
            )
        )
