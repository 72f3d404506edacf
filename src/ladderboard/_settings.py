"""Checks of settings: each returns the value as read or raises ``InvalidSetting``."""

from __future__ import annotations

import math
import operator
import re
import sys
from collections.abc import Mapping
from numbers import Real
from typing import Any, TypeVar

from ladderboard._formatting import format_list
from ladderboard.errors import InvalidSetting

T = TypeVar("T")

_MAX_SHOWN_CHARS = 80
_LIBPQ_PASSWORD = re.compile(r"\bpassword\s*=", re.IGNORECASE)


def number(
    name: str,
    value: Any,
    *,
    above: float | None = None,
    at_least: float | None = None,
    below: float | None = None,
    at_most: float | None = None,
) -> float:
    """Return ``value`` as a finite float within its limits; ``name`` is for the error message.

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
            f"{name} must be a number{' ' + rule if rule else ''}; got {safe_repr(value)}."
        )
    return read


def integer(name: str, value: Any, *, at_least: int, at_most: int | None = None) -> int:
    """Return ``value`` as an int within its limits; ``name`` is for the error message.

    A float without a fractional part is accepted, because people write ``n=1e4``.

    >>> integer("n", 1e4, at_least=1)
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
            f"{name} must be a whole number of at least {at_least}{limit}; got {safe_repr(value)}."
        )
    return read


def choice(name: str, value: Any, choices: tuple[str, ...]) -> str:
    """Return ``value`` if it is one of the choices; ``name`` is for the error message.

    >>> choice("law", "gauss", ("gaussian", "laplace"))
    Traceback (most recent call last):
    ...
    ladderboard.errors.InvalidSetting: law must be 'gaussian' or 'laplace'; got 'gauss'.
    """
    if isinstance(value, str) and value in choices:
        return value
    listed = format_list([repr(option) for option in choices], "or")
    raise InvalidSetting(f"{name} must be {listed}; got {safe_repr(value)}.")


def interval(name: str, value: Any, *, within: float = math.inf) -> tuple[float, float]:
    """Return ``value`` as an ordered pair of finite floats; ``name`` is for the error message.

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
        f"{name} must be a pair of numbers, low < high{limit}; got {safe_repr(value)}."
    )


def from_registry(
    word: str, kind: Any, registry: Mapping[str, type[T]], value: Any, settings: dict[str, Any]
) -> T:
    """Return an instance of ``kind``, such as a loss or a mechanism.

    ``value`` is an instance already, a name in the registry, or the output of ``describe()``.
    ``word`` is what messages call it, and the key of the name in ``describe()``.
    """
    if isinstance(value, kind):
        if settings:
            raise InvalidSetting(
                f"The {word} {type(value).__name__} is an instance already; "
                f"pass settings when creating it."
            )
        return value
    if isinstance(value, Mapping):
        settings = {**value, **settings}
        value = settings.pop(word, None)
    if not isinstance(value, str) or value not in registry:
        raise InvalidSetting(
            f"There is no {word} named {safe_repr(value)}; choose from "
            f"{', '.join(sorted(registry))}."
        )
    try:
        return registry[value](**settings)
    except TypeError as error:
        raise InvalidSetting(f"{value} does not take these settings: {error}.") from None


def has_libpq_password(address: str) -> bool:
    """Return whether a libpq connection string has a password: ``host=db password=...``."""
    return "://" not in address and _LIBPQ_PASSWORD.search(address) is not None


def set_frozen(owner: object, **settings: Any) -> None:
    """Set fields of a frozen dataclass from its ``__post_init__``."""
    for name, value in settings.items():
        object.__setattr__(owner, name, value)


def safe_repr(value: Any) -> str:
    """Return ``repr(value)`` for a message: shortened, and never an exception."""
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 - an int of thousands of digits, or any __repr__
        return f"an object of type {type(value).__name__} that cannot be printed"
    return text if len(text) <= _MAX_SHOWN_CHARS else f"{text[:_MAX_SHOWN_CHARS]}..."


def is_loopback(host: str) -> bool:
    """Return whether a connection to a host stays on this machine, where no other host can listen.

    >>> [is_loopback(host) for host in ("localhost", "127.0.0.2", "::1", "0.0.0.0", "a.example")]
    [True, True, True, False, False]
    """
    import ipaddress  # noqa: PLC0415 - a cold start is short without it

    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _real(value: Any) -> float:
    """Return a real number as a float; NaN for anything else."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return math.nan
    try:
        return float(value)
    except OverflowError:  # an int larger than any double
        return math.inf


def is_masked_array(values: Any) -> bool:
    """Return whether this is a masked array of NumPy.

    There is none before its module is imported, which takes half as long as NumPy itself.
    """
    return isinstance(values, getattr(sys.modules.get("numpy.ma"), "MaskedArray", ()))
