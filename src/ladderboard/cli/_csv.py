"""Rows as comma-separated values."""

import csv
import io

from ladderboard.files import plain_cell

__all__ = ["csv_text"]


def csv_text(head: tuple[str, ...], rows: list[tuple[object, ...]]) -> str:
    """Return rows under a head, as spreadsheets read them; text from outside stays text there."""
    out = io.StringIO(newline="")
    write = csv.writer(out, lineterminator="\n")
    write.writerow(head)
    for row in rows:
        write.writerow([plain_cell(each) if isinstance(each, str) else _cell(each) for each in row])
    return out.getvalue()


def _cell(value: object) -> object:
    return ("yes" if value else "no") if isinstance(value, bool) else value
