"""Crews: who does the tasks, and hands results back as they are done."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing.connection import wait
from multiprocessing.context import SpawnContext, SpawnProcess
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ladderboard import _settings
from ladderboard._version import __version__
from ladderboard.arena._parcel import open_and_run, pack
from ladderboard.errors import InvalidSetting, WorkersLost

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence

    from ladderboard.arena._task import Task

    Crew = Callable[[Sequence[Task]], Iterator[tuple[int, dict[str, Any]]]]

__all__ = ["cores", "crew_of", "here", "processes"]

# One thread for each process: more would fight over the same cores.
_ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"
)


def cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def crew_of(workers: int, cluster: str | None) -> Crew:
    """Return who will do the work: this process, several, or a cluster."""
    workers = _settings.whole("workers", workers, at_least=1)
    if cluster is None:
        return here if workers == 1 else lambda tasks: processes(tasks, workers)
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


def processes(tasks: Sequence[Task], workers: int) -> Iterator[tuple[int, dict[str, Any]]]:
    """Do the tasks in processes of this machine."""
    parcels = pack(tasks, with_code=False)
    executor = ProcessPoolExecutor(
        min(workers, len(tasks)) or 1, mp_context=_Context(), initializer=_begin
    )
    try:
        places = {
            executor.submit(open_and_run, parcel, __version__): at
            for at, parcel in enumerate(parcels)
        }
        for done in as_completed(places):
            yield places[done], done.result()
    except BrokenProcessPool:
        raise WorkersLost(
            "A worker process died, perhaps for lack of memory; run again with fewer workers."
        ) from None
    finally:
        # Read before the shutdown forgets them. Left alone, they would finish long tasks first.
        started = list((executor._processes or {}).values())  # noqa: SLF001
        executor.shutdown(wait=False, cancel_futures=True)
        for each in started:
            each.terminate()
        for each in started:
            each.join()


def _begin() -> None:
    """Start a worker: an interrupt is for the parent, and without a parent there is no work."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


class _Process(SpawnProcess):
    """A fresh process that does not run the script that started it.

    Tasks bring what they need of ``__main__``, so a script works without a guard around it.
    """

    @staticmethod
    def _Popen(process_obj: Any) -> Any:  # noqa: N802 - the name is multiprocessing's
        blank = {"__main__": ModuleType("__main__")}
        with _lent(sys.modules, blank), _lent(os.environ, _ONE_THREAD):
            return SpawnProcess._Popen(process_obj)  # noqa: SLF001


@contextmanager
def _lent(where: MutableMapping[str, Any], values: Mapping[str, Any]) -> Iterator[None]:
    """Put values into a mapping for a moment."""
    before = {name: where[name] for name in values if name in where}
    where.update(values)
    try:
        yield
    finally:
        for name in values:
            if name in before:
                where[name] = before[name]
            else:
                del where[name]


class _Context(SpawnContext):
    Process = _Process
