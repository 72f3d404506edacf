"""Scores: what an evaluator gave to each example, as its log tells."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ladderboard._formatting import format_count
from ladderboard.errors import InvalidPredictions, InvalidSetting
from ladderboard.files import Problems, listed

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Scores:
    """A score in [0, 1] for each example of a run, 1 the best.

    ``ids`` name the examples. ``metric`` is the name of the score; ``task`` and ``model`` are empty
    if the log does not name them. ``dataset_size`` is the number of examples in the whole dataset,
    None if the log does not tell: a run with a limit has fewer ids.

    Examples
    --------
    >>> import tempfile, pathlib, numpy as np, ladderboard as lb
    >>> scores = Scores(("a", "b"), np.array([1.0, 0.5]), "match")
    >>> scores.mean
    0.75
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     guard = lb.Holdout.create(pathlib.Path(folder) / "guard.db", ids=scores.ids,
    ...                               loss="score", questions=5, mechanism="exact")
    ...     print(scores.ask(guard))
    The best is now 0.25; 4 questions left.
    """

    ids: tuple[str, ...]
    values: NDArray[np.float64]
    metric: str
    task: str = ""
    model: str = ""
    dataset_size: int | None = None

    @property
    def mean(self) -> float:
        """The mean score, exact: for whoever evaluates, and nobody who searches."""
        return float(self.values.mean())

    @property
    def table(self) -> dict[str, Any]:
        """The columns that a guard or a board of scores is asked with."""
        return {"id": list(self.ids), "score": self.values}

    def ask(self, guard: Any, **options: Any) -> Any:
        """Ask a guard of scores, or a board of them; one that takes predictions is refused.

        Its ids decide whether the run is whole: missing and unknown ones are refused.
        """
        self.check(guard)
        return guard.ask(self.table, **options)

    def check(self, guard: Any) -> None:
        """Refuse a guard, or a board that a client shows as one, that takes predictions."""
        if guard.takes == "scores":
            return
        what, made = "guard", "ladderboard guard create NEW.db --inspect LOG --questions K"
        if hasattr(guard, "board"):
            what, made = "board", "`loss: score` in its board.yaml"
        raise InvalidSetting(
            f"This {what} takes predictions, and scores from a log never share a ladder with "
            f"them. One for scores is made with {made}."
        )

    def __len__(self) -> int:
        return len(self.ids)


class LogProblems:
    """What is wrong with the samples of a log: rules that are broken, and by which."""

    def __init__(self, noun: str) -> None:
        self._noun = noun
        self._found: dict[tuple[str, str], list[str]] = {}

    def add(self, code: str, rule: str, name: object) -> None:
        """Note one sample that breaks a rule."""
        self._found.setdefault((code, rule), []).append(str(name))

    def refuse_if_any(self) -> None:
        """Refuse the log, with every rule that is broken and the first ten that break it."""
        problems = Problems(InvalidPredictions)
        for (code, rule), names in self._found.items():
            said = f"{rule}: {format_count(len(names), self._noun)} ({listed(names)})."
            problems.add(code, said, count=len(names), ids=names)
        problems.refuse_if_any()


def to_score(value: Any) -> float | None:
    """Return a number or a truth value as a score: NaN for none, None for what is no score.

    >>> to_score(True), to_score(0.5), to_score(2), to_score([1])
    (1.0, 0.5, None, None)
    """
    if not isinstance(value, Real):  # bool is one, too
        return None
    number = float(value)
    return number if math.isnan(number) or 0 <= number <= 1 else None


def check_log_file(path: Path | str, what: str, names: str, beside: Sequence[str] = ()) -> Path:
    """Return the path of a log, if it is a file; refuse anything else with what to give."""
    path = Path(path)
    if path.is_dir():
        there = sorted(each.name for pattern in beside for each in path.rglob(pattern))
        found = f" There is {listed(there)}." if there else ""
        raise InvalidSetting(f"{path} is a folder; give one {what}, {names}.{found}")
    if not path.is_file():
        raise InvalidSetting(f"There is no file {path}; give {what}, {names}.")
    return path
