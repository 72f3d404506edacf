"""A finding: what a doctor says about one thing, in one line."""

from __future__ import annotations

from typing import Literal, NamedTuple

__all__ = ["Finding", "note", "ok", "problem"]


class Finding(NamedTuple):
    """What was looked at, how it is, what was seen, and what to do where it is not well."""

    about: str
    state: Literal["ok", "note", "problem"]
    said: str
    do: str | None = None


def ok(about: str, said: str) -> Finding:
    """Return that something is well."""
    return Finding(about, "ok", said)


def note(about: str, said: str, do: str | None = None) -> Finding:
    """Return something to know or to think about."""
    return Finding(about, "note", said, do)


def problem(about: str, said: str, do: str) -> Finding:
    """Return something to mend, with how."""
    return Finding(about, "problem", said, do)
