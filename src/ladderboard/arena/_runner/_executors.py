"""Runs tasks in processes of this machine or on a Dask cluster."""

from __future__ import annotations

import asyncio
import importlib
import multiprocessing
import os
import pickle
import signal
import sys
import threading
import time
from concurrent.futures import CancelledError, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager
from multiprocessing.connection import wait
from multiprocessing.context import SpawnContext, SpawnProcess
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ladderboard.arena._runner._task import code_version, external_module
from ladderboard.errors import InvalidSetting, LadderboardError, MissingDependency, WorkerError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence

    from ladderboard.arena._runner._task import Task

# One thread for each process: more would fight over the same cores.
_ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"
)

# How Dask reports its futures when the scheduler is lost.
_CANCELLED = (CancelledError, asyncio.CancelledError)
_CONNECT_SECONDS = 10  # seconds to wait for the scheduler, then for a worker
_NO_WORKER_SECONDS = 30  # seconds without any worker before giving up
_POLL_SECONDS = 2  # seconds between checks of the cluster while no result arrives


def pickle_tasks(tasks: Iterable[Task], *, with_code: bool) -> list[bytes]:
    """Pickle tasks, with code from ``__main__`` by value; ``with_code``: all code but ours."""
    try:
        cloudpickle: Any = importlib.import_module("cloudpickle")
    except ImportError:
        raise MissingDependency(
            "Several workers need cloudpickle: pip install 'ladderboard[arena]'."
        ) from None
    tasks = list(tasks)
    with ExitStack() as registered:
        if with_code:
            for module in _external_packages(tasks):
                cloudpickle.register_pickle_by_value(module)
                registered.callback(cloudpickle.unregister_pickle_by_value, module)
        try:
            return [cloudpickle.dumps(task) for task in tasks]
        except Exception as error:
            raise InvalidSetting(
                f"A mechanism or an analyst cannot be sent to another process ({error}); "
                "run it with workers=1, or without what cannot be pickled."
            ) from error


def unpickle_and_run(pickled: bytes, version: str) -> dict[str, Any]:
    """Run a task in a worker, on one thread."""
    if version != code_version():
        raise WorkerError(
            f"A worker has Ladderboard {code_version()}, and this process has {version}; "
            "install the same code everywhere, and restart workers after a change."
        )
    task: Task = pickle.loads(pickled)  # noqa: S301 - from the process that started this one
    return task.run(threads=1)


def _external_packages(tasks: list[Task]) -> list[Any]:
    """Return the top-level packages of mechanisms and analysts that are not ours."""
    names: set[str] = set()
    for task in tasks:
        for participant in (getattr(task, "mechanism", None), getattr(task, "analyst", None)):
            module = None if participant is None else external_module(participant)
            if module is not None and module != "__main__":
                names.add(module.partition(".")[0])
    return [sys.modules[name] for name in sorted(names) if name in sys.modules]


def run_in_processes(tasks: Sequence[Task], workers: int) -> Iterator[tuple[int, dict[str, Any]]]:
    """Run the tasks in processes of this machine; yield positions and results."""
    pickled_tasks = pickle_tasks(tasks, with_code=False)
    executor = ProcessPoolExecutor(
        min(workers, len(tasks)) or 1, mp_context=_WorkerContext(), initializer=_start_worker
    )
    try:
        positions = {
            executor.submit(unpickle_and_run, pickled, code_version()): position
            for position, pickled in enumerate(pickled_tasks)
        }
        for future in as_completed(positions):
            yield positions[future], future.result()
    except BrokenProcessPool:
        raise WorkerError(
            "A worker process died, out of memory or ended by code in a game. Run again with "
            "fewer workers; finished games are kept."
        ) from None
    except BaseException:
        # After an interrupt or a failure the running tasks are of no use.
        for process in list((executor._processes or {}).values()):  # noqa: SLF001
            process.terminate()
        raise
    finally:
        executor.shutdown(wait=True, cancel_futures=True)


def _start_worker() -> None:
    """Set up a worker: ignore interrupts, which the parent handles, and end with the parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_exit_with_parent, daemon=True).start()


def _exit_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


class _WorkerProcess(SpawnProcess):
    """A fresh process that does not run the script that started it.

    Tasks carry what they need from ``__main__``, so scripts need no ``__main__`` guard.
    """

    @staticmethod
    def _Popen(process_obj: Any) -> Any:  # noqa: N802 - the name is multiprocessing's
        blank = {"__main__": ModuleType("__main__")}
        with _temporarily_set(sys.modules, blank), _temporarily_set(os.environ, _ONE_THREAD):
            return SpawnProcess._Popen(process_obj)  # noqa: SLF001


@contextmanager
def _temporarily_set(
    mapping: MutableMapping[str, Any], values: Mapping[str, Any]
) -> Iterator[None]:
    """Set values of a mapping inside the block, and restore them after it."""
    before = {name: mapping[name] for name in values if name in mapping}
    mapping.update(values)
    try:
        yield
    finally:
        for name in values:
            if name in before:
                mapping[name] = before[name]
            else:
                del mapping[name]


class _WorkerContext(SpawnContext):
    Process = _WorkerProcess


def run_on_dask(tasks: Sequence[Task], address: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Run the tasks on a Dask cluster; yield positions and results.

    The code of mechanisms and analysts that are not ours is sent with the tasks. The scheduler
    gives the tasks of a lost worker to another one.
    """
    pickled_tasks = pickle_tasks(tasks, with_code=True)
    try:
        distributed: Any = importlib.import_module("distributed")
    except ImportError:
        raise MissingDependency(
            "A cluster needs Dask: pip install 'ladderboard[cluster]'."
        ) from None
    client = _connect(distributed, address)
    try:
        futures = client.map(
            unpickle_and_run,
            pickled_tasks,
            version=code_version(),
            pure=False,
            key="ladderboard",
            batch_size=500,
        )
        positions = {future.key: position for position, future in enumerate(futures)}
        waiting = set(futures)
        del futures
        last_seen = time.monotonic()
        while waiting:
            try:
                with client.as_current():
                    finished = distributed.wait(waiting, _POLL_SECONDS, "FIRST_COMPLETED").done
            except TimeoutError:
                last_seen = _check_cluster(client, address, last_seen)
                continue
            except _CANCELLED as error:
                raise _scheduler_lost(address) from error
            last_seen = time.monotonic()
            waiting -= finished
            for future, result in zip(
                finished, _gather_results(client, finished, address), strict=True
            ):
                yield positions[future.key], result
    finally:
        client.close(timeout=2)


def _connect(distributed: Any, address: str) -> Any:
    try:
        client = distributed.Client(
            address, timeout=_CONNECT_SECONDS, set_as_default=False, direct_to_workers=False
        )
    except (OSError, ValueError) as error:
        raise WorkerError(
            f"No Dask scheduler answers at {address}; start one with `dask scheduler`, "
            "or leave the cluster out to run on this machine."
        ) from error
    try:
        client.wait_for_workers(1, timeout=_CONNECT_SECONDS)
    except (OSError, TimeoutError) as error:
        client.close(timeout=2)
        raise WorkerError(
            f"The Dask scheduler at {address} has no workers; start one with "
            f"`dask worker {address}`."
        ) from error
    return client


def _check_cluster(client: Any, address: str, last_seen: float) -> float:
    """Return when a worker was last seen; raise if the cluster is gone."""
    if client.status != "running" and time.monotonic() - last_seen > _CONNECT_SECONDS:
        raise _scheduler_lost(address)
    try:
        alive = client.status == "running" and client.nthreads()
    except (OSError, TimeoutError):
        alive = False
    if alive:
        return time.monotonic()
    if time.monotonic() - last_seen > _NO_WORKER_SECONDS:
        raise WorkerError(
            f"All Dask workers of {address} are gone; start some and run again to continue."
        )
    return last_seen


def _gather_results(client: Any, finished: set[Any], address: str) -> list[dict[str, Any]]:
    try:
        results: list[dict[str, Any]] = client.gather(list(finished))
    except LadderboardError:
        raise
    except (*_CANCELLED, OSError) as error:
        raise _scheduler_lost(address) from error
    except ModuleNotFoundError as error:
        raise WorkerError(f"A Dask worker lacks a module: {error}; install it there.") from error
    except Exception as error:
        if type(error).__name__ == "KilledWorker":
            raise WorkerError(f"A task killed several workers in a row: {error}") from error
        raise
    return results


def _scheduler_lost(address: str) -> WorkerError:
    return WorkerError(
        f"The Dask scheduler at {address} is gone; start it and run again to continue."
    )
