"""Analysts by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ladderboard import _settings
from ladderboard.analysts._abstaining import AbstainingAttack
from ladderboard.analysts._analyst import Analyst
from ladderboard.analysts._hyperparameters import HyperparameterSearch
from ladderboard.analysts._log_loss import LogLossDecoder
from ladderboard.analysts._majority import MajorityAttack
from ladderboard.analysts._multiclass import MulticlassAttack
from ladderboard.analysts._one_bit import OneBitAttack
from ladderboard.analysts._plateau import Plateau
from ladderboard.analysts._random_search import RandomSearch
from ladderboard.analysts._shifted import ShiftedMajority
from ladderboard.analysts._steady import SteadyImprovement
from ladderboard.analysts._sybil import SybilAttack

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["ANALYSTS", "analyst"]

ANALYSTS: dict[str, type[Analyst]] = {
    each.name: each
    for each in (
        MajorityAttack,
        ShiftedMajority,
        SybilAttack,
        AbstainingAttack,
        MulticlassAttack,
        LogLossDecoder,
        OneBitAttack,
        SteadyImprovement,
        Plateau,
        RandomSearch,
        HyperparameterSearch,
    )
}


def analyst(name: str | Analyst | Mapping[str, Any], /, **settings: Any) -> Analyst:
    """Return an analyst from its name and settings, or from what ``describe`` returned.

    >>> analyst("majority", keep="better")
    MajorityAttack(keep='better', easy=0.0)
    >>> analyst(analyst("plateau", risk=0.3).describe())
    Plateau(risk=0.3)
    """
    return _settings.by_name("analyst", Analyst, ANALYSTS, name, settings)
