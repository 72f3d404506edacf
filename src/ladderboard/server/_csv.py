"""Rankings as CSV, for spreadsheets: text from outside stays text there."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Any

from ladderboard.files import plain_cell

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["finals_csv", "standings_csv"]

_COLUMNS = (
    "rank", "team", "name", "baseline", "released", "shown", "since", "submissions", "last",
    "loss",
)  # fmt: skip
_FINALS = (
    "rank", "team", "name", "baseline", "score", "shown", "low", "high", "public_rank", "move",
    "loss",
)  # fmt: skip


def standings_csv(said: dict[str, Any], *, header: bool = True) -> bytes:
    """Return a page of the standings, with the names of the columns or without."""
    rows = [
        (*_team(each), each["released"], each["display"], each["since"], each["submissions"],
         each["last"], each["loss"])
        for each in said["rows"]
    ]  # fmt: skip
    return _written([_COLUMNS, *rows] if header else rows)


def finals_csv(said: dict[str, Any]) -> bytes:
    """Return the final ranking."""
    rows = [
        (*_team(each), each["score"], each["display"], each["low"], each["high"],
         each["public_rank"], each["move"], each["loss"])
        for each in said["rows"]
    ]  # fmt: skip
    return _written([_FINALS, *rows])


def _team(each: dict[str, Any]) -> tuple[Any, ...]:
    team = each["team"]
    baseline = "yes" if each["baseline"] else "no"
    return each["rank"], team["id"], plain_cell(team["name"]), baseline


def _written(rows: Iterable[tuple[Any, ...]]) -> bytes:
    out = io.StringIO(newline="")
    csv.writer(out, lineterminator="\r\n").writerows(rows)
    return out.getvalue().encode()
