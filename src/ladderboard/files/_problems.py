"""Problems of a file, item by item, and the refusal that lists them.

Text from a file is shown through ``repr`` and shortened, so that a message stays short and contains
no control character, terminal escape or change of writing direction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn, Protocol

import numpy as np

from ladderboard import _settings
from ladderboard._formatting import format_count
from ladderboard.errors import InvalidInput, Problem

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

ErrorClass = type[InvalidInput]

SHOWN = 10
# A file of ten thousand columns may have a problem in each one.
_MAX_PROBLEMS = 100
_MAX_MESSAGES = 20


class RowNames(Protocol):
    """An object that names rows in messages; ``noun`` is the kind of name, "id" or "row"."""

    noun: str

    def names_of(self, rows: NDArray[np.int64]) -> list[Any]:
        """Return the names of some rows."""


class Problems:
    """Collects problems, and raises one refusal for all of them."""

    def __init__(self, error_class: ErrorClass) -> None:
        self.error_class = error_class
        self.items: list[Problem] = []

    def add(
        self,
        code: str,
        message: str,
        *,
        column: str | None = None,
        count: int = 1,
        ids: Sequence[str] = (),
    ) -> None:
        """Record one problem."""
        shortened = column if column is None else _shorten(column)
        self.items.append(
            Problem(code, shortened, count, tuple(map(_shorten, ids[:SHOWN])), message)
        )

    def add_rows(
        self,
        code: str,
        rule: str,
        bad: NDArray[Any],
        rows: RowNames,
        *,
        column: str | None = None,
        count: int | None = None,
    ) -> None:
        """Record the rows that break a rule, if any: ``bad`` is a mask, or row numbers."""
        positions = np.flatnonzero(bad) if bad.dtype == np.bool_ else bad
        if not len(positions):
            return
        count = count or len(positions)
        names = rows.names_of(positions[:SHOWN])
        shown = ", ".join(
            name if rows.noun == "row" else _settings.safe_repr(name) for name in names
        )
        ellipsis = ", ..." if count > SHOWN else ""
        message = f"{rule}: {format_count(count, rows.noun)} ({shown}{ellipsis})."
        self.add(code, message, column=column, count=count, ids=[str(name) for name in names])

    def refuse_if_any(self) -> None:
        """Raise the refusal that lists every problem, if there is one."""
        if self.items:
            raise self.make_refusal()

    def make_refusal(self) -> InvalidInput:
        """Return the exception that lists every problem."""
        lines = [problem.message for problem in self.items[:_MAX_MESSAGES]]
        if len(self.items) > _MAX_MESSAGES:
            lines.append(f"And {len(self.items) - _MAX_MESSAGES} more.")
        text = lines[0]
        if len(lines) > 1:
            heading = f"{len(self.items)} problems were found:"
            text = "\n".join([heading, *(f"- {line}" for line in lines)])
        return self.error_class(text, problems=tuple(self.items[:_MAX_PROBLEMS]))


def refuse(
    error_class: ErrorClass, code: str, message: str, *, column: str | None = None
) -> NoReturn:
    """Raise a refusal with a single problem, which makes further checks pointless."""
    raise single_refusal(error_class, code, message, column=column)


def single_refusal(
    error_class: ErrorClass, code: str, message: str, *, column: str | None = None
) -> InvalidInput:
    """Return the exception for a single problem, to be raised from the error that showed it."""
    problems = Problems(error_class)
    problems.add(code, message, column=column)
    return problems.make_refusal()


def format_names(names: Iterable[Any]) -> str:
    """Return names as shown in a message: the first ten, each shortened.

    >>> format_names(["a", "b"])
    "'a', 'b'"
    """
    all_names = list(names)
    ellipsis = ", ..." if len(all_names) > SHOWN else ""
    return ", ".join(map(_settings.safe_repr, all_names[:SHOWN])) + ellipsis


def _shorten(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:80]}..."
