"""A refusal on the page where it happened, in words."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from ladderboard.server._problems import problem_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["Item", "Trouble", "items_of", "trouble_of"]

_SHOWN = 20  # of the things that are wrong; nobody reads past these
_TIPS = {
    "missing_column": "Name the columns as shown under “How the file must look”.",
    "missing_id": "Every id must be there, once.",
    "unknown_id": "Compare one of these with the ids you were given.",
    "missing_value": "A join or a division in what made the file may have left it empty.",
    "ragged": "A text may hold the separator: write it within quotes.",
}


class Item(NamedTuple):
    """One thing that is wrong: in words, the first ids, how many more there are, and what helps."""

    text: str
    ids: tuple[str, ...]
    more: int
    tip: str | None


class Trouble(NamedTuple):
    """Why something was not done; ``more`` counts what is wrong besides ``items``."""

    status: int
    detail: str
    code: str
    items: tuple[Item, ...] = ()
    more: int = 0
    retry: str | None = None


def trouble_of(error: Exception) -> Trouble:
    """Return what a page says of an exception; raise it where the log must tell more of it."""
    said, ours = problem_of(error)
    if ours:
        raise error
    told = json.loads(bytes(said.body))
    items, more = items_of(told["errors"])
    return Trouble(
        said.status_code,
        told["detail"],
        told["code"],
        items,
        more,
        said.headers.get("retry-after"),
    )


def items_of(errors: Sequence[Mapping[str, Any]]) -> tuple[tuple[Item, ...], int]:
    """Return the things that are wrong, and how many more there are.

    >>> error = {"code": "missing_id", "count": 12, "ids": ["a", "b"], "column": None}
    >>> items_of([{**error, "message": "Missing from the file: 12 ids ('a', 'b', ...)."}])[0][0][:3]
    ('Missing from the file: 12 ids', ('a', 'b'), 10)
    """
    return tuple(map(_item, errors[:_SHOWN])), max(len(errors) - _SHOWN, 0)


def _item(error: Mapping[str, Any]) -> Item:
    message, count, ids = error["message"], error["count"], tuple(error["ids"])
    tip = _TIPS.get(error["code"])
    # Ids stand in brackets at the end of a message; a page shows them one by one.
    found = re.match(rf"(.*?: (?:{count}|{count:,}) \w+) \(", message, re.DOTALL) if ids else None
    if found is None:
        return Item(message, (), 0, tip)
    return Item(found[1], ids, max(count - len(ids), 0), tip)
