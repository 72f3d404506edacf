"""Run: every mechanism against every analyst."""

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
        The same seed gives the same rows, however many workers there are and wherever they work;
        only ``seconds`` differs.
    workers
        How many processes; 1 is this one.
    cluster
        The address of a Dask scheduler, ``"tcp://HOST:PORT"``, to play there instead.
    progress
        Whether to show a bar, if there is a terminal.

    Notes
    -----
    A pair's repetitions have seeds that do not depend on the mechanism: all mechanisms meet the
    same holdouts and the same luck.

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
    found = run_tasks(tasks, make_executor(workers, cluster), label="arena", progress=progress)
    return [GameRow.from_json(each) for each in found]


def parse_sizes(name: str, given: Any) -> list[int]:
    """Return one size or several as a list without repeats."""
    several = isinstance(given, Iterable) and not isinstance(given, (str, bytes, Mapping))
    sizes = [_settings.integer(name, each, at_least=1) for each in (given if several else [given])]
    if not sizes:
        raise InvalidSetting(f"{name} must be a whole number or several; got none.")
    return list(dict.fromkeys(sizes))


def make_matches(
    makers: dict[str, MechanismFactory],
    analysts: dict[str, Analyst],
    sizes: Iterable[tuple[int, int]],
    repetitions: Callable[[str, str, int, int], int],
    seed: int,
) -> list[Match]:
    """Return all matches in the order of the rows."""
    found = []
    for n, k in sizes:
        made = {label: make(n, k) for label, make in makers.items()}
        for name, analyst in analysts.items():
            for label, mechanism in made.items():
                found += [
                    Match((label, name), mechanism, analyst, n, k, repetition, seed)
                    for repetition in range(repetitions(label, name, n, k))
                ]
    return found
