"""Problems: what is wrong with a file, item by item, and the refusal that lists them.

Text from a file is shown through ``repr`` and cut, so that a message stays short and no control
character, terminal escape or change of writing direction passes through it.
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

Refusal = type[InvalidInput]

SHOWN = 10
# A file of ten thousand columns may be wrong in each; nobody reads past these.
_KEPT = 100
_SAID = 20


class Named(Protocol):
    """Whatever can name rows: ``noun`` is what their names are, "id" or "row"."""

    noun: str

    def name(self, places: NDArray[np.int64]) -> list[Any]:
        """Return the names of some rows."""


class Problems:
    """Collects what is wrong, and refuses it all at once."""

    def __init__(self, refusal: Refusal) -> None:
        self.refusal = refusal
        self.found: list[Problem] = []

    def add(
        self,
        code: str,
        message: str,
        *,
        column: str | None = None,
        count: int = 1,
        ids: Sequence[str] = (),
    ) -> None:
        """Note one problem."""
        kept = column if column is None else _cut(column)
        self.found.append(Problem(code, kept, count, tuple(map(_cut, ids[:SHOWN])), message))

    def add_rows(
        self,
        code: str,
        rule: str,
        bad: NDArray[Any],
        rows: Named,
        *,
        column: str | None = None,
        count: int | None = None,
    ) -> None:
        """Note rows that break a rule, if there are any: a mask, or places and how many more."""
        places = np.flatnonzero(bad) if bad.dtype == np.bool_ else bad
        if not len(places):
            return
        count = count or len(places)
        ids = rows.name(places[:SHOWN])
        which = ", ".join(each if rows.noun == "row" else _settings.safe_repr(each) for each in ids)
        more = ", ..." if count > SHOWN else ""
        message = f"{rule}: {format_count(count, rows.noun)} ({which}{more})."
        self.add(code, message, column=column, count=count, ids=[str(each) for each in ids])

    def refuse_if_any(self) -> None:
        """Raise the refusal that lists every problem, if there is one."""
        if self.found:
            raise self.make_refusal()

    def make_refusal(self) -> InvalidInput:
        """Return the exception that lists every problem."""
        lines = [each.message for each in self.found[:_SAID]]
        if len(self.found) > _SAID:
            lines.append(f"And {len(self.found) - _SAID} more.")
        text = lines[0]
        if len(lines) > 1:
            head = f"{len(self.found)} problems were found:"
            text = "\n".join([head, *(f"- {line}" for line in lines)])
        return self.refusal(text, problems=tuple(self.found[:_KEPT]))


def refuse(refusal: Refusal, code: str, message: str, *, column: str | None = None) -> NoReturn:
    """Refuse at once, for the one reason that makes looking further useless."""
    raise single_refusal(refusal, code, message, column=column)


def single_refusal(
    refusal: Refusal, code: str, message: str, *, column: str | None = None
) -> InvalidInput:
    """Return the exception for one problem, to be raised from the error that showed it."""
    problems = Problems(refusal)
    problems.add(code, message, column=column)
    return problems.make_refusal()


def format_names(names: Iterable[Any]) -> str:
    """Return names as a message shows them: the first ten, each cut.

    >>> format_names(["a", "b"])
    "'a', 'b'"
    """
    every = list(names)
    more = ", ..." if len(every) > SHOWN else ""
    return ", ".join(map(_settings.safe_repr, every[:SHOWN])) + more


def _cut(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:80]}..."
