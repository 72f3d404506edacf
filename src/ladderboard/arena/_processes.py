"""Processes of this machine that do tasks."""

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

from ladderboard.arena._build import build
from ladderboard.arena._parcel import open_and_run, pack
from ladderboard.errors import WorkersLost

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, MutableMapping, Sequence

    from ladderboard.arena._task import Task

__all__ = ["processes"]

# One thread for each process: more would fight over the same cores.
_ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"
)


def processes(tasks: Sequence[Task], workers: int) -> Iterator[tuple[int, dict[str, Any]]]:
    """Do the tasks in processes of this machine."""
    parcels = pack(tasks, with_code=False)
    executor = ProcessPoolExecutor(
        min(workers, len(tasks)) or 1, mp_context=_Context(), initializer=_begin
    )
    try:
        places = {
            executor.submit(open_and_run, parcel, build()): at for at, parcel in enumerate(parcels)
        }
        for done in as_completed(places):
            yield places[done], done.result()
    except BrokenProcessPool:
        raise WorkersLost(
            "A worker process died: for lack of memory, or ended by code in a game. Run again with "
            "fewer workers; what is finished is not done again."
        ) from None
    except BaseException:
        # An interrupt or a failure: what they are at would only be thrown away.
        for each in list((executor._processes or {}).values()):  # noqa: SLF001
            each.terminate()
        raise
    finally:
        executor.shutdown(wait=True, cancel_futures=True)


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
