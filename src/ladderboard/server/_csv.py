"""Standings as CSV, for spreadsheets: text from outside stays text there."""

from __future__ import annotations

import csv
import io
from typing import Any

from ladderboard.files import plain_cell

__all__ = ["standings_csv"]

_COLUMNS = (
    "rank", "team", "name", "baseline", "released", "shown", "since", "submissions", "last",
)  # fmt: skip


def standings_csv(said: dict[str, Any], *, header: bool = True) -> bytes:
    """Return a page of the standings, with the names of the columns or without."""
    out = io.StringIO(newline="")
    rows = csv.writer(out, lineterminator="\r\n")
    if header:
        rows.writerow(_COLUMNS)
    for each in said["rows"]:
        rows.writerow(
            (
                each["rank"],
                each["team"]["id"],
                plain_cell(each["team"]["name"]),
                "yes" if each["baseline"] else "no",
                each["released"],
                each["display"],
                each["since"],
                each["submissions"],
                each["last"],
            )
        )
    return out.getvalue().encode()
