"""Sweeps: many tasks, done once each, whoever does them and however often it was interrupted."""

from __future__ import annotations

from contextlib import closing, nullcontext
from typing import TYPE_CHECKING, Any, cast

from ladderboard.arena._progress import progress_bar
from ladderboard.arena._store import Store
from ladderboard.arena._task import key_of

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence
    from pathlib import Path

    from ladderboard.arena._crew import Crew
    from ladderboard.arena._task import Task

__all__ = ["sweep"]


def sweep(
    tasks: Sequence[Task],
    crew: Crew,
    *,
    label: str = "",
    kept_in: Path | None = None,
    progress: bool = False,
) -> list[dict[str, Any]]:
    """Do the tasks and return their results in the order of the tasks.

    With ``kept_in``, results go to that file as they arrive, and those already there are not
    computed again.
    """
    results: list[dict[str, Any] | None] = [None] * len(tasks)
    with nullcontext() if kept_in is None else Store(kept_in) as store:
        if store is not None:
            kept = [store.results.get(key_of(task)) for task in tasks]
            results = [
                result if result is not None and task.accepts(result) else None
                for task, result in zip(tasks, kept, strict=True)
            ]
        # The longest first, so that none of them is alone at the end.
        missing = [at for at, result in enumerate(results) if result is None]
        missing.sort(key=lambda at: -tasks[at].weight)
        total = sum(task.weight for task in tasks)
        with progress_bar(label, total if missing else 0, wanted=progress) as advance:
            advance(total - sum(tasks[at].weight for at in missing))
            work = crew([tasks[at] for at in missing])
            with closing(cast("Generator[tuple[int, dict[str, Any]]]", work)) as done:
                for place, result in done:
                    at = missing[place]
                    results[at] = result
                    if store is not None:
                        store.add(tasks[at], result)
                    advance(tasks[at].weight)
    return cast("list[dict[str, Any]]", results)
