"""Roles, permissions, tokens, and checks of the names that people choose."""

from __future__ import annotations

import base64
import hashlib
import unicodedata
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

from ladderboard.errors import InvalidSetting, NotAllowed

if TYPE_CHECKING:
    from collections.abc import Callable

    from ladderboard.board._rules import Rules

_MAX_NAME_LENGTH = 64
_HIDDEN_CATEGORIES = {
    "Cc",
    "Cf",
    "Cs",
    "Co",
    "Cn",
    "Zl",
    "Zp",
}  # invisible, or changes the direction of writing
_JOINER = "\u200d"  # within emoji
_BLANK_CHARACTERS = set(
    "\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0"
)  # drawn as nothing or as a space
_EMOJI_JOINERS = {_JOINER, "\ufe0e", "\ufe0f"}
# Letters that look like Latin ones, to prevent look-alike team names.
_LOOKALIKES = str.maketrans("аеорсухкмнтвіјѕԁԛԝһοανκρτυχι", "aeopcyxkmhtbijsdqwhoavkptuxi")
_SCORES_ONLY_MESSAGE = (
    "This board takes scores from its evaluators only; teams cannot submit. Ask the organiser how "
    "your model is evaluated."
)


class Role(IntEnum):
    """The role of a caller. Each role may do everything that the roles before it may."""

    PUBLIC = 0
    TEAM = 1
    EVALUATOR = 2
    ORGANISER = 3


class Caller(NamedTuple):
    """The caller of a board: role, team number, and the hash of the token used."""

    role: Role
    team: int | None = None
    credential: bytes | None = None


PUBLIC = Caller(Role.PUBLIC)


def new_token(role: str, salt: Callable[[], bytes]) -> str:
    """Return a new 256-bit token; its prefix names the role, for people and secret scanners."""
    return f"lb_{role}_{base64.urlsafe_b64encode(salt()).decode().rstrip('=')}"


def hash_token(token: str) -> bytes:
    """Return the hash that is stored for a token. One SHA-256 suffices for 256 random bits."""
    return hashlib.sha256(b"ladderboard token\n" + token.encode("utf-8", "replace")).digest()


def check_text(
    label: str, text: str, *, at_most: int = _MAX_NAME_LENGTH, lines: bool = False
) -> str:
    """Return text in NFC, stripped; refuse invisible and direction-changing characters."""
    if not isinstance(text, str):
        raise InvalidSetting(f"{label} must be text.")
    text = unicodedata.normalize("NFC", text).strip()
    if lines:
        text = text.replace("\r\n", "\n")
    allowed = {*_EMOJI_JOINERS, "\n", "\t"} if lines else _EMOJI_JOINERS
    if any(
        (unicodedata.category(character) in _HIDDEN_CATEGORIES and character not in allowed)
        or character in _BLANK_CHARACTERS
        for character in text
    ):
        raise InvalidSetting(f"{label} must have no invisible characters.")
    if len(text) > at_most:
        raise InvalidSetting(f"{label} must have at most {at_most} characters.")
    return text


def check_name(name: str) -> str:
    """Return a team's name in its normal form, or refuse it."""
    name = " ".join(check_text("A team's name", name).split())
    if not comparable_name(name):
        raise InvalidSetting("A team needs a visible name.")
    return name


def comparable_name(name: str) -> str:
    """Return a key that is equal for names that look alike to people.

    >>> comparable_name("Team A") == comparable_name("team\u200d \u0430")
    True
    """
    visible = "".join(character for character in name if character not in _EMOJI_JOINERS)
    folded = unicodedata.normalize("NFKC", visible).casefold().translate(_LOOKALIKES)
    return "".join(folded.split())


ACTIONS = {
    "look": Role.PUBLIC,
    "register": Role.PUBLIC,
    "submit": Role.TEAM,
    "choose": Role.TEAM,
    "own": Role.TEAM,
    "rotate own token": Role.TEAM,
    "see everything": Role.EVALUATOR,
    "teams": Role.ORGANISER,
    "tokens": Role.ORGANISER,
    "run": Role.ORGANISER,
}
"""The lowest role that may do each action."""


def check_permission(caller: Caller, action: str, rules: Rules | None = None) -> None:
    """Raise ``NotAllowed`` unless the caller may do the action under the board's rules.

    Teams submit predictions only: with scores they could simply claim the best ones.
    """
    if caller.role < ACTIONS[action]:
        role = ACTIONS[action].name.lower()
        article = "an" if role[0] in "aeiou" else "a"
        raise NotAllowed(f"This needs {article} {role}'s token.")
    if action in {"choose", "own", "rotate own token"} and caller.team is None:
        raise NotAllowed("This needs a team's own token.")
    scores = action == "submit" and rules is not None and rules.takes == "scores"
    if scores and caller.role < Role.EVALUATOR:
        raise NotAllowed(_SCORES_ONLY_MESSAGE)
