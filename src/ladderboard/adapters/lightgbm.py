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
    the booster's ``best_iteration``, which LightGBM predicts with, also where training was not
    stopped. ``winner`` is its verdict, named by the iteration from 0, and ``reason`` says why
    boosting was stopped; None if it was not.

    Parameters
    ----------
    guard, predict, run, monitor, mode, patience, min_delta
        As in every training library, see docs/reference/training.md; ``predict`` gets the booster.
    """

    _scores: Sequence[Any] = ()

    @property
    def order(self) -> int:
        """After those that write down or print scores, with LightGBM's own early stopping."""
        return 30  # a property: what LightGBM itself puts into ``__dict__`` does not count then

    def __call__(self, env: Any) -> None:
        """Ask if the monitored score sets a record; end the training when it is time."""
        if env.iteration == env.begin_iteration:
            _check(env)
        scores = list(env.evaluation_result_list or ())
        found = self.monitored_score((f"{score[0]}-{score[1]}", score) for score in scores)
        more_is_better = bool(found[3])
        if more_is_better != (self.judge.mode == "max"):
            raise InvalidSetting(
                f"mode must fit what LightGBM knows of {self.monitor}; "
                f'it takes "{"max" if more_is_better else "min"}".'
            )
        if self.check(found[2], env.model, step=env.iteration):
            self._scores = scores
        last = env.iteration == env.end_iteration - 1
        if self.winner is None:
            if self.reason is not None:
                raise _stop(env.iteration, scores)
        elif last or self.reason is not None:
            raise _stop(self.winner.name, self._scores)


def _check(env: Any) -> None:
    if isinstance(env.model, lightgbm.CVBooster):
        raise InvalidSetting(
            "The guard is asked about one model; cross-validation trains one for each fold. "
            "Search with lightgbm.cv without this callback, then train one model with it."
        )
    if any(env.params.get(name) == "dart" for name in ("boosting", "boosting_type", "boost")):
        raise InvalidSetting(
            "boosting must be one that leaves earlier trees as they are, so that the winner can be "
            "had again; got dart."
        )
    machines = env.params.get("num_machines", 1)
    if machines > 1:
        raise InvalidSetting(
            "The guard is asked by one process; this training is spread over "
            f"{machines}. Train with one machine."
        )


def _stop(best: int, scores: Sequence[Any]) -> Exception:
    return lightgbm.callback.EarlyStopException(best, scores)
