"""Two worlds that differ in their labels, and a mechanism that is deaf: nothing else differs.

Every reply, message, log line, statement, file size and ledger byte is the same; so what anybody
learns about labels he learns through the mechanism.

Commitments hide what they bind as long as their salt is secret, and no longer. Here salts are
fixed, so hashes that hide perfectly take their place: of the salt alone. The test sees to it that
no salt is used for two contents, and that none is told.
"""

import base64
import contextlib
import logging
import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
import pytest

import ladderboard as lb
from ladderboard.holdout import Reply, _guard, _scorer
from ladderboard.ledger import SecretSide
from support.salts import SaltSource, SecretSearch, iter_bytes, record_salt_uses
from support.two_worlds.guard_session import KEY, SessionRecorder, run_session
from support.two_worlds.mechanisms import NOISE, BlindLadder, BlindLadderByExample, LeakyLadder

N = 60
LOSSES = '''
import numpy as np

def picky(labels, predictions):
    """Breaks down if it does not like the labels, and says why."""
    if (labels > 0).sum() > 30:
        raise ValueError(f"there are {labels.tolist()}")
    return labels != predictions

def wild(labels, predictions):
    """Leaves [0, 1] by as much as the labels tell."""
    return (labels - predictions) * 1.0

def short(labels, predictions):
    """Gives as many losses as there are ones."""
    return np.zeros(int(labels.sum()))

def deep(labels, predictions):
    """Goes as deep as the labels tell."""
    return deep(labels, predictions) if labels[0] else predictions * 0

def undefined(labels, predictions):
    """Divides by labels."""
    return np.minimum(np.abs(predictions / labels), 1)
'''


@dataclass
class Case:
    """A loss, labels for two worlds and others for neither, and how models predict."""

    loss: Any
    labels: tuple[Any, Any]
    neither: Any
    predict: Any
    params: bool = False
    sealed: bool = False
    sample: dict[str, Any] = field(default_factory=dict)

    def frame(self, model):
        ids = [f"id {at}" for at in range(N)]
        if np.ndim(model) == 1:
            return pl.DataFrame({"id": ids, "prediction": model})
        columns = {f"p_{at}": [row[at] for row in model] for at in range(len(model[0]))}
        return pl.DataFrame({"id": ids, **columns})


def whole(rng):
    return rng.integers(2, size=N).tolist()


def real(rng):
    return rng.random(N).round(3).tolist()


def odds(rng):
    return [[1 - p, p] for p in rng.random(N).round(3).tolist()]


def words(rng):
    return rng.choice(["no", "yes", "perhaps"], size=N).tolist()


def few(seed, *values):
    return np.random.default_rng(seed).choice(np.array(values), size=N).tolist()


BITS = (few(1, 0, 1), few(2, 0, 1))
ANY = lb.loss("zero_one", classes="any")
CASES = {
    "zero_one": Case("zero_one", BITS, few(3, 0, 1), whole),
    "zero_one, other classes": Case(
        ANY, ([0] * N, few(2, -70_000, 5, 2**40)), few(3, 0, 1), whole
    ),
    "zero_one, fractions": Case(ANY, ([0] * N, few(2, 0.5, 1 / 3)), few(3, 0, 1), whole),
    "zero_one, declared": Case(
        lb.loss("zero_one", classes=[0, 1, 2]), (few(1, 0, 1), few(2, 1, 2)), few(3, 0), whole, True
    ),
    "zero_one, words": Case(
        ANY, (few(1, "no", "yes"), few(2, "Donaudampfschiff", "é" * 90)), few(3, "x"), words
    ),
    "zero_one, groups and weights": Case(
        "zero_one",
        BITS,
        few(3, 0, 1),
        whole,
        sample={
            "group": [f"g{at // 3}" for at in range(N)],
            "weight": [at // 3 + 1 for at in range(N)],
        },
    ),
    "zero_one, sealed": Case("zero_one", BITS, few(3, 0, 1), whole, sealed=True),
    "brier": Case("brier", BITS, few(3, 0, 1), odds),
    "brier, one column": Case("brier", (BITS[0], [1] * N), few(3, 0, 1), real),
    "log": Case("log", ([0] * N, BITS[1]), few(3, 0, 1), odds),
    "squared": Case(
        lb.loss("squared", range=(0, 10)),
        (few(1, 0, 10), few(2, 0.125, 9.999)),
        few(3, 5),
        real,
        True,
    ),
    "custom": Case("operator:ne", (BITS[0], few(2, 7, 2**33)), few(3, 0, 1), whole),
    "custom that raises": Case("world_losses:picky", ([0] * N, [1] * N), few(3, 0, 1), whole),
    "custom out of range": Case("world_losses:wild", ([0] * N, few(2, 1, 99)), few(3, 5), whole),
    "custom of a wrong shape": Case("world_losses:short", ([1] * N, BITS[1]), few(3, 0), whole),
    "custom that goes deep": Case("world_losses:deep", ([0] * N, [1] * N), few(3, 5), whole),
    "custom that divides": Case("world_losses:undefined", ([0] * N, [1] * N), few(3, 5), whole),
}  # fmt: skip


@pytest.fixture
def run_worlds(tmp_path, capfd, monkeypatch):
    """Run the session in both worlds, in the same place; return all steps of each."""
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules/world_losses.py").write_text(LOSSES)
    monkeypatch.syspath_prepend(tmp_path / "modules")

    def run(case, mechanism=BlindLadder):
        sessions = []
        for world, labels in enumerate(case.labels):
            uses = record_salt_uses(monkeypatch, hide=True)
            folder = tmp_path / "world"
            folder.mkdir()
            recorder = SessionRecorder(folder, capfd)
            given = (case, labels, mechanism(**NOISE), SaltSource())
            sessions.append(run_session(recorder, *given))
            folder.rename(tmp_path / f"world {world}")
            run.secrets = {**uses.domains, KEY: {"noise key"}}
        return sessions

    return run


def first_difference(one, other):
    """Return the step at which two worlds part, and how, or None."""
    assert [each["step"] for each in one] == [each["step"] for each in other]
    for left, right in zip(one, other, strict=True):
        for what in left:
            if left[what] != right[what]:
                return left["step"], what, str(left[what]), str(right[what])
    return None


# Every kind of label, prediction and failure is in the fast lane once; the rest is behind --all.
FAST = {
    "zero_one, other classes", "zero_one, words", "zero_one, groups and weights",
    "zero_one, sealed", "log", "squared", "custom that raises", "custom out of range",
}  # fmt: skip


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in FAST else pytest.mark.slow) for name in CASES]
)
def test_nothing_tells_two_worlds_apart(run_worlds, name):
    one, other = run_worlds(CASES[name])
    assert first_difference(one, other) is None
    assert told(run_worlds.secrets, one) == []
    said = {each["step"]: each["output"] for each in one}
    # The session went where it should.
    assert said["ask 0"][0] == said["parquet"][0] == said["study 2"][0] == "Reply"
    assert "again=True" in said["ask 0 again"][1]
    assert said["unknown ids"][0][0] == said["half of parquet"][0][0] == "InvalidPredictions"
    assert said["open the old copy"][0][0] == "StaleCopy"
    assert said["other labels"][0][1].endswith("its labels differ from the guard's.")
    assert said["to the end 39"][0][0] == "BudgetSpent"
    assert "again=True" in said["again past the end"][1]
    assert said["closed"][0][0] == "SessionClosed"


def test_nothing_tells_two_worlds_apart_that_are_scored_by_example(run_worlds):
    one, other = run_worlds(CASES["zero_one"], BlindLadderByExample)
    assert first_difference(one, other) is None


def test_a_mechanism_that_hears_is_found_out(run_worlds):
    one, other = run_worlds(CASES["zero_one"], LeakyLadder)
    assert first_difference(one, other) is not None


def leak_a_message(monkeypatch):
    """A broken loss is refused, as one would write it first."""

    def score(self, predictions, **how):
        scored = true(self, predictions, **how)
        if scored.broken:
            raise lb.errors.BrokenLoss("The loss failed.")
        return scored

    true = _scorer.Scorer.score
    monkeypatch.setattr(_scorer.Scorer, "score", score)


def leak_a_size(monkeypatch):
    """Labels are kept as long as they are."""
    monkeypatch.setattr("ladderboard.holdout._sample.pad", lambda content, _: content)
    monkeypatch.setattr("ladderboard.holdout._sample.unpad", lambda content: content)


def leak_a_warning(monkeypatch):
    """NumPy may warn about labels."""
    monkeypatch.setattr(_scorer.np, "errstate", lambda **_: contextlib.nullcontext())


def leak_a_line(monkeypatch):
    """A line in the log tells the risk."""

    def asked(**fields):
        logging.getLogger("ladderboard").debug("risk %r", fields["risk"])
        return true(**fields)

    true = _guard.ScoredQuestion
    monkeypatch.setattr(_guard, "ScoredQuestion", asked)


LEAKS = {
    "custom that raises": (leak_a_message, "output"),
    "zero_one, other classes": (leak_a_size, "tables"),
    "zero_one, words": (leak_a_size, "tables"),
    "brier": (leak_a_line, "logged"),
    "custom that divides": (leak_a_warning, "logged"),
}


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow if "zero_one" in name else []) for name in LEAKS],
)
def test_leaks_are_found(run_worlds, monkeypatch, name):
    leak, where = LEAKS[name]
    leak(monkeypatch)
    found = first_difference(*run_worlds(CASES[name]))
    assert found is not None
    assert found[1] in {where, "files"}


def told(secrets, seen):
    """Return what the secrets are of that were told."""
    texts = iter_bytes([[*each.values()] for each in seen])
    return sorted(domain for salt in SecretSearch(secrets).find(texts) for domain in secrets[salt])


def tell_with_head(monkeypatch):
    """The head comes with what opens the commitment to the labels."""
    head = lb.Holdout.head.fget
    opened = property(lambda own: head(own) + own._book.read_encrypted("salt of the holdout").hex())
    monkeypatch.setattr(lb.Holdout, "head", opened)


def tell_in_line(monkeypatch):
    """A line in the log tells how an entry was made."""

    def written(self):
        logging.getLogger("ladderboard").debug("salted with %r", self.salt)
        return true(self)

    true = SecretSide.commit_and_pack
    monkeypatch.setattr(SecretSide, "commit_and_pack", written)


def tell_in_pickle(monkeypatch):
    """A reply that is sent elsewhere takes along what its noise was made from."""
    state = Reply.__getstate__
    key = base64.b64encode(KEY[:16])
    monkeypatch.setattr(Reply, "__getstate__", lambda own: {**state(own), "tape": key})


TOLD = {
    "head": (tell_with_head, "holdout"),
    "line": (tell_in_line, "secret"),
    "pickle": (tell_in_pickle, "noise key"),
}


@pytest.mark.parametrize("name", TOLD)
def test_salts_that_are_told_are_found(run_worlds, monkeypatch, name):
    leak, what = TOLD[name]
    leak(monkeypatch)
    one, _ = run_worlds(CASES["zero_one"])
    assert {*told(run_worlds.secrets, one)} == {what}


MECHANISMS = {
    "shaky": lb.ShakyLadder(step=0.01, compare_noise=0.05, release_noise=0.05, grid=0.05),
    "ladder": lb.Ladder(step=0.05),
    "parameter-free": lb.ParameterFreeLadder(),
    "exact": lb.Exact(),
    "noisy": lb.Noisy(sd=0.01),
    "thresholdout": lb.Thresholdout(threshold=0.04, noise=0.01, budget=50),
    "bootstrap": lb.BootstrapLadder(),
    "one bit": lb.OneBit(step=0.05),
}


@pytest.mark.parametrize("name", MECHANISMS)
def test_every_question_runs_the_same_statements_and_writes_as_much(capfd, tmp_path, name):
    """Crossed, crossed in silence or not crossed: on the disk they look alike."""
    mechanism = MECHANISMS[name]
    labels = np.array(BITS[0])
    recorder = SessionRecorder(tmp_path, capfd)
    with recorder.recording():
        guard = lb.Holdout.create(
            recorder.path, labels=labels, questions=99, mechanism=mechanism, key=KEY
        )
        statements, improved = set(), set()
        sizes = {("state", row[-1]) for row in recorder.tables()["ladder"]}
        for at in range(30):
            right = np.random.default_rng(at).random(N) < 0.2 + at / 60
            predictions = np.where(right, labels, 1 - labels)
            how = {"training": 0.1} if mechanism.needs_training else {}
            recorder.statements.clear()
            improved.add(guard.ask(predictions, **how).improved)
            statements.add(tuple(skeleton(each) for each in recorder.statements))
            tables = recorder.tables()
            sizes |= {("secret", row[-1]) for row in tables["secret"]}
            sizes |= {("state", row[-1]) for row in tables["ladder"]}
    assert improved == {True, False}
    assert len(statements) == 1
    assert len(sizes) == 2


def skeleton(statement):
    """A statement without its values."""
    return re.sub(r"[xX]?'[^']*'|\b\d+\b|\bNULL\b", "?", statement)
