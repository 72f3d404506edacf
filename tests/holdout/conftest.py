"""Processes that ask, and guards with known labels and keys."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest

import ladderboard as lb
from ladderboard.bounds import LookPrices, PairedEvidence, PairedTest
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
    opened_by = 2
    """The number of entries before the first answer."""
    released = ("value", "score", "improved", "question")
    """The fields of an entry that are released; the last is the number of the answer."""

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

    def find_earlier(self, guard, predictions):
        """Return the recorded answer about a model, or None, and the digest of its predictions."""
        submission = guard._scorer.read(predictions).digest
        return guard._book.find_duplicate(submission), submission

    def replay(self, models):
        """Return what should have been released about models, from labels and key."""
        session = self.mechanism.start(n=self.n, tape=lb.Tape(key=KEY))
        releases = [
            session.ask(risk=float((predictions != self.labels).mean()), context=submission)
            for predictions, submission in models
        ]
        return [[getattr(release, name) for name in self.released] for release in releases]

    def logged_answers(self):
        """Return what askers logged."""
        log = self.path.with_suffix(".log")
        return [json.loads(line) for line in log.read_bytes().splitlines()] if log.exists() else []


class KnownGate(KnownGuard):
    """A gate whose labels the test knows; its incumbent says 0 always."""

    opened_by = 3
    released = ("outcome", "differing", "needed", "look")
    margin = 0.15

    def __init__(self, folder, *, n=200, questions=400, sealed=False):
        self.run, self.n, self.looks = next(self.numbers), n, questions
        self.path = folder / f"gate-{self.run}.db"
        self.key_file = folder / f"gate-{self.run}.key" if sealed else None
        self.labels = np.random.default_rng(self.run).integers(2, size=n)
        gate = lb.Gate.create(
            self.path, self.labels, looks=questions, margin=self.margin, key_file=self.key_file,
            classes=[0, 1],
        )  # fmt: skip
        gate.promote(np.zeros(n, int))

    def open(self):
        return lb.Gate.open(self.path, key_file=self.key_file)

    def find_earlier(self, guard, predictions):
        submission = guard._scorer.read(predictions).digest
        return guard._book.find_look(submission, self.margin)[0], submission

    def replay(self, models):
        prices, verdicts, releases = LookPrices(self.looks), [], []
        test = PairedTest("sign", self.n, 0.05)
        for look, (predictions, _) in enumerate(models, 1):
            nats = prices.nats(look, verdicts)
            differing = int(predictions.sum())
            net = 2 * int((predictions & self.labels).sum()) - differing
            outcome = test.outcome(PairedEvidence(differing, net), nats, self.margin)
            certain = test.is_certain(self.margin, differing)
            silent = "not_worse" if certain else "cannot_tell"
            verdicts += [] if outcome == silent else [test.options(self.margin, differing)]
            needed = test.required(differing, nats, self.margin)[0]
            releases.append([outcome, differing, needed, look])
        return releases


@pytest.fixture
def path(tmp_path):
    """Return where a guard's file may be created."""
    return tmp_path / "guard.db"


@pytest.fixture
def make_guard(tmp_path):
    """Make guards whose labels and key are known; gates with ``gate=True``."""

    def make(*, gate=False, **settings):
        return (KnownGate if gate else KnownGuard)(tmp_path, **settings)

    return make


@pytest.fixture
def chain():
    """Read a guard's chain, every link checked: all entries, and those of questions."""

    def read(guard):
        entries = [fields for _, fields in guard._book.entries()]
        assert [entry["number"] for entry in entries] == list(range(len(entries)))
        return entries, [entry for entry in entries if entry["kind"] in {"question", "look"}]

    return read
