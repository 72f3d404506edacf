"""A cluster: the same tasks on Dask workers."""

from __future__ import annotations

import asyncio
import importlib
import time
from concurrent.futures import CancelledError
from typing import TYPE_CHECKING, Any

from ladderboard.arena._build import build
from ladderboard.arena._parcel import open_and_run, pack
from ladderboard.errors import LadderboardError, MissingDependency, WorkersLost

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ladderboard.arena._task import Task

__all__ = ["dask"]

# What Dask says of its futures when the scheduler is lost.
_CANCELLED = (CancelledError, asyncio.CancelledError)
_CONNECT = 10  # seconds to find the scheduler, and again to find a worker
_ALONE = 30  # seconds without a single worker until we give up
_LOOK = 2  # seconds between two looks at the cluster while nothing arrives


def dask(tasks: Sequence[Task], address: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Do the tasks on a Dask cluster.

    The code of mechanisms and analysts that are not ours goes with the tasks. The scheduler gives
    the tasks of a lost worker to another.
    """
    parcels = pack(tasks, with_code=True)
    try:
        distributed: Any = importlib.import_module("distributed")
    except ImportError:
        raise MissingDependency(
            "A cluster needs Dask: pip install 'ladderboard[cluster]'."
        ) from None
    client = _connect(distributed, address)
    try:
        futures = client.map(
            open_and_run,
            parcels,
            wanted=build(),
            pure=False,
            key="ladderboard",
            batch_size=500,
        )
        places = {future.key: at for at, future in enumerate(futures)}
        waiting = set(futures)
        del futures
        seen = time.monotonic()
        while waiting:
            try:
                with client.as_current():
                    finished = distributed.wait(waiting, _LOOK, "FIRST_COMPLETED").done
            except TimeoutError:
                seen = _still_there(client, address, seen)
                continue
            except _CANCELLED as error:
                raise _gone(address) from error
            seen = time.monotonic()
            waiting -= finished
            for future, result in zip(finished, _results(client, finished, address), strict=True):
                yield places[future.key], result
    finally:
        client.close(timeout=2)


def _connect(distributed: Any, address: str) -> Any:
    try:
        client = distributed.Client(
            address, timeout=_CONNECT, set_as_default=False, direct_to_workers=False
        )
    except (OSError, ValueError) as error:
        raise WorkersLost(
            f"No Dask scheduler answers at {address}; start one with `dask scheduler`, "
            "or leave the cluster out to run on this machine."
        ) from error
    try:
        client.wait_for_workers(1, timeout=_CONNECT)
    except (OSError, TimeoutError) as error:
        client.close(timeout=2)
        raise WorkersLost(
            f"The Dask scheduler at {address} has no workers; start one with "
            f"`dask worker {address}`."
        ) from error
    return client


def _still_there(client: Any, address: str, seen: float) -> float:
    """Return when a worker was last seen; give up on a cluster that is gone."""
    if client.status != "running" and time.monotonic() - seen > _CONNECT:
        raise _gone(address)
    try:
        alive = client.status == "running" and client.nthreads()
    except (OSError, TimeoutError):
        alive = False
    if alive:
        return time.monotonic()
    if time.monotonic() - seen > _ALONE:
        raise WorkersLost(
            f"All Dask workers of {address} are gone; start some and run again to go on."
        )
    return seen


def _results(client: Any, finished: set[Any], address: str) -> list[dict[str, Any]]:
    try:
        results: list[dict[str, Any]] = client.gather(list(finished))
    except LadderboardError:
        raise
    except (*_CANCELLED, OSError) as error:
        raise _gone(address) from error
    except ModuleNotFoundError as error:
        raise WorkersLost(f"A Dask worker lacks a module: {error}; install it there.") from error
    except Exception as error:
        if type(error).__name__ == "KilledWorker":
            raise WorkersLost(f"A task killed several workers in a row: {error}") from error
        raise
    return results


def _gone(address: str) -> WorkersLost:
    return WorkersLost(f"The Dask scheduler at {address} is gone; start it and run again to go on.")
