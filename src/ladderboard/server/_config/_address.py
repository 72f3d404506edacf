"""A database's address: whether it is a file, whether it holds a password, and it without one."""

from __future__ import annotations

import re

from ladderboard.board import has_words
from ladderboard.errors import InvalidSetting

__all__ = ["check_database", "file_of", "has_password", "without_password"]

_SQLITE = "sqlite:///"
# Strict: a password with @ or / in it must not be taken for a host.
_ADDRESS = re.compile(
    r"(?P<scheme>[a-z+]+)://(?:(?P<user>[^:@/?#]*)(?P<password>:[^@/?#]*)?@)?"
    r"(?P<place>[^@?#]*)(?:\?(?P<query>[^@#]*))?"
)


def check_database(place: str, address: str) -> None:
    """Refuse words of libpq's, which would be a file with a password in its name."""
    if has_words(address):
        raise InvalidSetting(
            f"{place} must be a path, sqlite:///path or postgresql+psycopg://user@host/name; what "
            "it is now is not shown."
        )


def file_of(address: str) -> str | None:
    """Return the file that a database is; None where it is elsewhere."""
    if address.startswith(_SQLITE):
        return address.removeprefix(_SQLITE)
    return None if "://" in address else address


def has_password(address: str) -> bool:
    """Tell whether an address holds a password, or may hold one.

    >>> has_password("boards.db"), has_password("postgresql://me@there/boards")
    (False, False)
    >>> has_password("postgresql://me:secret@there/boards")
    True
    """
    return without_password(address) != address


def without_password(address: str) -> str:
    """Return an address as anybody may see it.

    >>> without_password("postgresql+psycopg://me:secret@there/boards")
    'postgresql+psycopg://me:***@there/boards'
    >>> without_password("postgresql://me:se/cr@et@there/boards")
    'postgresql://***'
    """
    if has_words(address):
        return "***"
    if file_of(address) is not None:
        return address
    found = _ADDRESS.fullmatch(address)
    if found is None:
        return f"{address.partition('://')[0]}://***"
    user, query = found["user"], found["query"]
    who = "" if user is None else f"{user}{':***' if found['password'] else ''}@"
    asked = "" if query is None else f"?{'&'.join(map(_safe, query.split('&')))}"
    return f"{found['scheme']}://{who}{found['place']}{asked}"


def _safe(part: str) -> str:
    name, equals, value = part.partition("=")
    secret = "password" in name.lower() or "%" in name  # %70assword is password, too
    return f"{name}=***" if equals and value and secret else part
