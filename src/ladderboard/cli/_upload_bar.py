"""A bar while predictions are sent, on a terminal only."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["upload_bar"]


@contextmanager
def upload_bar(*, quiet: bool) -> Iterator[Callable[[int, int], object] | None]:
    """Give what hears how many bytes of how many were sent; None where nobody watches."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console  # noqa: PLC0415 - only where there is a terminal
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn  # noqa: PLC0415

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("Sending", total=None)

        def show(sent: int, total: int) -> None:
            said = "Sending" if sent < total else "Waiting for the answer"
            bar.update(task, completed=sent, total=total, description=said, refresh=sent == total)

        yield show
