"""Losses and metrics by name."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any

from ladderboard import _settings
from ladderboard.errors import InvalidSetting
from ladderboard.losses._absolute import Absolute
from ladderboard.losses._brier import Brier
from ladderboard.losses._custom import Custom
from ladderboard.losses._hamming import Hamming
from ladderboard.losses._log import Log
from ladderboard.losses._loss import Loss
from ladderboard.losses._metric import METRICS, Metric
from ladderboard.losses._pinball import Pinball
from ladderboard.losses._refused import refuse_metric
from ladderboard.losses._shortfall import Shortfall
from ladderboard.losses._squared import Squared
from ladderboard.losses._top_k import TopK
from ladderboard.losses._zero_one import ZeroOne

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["LOSSES", "loss", "metric"]

LOSSES: dict[str, type[Loss]] = {
    each.name: each
    for each in (ZeroOne, TopK, Brier, Log, Absolute, Squared, Pinball, Hamming, Shortfall)
}


def metric(name: str | Loss | Mapping[str, Any] | Callable[..., Any], /, **params: Any) -> Metric:
    """Return a metric: a loss, and how its number is shown.

    >>> metric("mae", range=(0, 100)).shown(0.05)
    5.0
    """
    if not isinstance(name, str):
        found = loss(name, **params)
        return Metric(found.name, found)
    if ":" in name:
        return Metric(name, _build(Custom, "custom", {"function": name, **params}))
    plain = name.strip().lower().replace("-", "_").replace(" ", "_")
    # scikit-learn says accuracy_score and neg_log_loss.
    for key in (plain, plain.removesuffix("_score"), plain.removeprefix("neg_")):
        if key in LOSSES:
            return Metric(key, _build(LOSSES[key], key, params))
        if key in METRICS:
            behind, shown_as = METRICS[key]
            return Metric(key, _build(LOSSES[behind], key, params), shown_as)
        refuse_metric(key)
    known = sorted({*LOSSES, *METRICS})
    close = difflib.get_close_matches(plain, known, n=1, cutoff=0.75)
    hint = f"did you mean {close[0]!r}?" if close else f"there is {', '.join(known)}."
    raise InvalidSetting(f"There is no loss named {_settings.shown(name)}; {hint}")


def loss(name: str | Loss | Mapping[str, Any] | Callable[..., Any], /, **params: Any) -> Loss:
    """Return a loss.

    Parameters
    ----------
    name
        A name (``"zero_one"``, ``"brier"``, ``"log"`` ...), a metric's name (``"accuracy"``,
        ``"mae"`` ...), ``"module:function"``, a function of (labels, predictions), or what
        ``describe`` returned.
    params
        The loss's parameters, such as ``classes=``, ``range=``, ``clip=``, ``k=``.

    Examples
    --------
    >>> loss("zero_one")(["a", "b"], ["a", "c"]).tolist()
    [0.0, 1.0]
    >>> loss("auc")
    Traceback (most recent call last):
    ...
    ladderboard.errors.NoPerExampleLoss: AUC is not a mean of bounded per-example losses: it
    compares every positive with every negative. The nearest loss that works is "brier".
    """
    if isinstance(name, Loss):
        if params:
            raise InvalidSetting("A loss that is made already takes no further parameters.")
        return name
    if isinstance(name, str):
        return metric(name, **params).loss
    if callable(name):
        return _build(Custom, "custom", {"function": name, **params})
    try:
        settings = {**name, **params}
    except TypeError:
        raise InvalidSetting(
            f"A loss is a name, a function or a description; got {_settings.shown(name)}."
        ) from None
    key = settings.pop("loss", None)
    if key == "custom":
        return _build(Custom, "custom", settings)
    if not isinstance(key, str) or not all(isinstance(each, str) for each in settings):
        raise InvalidSetting('A description of a loss needs its name under "loss".')
    return loss(key, **settings)


def _build(kind: type[Loss], name: str, params: dict[str, Any]) -> Loss:
    try:
        return kind(**params)
    except TypeError as error:
        reason = str(error).removeprefix(f"{kind.__name__}.__init__() ")
        raise InvalidSetting(f"The loss {name!r} {reason}.") from None
