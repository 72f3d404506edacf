"""Which changes of a board are known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from ladderboard import _settings
from ladderboard.errors import InvalidSetting
from ladderboard.mechanisms import VisibleChange

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True)
class ChangeHistory:
    """The known changes among the first ``asked`` questions.

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
    changes
        All of this with the released values, if known.
    """

    asked: int
    count: int | None
    rounds: tuple[int, ...] | None = None
    owners: tuple[Any, ...] | None = None
    counts: tuple[int, ...] | None = None
    changes: tuple[VisibleChange, ...] | None = None

    @classmethod
    def read(cls, changes: Any, asked: int) -> ChangeHistory:
        """Return the history from the argument ``changes`` of ``certificate``."""
        if changes is None:
            return cls(asked, None)
        if isinstance(changes, Mapping):
            return cls._read_ladders(changes, asked)
        if _is_list(changes):
            changes = tuple(changes)
            if changes and all(isinstance(change, VisibleChange) for change in changes):
                _read_rounds("changes", [change.question for change in changes], asked)
                return cls.from_changes(changes, asked)
            rounds = _read_rounds("changes", changes, asked)
            return cls(asked, len(rounds), rounds)
        return cls(asked, _read_change_count("changes", changes, asked))

    @classmethod
    def from_changes(cls, changes: tuple[VisibleChange, ...], asked: int) -> ChangeHistory:
        """Return the history of changes that a ledger recorded."""
        rounds = tuple(change.question for change in changes)
        owners = tuple(change.ladder for change in changes)
        counts = tuple(Counter(owners).values())
        return cls(asked, len(rounds), rounds, owners, counts, changes)

    @classmethod
    def _read_ladders(cls, changes: Mapping[Any, Any], asked: int) -> ChangeHistory:
        names = {owner: f"changes[{_settings.safe_repr(owner)}]" for owner in changes}
        if all(_is_list(change) for change in changes.values()):
            # Read each value once: it may be an iterator.
            read = {
                owner: _read_rounds(names[owner], owned_changes, asked)
                for owner, owned_changes in changes.items()
            }
            owned = sorted(
                (
                    (round_, owner)
                    for owner, owned_changes in read.items()
                    for round_ in owned_changes
                ),
                key=lambda pair: pair[0],
            )
            rounds = _read_rounds("changes", [round_ for round_, _ in owned], asked)
            owners = tuple(owner for _, owner in owned)
            counts = tuple(map(len, read.values()))
            return cls(asked, len(rounds), rounds, owners, counts)
        counts = tuple(
            _read_change_count(names[owner], owned_changes, asked)
            for owner, owned_changes in changes.items()
        )
        return cls(asked, _read_change_count("changes", sum(counts), asked), counts=counts)


def _is_list(value: Any) -> bool:
    if isinstance(value, str | bytes | Mapping):
        return False
    try:
        iter(value)
    except TypeError:  # a zero-dimensional array has __iter__ and raises
        return False
    return True


def _read_change_count(name: str, value: Any, asked: int) -> int:
    return _settings.integer(name, value, at_least=0, at_most=asked)


def _read_rounds(name: str, values: Iterable[Any], asked: int) -> tuple[int, ...]:
    rounds = tuple(
        _settings.integer(f"a round in {name}", round_, at_least=1, at_most=asked)
        for round_ in values
    )
    if any(after <= before for before, after in pairwise(rounds)):
        raise InvalidSetting(
            f"{name} must be the questions at which the board changed, in rising order; "
            f"got {_settings.safe_repr(list(rounds))}."
        )
    return rounds
