"""Formats of the database, and the steps from each to the next.

A new database is made in format 1 and takes all steps, as an old one takes those it lacks; so the
two cannot differ. A step is never changed once it was released.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from ladderboard._version import __version__
from ladderboard.errors import InvalidState
from ladderboard.ledger._sql import TABLES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

__all__ = ["STEPS", "Step", "build", "latest", "lift", "newer", "refuse_unknown"]


class Step(NamedTuple):
    """What leads from format ``before`` to the next, in the words of both databases."""

    before: int
    statements: tuple[str, ...]


STEPS: tuple[Step, ...] = ()


def latest() -> int:
    """Return the format that this version writes."""
    return 1 + len(STEPS)


def build(run: Callable[[str], object], words: Mapping[str, str]) -> None:
    """Make the tables of a new database, in a transaction of the caller's."""
    for table in TABLES:
        run(table.format(**words))
    lift(1, run, words)


def lift(version: int, run: Callable[[str], object], words: Mapping[str, str]) -> None:
    """Take the steps from a format to the latest, in a transaction of the caller's."""
    for step in STEPS:
        if step.before >= version:
            for statement in step.statements:
                run(statement.format(**words))


def refuse_unknown(version: object, where: object, copies: Iterable[str] = ()) -> None:
    """Refuse what a later version wrote: what it means cannot be known here."""
    if not isinstance(version, int) or version < 1:
        raise InvalidState(f"{where} is damaged: its tables are not those of a ledger.")
    if version > latest():
        raise InvalidState(newer(f"{where} was written", version, latest(), copies))


def newer(what: str, version: int, known: int, copies: Iterable[str] = ()) -> str:
    """Return what is said of a newer format, and the way back.

    ``copies`` are the names of all copies that were made before upgrades, each with the number of
    its format; the last that can be read here is named.
    """
    said = (
        f"{what} by a newer Ladderboard, in format {version}; this one knows formats up to "
        f"{known}. Install the newer one again; this is {__version__}."
    )
    for copy in sorted(copies, key=_age, reverse=True):
        if _age(copy)[0] <= known:
            return (
                f"{said} Or put {copy} back, the copy that was made before the upgrade; what was "
                "answered since is not in it, and has to be charged."
            )
    return said


def _age(copy: str) -> tuple[int, int]:
    """Return the format of a copy, and which one it is of those made before the same step."""
    found = re.search(r"before[-_](?:[a-z]+[-_])?(\d+)(?:[-_](\d+))?$", copy)
    return (int(found[1]), int(found[2] or 1)) if found else (0, 0)
