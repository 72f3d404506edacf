"""A training in two processes: python _ddp.py FOLDER MODE; each writes what it knows at the end."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from pathlib import Path

import lightning
import torch

import ladderboard as lb
from ladderboard.adapters.lightning import GuardStopping


def load(name, place):
    spec = importlib.util.spec_from_file_location(name, place)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main():
    here = Path(__file__).parent
    data, nets = load("_data", here.parent / "_data.py"), load("_nets", here / "_nets.py")
    folder, broken = Path(sys.argv[1]), sys.argv[2] == "broken"
    guard = lb.Holdout.open(folder / "guard.db")
    x, _ = data.sample(2_000, seed=3)
    asked = []

    def predict(module):
        asked.append(os.getpid())
        if broken:
            raise RuntimeError("no predictions today")
        return nets.classes(module, x)

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
        **nets.QUIET,
    )
    torch.manual_seed(0)
    error = None
    try:
        trainer.fit(nets.Net(), *nets.loaders(data.sample))
    except Exception as raised:  # noqa: BLE001 - written down, and looked at by the test
        error = f"{type(raised).__name__}: {raised}"
    told = {
        "rank": trainer.global_rank,
        "error": error,
        "asked": len(asked),
        "epochs": trainer.current_epoch,
        "reason": callback.reason,
        "winner": callback.winner and callback.winner.name,
        "path": callback.best_model_path,
    }
    (folder / f"told-{trainer.global_rank}.json").write_text(json.dumps(told))


if __name__ == "__main__":
    main()
