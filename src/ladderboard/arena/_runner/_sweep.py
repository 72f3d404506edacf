"""Sweeps: many tasks, each done once, however often the work was interrupted."""

from __future__ import annotations

import csv
import io
import json
import os
import sys
from contextlib import closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, cast

from ladderboard import _settings
from ladderboard.arena._runner._task import result_key
from ladderboard.errors import InvalidSetting

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
    from types import TracebackType

    from ladderboard.arena._runner._task import Task

    Executor = Callable[[Sequence[Task]], Iterator[tuple[int, dict[str, Any]]]]

RESULTS_NAME = "results.jsonl"
_LINE_START = b'{"key": '


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


def available_cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def make_executor(workers: int, cluster: str | None) -> Executor:
    """Return who will do the work: this process, several, or a cluster."""
    workers = _settings.integer("workers", workers, at_least=1)
    if cluster is None:
        return run_serially if workers == 1 else lambda tasks: _run_in_processes(tasks, workers)
    if not isinstance(cluster, str) or "://" not in cluster:
        raise InvalidSetting(
            "cluster must be the address of a Dask scheduler, as in 'tcp://127.0.0.1:8786'; "
            f"got {_settings.safe_repr(cluster)}."
        )
    from ladderboard.arena._runner._executors import run_on_dask  # noqa: PLC0415 - most runs need no cluster

    return lambda tasks: run_on_dask(tasks, cluster)


def run_serially(tasks: Sequence[Task]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Do the tasks in this process, one after the other."""
    for at, task in enumerate(tasks):
        yield at, task.run(threads=None)


def _run_in_processes(tasks: Sequence[Task], workers: int) -> Iterator[tuple[int, dict[str, Any]]]:
    # Imported late: multiprocessing is not free, and `import ladderboard` should be.
    from ladderboard.arena._runner._executors import run_in_processes  # noqa: PLC0415

    return run_in_processes(tasks, workers)


class ResultsFile:
    """Results by key, in a file that survives being killed.

    A line counts when it is whole; a torn last line is cut off and its task is done again. Keys
    hold the version and every setting, so results of another run never pass for those of this one.
    Doubles are written so that they come back bit for bit.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.results: dict[str, dict[str, Any]] = {}
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("a+b")
        except OSError as error:
            raise _write_error(path, error) from None
        try:
            _lock_file(self._file.fileno(), path)
            self._read()
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with suppress(OSError):  # every result was flushed, or its failure was told of
            self._file.close()

    def _read(self) -> None:
        self._file.seek(0)
        whole = 0
        for line in self._file:
            if not line.endswith(b"\n"):
                # Cut off by a kill, unless it never was ours.
                if not (line.startswith(_LINE_START) or _LINE_START.startswith(line)):
                    raise InvalidSetting(
                        f"{self.path} holds something else than results; choose another directory."
                    )
                break
            whole += len(line)
            with suppress(ValueError, KeyError, TypeError, RecursionError):
                found = json.loads(line)
                self.results[found["key"]] = found["result"]
        self._file.truncate(whole)

    def add(self, task: Task, result: dict[str, Any]) -> None:
        """Append one result; it is with the operating system when this returns."""
        key = result_key(task)
        # The task is for people who read the file; the key is what counts.
        entry = {"key": key, "task": task.describe(), "result": result}
        try:
            self._file.write(json.dumps(entry, default=str).encode() + b"\n")
            self._file.flush()
        except OSError as error:
            raise _write_error(self.path, error) from None
        self.results[key] = result


def _write_error(path: Path, error: OSError) -> InvalidSetting:
    return InvalidSetting(f"Results cannot be written to {path}: {error.strerror}.")


def _lock_file(descriptor: int, path: Path) -> None:
    """Let one run at a time write here, where the system knows locks."""
    if os.name != "posix":
        return
    import fcntl  # noqa: PLC0415 - not everywhere

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise InvalidSetting(
            f"Another run is writing to {path.parent}; wait for it, or choose another directory."
        ) from None


def run_tasks(
    tasks: Sequence[Task],
    executor: Executor,
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
    with nullcontext() if kept_in is None else ResultsFile(kept_in) as store:
        if store is not None:
            kept = [store.results.get(result_key(task)) for task in tasks]
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
            work = executor([tasks[at] for at in missing])
            with closing(cast("Generator[tuple[int, dict[str, Any]]]", work)) as done:
                for place, result in done:
                    at = missing[place]
                    results[at] = result
                    if store is not None:
                        store.add(tasks[at], result)
                    advance(tasks[at].weight)
    return cast("list[dict[str, Any]]", results)


@dataclass
class ExperimentRun:
    """What all experiments share; ``written`` lists the files that were made."""

    out: Path | str
    quick: bool = False
    repetitions: int | None = None
    seed: int = 0
    workers: int | None = None
    cluster: str | None = None
    progress: bool = False
    written: list[Path] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.out = Path(self.out)
        if self.out.exists() and not self.out.is_dir():
            raise InvalidSetting(f"out must be a directory; {self.out} is a file.")
        self.seed = _settings.integer("seed", self.seed, at_least=0)
        if self.repetitions is not None:
            self.repetitions = _settings.integer("repetitions", self.repetitions, at_least=1)

    def run_tasks(self, tasks: Sequence[Task], label: str) -> list[dict[str, Any]]:
        """Do the tasks that are not done yet."""
        executor = make_executor(
            available_cores() if self.workers is None else self.workers, self.cluster
        )
        kept_in = Path(self.out) / RESULTS_NAME
        return run_tasks(tasks, executor, label=label, kept_in=kept_in, progress=self.progress)

    def write(self, name: str, content: bytes | str) -> None:
        """Write a file whole or not at all."""
        path = Path(self.out) / name
        unfinished = path.with_name(f".{path.name}.unfinished")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            unfinished.write_bytes(content.encode() if isinstance(content, str) else content)
            os.replace(unfinished, path)  # noqa: PTH105 - the same, and it says what it does
        except OSError as error:
            raise InvalidSetting(f"{path} cannot be written: {error.strerror}.") from None
        self.written.append(path)

    def write_csv(self, name: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Write rows with the columns of the first; numbers come back bit for bit."""
        text = io.StringIO()
        table = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
        table.writeheader()
        table.writerows(rows)
        self.write(name, text.getvalue())
