"""One of several processes of a training: python xgboost_worker.py FOLDER ADDRESS PORT."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import xgboost as xgb

import ladderboard as lb
from ladderboard.adapters.xgboost import GuardStopping
from ladderboard.errors import InvalidSetting


def main():
    folder, address, port = sys.argv[1:]
    guard = lb.Holdout.open(Path(folder) / "guard.db")
    data = xgb.DMatrix(np.eye(10), np.arange(10) % 2)
    with xgb.collective.CommunicatorContext(dmlc_tracker_uri=address, dmlc_tracker_port=int(port)):
        stopping = GuardStopping(guard, np.asarray, run="a", monitor="a-rmse", patience=1)
        try:
            xgb.train({"nthread": 1}, data, 3, evals=[(data, "a")], callbacks=[stopping])
        except InvalidSetting as error:
            sys.stdout.write(f"{error}\n")


if __name__ == "__main__":
    main()
