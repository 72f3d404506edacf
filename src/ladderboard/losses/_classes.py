"""Declared classes: the only source of what a class is. They never come from hidden labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

import numpy as np

from ladderboard import _settings
from ladderboard.errors import InvalidInput, InvalidLabels, InvalidSetting
from ladderboard.losses._arrays import read_values, refuse_rows

if TYPE_CHECKING:
    from typing import Literal

    from numpy.typing import NDArray

__all__ = ["Classes", "class_index", "read_classes"]

Classes = tuple[Any, ...]


@overload
def read_classes(classes: Any, *, optional: Literal[True]) -> Classes | None: ...
@overload
def read_classes(classes: Any, *, optional: Literal[False] = False) -> Classes: ...
def read_classes(classes: Any, *, optional: bool = False) -> Classes | None:
    """Return declared classes as a tuple of plain values: at least two, all different."""
    if classes is None and optional:
        return None
    rule = "classes must be a list of at least two different labels"
    if classes is None or isinstance(classes, str | bytes):
        raise InvalidSetting(f"{rule}; got {_settings.shown(classes)}.")
    try:
        read = read_values(classes, "classes", InvalidInput)
    except InvalidInput as error:
        raise InvalidSetting(f"{rule}: {error}") from None
    plain: Classes = tuple(read.tolist())
    if read.ndim != 1 or len(plain) < 2 or len(set(plain)) != len(plain):
        raise InvalidSetting(f"{rule}; got {_settings.shown(classes)}.")
    return plain


def class_index(labels: NDArray[Any], classes: Classes) -> NDArray[np.int64]:
    """Return the place of each label among the classes."""
    place = {each: index for index, each in enumerate(classes)}
    found = np.array([place.get(label, -1) for label in labels.tolist()], dtype=np.int64)
    refuse_rows(found < 0, "labels must be among the declared classes=", InvalidLabels)
    return found
