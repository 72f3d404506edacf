"""Runs games over many sizes, in parallel, and gathers one row a repetition."""

from __future__ import annotations

import csv
import io
import json
import os
import sys
from collections.abc import Iterable, Mapping
from contextlib import closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, cast

from ladderboard import _settings
from ladderboard._atomic_file import atomic_write
from ladderboard.arena._runner._participants import resolve_analysts, resolve_mechanisms
from ladderboard.arena._runner._task import GameRow, Match, result_key
from ladderboard.errors import InvalidSetting

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence

    from ladderboard.arena._runner._task import Task

    Executor = Callable[[Sequence[Task]], Iterator[tuple[int, dict[str, Any]]]]
    from collections.abc import Callable

    from ladderboard.analysts import Analyst
    from ladderboard.arena._runner._participants import MechanismFactory


RESULTS_NAME = "results.jsonl"
_LINE_START = b'{"key": '


@contextmanager
def progress_bar(label: str, total: float, *, wanted: bool) -> Iterator[Callable[[float], None]]:
    """Show progress on stderr; yield a callback that advances the bar."""
    if not (wanted and total and sys.stderr.isatty()):
        yield lambda _done: None
        return
    try:
        from rich.console import Console  # noqa: PLC0415 - optional
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn  # noqa: PLC0415
    except ImportError:  # the bar is optional
        yield lambda _done: None
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task_id = bar.add_task(label, total=total)
        yield lambda done: bar.advance(task_id, done)


def available_cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def make_executor(workers: int, cluster: str | None) -> Executor:
    """Return a function that runs tasks: in this process, in several, or on a cluster."""
    workers = _settings.integer("workers", workers, at_least=1)
    if cluster is None:
        return run_serially if workers == 1 else lambda tasks: _run_in_processes(tasks, workers)
    if not isinstance(cluster, str) or "://" not in cluster:
        raise InvalidSetting(
            "cluster must be the address of a Dask scheduler, as in 'tcp://127.0.0.1:8786'; "
            f"got {_settings.safe_repr(cluster)}."
        )
    from ladderboard.arena._runner._executors import run_on_dask  # noqa: PLC0415 - rarely needed

    return lambda tasks: run_on_dask(tasks, cluster)


def run_serially(tasks: Sequence[Task]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Run the tasks in this process, one after the other."""
    for position, task in enumerate(tasks):
        yield position, task.run(threads=None)


def _run_in_processes(tasks: Sequence[Task], workers: int) -> Iterator[tuple[int, dict[str, Any]]]:
    # Imported late: multiprocessing would slow down `import ladderboard`.
    from ladderboard.arena._runner._executors import run_in_processes  # noqa: PLC0415

    return run_in_processes(tasks, workers)


class ResultsFile:
    """A file of results by key that survives a killed process.

    An incomplete last line is cut off and its task runs again. Keys depend on the code and on every
    setting, so results of another experiment are never reused. Doubles read back bit for bit.
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

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):  # every result was flushed, or its failure was raised
            self._file.close()

    def _read(self) -> None:
        self._file.seek(0)
        complete = 0
        for line in self._file:
            if not line.endswith(b"\n"):
                # Cut off when a process was killed, unless it is another program's file.
                if not (line.startswith(_LINE_START) or _LINE_START.startswith(line)):
                    raise InvalidSetting(
                        f"{self.path} is not a file of results; choose another directory."
                    )
                break
            complete += len(line)
            with suppress(ValueError, KeyError, TypeError, RecursionError):
                entry = json.loads(line)
                self.results[entry["key"]] = entry["result"]
        self._file.truncate(complete)

    def add(self, task: Task, result: dict[str, Any]) -> None:
        """Append one result and hand it to the operating system."""
        key = result_key(task)
        # The task is for human readers; only the key is used.
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
    """Allow one process at a time to write here, on systems with file locks."""
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
    results_path: Path | None = None,
    progress: bool = False,
) -> list[dict[str, Any]]:
    """Run the tasks and return their results in the order of the tasks.

    With ``results_path``, results are appended to that file as they arrive, and those already there
    are not computed again.
    """
    results: list[dict[str, Any] | None] = [None] * len(tasks)
    with nullcontext() if results_path is None else ResultsFile(results_path) as store:
        if store is not None:
            stored = [store.results.get(result_key(task)) for task in tasks]
            results = [
                result if result is not None and task.accepts(result) else None
                for task, result in zip(tasks, stored, strict=True)
            ]
        # Longest first, so that no long task runs alone at the end.
        missing = [index for index, result in enumerate(results) if result is None]
        missing.sort(key=lambda index: -tasks[index].weight)
        total = sum(task.weight for task in tasks)
        with progress_bar(label, total if missing else 0, wanted=progress) as advance:
            advance(total - sum(tasks[index].weight for index in missing))
            work = executor([tasks[index] for index in missing])
            with closing(cast("Generator[tuple[int, dict[str, Any]]]", work)) as finished:
                for position, result in finished:
                    index = missing[position]
                    results[index] = result
                    if store is not None:
                        store.add(tasks[index], result)
                    advance(tasks[index].weight)
    return cast("list[dict[str, Any]]", results)


@dataclass
class ExperimentRun:
    """The options of an experiment, and the files it has written."""

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
        """Run the tasks that have no stored result yet, and return all results."""
        executor = make_executor(
            available_cores() if self.workers is None else self.workers, self.cluster
        )
        results_path = Path(self.out) / RESULTS_NAME
        return run_tasks(
            tasks, executor, label=label, results_path=results_path, progress=self.progress
        )

    def write(self, name: str, content: bytes | str) -> None:
        """Write a file atomically."""
        path = Path(self.out) / name
        encoded = content.encode() if isinstance(content, str) else content
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            atomic_write(path, encoded, private=False)
        except OSError as error:
            raise InvalidSetting(f"{path} cannot be written: {error.strerror}.") from None
        self.written.append(path)

    def write_csv(self, name: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Write rows with the columns of the first; numbers read back bit for bit."""
        text = io.StringIO()
        table = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
        table.writeheader()
        table.writerows(rows)
        self.write(name, text.getvalue())


def run(
    mechanisms: Any,
    analysts: Any,
    *,
    n: int | Iterable[int],
    k: int | Iterable[int],
    repetitions: int = 10,
    seed: int = 0,
    workers: int = 1,
    cluster: str | None = None,
    progress: bool = False,
) -> list[GameRow]:
    """Let every analyst play against every mechanism and return one row a repetition.

    Parameters
    ----------
    mechanisms
        One or several of: a Mechanism, a function of (n, k) that returns one, a name, or
        ``"module:name"``; or a mapping from labels to any of these.
    analysts
        One or several of: an Analyst, a function ``play(game)``, a name, or ``"module:name"``; or
        a mapping from labels to any of these.
    n, k
        Examples in the holdout and questions, a number or several; every combination is played.
    repetitions
        How often each pair plays.
    seed
        The same seed gives the same rows on any number of workers or machines, except ``seconds``.
    workers
        How many processes; 1 runs in this process.
    cluster
        The address of a Dask scheduler, ``"tcp://HOST:PORT"``, to use its workers instead.
    progress
        Whether to show a progress bar on a terminal.

    Notes
    -----
    The seed of a repetition does not depend on the mechanism: all mechanisms face the same holdouts
    and the same random choices.

    Examples
    --------
    >>> import ladderboard as lb
    >>> rows = run(["exact", "shaky_ladder"], "majority", n=1_000, k=100, repetitions=3)
    >>> [(row.mechanism, round(row.bias, 2)) for row in rows]
    [('exact', 0.09), ('exact', 0.1), ('exact', 0.08),
     ('shaky_ladder', -0.0), ('shaky_ladder', 0.03), ('shaky_ladder', 0.02)]
    """
    sizes = list(product(parse_sizes("n", n), parse_sizes("k", k)))
    count = _settings.integer("repetitions", repetitions, at_least=1)
    tasks = make_matches(
        resolve_mechanisms(mechanisms),
        resolve_analysts(analysts),
        sizes,
        lambda *_: count,
        _settings.integer("seed", seed, at_least=0),
    )
    results = run_tasks(tasks, make_executor(workers, cluster), label="arena", progress=progress)
    return [GameRow.from_json(result) for result in results]


def parse_sizes(name: str, sizes: Any) -> list[int]:
    """Return one size or several as a list without repeats."""
    several = isinstance(sizes, Iterable) and not isinstance(sizes, (str, bytes, Mapping))
    integers = [_settings.integer(name, n, at_least=1) for n in (sizes if several else [sizes])]
    if not integers:
        raise InvalidSetting(f"{name} must be a whole number or several; got none.")
    return list(dict.fromkeys(integers))


def make_matches(
    factories: dict[str, MechanismFactory],
    analysts: dict[str, Analyst],
    sizes: Iterable[tuple[int, int]],
    repetitions: Callable[[str, str, int, int], int],
    seed: int,
) -> list[Match]:
    """Return all matches in the order of the rows."""
    matches = []
    for n, k in sizes:
        mechanisms = {label: make(n, k) for label, make in factories.items()}
        for name, analyst in analysts.items():
            for label, mechanism in mechanisms.items():
                matches += [
                    Match((label, name), mechanism, analyst, n, k, repetition, seed)
                    for repetition in range(repetitions(label, name, n, k))
                ]
    return matches
