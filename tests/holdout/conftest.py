"""A warm process from which askers are forked, and guards to ask."""

from __future__ import annotations

import importlib.util
import itertools
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import ladderboard as lb

HERE = Path(__file__).parent
KEY = bytes(range(32))


def load(name):
    """Import a script beside this file: tests here are no package."""
    spec = importlib.util.spec_from_file_location(name, HERE / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Askers:
    """Starts askers, ends them, and tells what they were told."""

    def __init__(self):
        self.process = subprocess.Popen(
            [sys.executable, str(HERE / "_asker.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def do(self, do, **job):
        self.process.stdin.write(json.dumps({"do": do, **job}) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def start(self, guarded, writer=0, count=60, *, traced=False, shared=True):
        job = {
            "path": str(guarded.path),
            "key_file": guarded.key_file and str(guarded.key_file),
            "run": guarded.run,
            "n": guarded.n,
            "writer": writer,
            "count": count,
            "log": str(guarded.path.with_suffix(".log")),
            "traced": traced,
            "shared": shared,
        }
        return self.do("start", **job)["pid"]

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


@pytest.fixture(scope="session")
def askers():
    """The warm process."""
    made = Askers()
    yield made
    made.close()


class Guarded:
    """A guard whose labels and key the test knows."""

    numbers = itertools.count()

    def __init__(self, folder, *, n=200, questions=400, ladders=20, sealed=False):
        self.run, self.n = next(self.numbers), n
        self.path = folder / f"guard-{self.run}.db"
        self.key_file = folder / f"guard-{self.run}.key" if sealed else None
        self.labels = np.random.default_rng(self.run).integers(2, size=n)
        self.mechanism = lb.ShakyLadder(
            step=0.01, compare_noise=0.02, release_noise=0.005, grid=0.005
        )
        lb.Holdout.create(
            self.path,
            labels=self.labels,
            questions=questions,
            ladders=min(questions, ladders),
            mechanism=self.mechanism,
            key=KEY,
            key_file=self.key_file,
        )

    def open(self):
        return lb.Holdout.open(self.path, key_file=self.key_file)

    def told(self):
        """What askers wrote down."""
        log = self.path.with_suffix(".log")
        return [json.loads(line) for line in log.read_bytes().splitlines()] if log.exists() else []


@pytest.fixture
def guarded(tmp_path):
    """Make guards whose labels and key are known."""

    def make(**how):
        return Guarded(tmp_path, **how)

    return make


@pytest.fixture
def chain():
    """Read a guard's chain, every link checked: all entries, and those of questions."""

    def read(guard):
        entries = [fields for _, fields in guard._book.entries()]
        assert [each["number"] for each in entries] == list(range(len(entries)))
        return entries, [each for each in entries if each["kind"] == "question"]

    return read


@pytest.fixture(scope="session")
def script():
    """Import a script beside these tests by its name."""
    return load
