"""Reading settings: one check and one sentence for every number a person may type."""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping
from numbers import Real
from typing import Any, TypeVar

from ladderboard._formatting import format_list
from ladderboard.errors import InvalidSetting

T = TypeVar("T")

_LONGEST = 80


def number(
    name: str,
    value: Any,
    *,
    above: float | None = None,
    at_least: float | None = None,
    below: float | None = None,
    at_most: float | None = None,
) -> float:
    """Return ``value`` as a finite float within its limits, or refuse it by ``name``.

    >>> number("step", 0.01, above=0)
    0.01
    >>> number("step", "0.01", above=0)
    Traceback (most recent call last):
    ...
    ladderboard.errors.InvalidSetting: step must be a number above 0; got '0.01'.
    """
    limits = [
        f"{word} {limit:g}"
        for word, limit in (
            ("above", above),
            ("at least", at_least),
            ("below", below),
            ("at most", at_most),
        )
        if limit is not None
    ]
    read = _real(value)
    if (
        not math.isfinite(read)
        or (above is not None and read <= above)
        or (at_least is not None and read < at_least)
        or (below is not None and read >= below)
        or (at_most is not None and read > at_most)
    ):
        rule = " and ".join(limits)
        raise InvalidSetting(
            f"{name} must be a number{' ' + rule if rule else ''}; got {shown(value)}."
        )
    return read


def whole(name: str, value: Any, *, at_least: int, at_most: int | None = None) -> int:
    """Return ``value`` as an int within its limits, or refuse it by ``name``.

    A float that is a whole number is taken, because people write ``n=1e4``.

    >>> whole("n", 1e4, at_least=1)
    10000
    """
    read: int | None = None
    if not isinstance(value, bool):
        try:
            read = operator.index(value)
        except TypeError:
            real = _real(value)
            if real.is_integer():
                read = int(real)
    if read is None or read < at_least or (at_most is not None and read > at_most):
        limit = "" if at_most is None else f" and at most {at_most}"
        raise InvalidSetting(
            f"{name} must be a whole number of at least {at_least}{limit}; got {shown(value)}."
        )
    return read


def one_of(name: str, value: Any, choices: tuple[str, ...]) -> str:
    """Return ``value`` if it is one of the choices, or refuse it by ``name``.

    >>> one_of("law", "gauss", ("gaussian", "laplace"))
    Traceback (most recent call last):
    ...
    ladderboard.errors.InvalidSetting: law must be 'gaussian' or 'laplace'; got 'gauss'.
    """
    if isinstance(value, str) and value in choices:
        return value
    listed = format_list([repr(choice) for choice in choices], "or")
    raise InvalidSetting(f"{name} must be {listed}; got {shown(value)}.")


def interval(name: str, value: Any, *, within: float = math.inf) -> tuple[float, float]:
    """Return ``value`` as an ordered pair of finite floats, or refuse it by ``name``.

    >>> interval("range", [0, 10])
    (0.0, 10.0)
    """
    try:
        low, high = map(_real, value)
    except (TypeError, ValueError):
        low = high = math.nan
    if -within <= low < high <= within and math.isfinite(low) and math.isfinite(high):
        return low, high
    limit = "" if math.isinf(within) else f" within [{-within:g}, {within:g}]"
    raise InvalidSetting(
        f"{name} must be a pair of numbers, low < high{limit}; got {shown(value)}."
    )


def by_name(
    word: str, kind: Any, known: Mapping[str, type[T]], given: Any, settings: dict[str, Any]
) -> T:
    """Return a thing of this kind: made already, by name, or from what ``describe`` returned."""
    if isinstance(given, kind):
        if settings:
            raise InvalidSetting(
                f"The {word} {type(given).__name__} is made already; it takes no further settings."
            )
        return given
    if isinstance(given, Mapping):
        settings = {**given, **settings}
        given = settings.pop(word, None)
    if not isinstance(given, str) or given not in known:
        raise InvalidSetting(
            f"There is no {word} named {shown(given)}; there is {', '.join(sorted(known))}."
        )
    try:
        return known[given](**settings)
    except TypeError as error:
        raise InvalidSetting(f"{given} does not take these settings: {error}.") from None


def settle(owner: object, **settings: Any) -> None:
    """Write settings, as they were read, into a frozen dataclass that is being made."""
    for name, value in settings.items():
        object.__setattr__(owner, name, value)


def shown(value: Any) -> str:
    """Return a value as a message may show it: not too long, whatever it is."""
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 - a number of thousands of digits, or a foreign object
        return f"something of type {type(value).__name__} that cannot be printed"
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def _real(value: Any) -> float:
    """Return a real number as a float; NaN for anything else."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return math.nan
    try:
        return float(value)
    except OverflowError:  # a whole number beyond all doubles
        return math.inf
