"""Tables: with lines on a terminal, plain in a pipe."""

import sys

from ladderboard.cli._said import printable, say

__all__ = ["brief", "say_table"]


def brief(moment: str | None) -> str | None:
    """Return a time as a table shows it, in UTC and to the minute.

    >>> brief("2027-01-31T23:59:59Z")
    '2027-01-31 23:59'
    """
    return None if moment is None else f"{moment[:10]} {moment[11:16]}"


def say_table(
    head: tuple[str, ...], rows: list[tuple[object, ...]], *, right: tuple[str, ...] = ()
) -> None:
    """Print rows under a head; the columns named in ``right`` end together, as numbers do.

    Cells may come from anybody: what a terminal would obey is escaped.
    """
    head = tuple(map(printable, head))
    cells = [tuple("-" if each is None else printable(each) for each in row) for row in rows]
    numbers = {at for at, name in enumerate(head) if name in right}
    if sys.stdout.isatty():
        _draw(head, cells, numbers)
        return
    widths = [max(map(len, column)) for column in zip(head, *cells, strict=True)]
    for row in (head, *cells):
        told = [
            each.rjust(width) if at in numbers else each.ljust(width)
            for at, (each, width) in enumerate(zip(row, widths, strict=True))
        ]
        say("  ".join(told).rstrip())


def _draw(head: tuple[str, ...], rows: list[tuple[str, ...]], numbers: set[int]) -> None:
    from rich.box import SIMPLE  # noqa: PLC0415 - only where there is a terminal
    from rich.console import Console  # noqa: PLC0415 - same
    from rich.table import Table  # noqa: PLC0415 - same

    table = Table(box=SIMPLE, pad_edge=False)
    for at, name in enumerate(head):
        table.add_column(
            name,
            justify="right" if at in numbers else "left",
            no_wrap=at == 0 or at in numbers,  # what is copied or compared stays in one piece
            overflow="fold",
        )
    for row in rows:
        table.add_row(*row)
    Console(highlight=False, markup=False).print(table)
