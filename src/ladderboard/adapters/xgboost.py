"""XGBoost: stop boosting when a guard sees no improvement, and take the winner."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Literal

from ladderboard.adapters import import_library
from ladderboard.adapters._stopping import Stopping
from ladderboard.errors import InvalidSetting

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ladderboard.holdout import Guard

xgboost = import_library("xgboost", extra="xgboost")
_Callback: Any = xgboost.callback.TrainingCallback


class GuardStopping(Stopping, _Callback):  # type: ignore[misc]  # Any: not installed for mypy
    """A callback for ``xgboost.train`` and for the estimators of ``xgboost.sklearn``.

    ``monitor`` is a score as XGBoost prints it, ``"valid-logloss"``. The winner is the booster's
    ``best_iteration``, which estimators predict with; ``save_best=True`` leaves out all trees
    after it. ``winner`` is its judgement, named by the iteration, and ``reason`` says why boosting
    was stopped; None if it was not.

    Parameters
    ----------
    guard, predict, run, monitor, mode, patience, min_delta
        As everywhere, see docs/how-to/early-stopping.md; ``predict`` gets the booster.
    save_best
        Whether the model that training returns ends with the winner.
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
        save_best: bool = False,
    ) -> None:
        super().__init__(
            guard,
            predict,
            run=run,
            monitor=monitor,
            patience=patience,
            mode=mode,
            min_delta=min_delta,
        )
        self.save_best = save_best
        self._start = 0

    def before_training(self, model: Any) -> Any:
        """Refuse unsupported trainings, and count the trees that the model already has."""
        if not isinstance(model, xgboost.Booster):
            raise InvalidSetting(
                "The guard is asked about one model; cross-validation trains one for each fold. "
                "Search with xgboost.cv without this callback, then train one model with it."
            )
        if xgboost.collective.is_distributed():
            raise InvalidSetting(
                "Only one process may ask the guard; this training uses "
                f"{xgboost.collective.get_world_size()}. Train with one worker."
            )
        kind = json.loads(model.save_config())["learner"]["gradient_booster"]["name"]
        if kind != "gbtree":
            raise InvalidSetting(
                f"booster must be gbtree, whose earlier iterations can be restored; got {kind}."
            )
        self._start = model.num_boosted_rounds()
        return model

    def after_iteration(
        self, model: Any, epoch: int, evals_log: Mapping[str, Mapping[str, Sequence[float]]]
    ) -> bool:
        """Ask if the monitored score sets a record; return whether to stop."""
        score = self.monitored_score(
            (f"{data}-{metric}", values[-1])
            for data, metrics in evals_log.items()
            for metric, values in metrics.items()
        )
        step = epoch + self._start
        if self.check(score, model, step=step):
            model.set_attr(best_iteration=str(step), best_score=str(score))
        return self.reason is not None

    def after_training(self, model: Any) -> Any:
        """Return the model, with ``save_best`` only up to the winner."""
        if not self.save_best or self.winner is None:
            return model
        best = model[: self.winner.name + 1]
        best.set_attr(best_iteration=str(self.winner.name), best_score=str(self.winner.score))
        return best
