"""A progress bar, on a terminal only."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["progress_bar"]


@contextmanager
def progress_bar(label: str, total: float, *, wanted: bool) -> Iterator[Callable[[float], None]]:
    """Show how far the work is, on stderr; yield what to call with each piece of it."""
    if not (wanted and total and sys.stderr.isatty()):
        yield lambda _done: None
        return
    try:
        from rich.console import Console  # noqa: PLC0415 - only where there is a terminal
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn  # noqa: PLC0415
    except ImportError:  # a bar is a comfort, no need
        yield lambda _done: None
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        one = bar.add_task(label, total=total)
        yield lambda done: bar.advance(one, done)
