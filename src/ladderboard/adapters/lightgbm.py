"""LightGBM: stop boosting when a guard sees no improvement, and take the winner."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ladderboard.adapters import import_library
from ladderboard.adapters._stopping import Stopping
from ladderboard.errors import InvalidSetting

if TYPE_CHECKING:
    from collections.abc import Sequence

lightgbm = import_library("lightgbm", extra="lightgbm")


class GuardStopping(Stopping):
    """A callback for ``lightgbm.train`` and for the estimators of ``lightgbm.sklearn``.

    ``monitor`` is a data set's name and a metric, ``"valid_0-binary_logloss"``. The winner becomes
    the booster's ``best_iteration``, which LightGBM predicts with, even if training was not
    stopped. ``winner`` is its judgement, named by the iteration from 0, and ``reason`` says why
    boosting was stopped; None if it was not.

    Parameters
    ----------
    guard, predict, run, monitor, mode, patience, min_delta
        As everywhere, see docs/how-to/early-stopping.md; ``predict`` gets the booster.
    """

    _scores: Sequence[Any] = ()

    @property
    def order(self) -> int:
        """That of LightGBM's own early stopping: after callbacks that record or print scores."""
        return 30  # a property, so that LightGBM cannot overwrite it in ``__dict__``

    def __call__(self, env: Any) -> None:
        """Ask if the monitored score sets a record; stop training when patience or budget ends."""
        if env.iteration == env.begin_iteration:
            _check_training(env)
        scores = list(env.evaluation_result_list or ())
        monitored = self.monitored_score((f"{score[0]}-{score[1]}", score) for score in scores)
        more_is_better = bool(monitored[3])
        if more_is_better != (self.judge.mode == "max"):
            raise InvalidSetting(
                f"mode must agree with LightGBM, which for {self.monitor} has "
                f'"{"max" if more_is_better else "min"}".'
            )
        if self.check(monitored[2], env.model, step=env.iteration):
            self._scores = scores
        is_last = env.iteration == env.end_iteration - 1
        if self.winner is None:
            if self.reason is not None:
                raise _early_stop(env.iteration, scores)
        elif is_last or self.reason is not None:
            raise _early_stop(self.winner.name, self._scores)


def _check_training(env: Any) -> None:
    if isinstance(env.model, lightgbm.CVBooster):
        raise InvalidSetting(
            "The guard is asked about one model; cross-validation trains one for each fold. "
            "Search with lightgbm.cv without this callback, then train one model with it."
        )
    if any(env.params.get(name) == "dart" for name in ("boosting", "boosting_type", "boost")):
        raise InvalidSetting(
            "boosting must not change earlier trees, so that the winner can be restored; got dart."
        )
    machines = env.params.get("num_machines", 1)
    if machines > 1:
        raise InvalidSetting(
            f"Only one process may ask the guard; this training uses {machines}. Train with one "
            "machine."
        )


def _early_stop(best: int, scores: Sequence[Any]) -> Exception:
    return lightgbm.callback.EarlyStopException(best, scores)
