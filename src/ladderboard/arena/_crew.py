"""Crews: who does the tasks, and hands results back as they are done."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from ladderboard import _settings
from ladderboard.errors import InvalidSetting

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ladderboard.arena._task import Task

    Crew = Callable[[Sequence[Task]], Iterator[tuple[int, dict[str, Any]]]]

__all__ = ["cores", "crew_of", "here"]


def cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def crew_of(workers: int, cluster: str | None) -> Crew:
    """Return who will do the work: this process, several, or a cluster."""
    workers = _settings.whole("workers", workers, at_least=1)
    if cluster is None:
        return here if workers == 1 else lambda tasks: _processes(tasks, workers)
    if not isinstance(cluster, str) or "://" not in cluster:
        raise InvalidSetting(
            "cluster must be the address of a Dask scheduler, as in 'tcp://127.0.0.1:8786'; "
            f"got {_settings.shown(cluster)}."
        )
    from ladderboard.arena._cluster import dask  # noqa: PLC0415 - most runs need no cluster

    return lambda tasks: dask(tasks, cluster)


def here(tasks: Sequence[Task]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Do the tasks in this process, one after the other."""
    for at, task in enumerate(tasks):
        yield at, task.run(threads=None)


def _processes(tasks: Sequence[Task], workers: int) -> Iterator[tuple[int, dict[str, Any]]]:
    # Imported late: multiprocessing is not free, and `import ladderboard` should be.
    from ladderboard.arena._processes import processes  # noqa: PLC0415

    return processes(tasks, workers)
