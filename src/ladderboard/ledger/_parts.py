"""Tables that another room keeps in a ledger's database, with a format of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ladderboard.errors import InvalidState
from ladderboard.ledger._migrate import newer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from ladderboard.ledger._link import Link

__all__ = ["Part", "lift_part", "part_format"]


class Part(NamedTuple):
    """A room's tables: the statements that lead from each format to the next, the first from none.

    A step is never changed once it was released. A process of an older version that still runs is
    kept from writing by the ledger's own format only: a step that it must not write beside comes
    with one of the ledger's.
    """

    name: str
    steps: tuple[tuple[str, ...], ...]


def part_format(
    link: Link, part: Part, tables: set[str], copies: Callable[[str], Iterable[str]]
) -> int:
    """Return the format of a part's tables, 0 where there are none.

    ``copies`` returns the names of the copies that were made before the part's steps.
    """
    if f"{part.name}_format" not in tables:
        return 0
    rows = link.run(f"SELECT version FROM main.{part.name}_format")  # noqa: S608 - our own name
    version = rows[0][0] if len(rows) == 1 else None
    if not isinstance(version, int) or version < 1:
        raise InvalidState(f"The database is damaged: the tables of {part.name} are not whole.")
    if version > len(part.steps):
        what, known = f"The tables of {part.name} were written", len(part.steps)
        raise InvalidState(newer(what, version, known, copies(part.name)))
    return version


def lift_part(link: Link, part: Part, version: int, words: Mapping[str, str]) -> None:
    """Take the steps from a format to the latest, in a transaction of the caller's."""
    if not version:
        link.run(
            "CREATE TABLE main.{name}_format (version {whole} NOT NULL)".format(
                name=part.name, **words
            )
        )
        link.run(f"INSERT INTO main.{part.name}_format (version) VALUES (0)")  # noqa: S608
    for step in part.steps[version:]:
        for statement in step:
            link.run(statement.format(**words))
    link.run(f"UPDATE main.{part.name}_format SET version = ?", (len(part.steps),))  # noqa: S608
