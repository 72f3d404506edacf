"""Lightning's own trainer, stopped by a guard; also in two processes."""

from __future__ import annotations

import json

import lightning
import pytest
import torch

from ladderboard.adapters.lightning import GuardStopping
from ladderboard.errors import InvalidPredictions, InvalidSetting
from ladderboard.testing import check_stopping
from support.adapters.lightning_nets import QUIET_TRAINER, SmallNet, make_loaders, predict_classes
from support.processes import run_module

WORDS = {"run": "lr 0.02 / a", "monitor": "val_loss", "patience": 3, "min_delta": 0.01}


@pytest.fixture
def fit(tmp_path):
    def run(callback, **settings):
        trainer = lightning.Trainer(
            accelerator="cpu",
            callbacks=[callback],
            default_root_dir=tmp_path,
            **QUIET_TRAINER | {"max_epochs": 40} | settings,
        )
        lightning.seed_everything(0, verbose=False)
        trainer.fit(SmallNet(), *make_loaders())
        return trainer

    return run


def test_training_stops_and_the_winner_is_kept(make_guard, fit, tmp_path):
    guard, x = make_guard()
    predictions_by_step, modes = {}, []

    def predict(module):
        modes.append((module.training, torch.is_grad_enabled()))
        predictions_by_step[len(predictions_by_step)] = predict_classes(module, x)
        return predictions_by_step[len(predictions_by_step) - 1]

    callback = GuardStopping(guard, predict, **WORDS)
    assert isinstance(callback, lightning.Callback)
    trainer = fit(callback)
    assert trainer.current_epoch < 40
    assert callback.reason == "In 3 checks of val_loss the guard measured no improvement."
    assert set(modes) == {(False, False)}
    judgements = callback.judge.judgements
    assert len(predictions_by_step) == len(judgements) == 100 - guard.remaining
    improved = [index for index, judgement in enumerate(judgements) if judgement.improved]
    assert len(improved) > 2
    assert callback.winner == judgements[improved[-1]]
    assert callback.winner.reply.ladder == WORDS["run"]
    # Eight steps an epoch, checked after each; three checks came after the winner.
    assert callback.winner.name == trainer.global_step - 3 * 8
    # One checkpoint is kept, and it is the model that was asked about.
    [file] = tmp_path.glob("*.ckpt")
    assert str(file) == callback.best_model_path
    assert file.name == f"winner-lr-0.02-a-step={callback.winner.name}.ckpt"
    model = SmallNet.load_from_checkpoint(file).eval()
    assert (predict_classes(model, x) == predictions_by_step[improved[-1]]).all()
    assert guard.ladder(WORDS["run"]).ask(predict_classes(model, x).numpy()).again


def test_min_epochs_are_trained_despite_a_stop(make_guard, fit):
    guard, x = make_guard(questions=1)
    callback = GuardStopping(guard, lambda module: predict_classes(module, x), **WORDS)
    assert fit(callback, min_epochs=4).current_epoch == 4
    assert callback.reason.startswith("The budget is spent")


def test_only_fitting_asks(make_guard, fit):
    guard, x = make_guard()
    callback = GuardStopping(guard, lambda module: predict_classes(module, x), **WORDS)
    fit(callback, fast_dev_run=True)
    trainer = lightning.Trainer(accelerator="cpu", callbacks=[callback], **QUIET_TRAINER)
    trainer.validate(SmallNet(), make_loaders()[1], verbose=False)
    assert guard.remaining == 100


def test_errors_are_raised_unchanged(make_guard, fit):
    guard, _ = make_guard()
    with pytest.raises(InvalidPredictions):
        fit(GuardStopping(guard, lambda _: [0, 1], **WORDS))
    with pytest.raises(InvalidSetting, match="got 'loss', and the scores are: val_loss"):
        fit(GuardStopping(guard, lambda _: [0, 1], **WORDS | {"monitor": "loss"}))
    assert guard.remaining == 100


@pytest.mark.parametrize("case", ["whole", "broken"])
def test_of_two_processes_one_asks_and_both_get_the_result(make_guard, tmp_path, case):
    guard, _ = make_guard()
    ran = run_module("support.adapters.lightning_ddp", tmp_path, case, timeout=300)
    results = [tmp_path / f"result-{rank}.json" for rank in (0, 1)]
    assert all(path.exists() for path in results), ran.stderr
    first, second = (json.loads(path.read_text()) for path in results)
    assert second["questions"] == 0
    assert first["questions"] > 0
    for name in set(first) - {"rank", "questions"}:
        assert first[name] == second[name], name
    if case == "broken":
        assert first["error"] == "LadderboardError: RuntimeError: no predictions today"
        assert guard.remaining == 100
    else:
        assert first["error"] is None
        assert first["reason"] == "In 3 checks of val_loss the guard measured no improvement."
        assert first["questions"] == 100 - guard.remaining
        assert [str(path) for path in tmp_path.glob("*.ckpt")] == [first["path"]]
        assert first["path"].endswith(f"step={first['winner']}.ckpt")


def test_it_passes_the_conformance_suite(tmp_path):
    class ScoredNet(SmallNet):
        def __init__(self, scores):
            super().__init__()
            self.scores = scores

        def validation_step(self, _, batch_index):
            if batch_index == 0:
                self.log("own", next(self.scores), batch_size=1)

    def play(callback, scores):
        trainer = lightning.Trainer(
            accelerator="cpu",
            callbacks=[callback],
            default_root_dir=tmp_path,
            **QUIET_TRAINER | {"max_epochs": len(scores), "num_sanity_val_steps": 0},
        )
        trainer.fit(ScoredNet(scores), *make_loaders())

    check_stopping(GuardStopping, play, monitor="own")
