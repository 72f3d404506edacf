"""The line-up: mechanisms by name, with settings that fit the size of the holdout."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ladderboard import mechanisms as m

if TYPE_CHECKING:
    from collections.abc import Callable

    from ladderboard.mechanisms import Mechanism

__all__ = ["LINEUP"]


def _unit(n: int) -> float:
    """Return 1/sqrt(n), the size of luck."""
    return 1 / math.sqrt(n)


def _paper(n: int, k: int) -> Mechanism:
    """Return Fig. 1 with Eq. (2), also where the theorem says nothing about these sizes."""
    found = m.paper_settings(n, k, 0.05)
    scale = found.noise_scale
    return m.ShakyLadder(
        step=found.step, compare_noise=scale, release_noise=scale, law="laplace", origin=found
    )


LINEUP: dict[str, Callable[[int, int], Mechanism]] = {
    "exact": lambda *_: m.Exact(),
    "rounded": lambda *_: m.Rounded(digits=2),
    # The paper's 3/sqrt(n) on the correlation is half as much on the risk.
    "noisy": lambda n, *_: m.Noisy(sd=1.5 * _unit(n)),
    "ladder_tiny": lambda n, *_: m.Ladder(step=0.01 * _unit(n)),
    "ladder": lambda n, *_: m.Ladder(step=_unit(n)),
    "parameter_free_ladder": lambda *_: m.ParameterFreeLadder(),
    "one_bit": lambda n, *_: m.OneBit(step=_unit(n)),
    # Its own defaults at n = 10,000.
    "thresholdout": lambda n, *_: m.Thresholdout(threshold=4 * _unit(n), noise=_unit(n)),
    "bootstrap_ladder": lambda *_: m.BootstrapLadder(),
    "shaky_ladder_paper": _paper,
    "shaky_ladder": lambda n, k: m.ShakyLadder.calibrated(n=n, questions=k),
}
