"""Mechanisms by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ladderboard import _settings
from ladderboard.mechanisms._base import Mechanism
from ladderboard.mechanisms._by_example import BootstrapLadder, ParameterFreeLadder
from ladderboard.mechanisms._growing import GrowingLadder
from ladderboard.mechanisms._ladder import Ladder, OneBit
from ladderboard.mechanisms._scores import Exact, Noisy, Rounded
from ladderboard.mechanisms._shaky_ladder import ShakyLadder
from ladderboard.mechanisms._thresholdout import Thresholdout

if TYPE_CHECKING:
    from collections.abc import Mapping

MECHANISMS: dict[str, type[Mechanism]] = {
    mechanism_class.name: mechanism_class
    for mechanism_class in (
        GrowingLadder,
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
    """Return a mechanism from its name and settings, or from the result of ``describe``.

    >>> mechanism("ladder", step=0.01)
    Ladder(step=0.01, grid=None)
    >>> mechanism(mechanism("ladder", step=0.01).describe())
    Ladder(step=0.01, grid=None)
    """
    return _settings.from_registry("mechanism", Mechanism, MECHANISMS, name, settings)
