"""Plays every analyst against every mechanism."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import product
from typing import TYPE_CHECKING, Any

from ladderboard import _settings
from ladderboard.arena._runner._participants import resolve_analysts, resolve_mechanisms
from ladderboard.arena._runner._sweep import make_executor, run_tasks
from ladderboard.arena._runner._task import GameRow, Match
from ladderboard.errors import InvalidSetting

if TYPE_CHECKING:
    from collections.abc import Callable

    from ladderboard.analysts import Analyst
    from ladderboard.arena._runner._participants import MechanismFactory


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
