"""A training in two processes:

python -m support.adapters.lightning_ddp FOLDER whole|broken

Each writes its result to FOLDER/result-RANK.json.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import lightning
import torch

import ladderboard as lb
from ladderboard.adapters.lightning import GuardStopping
from support.adapters.lightning_nets import QUIET_TRAINER, SmallNet, make_loaders, predict_classes
from support.adapters.training_data import make_sample


def main():
    folder, broken = Path(sys.argv[1]), sys.argv[2] == "broken"
    guard = lb.Holdout.open(folder / "guard.db")
    x, _ = make_sample(2_000, seed=3)
    questions = []

    def predict(module):
        questions.append(os.getpid())
        if broken:
            raise RuntimeError("no predictions today")
        return predict_classes(module, x)

    callback = GuardStopping(
        guard,
        predict,
        run="two processes",
        monitor="val_loss",
        patience=3,
        min_delta=0.01,
        dirpath=folder,
    )
    trainer = lightning.Trainer(
        accelerator="cpu",
        devices=2,
        strategy="ddp",
        max_epochs=40,
        callbacks=[callback],
        **QUIET_TRAINER,
    )
    torch.manual_seed(0)
    error = None
    try:
        trainer.fit(SmallNet(), *make_loaders())
    except Exception as raised:  # noqa: BLE001 - the test checks it
        error = f"{type(raised).__name__}: {raised}"
    result = {
        "rank": trainer.global_rank,
        "error": error,
        "questions": len(questions),
        "epochs": trainer.current_epoch,
        "reason": callback.reason,
        "winner": callback.winner and callback.winner.name,
        "path": callback.best_model_path,
    }
    (folder / f"result-{trainer.global_rank}.json").write_text(json.dumps(result))


if __name__ == "__main__":
    main()
