"""Reads titles, descriptions and times in rules.

A time without an offset is ambiguous, so it is refused. "AoE" is anywhere on earth, UTC-12: a day
that has ended there has ended everywhere.
"""

from __future__ import annotations

import re
import unicodedata
from datetime import date
from typing import Any

from ladderboard import _settings
from ladderboard.errors import InvalidSetting

# Controls, surrogates, line and paragraph separators, private use. Unassigned characters pass,
# because a later version of Unicode may assign them.
_FORBIDDEN_CATEGORIES = {"Cc", "Cs", "Zl", "Zp", "Co"}
_JOINERS = "\u200c\u200d"  # without them Persian and many emoji fall apart
_BLANK_CHARACTERS = "\u115f\u1160\u2800\u3164\uffa0"  # letters without a visible shape
_DIRECTION_CHARACTERS = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
_DAY = 86_400
_AOE = -12 * 3600
_YEARS = 1971, 9998  # so that any offset stays within four-digit years
_MAX_OFFSET = 14 * 3600
_TIME_PATTERN = re.compile(
    r"(?P<day>\d{4}-\d{2}-\d{2})"
    r"(?:(?:[Tt]| +)(?P<hour>\d{2}):(?P<minute>\d{2})(?::(?P<second>\d{2})(?:[.,]\d{1,9})?)?)?"
    r" *(?P<offset>[Zz]|UTC|[Aa][Oo][Ee]|[+-]\d{2}(?::?\d{2})?)?",
    re.ASCII,
)


def read_short_text(name: str, value: Any, *, max_length: int = 100) -> str:
    r"""Return a name or a title in NFC, or refuse it; ``name`` is its name in messages.

    It must have no control, invisible or direction-changing characters.

    >>> read_short_text("title", " Digits ")
    'Digits'
    >>> read_short_text("title", "a\u202eb")
    Traceback (most recent call last):
    ...
    ladderboard.errors.InvalidSetting: title must not hold the character U+202E; got 'a\u202eb'.
    """
    text = unicodedata.normalize("NFC", _check_is_text(name, value)).strip()
    _check_characters(name, value, text, _is_hidden)
    if not text or len(text) > max_length:
        raise InvalidSetting(f"{name} must have 1 to {max_length} characters; it has {len(text)}.")
    return text


def read_long_text(name: str, value: Any, *, max_length: int = 100_000) -> str:
    """Return a text of several lines, or refuse it; ``name`` is its name in messages."""
    text = _check_is_text(name, value).replace("\r\n", "\n")
    _check_characters(name, value, text.replace("\n", "").replace("\t", ""), _is_deceptive)
    if len(text) > max_length:
        raise InvalidSetting(
            f"{name} must have at most {max_length:,} characters; it has {len(text):,}."
        )
    return text


def _check_is_text(name: str, value: Any) -> str:
    if isinstance(value, str):
        return value
    hint = "; put it in quotes" if isinstance(value, int | float) else ""
    raise InvalidSetting(f"{name} must be text; got {_settings.safe_repr(value)}{hint}.")


def _check_characters(name: str, value: str, text: str, rule: Any) -> None:
    for character in text:
        if rule(character):
            raise InvalidSetting(
                f"{name} must not hold the character U+{ord(character):04X}; "
                f"got {_settings.safe_repr(value)}."
            )


def _is_hidden(character: str) -> bool:
    kind = unicodedata.category(character)
    return (
        kind in _FORBIDDEN_CATEGORIES
        or character in _BLANK_CHARACTERS
        or (kind == "Cf" and character not in _JOINERS)
    )


def _is_deceptive(character: str) -> bool:
    return unicodedata.category(character) in {"Cc", "Cs"} or character in _DIRECTION_CHARACTERS


def read_time(name: str, value: Any, *, end: bool = False) -> int:
    """Return a time in seconds since 1970, without fractions, or refuse it.

    ``name`` is its name in messages. A day alone needs AoE; it is the day's beginning, or with
    ``end`` the day's end.

    >>> from ladderboard._formatting import format_time
    >>> format_time(read_time("end", "2027-01-31 AoE", end=True))
    '2027-02-01T12:00:00Z'
    >>> read_time("end", "2027-01-31 23:59")
    Traceback (most recent call last):
    ...
    ladderboard.errors.InvalidSetting: end needs an offset; try
    2027-01-31T23:59:00+01:00, 2027-01-31T23:59:00Z or 2027-01-31 AoE.
    """
    match = _TIME_PATTERN.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None:
        raise InvalidSetting(
            f"{name} must be a time such as 2027-01-31T23:59:00+01:00, 2027-01-31T23:59:00Z or "
            f"2027-01-31 AoE; got {_settings.safe_repr(value)}."
        )
    day, offset = _day_number(name, match["day"]), match["offset"]
    timed = match["hour"] is not None
    within = _seconds_of_day(name, value, match) if timed else _DAY * end
    if offset is None:
        text = match["day"]
        clock = f"{match['hour']}:{match['minute']}:{match['second'] or '00'}" if timed else None
        clock = clock or ("23:59:00" if end else "00:00:00")
        raise InvalidSetting(
            f"{name} needs an offset; try {text}T{clock}+01:00, {text}T{clock}Z or {text} AoE."
        )
    if not timed and offset.lower() != "aoe":
        raise InvalidSetting(
            f"{name} needs a time of day, or AoE for a whole day; got {_settings.safe_repr(value)}."
        )
    return day * _DAY + within - _offset_seconds(name, value, offset)


def _day_number(name: str, text: str) -> int:
    """Return the day's number since 1970."""
    try:
        day = date.fromisoformat(text)
    except ValueError:
        raise InvalidSetting(f"{name} must be a valid date; got {text!r}.") from None
    if not _YEARS[0] <= day.year <= _YEARS[1]:
        raise InvalidSetting(f"{name} must lie in the years {_YEARS[0]} to {_YEARS[1]}.")
    return day.toordinal() - date(1970, 1, 1).toordinal()


def _seconds_of_day(name: str, value: str, match: re.Match[str]) -> int:
    """Return the seconds since midnight; 24:00 is the end of the day."""
    hour, minute, second = (int(match[unit] or 0) for unit in ("hour", "minute", "second"))
    seconds = hour * 3600 + minute * 60 + second
    if minute > 59 or second > 59 or seconds > _DAY:
        raise InvalidSetting(
            f"{name} must have a time of day from 00:00:00 to 24:00:00; "
            f"got {_settings.safe_repr(value)}."
        )
    return seconds


def _offset_seconds(name: str, value: str, text: str) -> int:
    """Return an offset from UTC in seconds."""
    if text.lower() == "aoe":
        return _AOE
    if text.lower() in {"z", "utc"}:
        return 0
    digits = text[1:].replace(":", "").ljust(4, "0")
    ahead = int(digits[:2]) * 3600 + int(digits[2:]) * 60
    if ahead > _MAX_OFFSET or int(digits[2:]) > 59:
        raise InvalidSetting(
            f"{name} must have an offset from -14:00 to +14:00; got {_settings.safe_repr(value)}."
        )
    return -ahead if text[0] == "-" else ahead
