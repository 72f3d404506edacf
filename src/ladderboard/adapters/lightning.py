"""Lightning: stop a training when a guard sees no improvement, and keep the winner's checkpoint."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from ladderboard.adapters import import_library
from ladderboard.adapters._stopping import Stopping
from ladderboard.errors import LadderboardError

if TYPE_CHECKING:
    from collections.abc import Callable

    from ladderboard.holdout import Guard, Judgement

_Callback: Any = import_library("lightning.pytorch", extra="lightning").Callback


class GuardStopping(Stopping, _Callback):  # type: ignore[misc]  # Any: not installed for mypy
    """A callback for ``lightning.Trainer``, which checks after every validation.

    ``monitor`` is a metric that the module logs, ``"val_loss"``. ``best_model_path`` is the
    checkpoint of the winner, the only one that is kept. ``winner`` is its judgement, named by the
    global step, and ``reason`` says why training was stopped; None if it was not. With several
    processes (DDP) the first one asks and sends the result to the others.

    Parameters
    ----------
    guard, predict, run, monitor, mode, patience, min_delta
        As everywhere, see docs/how-to/early-stopping.md; ``predict`` gets the module,
        in evaluation mode and without gradients.
    dirpath
        The folder for the checkpoint; by default that of the trainer's logger.
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
        dirpath: str | Path | None = None,
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
        self.dirpath = dirpath
        self.best_model_path = ""
        self._file = re.sub(r"[^\w.-]+", "-", f"winner-{run}" if run else "winner")

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        """Ask if the monitored score sets a record; save a winner; stop when there is a reason."""
        if trainer.sanity_checking or trainer.fast_dev_run or trainer.state.fn != "fit":
            return
        answer = self._ask(trainer, pl_module) if trainer.is_global_zero else None
        # The other processes wait here, so an error must reach them too.
        answer = trainer.strategy.broadcast(answer)
        if answer.error is not None:
            raise answer.error
        self.reason = answer.reason
        if answer.winner is not None:
            self.winner = answer.winner
            self._save_checkpoint(trainer, answer.winner.name)
        if self.reason is not None:
            trainer.should_stop = True

    def _ask(self, trainer: Any, module: Any) -> _BroadcastAnswer:
        try:
            score = self.monitored_score(trainer.callback_metrics.items())
            won = self.check(float(score), module, step=trainer.global_step)
        except Exception as error:  # noqa: BLE001 - raised again in every process
            return _BroadcastAnswer(None, None, _picklable_error(error, trainer.world_size))
        return _BroadcastAnswer(self.winner if won else None, self.reason, None)

    def _save_checkpoint(self, trainer: Any, step: int) -> None:
        folder = Path(self.dirpath or trainer.log_dir or trainer.default_root_dir)
        previous, path = self.best_model_path, str(folder / f"{self._file}-step={step}.ckpt")
        trainer.save_checkpoint(path, weights_only=False)  # in every process
        self.best_model_path = path
        if previous and previous != path and trainer.is_global_zero:
            trainer.strategy.remove_checkpoint(previous)


class _BroadcastAnswer(NamedTuple):
    """What the asking process sends to the others."""

    winner: Judgement | None
    reason: str | None
    error: Exception | None


def _picklable_error(error: Exception, processes: int) -> Exception:
    """Return the error itself; with several processes, one that can always be pickled."""
    return error if processes == 1 else LadderboardError(f"{type(error).__name__}: {error}")
