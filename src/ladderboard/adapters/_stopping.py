"""Stopping a training early: what the callbacks of all training libraries have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from ladderboard import _settings
from ladderboard.errors import InvalidSetting
from ladderboard.holdout import Guard, Judge, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


class Stopping:
    """Asks a guard when a training's own score sets a record; says when to stop, and who won.

    Parameters
    ----------
    guard
        A guard, or whatever else a :class:`ladderboard.Judge` can ask.
    predict
        Makes the predictions to ask about from the model as it is; called for records only.
    run
        The name of this run: each has a ladder of its own, and need not beat the ones before it.
        The guard must have been made with as many ladders as there are runs. None asks on the guard
        as it is, which is the only way with a board.
    monitor
        The score that decides when to ask, under the name that the library gives it.
    mode
        Whether that score is better when it is less (``"min"``) or more (``"max"``).
    patience
        After how many checks without an improvement that the guard saw to stop.
    min_delta
        By how much more than this a score must beat the record to be asked about.
    """

    def __init__(
        self,
        guard: Guard,
        predict: Callable[[Any], Any],
        *,
        run: str | None,
        monitor: str,
        patience: int,
        mode: Literal["min", "max"] = "min",
        min_delta: float = 0.0,
    ) -> None:
        if not callable(predict):
            raise InvalidSetting(
                "predict must be a function from the model to its predictions; "
                f"got {_settings.safe_repr(predict)}."
            )
        self.judge = Judge(_guard_for_run(guard, run), mode=mode, min_delta=min_delta)
        self.predict = predict
        self.monitor = monitor
        self.patience = _settings.integer("patience", patience, at_least=1)
        self.winner: Verdict | None = None
        self.reason: str | None = None

    def check(self, score: float, model: Any, *, step: int) -> bool:
        """Consider the model at a step; return whether it is the winner now."""
        verdict = self.judge.consider(score, lambda: self.predict(model), name=step)
        won = verdict is not None and verdict is self.judge.winner
        if won:
            self.winner = verdict
        if self.reason is not None:  # a library may go on for a while; the first reason stands
            return won
        if self.judge.spent:
            self.reason = "The budget is spent: no question is left to ask."
        elif self.judge.stale >= self.patience:
            checks = "1 check" if self.patience == 1 else f"{self.patience} checks"
            self.reason = f"In {checks} of {self.monitor} the guard saw no improvement."
        return won

    def monitored_score(self, scores: Iterable[tuple[str, Any]]) -> Any:
        """Return the monitored one of the scores, or say which there are."""
        there = dict(scores)
        if self.monitor in there:
            return there[self.monitor]
        names = ", ".join(sorted(there)) or "none at all"
        raise InvalidSetting(
            f"monitor must name a score of this training; got {_settings.safe_repr(self.monitor)}, "
            f"and there is: {names}."
        )


def _guard_for_run(guard: Any, run: str | None) -> Guard:
    if run is None:
        return guard
    if not hasattr(guard, "ladder"):
        raise InvalidSetting(
            f"run must be None where there is one ladder only, as on a board; "
            f"got {_settings.safe_repr(run)}."
        )
    return guard.ladder(run)
