"""Processes that ask, and guards with known labels and keys."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest

import ladderboard as lb
from support.holdout.asker_pool import AskerPool

KEY = bytes(range(32))


@pytest.fixture(scope="session")
def asker_pool():
    """A process from which askers are forked."""
    pool = AskerPool()
    yield pool
    pool.close()


class KnownGuard:
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

    def logged_answers(self):
        """Return what askers logged."""
        log = self.path.with_suffix(".log")
        return [json.loads(line) for line in log.read_bytes().splitlines()] if log.exists() else []


@pytest.fixture
def make_guard(tmp_path):
    """Make guards whose labels and key are known."""

    def make(**settings):
        return KnownGuard(tmp_path, **settings)

    return make


@pytest.fixture
def chain():
    """Read a guard's chain, every link checked: all entries, and those of questions."""

    def read(guard):
        entries = [fields for _, fields in guard._book.entries()]
        assert [entry["number"] for entry in entries] == list(range(len(entries)))
        return entries, [entry for entry in entries if entry["kind"] == "question"]

    return read
