"""Mechanisms by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ladderboard import _settings
from ladderboard.mechanisms._bootstrap import BootstrapLadder
from ladderboard.mechanisms._exact import Exact
from ladderboard.mechanisms._ladder import Ladder
from ladderboard.mechanisms._mechanism import Mechanism
from ladderboard.mechanisms._noisy import Noisy
from ladderboard.mechanisms._one_bit import OneBit
from ladderboard.mechanisms._parameter_free import ParameterFreeLadder
from ladderboard.mechanisms._rounded import Rounded
from ladderboard.mechanisms._shaky_ladder import ShakyLadder
from ladderboard.mechanisms._thresholdout import Thresholdout

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["MECHANISMS", "mechanism"]

MECHANISMS: dict[str, type[Mechanism]] = {
    each.name: each
    for each in (
        ShakyLadder,
        Ladder,
        ParameterFreeLadder,
        Exact,
        Rounded,
        Noisy,
        Thresholdout,
        BootstrapLadder,
        OneBit,
    )
}


def mechanism(name: str | Mechanism | Mapping[str, Any], /, **settings: Any) -> Mechanism:
    """Return a mechanism from its name and settings, or from what ``describe`` returned.

    >>> mechanism("ladder", step=0.01)
    Ladder(step=0.01, grid=None)
    >>> mechanism(mechanism("ladder", step=0.01).describe())
    Ladder(step=0.01, grid=None)
    """
    return _settings.by_name("mechanism", Mechanism, MECHANISMS, name, settings)
