"""Tables: with lines on a terminal, plain in a pipe."""

import sys

from ladderboard.cli._said import printable, say

__all__ = ["brief", "say_table"]

_TIME = "(UTC)"  # how the heads of times end
_BETWEEN = 2  # characters between columns
_LEAST = 12


def brief(moment: str | None) -> str | None:
    """Return a time as a table shows it, in UTC and to the minute.

    >>> brief("2027-01-31T23:59:59Z")
    '2027-01-31 23:59'
    """
    return None if moment is None else f"{moment[:10]} {moment[11:16]}"


def say_table(
    head: tuple[str, ...],
    rows: list[tuple[object, ...]],
    *,
    right: tuple[str, ...] = (),
    cut: str = "",
) -> None:
    """Print rows under a head; the columns named in ``right`` end together, as numbers do.

    On a terminal the column ``cut`` gets what room the others leave it. Cells may come from
    anybody: what a terminal would obey is escaped.
    """
    head = tuple(map(printable, head))
    cells = [tuple("-" if each is None else printable(each) for each in row) for row in rows]
    numbers = {at for at, name in enumerate(head) if name in right}
    if sys.stdout.isatty():
        _draw(head, cells, numbers, cut)
        return
    widths = [max(map(len, column)) for column in zip(head, *cells, strict=True)]
    for row in (head, *cells):
        told = [
            each.rjust(width) if at in numbers else each.ljust(width)
            for at, (each, width) in enumerate(zip(row, widths, strict=True))
        ]
        say("  ".join(told).rstrip())


def _draw(head: tuple[str, ...], rows: list[tuple[str, ...]], numbers: set[int], cut: str) -> None:
    from rich import cells  # noqa: PLC0415 - only where there is a terminal
    from rich.box import SIMPLE  # noqa: PLC0415 - only where there is a terminal
    from rich.console import Console  # noqa: PLC0415 - same
    from rich.table import Table  # noqa: PLC0415 - same

    console = Console(highlight=False, markup=False)
    widths = [max(map(cells.cell_len, column)) for column in zip(head, *rows, strict=True)]
    others = sum(width for name, width in zip(head, widths, strict=True) if name != cut)
    room = max(console.width - others - _BETWEEN * len(head), _LEAST)
    table = Table(box=SIMPLE, pad_edge=False)
    for at, name in enumerate(head):
        # What is copied or compared stays in one piece, and so do times.
        whole = at == 0 or at in numbers or name.endswith(_TIME)
        table.add_column(
            name,
            justify="right" if at in numbers else "left",
            no_wrap=whole or name == cut,
            overflow="ellipsis" if name == cut else "fold",
            max_width=room if name == cut else None,
        )
    for row in rows:
        table.add_row(*row)
    console.print(table)
