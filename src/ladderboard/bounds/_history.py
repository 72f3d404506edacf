"""Histories: when the board was seen to change, as far as one is told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from ladderboard import _settings
from ladderboard.errors import InvalidSetting

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["History"]


@dataclass(frozen=True)
class History:
    """What is known of the changes among the first ``asked`` questions.

    Parameters
    ----------
    asked
        How many questions were asked.
    count
        How many changes there were, or None for the worst case.
    rounds
        The questions at which they came, if known.
    owners
        The ladder of each change, in the order of ``rounds``, if both are known.
    counts
        How many changes each ladder had, if known.
    """

    asked: int
    count: int | None
    rounds: tuple[int, ...] | None = None
    owners: tuple[Any, ...] | None = None
    counts: tuple[int, ...] | None = None

    @classmethod
    def read(cls, changes: Any, asked: int) -> History:
        """Read changes as a person gives them; see ``certificate``."""
        if changes is None:
            return cls(asked, None)
        if isinstance(changes, Mapping):
            return cls._read_ladders(changes, asked)
        if _is_list(changes):
            rounds = _rounds("changes", changes, asked)
            return cls(asked, len(rounds), rounds)
        return cls(asked, _count("changes", changes, asked))

    @classmethod
    def _read_ladders(cls, changes: Mapping[Any, Any], asked: int) -> History:
        names = {owner: f"changes[{_settings.shown(owner)}]" for owner in changes}
        if all(_is_list(each) for each in changes.values()):
            # Each is read once: it may be an iterator.
            read = {owner: _rounds(names[owner], each, asked) for owner, each in changes.items()}
            owned = sorted(
                ((at, owner) for owner, each in read.items() for at in each),
                key=lambda pair: pair[0],
            )
            rounds = _rounds("changes", [at for at, _ in owned], asked)
            owners = tuple(owner for _, owner in owned)
            counts = tuple(map(len, read.values()))
            return cls(asked, len(rounds), rounds, owners, counts)
        counts = tuple(_count(names[owner], each, asked) for owner, each in changes.items())
        return cls(asked, _count("changes", sum(counts), asked), counts=counts)


def _is_list(given: Any) -> bool:
    if isinstance(given, str | bytes | Mapping):
        return False
    try:
        iter(given)
    except TypeError:  # an array of no dimension says it can be iterated over, and cannot
        return False
    return True


def _count(name: str, given: Any, asked: int) -> int:
    return _settings.whole(name, given, at_least=0, at_most=asked)


def _rounds(name: str, given: Iterable[Any], asked: int) -> tuple[int, ...]:
    rounds = tuple(
        _settings.whole(f"a round in {name}", each, at_least=1, at_most=asked) for each in given
    )
    if any(after <= before for before, after in pairwise(rounds)):
        raise InvalidSetting(
            f"{name} must be the questions at which the board changed, in rising order; "
            f"got {_settings.shown(list(rounds))}."
        )
    return rounds
