"""Classes: the values that a label or a prediction may have. They are public.

They are declared, or taken from the labels when a guard or a board is made, and published then.
"""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from ladderboard import _settings
from ladderboard.errors import InvalidInput, InvalidLabels, InvalidSetting
from ladderboard.losses._arrays import read_values, refuse_rows

if TYPE_CHECKING:
    from typing import Literal

    from numpy.typing import NDArray

__all__ = ["ANY", "Classes", "class_index", "classes_of", "known", "read_classes", "spelled"]

Classes = tuple[Any, ...]
ANY = "any"
"""In place of classes: any value is accepted, and what is not a label is wrong."""

_MOST = 1_000  # classes that are taken from labels
_OFTEN = 5  # labels of a class that is taken from them: fewer may be one person's answer
_FEW = 16  # comparing with each class takes longer than sorting if there are more
_SPELLED = 3


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


def classes_of(labels: NDArray[Any], also: NDArray[Any] | None = None) -> Classes | None:
    """Return the classes of ``also``, which is public, if it has every label; else the labels'.

    None where labels may be answers rather than classes: there are more than 1,000, one of them has
    fewer than five labels, or there are fewer than two.

    >>> classes_of(np.array([1, 0] * 5)), classes_of(np.arange(10))
    ((0, 1), None)
    """
    if labels.ndim != 1 or labels.dtype.kind == "O":
        return None
    values, counts = np.unique(labels, return_counts=True)
    found = values.tolist()
    if also is not None and also.ndim == 1 and also.dtype.kind != "O":
        shown = np.unique(also).tolist()
        if set(found) <= set(shown) and 2 <= len(shown) <= _MOST:
            return tuple(shown)
    return tuple(found) if 2 <= len(found) <= _MOST and counts.min() >= _OFTEN else None


def known(values: NDArray[Any], classes: Classes) -> NDArray[np.bool_]:
    """Return which values are classes; numbers by value, text by its characters."""
    if len(classes) <= _FEW and values.dtype.kind in "bif":
        numbers = [each for each in classes if not isinstance(each, str)]
        if all(abs(each) <= 2**53 for each in numbers):
            found = np.zeros(values.shape, np.bool_)
            for each in numbers:
                found |= values == each
            return found
    if values.dtype.kind == "O":
        return np.array([each in set(classes) for each in values.tolist()], dtype=np.bool_)
    different, at = np.unique(values, return_inverse=True)
    allowed = set(classes)
    return np.array([each in allowed for each in different.tolist()], dtype=np.bool_)[at]


def spelled(unknown: NDArray[Any], classes: Classes) -> str:
    """Return values that are not classes, each with the class that it may stand for.

    >>> spelled(np.array(["Cat", "bird"]), ("cat", "dog"))
    "'Cat' (did you mean 'cat'?), 'bird'"
    """
    if unknown.dtype.kind == "O":
        some = list(dict.fromkeys(unknown.tolist()))
    else:
        _, first = np.unique(unknown, return_index=True)
        some = unknown[np.sort(first)].tolist()
    told = []
    for each in some[:_SPELLED]:
        near = _nearest(each, classes)
        hint = "" if near is None else f" (did you mean {_settings.shown(near)}?)"
        told.append(f"{_settings.shown(each)}{hint}")
    return ", ".join(told) + (", ..." if len(some) > _SPELLED else "")


def _nearest(value: Any, classes: Classes) -> Any:
    """Return the class that is written nearly like a value; None if there is none."""
    plain = {_plain(each): each for each in classes}
    if _plain(value) in plain:
        return plain[_plain(value)]
    if not isinstance(value, str):
        return None
    close = difflib.get_close_matches(_plain(value), list(plain)[:_MOST], n=1, cutoff=0.7)
    return plain[close[0]] if close else None


def _plain(value: Any) -> str:
    """Return how a value is written, without capitals and blanks; 1.0 is 1."""
    text = str(value).strip().casefold()[:100]
    return text.removesuffix(".0")
