"""Early stopping by a guard: the base class of the callbacks for all training libraries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from ladderboard import _settings
from ladderboard._formatting import format_count
from ladderboard.errors import InvalidSetting
from ladderboard.holdout import Guard, Judge, Judgement

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


class Stopping:
    """Asks a guard when a training's own score sets a record; decides when to stop and what won.

    Parameters
    ----------
    guard
        A guard, or any other object that :class:`ladderboard.Judge` accepts.
    predict
        Returns the current model's predictions; called for records only.
    run
        The name of this run. Each run has its own ladder, so it need not beat earlier runs. The
        guard must have been created with as many ladders as there are runs. None asks on the guard
        as it is, which is required with a board.
    monitor
        The score that decides when to ask, by the library's name for it.
    mode
        Whether that score is better when it is less (``"min"``) or more (``"max"``).
    patience
        Stop after this many checks without an improvement that the guard confirmed.
    min_delta
        A score must beat the record by more than this to be asked about.
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
        self.winner: Judgement | None = None
        self.reason: str | None = None

    def check(self, score: float, model: Any, *, step: int) -> bool:
        """Ask about the model if its score is a record; return whether it is the winner now."""
        judgement = self.judge.consider(score, lambda: self.predict(model), name=step)
        won = judgement is not None and judgement is self.judge.winner
        if won:
            self.winner = judgement
        if self.reason is not None:  # a library may train on for a while; keep the first reason
            return won
        if self.judge.budget_spent:
            self.reason = "The budget is spent: no questions left."
        elif self.judge.checks_without_improvement >= self.patience:
            checks = format_count(self.patience, "check")
            self.reason = f"In {checks} of {self.monitor} the guard measured no improvement."
        return won

    def monitored_score(self, scores: Iterable[tuple[str, Any]]) -> Any:
        """Return the monitored score; refuse if it is missing, naming those that exist."""
        by_name = dict(scores)
        if self.monitor in by_name:
            return by_name[self.monitor]
        names = ", ".join(sorted(by_name)) or "none"
        raise InvalidSetting(
            f"monitor must name a score of this training; got {_settings.safe_repr(self.monitor)}, "
            f"and the scores are: {names}."
        )


def _guard_for_run(guard: Any, run: str | None) -> Guard:
    if run is None:
        return guard
    if not hasattr(guard, "ladder"):
        raise InvalidSetting(
            f"run must be None for a guard with one ladder only, such as a board; "
            f"got {_settings.safe_repr(run)}."
        )
    return guard.ladder(run)
