"""Times: what an organiser types, and whole seconds since 1970 UTC.

A time without an offset means another moment to everybody who reads it, so it is refused. "AoE" is
anywhere on earth, UTC-12: a day that ends there has ended everywhere.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from typing import Any

from ladderboard import _settings
from ladderboard.errors import InvalidSetting

__all__ = ["read_time", "write_time"]

_DAY = 86_400
_AOE = -12 * 3600
_YEARS = 1971, 9998  # so that no offset leads out of what can be written
_FARTHEST = 14 * 3600
_TIME = re.compile(
    r"(?P<day>\d{4}-\d{2}-\d{2})"
    r"(?:(?:[Tt]| +)(?P<hour>\d{2}):(?P<minute>\d{2})(?::(?P<second>\d{2})(?:[.,]\d{1,9})?)?)?"
    r" *(?P<offset>[Zz]|UTC|[Aa][Oo][Ee]|[+-]\d{2}(?::?\d{2})?)?",
    re.ASCII,
)


def read_time(name: str, value: Any, *, end: bool = False) -> int:
    """Return a time in seconds since 1970, or refuse it by ``name``; fractions are dropped.

    A day alone is taken with AoE: as its beginning, or as its end where ``end`` says so.

    >>> write_time(read_time("end", "2027-01-31 AoE", end=True))
    '2027-02-01T12:00:00Z'
    >>> read_time("end", "2027-01-31 23:59")
    Traceback (most recent call last):
    ...
    ladderboard.errors.InvalidSetting: end needs an offset, or nobody knows when it is; try
    2027-01-31T23:59:00+01:00, 2027-01-31T23:59:00Z or 2027-01-31 AoE.
    """
    found = _TIME.fullmatch(value.strip()) if isinstance(value, str) else None
    if found is None:
        raise InvalidSetting(
            f"{name} must be a time such as 2027-01-31T23:59:00+01:00, 2027-01-31T23:59:00Z or "
            f"2027-01-31 AoE; got {_settings.shown(value)}."
        )
    day, offset = _day(name, found["day"]), found["offset"]
    timed = found["hour"] is not None
    within = _clock(name, value, found) if timed else _DAY * end
    if offset is None:
        text = found["day"]
        clock = f"{found['hour']}:{found['minute']}:{found['second'] or '00'}" if timed else None
        clock = clock or ("23:59:00" if end else "00:00:00")
        raise InvalidSetting(
            f"{name} needs an offset, or nobody knows when it is; try {text}T{clock}+01:00, "
            f"{text}T{clock}Z or {text} AoE."
        )
    if not timed and offset.lower() != "aoe":
        raise InvalidSetting(
            f"{name} needs a time of day, or AoE for a whole day; got {_settings.shown(value)}."
        )
    return day * _DAY + within - _offset(name, value, offset)


def write_time(seconds: int) -> str:
    """Return seconds since 1970 as ISO 8601 with ``Z``.

    >>> write_time(0)
    '1970-01-01T00:00:00Z'
    """
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _day(name: str, text: str) -> int:
    """Return the day's number since 1970."""
    try:
        day = date.fromisoformat(text)
    except ValueError:
        raise InvalidSetting(f"{name} must be a day there is; got {text!r}.") from None
    if not _YEARS[0] <= day.year <= _YEARS[1]:
        raise InvalidSetting(f"{name} must lie in the years {_YEARS[0]} to {_YEARS[1]}.")
    return day.toordinal() - date(1970, 1, 1).toordinal()


def _clock(name: str, value: str, found: re.Match[str]) -> int:
    """Return the seconds since midnight; 24:00 is the end of the day."""
    hour, minute, second = (int(found[each] or 0) for each in ("hour", "minute", "second"))
    seconds = hour * 3600 + minute * 60 + second
    if minute > 59 or second > 59 or seconds > _DAY:
        raise InvalidSetting(
            f"{name} must have a time of day from 00:00:00 to 24:00:00; "
            f"got {_settings.shown(value)}."
        )
    return seconds


def _offset(name: str, value: str, text: str) -> int:
    """Return how many seconds a place is ahead of UTC."""
    if text.lower() == "aoe":
        return _AOE
    if text.lower() in {"z", "utc"}:
        return 0
    digits = text[1:].replace(":", "").ljust(4, "0")
    ahead = int(digits[:2]) * 3600 + int(digits[2:]) * 60
    if ahead > _FARTHEST or int(digits[2:]) > 59:
        raise InvalidSetting(
            f"{name} must have an offset from -14:00 to +14:00; got {_settings.shown(value)}."
        )
    return -ahead if text[0] == "-" else ahead
