"""Asks guards about damaged files, one after the other, with little memory and time:

    python -m support.fuzz.guard_fuzz FOLDER SEED COUNT      damaged files
    python -m support.fuzz.guard_fuzz FOLDER PATH...         given files

Prints how often each refusal came. Fails at the first file that is neither answered nor refused as
documented, takes too long, needs more than 3 GiB, or changes a guard's file though it was refused.
"""

import collections
import contextlib
import io
import json
import resource
import signal
import sqlite3
import sys
from pathlib import Path

import ladderboard as lb
from ladderboard.errors import InvalidPredictions
from support.fuzz.damaged_files import (
    CODES,
    FORMS,
    MEMORY,
    SECONDS,
    compress,
    damage,
    make_table,
    write_table,
)
from support.randomness import seeded_random

IDS = [f"id_{row}" for row in range(120)]
GUARDS = [
    {"labels": [row % 3 for row in range(120)], "ids": IDS},
    {"labels": [row % 3 for row in range(120)]},
    {"labels": ["cat", "dog", "é"] * 40, "ids": IDS},
    {"labels": ["cat", "dog"] * 60, "loss": lb.loss("zero_one", classes=["cat", "dog"])},
    {"labels": [0, 1] * 60, "ids": IDS, "loss": "brier"},
    {"labels": [0.5, 1] * 60, "loss": lb.loss("absolute", range=(0, 1))},
    {"labels": [0, 1] * 60, "ids": IDS, "loss": "operator:ne"},
    {"labels": [row % 3 for row in range(120)], "ids": IDS, "gate": True},
    {"labels": [0.5, 1] * 60, "loss": lb.loss("absolute", range=(0, 1)), "gate": True},
]


class WatchedGuard:
    """A guard or a gate whose file is checked for changes."""

    def __init__(self, path, *, gate=False, **settings):
        mechanism, loss = lb.Ladder(step=0.01), settings.get("loss")
        if gate:
            created = lb.Gate.create(path, looks=10**6, mechanism=mechanism, **settings)
            created.promote(settings["labels"])
            self.guard = lb.Gate.open(path, loss=loss)
            self.answer = self.guard.check
        else:
            lb.Holdout.create(path, questions=10**6, mechanism=mechanism, **settings)
            self.guard = lb.Holdout.open(path, loss=loss)
            self.answer = self.guard.ask
        self.mark = Path(f"{path}.mark")
        self.connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)

    def version(self):
        """Return a value that changes with the file."""
        version = self.connection.execute("PRAGMA data_version").fetchone()
        return version, self.mark.read_bytes()

    def ask(self, data, seconds, **options):
        """Ask; return "answered" or the code of the refusal, which must change nothing."""
        before, remaining = self.version(), self.guard.remaining
        signal.alarm(seconds)
        try:
            reply = self.answer(data, **options)
        except InvalidPredictions as error:
            if not error.problems or not {problem.code for problem in error.problems} <= CODES:
                raise AssertionError(error) from None
            if len(str(error)) > 20_000 or "\x1b" in str(error):
                raise AssertionError("an unsuitable message") from None
            if self.version() != before:
                raise AssertionError("a refusal has changed the file") from None
            return error.problems[0].code
        finally:
            signal.alarm(0)
        is_unchanged = self.version() == before
        if reply.remaining != remaining - (not reply.again) or is_unchanged != reply.again:
            raise AssertionError("an answer did not cost one question")
        return "answered"


def ask_damaged(seed, guards, folder):
    """Ask a guard about a damaged file; return what ``ask`` returns."""
    rng = seeded_random(seed)
    form = rng.choice(FORMS)
    data = write_table(rng, form, make_table(rng))
    if rng.random() < 0.85:
        data = damage(rng, data)
    data = compress(rng, data)
    declared = rng.choice([form, form, form, None, rng.choice(FORMS)])
    source = rng.choice(["bytes", "bytes", "file", "path"])
    if source == "file":
        data = io.BytesIO(data)
    elif source == "path":
        path = folder / f"predictions.{form}"
        path.write_bytes(data)
        data = path
    return rng.choice(guards).ask(data, SECONDS, format=declared)


def main(folder, *arguments):
    folder = Path(folder)
    outcomes = collections.Counter()
    if arguments[0].isdigit():
        first, count = map(int, arguments)
        guards = [
            WatchedGuard(folder / f"guard-{number}.db", **settings)
            for number, settings in enumerate(GUARDS)
        ]
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        for seed in range(first, first + count):
            with print_name_on_error(f"seed {seed}"):
                outcomes[ask_damaged(seed, guards, folder)] += 1
        answers = [watched.guard.budget - watched.guard.remaining for watched in guards]
        if answers != [watched.guard.verify_ledger() for watched in guards]:
            raise AssertionError("a chain is broken")
    else:
        guard = WatchedGuard(folder / "guard.db", labels=[0, 1] * 500)
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        for name in arguments:
            with print_name_on_error(name):
                outcomes[guard.ask(Path(name), 120)] += 1
    sys.stdout.write(json.dumps(outcomes) + "\n")


@contextlib.contextmanager
def print_name_on_error(name):
    """Print a name if an error occurs."""
    try:
        yield
    except BaseException:
        sys.stderr.write(f"{name}\n")
        raise


if __name__ == "__main__":
    main(*sys.argv[1:])
