"""Analysts by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ladderboard import _settings
from ladderboard.analysts._game import Analyst
from ladderboard.analysts._honest import Breakthroughs, Plateau, RandomSearch, SteadyImprovement
from ladderboard.analysts._hyperparameters import HyperparameterSearch
from ladderboard.analysts._log_loss import LogLossDecoder
from ladderboard.analysts._majority import MajorityAttack, MulticlassAttack
from ladderboard.analysts._one_bit import OneBitAttack
from ladderboard.analysts._shifted import AbstainingAttack, ShiftedMajority, SybilAttack

if TYPE_CHECKING:
    from collections.abc import Mapping

ANALYSTS: dict[str, type[Analyst]] = {
    kind.name: kind
    for kind in (
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
        Breakthroughs,
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
    return _settings.from_registry("analyst", Analyst, ANALYSTS, name, settings)
