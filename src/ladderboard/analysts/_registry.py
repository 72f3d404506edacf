"""Analysts by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ladderboard import _settings
from ladderboard.analysts._analyst import Analyst
from ladderboard.analysts._hyperparameters import HyperparameterSearch
from ladderboard.analysts._log_loss import LogLossDecoder
from ladderboard.analysts._majority import MajorityAttack
from ladderboard.analysts._multiclass import MulticlassAttack
from ladderboard.analysts._one_bit import OneBitAttack
from ladderboard.analysts._plateau import Plateau
from ladderboard.analysts._steady import SteadyImprovement
from ladderboard.errors import InvalidSetting

__all__ = ["ANALYSTS", "analyst"]

ANALYSTS: dict[str, type[Analyst]] = {
    each.name: each
    for each in (
        MajorityAttack,
        MulticlassAttack,
        LogLossDecoder,
        OneBitAttack,
        SteadyImprovement,
        Plateau,
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
    if isinstance(name, Analyst):
        if settings:
            raise InvalidSetting("An analyst that is made already takes no further settings.")
        return name
    if isinstance(name, Mapping):
        settings = {**name, **settings}
        name = settings.pop("analyst", None)
    if not isinstance(name, str) or name not in ANALYSTS:
        raise InvalidSetting(
            f"There is no analyst named {_settings.shown(name)}; "
            f"there is {', '.join(sorted(ANALYSTS))}."
        )
    try:
        return ANALYSTS[name](**settings)
    except TypeError as error:
        raise InvalidSetting(f"{name} does not take these settings: {error}.") from None
