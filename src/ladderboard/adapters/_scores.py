"""Scores of an evaluation run, one for each example, as an evaluation log records them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ladderboard._formatting import format_count
from ladderboard.errors import InvalidPredictions, InvalidSetting
from ladderboard.files import Problems, format_names

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Scores:
    """A score in [0, 1] for each example of a run, 1 the best.

    ``ids`` name the examples. ``metric`` is the name of the score; ``task`` and ``model`` are empty
    if the log does not name them. ``dataset_size`` is the number of examples in the whole dataset,
    None if the log does not state it: a run with a limit has fewer ids.

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
    The best is now score 0.75. 4 questions left.
    """

    ids: tuple[str, ...]
    values: NDArray[np.float64]
    metric: str
    task: str = ""
    model: str = ""
    dataset_size: int | None = None

    @property
    def mean(self) -> float:
        """The exact mean score; for the evaluator only, as it bypasses the guard."""
        return float(self.values.mean())

    @property
    def table(self) -> dict[str, Any]:
        """The columns that a guard or a board of scores takes."""
        return {"id": list(self.ids), "score": self.values}

    def ask(self, guard: Any, **options: Any) -> Any:
        """Submit the scores to a guard or a board that takes scores.

        The guard refuses missing and unknown ids, so an incomplete run is not counted.
        """
        self.check(guard)
        return guard.ask(self.table, **options)

    def check(self, guard: Any) -> None:
        """Refuse a guard or a board that takes predictions."""
        if guard.takes == "scores":
            return
        kind, remedy = "guard", "ladderboard guard create NEW.db --inspect LOG --questions K"
        if hasattr(guard, "board"):
            kind, remedy = "board", "`loss: score` in its board.yaml"
        raise InvalidSetting(
            f"This {kind} takes predictions, and scores from a log cannot share a ladder with "
            f"them. Create a {kind} for scores with {remedy}."
        )

    def __len__(self) -> int:
        return len(self.ids)


class LogProblems:
    """Collects a log's problems: the broken rules, and the samples that break them."""

    def __init__(self, noun: str) -> None:
        self._noun = noun
        self._samples: dict[tuple[str, str], list[str]] = {}

    def add(self, code: str, rule: str, name: object) -> None:
        """Record a sample that breaks a rule."""
        self._samples.setdefault((code, rule), []).append(str(name))

    def refuse_if_any(self) -> None:
        """Refuse the log, listing each broken rule with its first ten samples."""
        problems = Problems(InvalidPredictions)
        for (code, rule), names in self._samples.items():
            message = f"{rule}: {format_count(len(names), self._noun)} ({format_names(names)})."
            problems.add(code, message, count=len(names), ids=names)
        problems.refuse_if_any()


def to_score(value: Any) -> float | None:
    """Return a number or a bool as a score: NaN for a missing one, None for an invalid one.

    >>> to_score(True), to_score(0.5), to_score(2), to_score([1])
    (1.0, 0.5, None, None)
    """
    if not isinstance(value, Real):  # a bool is Real too
        return None
    number = float(value)
    return number if math.isnan(number) or 0 <= number <= 1 else None


def check_log_file(path: Path | str, kind: str, names: str, patterns: Sequence[str] = ()) -> Path:
    """Return the path of a log; refuse a folder, naming the logs in it, or a missing file."""
    path = Path(path)
    if path.is_dir():
        logs = sorted(file.name for pattern in patterns for file in path.rglob(pattern))
        hint = f" It contains {format_names(logs)}." if logs else ""
        raise InvalidSetting(f"{path} is a folder; give {kind}, {names}.{hint}")
    if not path.is_file():
        raise InvalidSetting(f"There is no file {path}; give {kind}, {names}.")
    return path
