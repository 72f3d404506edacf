"""Roles, permissions, tokens, and checks of the names that people choose."""

from __future__ import annotations

import base64
import hashlib
import unicodedata
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

from ladderboard.errors import InvalidSetting, NotAllowed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ladderboard.board._rules import Rules

_MAX_NAME_LENGTH = 64
_MAX_LISTED = 10_000
MAIL_ISSUER = "mail"
"""The issuer under which a list's mail addresses are stored."""
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
    """The caller of a board: role, team number, and the hash of the token or session used.

    ``identity`` is the number of a person who signed in.
    """

    role: Role
    team: int | None = None
    credential: bytes | None = None
    identity: int | None = None


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


def parse_people(entries: Iterable[str]) -> list[tuple[str, str]]:
    """Return issuer and subject of each entry of a list; refuse a malformed one.

    >>> parse_people(["Ada@example.edu", "https://orcid.org 0000-0002-1825-0097", ""])
    [('mail', 'ada@example.edu'), ('https://orcid.org', '0000-0002-1825-0097')]
    """
    parsed: dict[tuple[str, str], None] = {}
    for number, entry in enumerate(entries, 1):
        words = check_text(f"Entry {number} of the list", entry, at_most=600).split()
        if not words:
            continue
        if len(words) == 1 and words[0].count("@") == 1 and not words[0].startswith("@"):
            parsed[MAIL_ISSUER, words[0].casefold()] = None
        elif len(words) == 2 and words[0].startswith(("https://", "http://")):
            parsed[words[0], words[1]] = None
        else:
            raise InvalidSetting(
                f"Entry {number} of the list must be a mail address, such as ada@example.edu, or "
                "an issuer and a subject, such as https://orcid.org 0000-0002-1825-0097."
            )
    if len(parsed) > _MAX_LISTED:
        raise InvalidSetting(f"A list has at most {_MAX_LISTED} people; got {len(parsed)}.")
    return list(parsed)


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
