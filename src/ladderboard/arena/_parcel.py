"""Parcels: tasks on their way to another process, with the code that it may not have."""

from __future__ import annotations

import importlib
import pickle
import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from ladderboard.arena._build import build
from ladderboard.arena._identity import foreign_module
from ladderboard.errors import InvalidSetting, MissingDependency, WorkersLost

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ladderboard.arena._task import Task

__all__ = ["open_and_run", "pack"]


def pack(tasks: Iterable[Task], *, with_code: bool) -> list[bytes]:
    """Pickle tasks; what stands in ``__main__`` goes by value, with_code all that is not ours."""
    try:
        cloudpickle: Any = importlib.import_module("cloudpickle")
    except ImportError:
        raise MissingDependency(
            "Several workers need cloudpickle: pip install 'ladderboard[arena]'."
        ) from None
    tasks = list(tasks)
    with ExitStack() as registered:
        if with_code:
            for module in _roots(tasks):
                cloudpickle.register_pickle_by_value(module)
                registered.callback(cloudpickle.unregister_pickle_by_value, module)
        try:
            return [cloudpickle.dumps(task) for task in tasks]
        except Exception as error:
            raise InvalidSetting(
                f"A mechanism or an analyst cannot be sent to another process ({error}); "
                "run it with workers=1, or without what cannot be pickled."
            ) from error


def open_and_run(parcel: bytes, wanted: str) -> dict[str, Any]:
    """Run a task in a worker, on one thread."""
    if wanted != build():
        raise WorkersLost(
            f"A worker has Ladderboard {build()}, and this is {wanted}; "
            "install the same everywhere, and restart workers after a change."
        )
    task: Task = pickle.loads(parcel)  # noqa: S301 - from the process that started us
    return task.run(threads=1)


def _roots(tasks: list[Task]) -> list[Any]:
    """Return the packages that hold the code of others."""
    names: set[str] = set()
    for task in tasks:
        for thing in (getattr(task, "mechanism", None), getattr(task, "analyst", None)):
            module = None if thing is None else foreign_module(thing)
            if module is not None and module != "__main__":
                names.add(module.partition(".")[0])
    return [sys.modules[name] for name in sorted(names) if name in sys.modules]
