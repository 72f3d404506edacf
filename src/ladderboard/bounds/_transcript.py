"""Transcripts: what a mechanism can release, and which changes were seen.

Proofs: docs/explanation/certificates.md, "Counting" and "The sample part".
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from ladderboard import _settings
from ladderboard.bounds._counting import FallingValues, GridValues, HiddenValues, ReleaseValues
from ladderboard.bounds._noise import ReleaseDeviation
from ladderboard.errors import InvalidSetting
from ladderboard.mechanisms import (
    UNITS,
    Exact,
    Ladder,
    Mechanism,
    OneBit,
    ParameterFreeLadder,
    Rounded,
    Setup,
    ShakyLadder,
    from_units,
    release_range,
    round_to_multiple,
    to_units,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

ZERO_ONE = "The loss is zero-one, without weights and groups: every risk is a multiple of 1/n."
_CELL_TOLERANCE = 1e-6  # how far, in cells, a value may be from a multiple of 1/n by rounding


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
    """

    asked: int
    count: int | None
    rounds: tuple[int, ...] | None = None
    owners: tuple[Any, ...] | None = None
    counts: tuple[int, ...] | None = None

    @classmethod
    def read(cls, changes: Any, asked: int) -> ChangeHistory:
        """Return the history from the argument ``changes`` of ``certificate``."""
        if changes is None:
            return cls(asked, None)
        if isinstance(changes, Mapping):
            return cls._read_ladders(changes, asked)
        if _is_list(changes):
            rounds = _read_rounds("changes", changes, asked)
            return cls(asked, len(rounds), rounds)
        return cls(asked, _read_change_count("changes", changes, asked))

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


@dataclass(frozen=True)
class Transcript:
    """The possible releases of a mechanism.

    Parameters
    ----------
    values
        The values that changes may have, or all scores if ``every_question``.
    deviation
        How far the released value may lie from the least risk on the holdout.
    lowest, highest, cell
        The range of releases, in cells; a ladder has R_0 besides.
    every_question
        Whether every model gets a score; then questions are counted, not changes.
    assumptions
        Additional assumptions.
    """

    values: ReleaseValues
    deviation: ReleaseDeviation
    lowest: int
    highest: int
    cell: float
    every_question: bool = False
    assumptions: tuple[str, ...] = ()

    def can_release(self, value: float, high: float, changes: int | None) -> bool:
        """Return whether the value is possible after this many changes (None: any number)."""
        ladder = not self.every_question
        # In units, as in the ladder's state: the upper end of the range may lie between two.
        if ladder and not changes and to_units(value) == to_units(high):
            return True
        if ladder and changes == 0:
            return False
        cells = value / self.cell
        near = abs(cells - round(cells)) < _CELL_TOLERANCE * max(1.0, abs(cells) * _CELL_TOLERANCE)
        highest = self.highest
        if ladder and changes:
            highest -= (changes - 1) * self.values.drop
        return near and self.lowest <= round(cells) <= highest

    def difference_range(self, setup: Setup) -> tuple[float, float]:
        """Return the range of a risk minus a release, in all cases."""
        top, bottom = self.highest * self.cell, self.lowest * self.cell
        if not self.every_question:
            top = max(top, from_units(to_units(setup.high)))  # R_0
        return setup.low - max(top, setup.high), setup.high - min(bottom, setup.low)


def ladder_transcript(mechanism: Any, setup: Setup) -> Transcript:
    """Return the possible releases of a Ladder."""
    step, grid = mechanism.step_and_grid_units
    bottom, top = release_range(setup.low, setup.high, grid)
    start = to_units(setup.high)
    # A crossing has risk <= R - step - 1 in units, and lands within half a cell of it.
    drop = max(1, -(-(2 * step + 2 - grid) // (2 * grid)))
    first = min(round_to_multiple(start - step - 1, grid), _multiple_below(start, grid), top)
    cells = GridValues.from_grid((first - bottom) // grid + 1, drop)
    return Transcript(
        cells,
        ReleaseDeviation(step / UNITS, grid / UNITS),
        bottom // grid,
        first // grid,
        grid / UNITS,
    )


def _one_bit_transcript(mechanism: Any, setup: Setup) -> Transcript:
    ladder = ladder_transcript(mechanism, setup)
    values = HiddenValues(ladder.values.points, ladder.values.max_changes, ladder.values.drop)
    return Transcript(
        values,
        ladder.deviation,
        ladder.lowest,
        ladder.highest,
        ladder.cell,
        assumptions=("The value is released only after the last question.",),
    )


def _shaky_transcript(mechanism: Any, setup: Setup) -> Transcript | None:
    if mechanism.grid is None:
        return None
    if not (mechanism.compare_noise or mechanism.release_noise or mechanism.threshold_noise):
        return ladder_transcript(mechanism, setup)
    step, grid = mechanism.step_and_grid_units
    bottom, top = release_range(setup.low, setup.high, grid)
    first = min(_multiple_below(to_units(setup.high), grid), top)
    return Transcript(
        GridValues.from_grid((first - bottom) // grid + 1, 1),
        ReleaseDeviation(
            step / UNITS,
            grid / UNITS,
            compare=mechanism.compare_noise,
            standing=mechanism.threshold_noise,
            release=mechanism.release_noise,
            law=mechanism.law,
        ),
        bottom // grid,
        first // grid,
        grid / UNITS,
    )


def _parameter_free_transcript(_mechanism: Any, setup: Setup) -> Transcript | None:
    if (setup.low, setup.high) != (0, 1):
        return None
    return Transcript(
        FallingValues(setup.n + 1, setup.n),
        ReleaseDeviation(1 / math.sqrt(setup.n)),
        0,
        setup.n - 1,
        1 / setup.n,
        assumptions=(ZERO_ONE,),
    )


def _exact_transcript(_mechanism: Any, setup: Setup) -> Transcript | None:
    if (setup.low, setup.high) != (0, 1):
        return None
    return Transcript(
        ReleaseValues(setup.n + 1, setup.n + 1),
        ReleaseDeviation(0.0),
        0,
        setup.n,
        1 / setup.n,
        every_question=True,
        assumptions=(ZERO_ONE,),
    )


def _rounded_transcript(mechanism: Any, setup: Setup) -> Transcript:
    grid = to_units(mechanism.grid)
    bottom, top = release_range(setup.low, setup.high, grid)
    points = (top - bottom) // grid + 1
    return Transcript(
        ReleaseValues(points, points),
        ReleaseDeviation(0.0, grid / UNITS),
        bottom // grid,
        top // grid,
        grid / UNITS,
        every_question=True,
    )


def _multiple_below(units: int, grid: int) -> int:
    """Return the largest multiple of the grid strictly below."""
    return (units - 1) // grid * grid


# By exact type: a subclass may release more than its parent.
_TRANSCRIPTS: dict[type[Mechanism], Callable[[Any, Setup], Transcript | None]] = {
    Ladder: ladder_transcript,
    OneBit: _one_bit_transcript,
    ShakyLadder: _shaky_transcript,
    ParameterFreeLadder: _parameter_free_transcript,
    Exact: _exact_transcript,
    Rounded: _rounded_transcript,
}


def transcript_of(
    mechanism: Mechanism, setup: Setup, *, zero_one: bool = True
) -> Transcript | None:
    """Return the possible releases of a mechanism; None if they are not a finite list."""
    if mechanism.zero_one_only and not zero_one:
        return None
    make_transcript = _TRANSCRIPTS.get(type(mechanism))
    return None if make_transcript is None else make_transcript(mechanism, setup)
