"""The response: which of a model's outputs the guard is asked about."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from ladderboard import _settings
from ladderboard.errors import InvalidSetting

__all__ = ["Response", "response_of"]

Response = Literal["predict", "predict_proba"] | Callable[[Any, Any], Any]
_RESPONSES = ("predict", "predict_proba")


def response_of(response: Any) -> Callable[[Any, Any], Any]:
    """Return the function of a model and the holdout's inputs that is meant."""
    if callable(response):
        return response
    if response not in _RESPONSES:
        raise InvalidSetting(
            'response must be "predict", "predict_proba" or a function of the model and the '
            f"holdout's inputs; got {_settings.shown(response)}."
        )
    return lambda model, inputs: getattr(model, response)(inputs)
