"""The conformance suite of callbacks that stop trainings."""

from __future__ import annotations

import inspect
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from ladderboard.adapters import Stopping
from ladderboard.holdout import Holdout
from ladderboard.mechanisms import Ladder
from ladderboard.testing._assertions import require

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_LABELS = np.arange(200) % 2
_QUESTIONS = 5
_PATIENCE = 3


def check_stopping(
    kind: Callable[..., Any], play: Callable[[Any, Any], None], *, monitor: str = "loss"
) -> None:
    """Check that a training library's callback meets the requirements of early stopping.

    Parameters
    ----------
    kind
        The callback's class; it takes the parameters of :class:`ladderboard.adapters.Stopping`.
    play
        ``play(callback, scores)`` trains with the library and the callback for ``len(scores)``
        steps, or until the callback stops it. The library's monitored score in each step is
        ``next(scores)``. The model does not matter.
    monitor
        The name of that score.

    Examples
    --------
    Without any library, on the base class of all callbacks:

    >>> from ladderboard.adapters import Stopping
    >>> def play(callback, scores):
    ...     for step in range(len(scores)):
    ...         callback.check(next(scores), "a model", step=step)
    ...         if callback.reason is not None:
    ...             break
    >>> check_stopping(Stopping, play)
    """
    _check_signature(kind)
    harness = _TrainingHarness(kind, play, monitor)
    _check_asks_at_records(harness)
    _check_patience(harness)
    _check_ladders(harness)
    _check_budget(harness)


class _ScoreSequence:
    """Scores, one for each step, which counts the steps."""

    def __init__(self, scores: list[float]) -> None:
        self._scores = scores
        self.steps = 0

    def __len__(self) -> int:
        return len(self._scores)

    def __iter__(self) -> Iterator[float]:
        return self

    def __next__(self) -> float:
        require(self.steps < len(self._scores), "play must take one score a step, and no more.")
        self.steps += 1
        return self._scores[self.steps - 1]


class _TrainingHarness:
    """Runs trainings; a model is the library's own score and its number of errors among 200."""

    def __init__(self, kind: Callable[..., Any], play: Callable[..., None], monitor: str) -> None:
        self._kind, self._play, self._monitor = kind, play, monitor

    @contextmanager
    def guard(self) -> Iterator[Holdout]:
        with TemporaryDirectory() as folder:
            path = Path(folder, "guard.db")
            guard = Holdout.create(
                path, _LABELS, questions=_QUESTIONS, ladders=3, mechanism=Ladder(step=0.02)
            )
            try:
                yield guard
            finally:
                guard.close()

    def train(
        self, guard: Holdout, models: list[tuple[float, int]], **settings: Any
    ) -> tuple[Any, list[int], int]:
        """Return the callback, the steps at which it asked for predictions, and their number."""
        asked_steps: list[int] = []
        scores = _ScoreSequence([score for score, _ in models])

        def predict(_: Any) -> Any:
            asked_steps.append(scores.steps - 1)
            wrong = models[scores.steps - 1][1]
            return np.where(np.arange(len(_LABELS)) < wrong, 1 - _LABELS, _LABELS)

        arguments = {"run": "a", "monitor": self._monitor, "patience": _PATIENCE} | settings
        callback = self._kind(guard, predict, **arguments)
        self._play(callback, scores)
        return callback, asked_steps, scores.steps


def _check_signature(kind: Callable[..., Any]) -> None:
    parameters = inspect.signature(kind).parameters
    for name, parameter in inspect.signature(Stopping).parameters.items():
        require(name in parameters, f"A callback must take {name}, as all others do.")
        require(
            (parameters[name].kind, parameters[name].default)
            == (parameter.kind, parameter.default),
            f"{name} must be given as in all other callbacks: {parameter}.",
        )


def _check_asks_at_records(harness: _TrainingHarness) -> None:
    models = [(0.5, 90), (0.6, 10), (0.4, 60), (0.45, 0)]
    with harness.guard() as guard:
        callback, asked_steps, steps = harness.train(guard, models)
        require(
            asked_steps == [0, 2],
            "Predictions must be made at records of the score, and only then.",
        )
        require(guard.remaining == _QUESTIONS - 2, "A record must cost one question.")
        require(steps == len(models), "Training must go on while there is patience.")
        require(callback.reason is None, "reason must be None if training was not stopped.")
        _check_winner(callback, 2)
    with harness.guard() as guard:
        _, asked_steps, _ = harness.train(guard, models, mode="max")
        require(asked_steps == [0, 1], 'With mode="max" more must be better.')
    with harness.guard() as guard:
        _, asked_steps, _ = harness.train(guard, models, min_delta=0.2)
        require(asked_steps == [0], "A gain that is not above min_delta must not be asked about.")


def _check_patience(harness: _TrainingHarness) -> None:
    models = [(0.5, 90), (0.4, 60), (0.3, 61), (0.35, 20), (0.36, 0), (0.1, 0), (0.05, 0)]
    with harness.guard() as guard:
        callback, _, steps = harness.train(guard, models)
        require(
            steps == 2 + _PATIENCE,
            "After patience checks without an improvement that the guard saw, training must stop.",
        )
        require(callback.reason is not None, "A stopped training must have a reason.")
        _check_winner(callback, 2)
        remaining = guard.remaining
        harness.train(guard, models)
        require(guard.remaining == remaining, "Repeating a run must cost nothing.")


def _check_budget(harness: _TrainingHarness) -> None:
    models = [(-float(step), 90 - 10 * step) for step in range(9)]
    with harness.guard() as guard:
        callback, _, steps = harness.train(guard, models)
        require(steps < len(models), "A spent budget must stop the training, not break it.")
        require("budget" in str(callback.reason), "The reason must say that the budget is spent.")
        _check_winner(callback, _QUESTIONS)
        late, _, steps = harness.train(guard, models, run="b")
        require(steps == 1, "A budget that was spent before must stop the training at once.")
        require(late.winner is None, "Without an answer there must be no winner.")


def _check_ladders(harness: _TrainingHarness) -> None:
    with harness.guard() as guard:
        first, _, _ = harness.train(guard, [(0.1, 10)], run="a")
        second, _, _ = harness.train(guard, [(0.4, 80)], run="b")
        require(
            first.winner is not None and second.winner is not None,
            "A run must have its own ladder, and need not beat earlier runs.",
        )
        require(second.winner.reply.ladder == "b", "A run must ask on the ladder of its name.")


def _check_winner(callback: Any, question: int) -> None:
    winner = callback.winner
    require(
        winner is not None and winner.reply.question == question,
        "The winner must be the last question that improved.",
    )
