"""Ask guards about damaged files, one after the other, with little room and time.

    python _guard_fuzz.py FOLDER SEED COUNT      damaged files
    python _guard_fuzz.py FOLDER NAME...         hostile files of tests/files/test_fuzz.py

Prints how often each refusal came. Ends with an error at the first file that is neither answered
nor refused as documented, takes too long, needs more than 3 GiB, or changes a guard's file though
it was refused.
"""

import collections
import contextlib
import importlib.util
import io
import json
import random
import resource
import signal
import sqlite3
import sys
from pathlib import Path

import ladderboard as lb
from ladderboard.errors import InvalidPredictions

HERE = Path(__file__).parent
IDS = [f"id_{at}" for at in range(120)]
HOW = [
    {"labels": [at % 3 for at in range(120)], "ids": IDS},
    {"labels": [at % 3 for at in range(120)]},
    {"labels": ["cat", "dog", "é"] * 40, "ids": IDS},
    {"labels": ["cat", "dog"] * 60, "loss": lb.loss("zero_one", classes=["cat", "dog"])},
    {"labels": [0, 1] * 60, "ids": IDS, "loss": "brier"},
    {"labels": [0.5, 1] * 60, "loss": lb.loss("absolute", range=(0, 1))},
    {"labels": [0, 1] * 60, "ids": IDS, "loss": "operator:ne"},
]


def load(name):
    path = HERE.parent / "files" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Watched:
    """A guard, with an eye on its file."""

    def __init__(self, path, **how):
        mechanism = lb.Ladder(step=0.01)
        lb.Holdout.create(path, questions=10**6, mechanism=mechanism, **how)
        self.guard = lb.Holdout.open(path, loss=how.get("loss"))
        self.mark = Path(f"{path}.mark")
        self.eye = sqlite3.connect(f"file:{path}?mode=ro", uri=True)

    def at(self):
        """Changes whenever anything in the file does."""
        version = self.eye.execute("PRAGMA data_version").fetchone()
        return version, self.mark.read_bytes()

    def ask(self, data, codes, seconds, **how):
        """Ask, and return what became of it: a refusal changes nothing."""
        before, left = self.at(), self.guard.remaining
        signal.alarm(seconds)
        try:
            reply = self.guard.ask(data, **how)
        except InvalidPredictions as error:
            if not error.problems or not {each.code for each in error.problems} <= codes:
                raise AssertionError(error) from None
            if len(str(error)) > 20_000 or "\x1b" in str(error):
                raise AssertionError("an unfit message") from None
            if self.at() != before:
                raise AssertionError("a refusal has changed the file") from None
            return error.problems[0].code
        finally:
            signal.alarm(0)
        if reply.remaining != left - (not reply.again) or (self.at() == before) != reply.again:
            raise AssertionError("not one question was spent")
        return "answered"


def one(seed, fuzz, guards, folder):
    rng = random.Random(seed)  # noqa: S311 - no secret
    form = rng.choice(fuzz.FORMS)
    data = fuzz.written(rng, form, fuzz.table(rng))
    if rng.random() < 0.85:
        data = fuzz.damaged(rng, data)
    data = fuzz.packed(rng, data)
    told = rng.choice([form, form, form, None, rng.choice(fuzz.FORMS)])
    given = rng.choice(["bytes", "bytes", "file", "path"])
    if given == "file":
        data = io.BytesIO(data)
    elif given == "path":
        path = folder / f"predictions.{form}"
        path.write_bytes(data)
        data = path
    return rng.choice(guards).ask(data, fuzz.CODES, fuzz.SECONDS, format=told)


def main(folder, *what):
    folder, fuzz = Path(folder), load("_fuzz")
    found = collections.Counter()
    if what[0].isdigit():
        guards = [Watched(folder / f"guard-{at}.db", **how) for at, how in enumerate(HOW)]
        resource.setrlimit(resource.RLIMIT_AS, (fuzz.ROOM, fuzz.ROOM))
        for seed in range(int(what[0]), int(what[0]) + int(what[1])):
            with naming(f"seed {seed}"):
                found[one(seed, fuzz, guards, folder)] += 1
        if any(each.guard.check() != each.guard.meter.used for each in guards):
            raise AssertionError("a chain is broken")
    else:
        guard = Watched(folder / "guard.db", labels=[0, 1] * 500)
        resource.setrlimit(resource.RLIMIT_AS, (fuzz.ROOM, fuzz.ROOM))
        for name in what:
            with naming(name):
                found[guard.ask(Path(name), fuzz.CODES, 120)] += 1
    sys.stdout.write(json.dumps(found) + "\n")


@contextlib.contextmanager
def naming(what):
    try:
        yield
    except BaseException:
        sys.stderr.write(f"{what}\n")
        raise


if __name__ == "__main__":
    main(*sys.argv[1:])
