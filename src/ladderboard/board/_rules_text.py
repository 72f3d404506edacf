"""Text that people will see: a title, a name, a description. What could deceive them is refused."""

from __future__ import annotations

import unicodedata
from typing import Any

from ladderboard import _settings
from ladderboard.errors import InvalidSetting

__all__ = ["one_line", "paragraphs"]

# Controls, halves of characters, line and paragraph separators, private use. What is not assigned
# is let through: the next version of Unicode may have it, and a title must be read anywhere.
_NEVER = {"Cc", "Cs", "Zl", "Zp", "Co"}
_JOINERS = "\u200c\u200d"  # without them Persian and many emoji fall apart
_BLANK = "\u115f\u1160\u2800\u3164\uffa0"  # letters that are not there to be seen
_TURNS = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"


def one_line(name: str, value: Any, *, most: int = 100) -> str:
    r"""Return a name or a title in its composed form, or refuse it by ``name``.

    No controls, nothing invisible, nothing that turns the direction of writing.

    >>> one_line("title", " Digits ")
    'Digits'
    >>> one_line("title", "a\u202eb")
    Traceback (most recent call last):
    ...
    ladderboard.errors.InvalidSetting: title must not hold the character U+202E; got 'a\u202eb'.
    """
    text = unicodedata.normalize("NFC", _text(name, value)).strip()
    _check(name, value, text, _hidden)
    if not text or len(text) > most:
        raise InvalidSetting(f"{name} must have 1 to {most} characters; it has {len(text)}.")
    return text


def paragraphs(name: str, value: Any, *, most: int = 100_000) -> str:
    """Return a text of several lines, or refuse it by ``name``."""
    text = _text(name, value).replace("\r\n", "\n")
    _check(name, value, text.replace("\n", "").replace("\t", ""), _deceives)
    if len(text) > most:
        raise InvalidSetting(f"{name} must have at most {most:,} characters; it has {len(text):,}.")
    return text


def _text(name: str, value: Any) -> str:
    if isinstance(value, str):
        return value
    hint = "; put it in quotes" if isinstance(value, int | float) else ""
    raise InvalidSetting(f"{name} must be text; got {_settings.shown(value)}{hint}.")


def _check(name: str, value: str, text: str, rule: Any) -> None:
    for each in text:
        if rule(each):
            raise InvalidSetting(
                f"{name} must not hold the character U+{ord(each):04X}; "
                f"got {_settings.shown(value)}."
            )


def _hidden(each: str) -> bool:
    kind = unicodedata.category(each)
    return kind in _NEVER or each in _BLANK or (kind == "Cf" and each not in _JOINERS)


def _deceives(each: str) -> bool:
    return unicodedata.category(each) in {"Cc", "Cs"} or each in _TURNS
