"""A bar while a ledger is checked, on a terminal only."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["check_bar"]


@contextmanager
def check_bar(*, quiet: bool) -> Iterator[Callable[[int, int | None], object] | None]:
    """Give what hears how many entries of how many were checked; None where nobody watches."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console  # noqa: PLC0415 - only where there is a terminal
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn  # noqa: PLC0415

    columns = (TextColumn("Checking"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)
        yield lambda done, of: bar.update(task, completed=done, total=of)
