"""Kinds of settings: how each is read from a TOML file, and from the text of a variable.

A reader gets the name to blame and what was given, and returns the value or refuses. ``typed``
turns text into what TOML would have had; what it cannot read it hands on, for the reader to
refuse.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ladderboard import _settings
from ladderboard.errors import InvalidSetting

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["FLAG", "LIST", "PATH", "RATE", "TEXT", "TOKEN", "URL", "Kind", "number", "whole"]

_TRUE, _FALSE = {"true", "yes", "on", "1"}, {"false", "no", "off", "0"}


class Kind(NamedTuple):
    """What a setting may be: in a word, as a file has it, and as text."""

    word: str
    read: Callable[[str, Any], Any]
    typed: Callable[[str], Any] = str


def _refused(name: str, rule: str, given: Any) -> InvalidSetting:
    return InvalidSetting(f"{name} must be {rule}; got {_settings.shown(given)}.")


def _text(name: str, given: Any) -> str:
    if not isinstance(given, str) or not given or not given.isprintable():
        raise _refused(name, "text on one line", given)
    return given


def _url(name: str, given: Any) -> str:
    if not isinstance(given, str) or not given.startswith(("http://", "https://")):
        raise _refused(name, "like https://boards.example.org", given)
    return _text(name, given)


def _token(name: str, given: Any) -> str:
    if not isinstance(given, str) or not given.isascii() or not given.isprintable():
        raise _refused(name, "one word of plain characters", given)
    if not given or " " in given:
        raise _refused(name, "one word of plain characters", given)
    return given


def _path(name: str, given: Any) -> Path:
    if isinstance(given, os.PathLike):
        given = os.fspath(given)
    if not isinstance(given, str) or not given or "\0" in given:
        raise _refused(name, "a path", given)
    try:
        return Path(given).expanduser()
    except RuntimeError:  # nobody knows whose home is meant
        return Path(given)


def _flag(name: str, given: Any) -> bool:
    if not isinstance(given, bool):
        raise _refused(name, "true or false", given)
    return given


def _typed_flag(text: str) -> bool | str:
    word = text.strip().lower()
    return word in _TRUE if word in _TRUE | _FALSE else text


def _list(name: str, given: Any) -> tuple[str, ...]:
    each = [given] if isinstance(given, str) else given
    if not isinstance(each, list) or not all(isinstance(one, str) and one for one in each):
        raise _refused(name, 'a list such as ["10.0.0.1", "10.0.0.2"]', given)
    return tuple(_text(name, one.strip()) for one in ",".join(each).split(",") if one.strip())


def _rate(name: str, given: Any) -> tuple[int, float]:
    if not isinstance(given, list) or len(given) != 2:
        raise _refused(
            name, "two numbers, how many at once and the seconds until one more, [30, 10]", given
        )
    return (
        _settings.whole(f"The first of {name}", given[0], at_least=1),
        _settings.number(f"The second of {name}", given[1], above=0),
    )


def _typed_number(text: str) -> int | float | str:
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            pass
    return text


def whole(at_least: int, at_most: int | None = None) -> Kind:
    """Return the kind of whole numbers within limits."""

    def read(name: str, given: Any) -> int:
        return _settings.whole(name, given, at_least=at_least, at_most=at_most)

    return Kind("whole number", read, _typed_number)


def number(above: float) -> Kind:
    """Return the kind of numbers above a limit."""
    return Kind(
        "number", lambda name, given: _settings.number(name, given, above=above), _typed_number
    )


TEXT = Kind("text", _text)
URL = Kind("text", _url)
TOKEN = Kind("text", _token)
PATH = Kind("path", _path)
FLAG = Kind("true or false", _flag, _typed_flag)
LIST = Kind("list", _list, lambda text: text.split(","))
RATE = Kind("two numbers", _rate, lambda text: [_typed_number(each) for each in text.split(",")])
