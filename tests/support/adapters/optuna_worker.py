"""One process of a study:

python optuna_worker.py STORAGE GUARD SEED TRIALS guarded|callback|late
"""

import sys
import time
from contextlib import contextmanager

import numpy as np
import optuna

import ladderboard as lb
from ladderboard.adapters.optuna import GuardCallback, guard_objective

N = 1000


def predictions(depth):
    """Return a model's predictions; each depth has its own wrong rows, the more the deeper."""
    labels = np.random.default_rng(1).integers(2, size=N)
    places = np.random.default_rng(int(depth * 1e9)).permutation(N)
    return np.where(places < 10 + 60 * depth, 1 - labels, labels)


def error(trial, rng):
    """Return a noisy validation error, after a random delay."""
    depth = trial.suggest_float("depth", 0, 8)
    time.sleep(rng.uniform(0, 0.05))
    return 0.01 + 0.06 * depth + rng.normal(0, 0.03)


def wait_for_others(trial):
    """Let the first trial finish after another one."""
    deadline = time.monotonic() + 60
    states = (optuna.trial.TrialState.COMPLETE,)
    while trial.number == 0 and not trial.study.get_trials(deepcopy=False, states=states):
        if time.monotonic() > deadline:
            raise TimeoutError
        time.sleep(0.02)


@contextmanager
def opened(address):
    """Open an Optuna storage; close its connections, which Python 3.13 warns about otherwise."""
    storage = optuna.storages.RDBStorage(address)
    yield storage
    storage.remove_session()
    storage.engine.dispose()


def main(address, *arguments):
    with opened(address) as storage:
        work(storage, *arguments)


def work(storage, path, seed, trials, mode):
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    rng = np.random.default_rng(int(seed))
    guard = lb.Holdout.open(path)
    sampler = optuna.samplers.RandomSampler(seed=int(seed))
    study = optuna.load_study(study_name="study", storage=storage, sampler=sampler)
    if mode == "callback":
        after = GuardCallback(guard, lambda study, trial: predictions(trial.params["depth"]))
        study.optimize(lambda trial: error(trial, rng), n_trials=int(trials), callbacks=[after])
    else:

        def objective(trial):
            validation_error = error(trial, rng)
            if mode == "late":
                wait_for_others(trial)
            return validation_error, lambda: predictions(trial.params["depth"])

        study.optimize(guard_objective(objective, guard), n_trials=int(trials))


if __name__ == "__main__":
    main(*sys.argv[1:])
