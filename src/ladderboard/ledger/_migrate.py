"""Formats of the database, and the steps from each to the next.

A new database is made in format 1 and takes all steps, as an old one takes those it lacks; so the
two cannot differ. A step is never changed once it was released.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ladderboard.errors import InvalidState
from ladderboard.ledger._sql import TABLES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["STEPS", "Step", "build", "latest", "lift", "refuse_unknown"]


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


def refuse_unknown(version: object, where: object) -> None:
    """Refuse what a later version wrote: what it means cannot be known here."""
    if not isinstance(version, int) or version < 1:
        raise InvalidState(f"{where} is damaged: its tables are not those of a ledger.")
    if version > latest():
        raise InvalidState(
            f"{where} was written by a newer Ladderboard, in format {version}; this one knows "
            f"formats up to {latest()}. Install a newer one to open it."
        )
