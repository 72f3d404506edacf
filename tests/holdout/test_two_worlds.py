"""Two worlds that differ only in their labels, with a mechanism that ignores the risk.

Every reply, message, log line, statement, file size and ledger byte is the same, so information
about labels can leave only through the mechanism.

Commitments hide their content only as long as their salt is secret. Here salts are fixed, so
commitments are replaced by hashes of the salt alone, which hide perfectly. The test checks that no
salt is used for two contents, and that no salt is revealed.
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
from ladderboard.bounds import PairedTest
from ladderboard.holdout import Reply, _guard, _scorer
from ladderboard.ledger import SecretSide
from support.salts import SaltSource, SecretSearch, iter_bytes, record_salt_uses
from support.two_worlds.guard_session import (
    KEY,
    SessionRecorder,
    run_gate_session,
    run_session,
)
from support.two_worlds.mechanisms import NOISE, BlindLadder, BlindLadderByExample, LeakyLadder

N = 60
LOSSES = '''
import numpy as np

def picky(labels, predictions):
    """Raise an error with a label in its message."""
    if (labels > 0).sum() > 30:
        raise ValueError(f"there are {labels.tolist()}")
    return labels != predictions

def wild(labels, predictions):
    """Return values outside [0, 1] that depend on the labels."""
    return (labels - predictions) * 1.0

def fewer(labels, predictions):
    """Return as many losses as there are labels 1."""
    return np.zeros(int(labels.sum()))

def deep(labels, predictions):
    """Recurse to a depth that depends on the labels."""
    return deep(labels, predictions) if labels[0] else predictions * 0

def undefined(labels, predictions):
    """Divide by the labels."""
    return np.minimum(np.abs(predictions / labels), 1)
'''


@dataclass
class Case:
    """A loss, the labels of two worlds, other labels, and a function for predictions."""

    loss: Any
    labels: tuple[Any, Any]
    neither: Any
    predict: Any
    params: bool = False
    sealed: bool = False
    sample: dict[str, Any] = field(default_factory=dict)

    def frame(self, model):
        ids = [f"id {number}" for number in range(N)]
        if np.ndim(model) == 1:
            return pl.DataFrame({"id": ids, "prediction": model})
        columns = {f"p_{number}": [row[number] for row in model] for number in range(len(model[0]))}
        return pl.DataFrame({"id": ids, **columns})


def bits(rng):
    return rng.integers(2, size=N).tolist()


def reals(rng):
    return rng.random(N).round(3).tolist()


def probs(rng):
    return [[1 - p, p] for p in rng.random(N).round(3).tolist()]


def words(rng):
    return rng.choice(["no", "yes", "perhaps"], size=N).tolist()


def choices(seed, *values):
    return np.random.default_rng(seed).choice(np.array(values), size=N).tolist()


BITS = (choices(1, 0, 1), choices(2, 0, 1))
ANY = lb.loss("zero_one", classes="any")
CASES = {
    "zero_one": Case("zero_one", BITS, choices(3, 0, 1), bits),
    "zero_one, other classes": Case(
        ANY, ([0] * N, choices(2, -70_000, 5, 2**40)), choices(3, 0, 1), bits
    ),
    "zero_one, fractions": Case(ANY, ([0] * N, choices(2, 0.5, 1 / 3)), choices(3, 0, 1), bits),
    "zero_one, declared": Case(
        lb.loss("zero_one", classes=[0, 1, 2]),
        (choices(1, 0, 1), choices(2, 1, 2)),
        choices(3, 0),
        bits,
        True,
    ),
    "zero_one, words": Case(
        ANY,
        (choices(1, "no", "yes"), choices(2, "Donaudampfschiff", "é" * 90)),
        choices(3, "x"),
        words,
    ),
    "zero_one, groups and weights": Case(
        "zero_one",
        BITS,
        choices(3, 0, 1),
        bits,
        sample={
            "group": [f"g{number // 3}" for number in range(N)],
            "weight": [number // 3 + 1 for number in range(N)],
        },
    ),
    "zero_one, sealed": Case("zero_one", BITS, choices(3, 0, 1), bits, sealed=True),
    "brier": Case("brier", BITS, choices(3, 0, 1), probs),
    "brier, one column": Case("brier", (BITS[0], [1] * N), choices(3, 0, 1), reals),
    "log": Case("log", ([0] * N, BITS[1]), choices(3, 0, 1), probs),
    "weighted sum": Case(
        "0.7 accuracy + 0.3 brier", ([0] * N, BITS[1]), choices(3, 0, 1), probs
    ),
    "squared": Case(
        lb.loss("squared", range=(0, 10)),
        (choices(1, 0, 10), choices(2, 0.125, 9.999)),
        choices(3, 5),
        reals,
        True,
    ),
    "custom": Case("operator:ne", (BITS[0], choices(2, 7, 2**33)), choices(3, 0, 1), bits),
    "custom that raises": Case("world_losses:picky", ([0] * N, [1] * N), choices(3, 0, 1), bits),
    "custom out of range": Case(
        "world_losses:wild", ([0] * N, choices(2, 1, 99)), choices(3, 5), bits
    ),
    "custom of a wrong shape": Case("world_losses:fewer", ([1] * N, BITS[1]), choices(3, 0), bits),
    "custom that goes deep": Case("world_losses:deep", ([0] * N, [1] * N), choices(3, 5), bits),
    "custom that divides": Case("world_losses:undefined", ([0] * N, [1] * N), choices(3, 5), bits),
}  # fmt: skip


def shuffled(seed, *values):
    """Return labels with the same counts in every world: class counts of a statistic are public."""
    return np.random.default_rng(seed).permutation(np.resize(np.array(values), N)).tolist()


# A gate compares example by example, and takes no statistic.
STATISTICS = {
    "roc_auc": Case(
        lb.metric("roc_auc", classes=(0, 1)).loss,
        (shuffled(1, 0, 0, 1), shuffled(2, 0, 0, 1)),
        shuffled(3, 0, 0, 1),
        reals,
        True,
    ),
    "f1_macro": Case(
        lb.metric("f1_macro", classes=("no", "perhaps", "yes")).loss,
        (shuffled(1, "no", "yes", "perhaps"), shuffled(2, "no", "yes", "perhaps")),
        shuffled(3, "no", "yes", "perhaps"),
        words,
        True,
    ),
    "spearman": Case(
        lb.metric("spearman").loss, (choices(1, 0, 10), choices(2, 0.125, 9.999)), reals(
            np.random.default_rng(3)), reals,
    ),
}  # fmt: skip


@pytest.fixture
def run_worlds(tmp_path, capfd, monkeypatch):
    """Run the session in both worlds, in the same folder; return all steps of each."""
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
            if mechanism is None:
                sessions.append(run_gate_session(recorder, case, labels, SaltSource()))
            else:
                given = (case, labels, mechanism(**NOISE), SaltSource())
                sessions.append(run_session(recorder, *given))
            folder.rename(tmp_path / f"world {world}")
            run.secrets = {**uses.domains, KEY: {"noise key"}}
        return sessions

    return run


def first_difference(first, other):
    """Return the first step in which two worlds differ, and the difference, or None."""
    assert [step["step"] for step in first] == [step["step"] for step in other]
    for left, right in zip(first, other, strict=True):
        for name in left:
            if left[name] != right[name]:
                return left["step"], name, str(left[name]), str(right[name])
    return None


# Every kind of label, prediction and failure is in the fast lane once; the rest is behind --all.
FAST = {
    "zero_one, other classes", "zero_one, words", "zero_one, groups and weights",
    "zero_one, sealed", "log", "weighted sum", "squared", "custom that raises",
    "custom out of range", "roc_auc",
}  # fmt: skip


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[] if name in FAST else pytest.mark.slow)
        for name in CASES | STATISTICS
    ],
)
def test_worlds_with_different_labels_are_indistinguishable(run_worlds, name):
    first, other = run_worlds((CASES | STATISTICS)[name])
    assert first_difference(first, other) is None
    assert find_leaked_secrets(run_worlds.secrets, first) == []
    outputs = {step["step"]: step["output"] for step in first}
    # The session covered all steps.
    assert outputs["ask 0"][0] == outputs["parquet"][0] == outputs["study 2"][0] == "Reply"
    assert "again=True" in outputs["ask 0 again"][1]
    assert outputs["unknown ids"][0][0] == outputs["half of parquet"][0][0] == "InvalidPredictions"
    assert outputs["open the old copy"][0][0] == "StaleCopy"
    assert outputs["other labels"][0][1].endswith("its labels differ from the guard's.")
    assert outputs["to the end 39"][0][0] == "BudgetSpent"
    assert "again=True" in outputs["again past the end"][1]
    assert outputs["closed"][0][0] == "SessionClosed"


OUTCOMES = ["better", "not_worse", "cannot_tell", "worse"]


FAST_GATES = {"zero_one, words", "zero_one, sealed", "weighted sum", "custom that raises"}


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[] if name in FAST_GATES else pytest.mark.slow) for name in CASES],
)
def test_worlds_behind_a_gate_are_indistinguishable(run_worlds, monkeypatch, name):
    """With verdicts that do not depend on labels, nothing does."""

    def blind_outcome(self, evidence, nats, margin):
        return OUTCOMES[(evidence.differing or 0) % 4]

    monkeypatch.setattr(PairedTest, "outcome", blind_outcome)
    first, other = run_worlds(CASES[name], None)
    assert first_difference(first, other) is None
    assert find_leaked_secrets(run_worlds.secrets, first) == []
    outputs = {step["step"]: step["output"] for step in first}
    assert outputs["look first"][0][0] == "InvalidSetting"
    assert outputs["look 1.2"][0] == outputs["open"][0] == "Verdict"
    assert "again=True" in outputs["look 0.0 again"][1]
    assert outputs["unknown ids"][0][0] == "InvalidPredictions"
    assert outputs["closed"][0][0] == "SessionClosed"


def test_a_verdict_is_the_only_leak_of_a_gate(run_worlds, monkeypatch):
    def net_wins(self, evidence, nats, margin):
        return OUTCOMES[(evidence.net or 0) % 4]

    monkeypatch.setattr(PairedTest, "outcome", net_wins)
    assert first_difference(*run_worlds(CASES["zero_one"], None)) is not None


def test_worlds_scored_by_example_are_indistinguishable(run_worlds):
    first, other = run_worlds(CASES["zero_one"], BlindLadderByExample)
    assert first_difference(first, other) is None


def test_a_leaking_mechanism_is_detected(run_worlds):
    first, other = run_worlds(CASES["zero_one"], LeakyLadder)
    assert first_difference(first, other) is not None


def leak_a_message(monkeypatch):
    """A failing loss is refused, as a naive implementation would do."""

    def score(self, predictions, **options):
        scored = original(self, predictions, **options)
        if scored.broken:
            raise lb.errors.BrokenLoss("The loss failed.")
        return scored

    original = _scorer.Scorer.score
    monkeypatch.setattr(_scorer.Scorer, "score", score)


def leak_a_size(monkeypatch):
    """Stored labels are not padded."""
    monkeypatch.setattr("ladderboard.holdout._sample.pad", lambda content, _: content)
    monkeypatch.setattr("ladderboard.holdout._sample.unpad", lambda content: content)


def leak_a_warning(monkeypatch):
    """NumPy may warn about labels."""
    monkeypatch.setattr(_scorer.np, "errstate", lambda **_: contextlib.nullcontext())


def leak_a_line(monkeypatch):
    """A log line reveals the risk."""

    def log_and_ask(**fields):
        logging.getLogger("ladderboard").debug("risk %r", fields["risk"])
        return original(**fields)

    original = _guard.ScoredQuestion
    monkeypatch.setattr(_guard, "ScoredQuestion", log_and_ask)


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
def test_leaks_are_detected(run_worlds, monkeypatch, name):
    leak, expected = LEAKS[name]
    leak(monkeypatch)
    difference = first_difference(*run_worlds(CASES[name]))
    assert difference is not None
    assert difference[1] in {expected, "files"}


def find_leaked_secrets(secrets, seen):
    """Return the domains of the secrets that occur in the steps."""
    texts = iter_bytes([[*step.values()] for step in seen])
    return sorted(domain for salt in SecretSearch(secrets).find(texts) for domain in secrets[salt])


def tell_with_head(monkeypatch):
    """The head is followed by the salt of the commitment to the labels."""
    head = lb.Holdout.head.fget
    opened = property(
        lambda guard: head(guard) + guard._book.read_encrypted("salt of the holdout").hex()
    )
    monkeypatch.setattr(lb.Holdout, "head", opened)


def tell_in_line(monkeypatch):
    """A log line reveals the salt of an entry."""

    def log_and_pack(self):
        logging.getLogger("ladderboard").debug("salted with %r", self.salt)
        return original(self)

    original = SecretSide.commit_and_pack
    monkeypatch.setattr(SecretSide, "commit_and_pack", log_and_pack)


def tell_in_pickle(monkeypatch):
    """A pickled reply contains a part of the noise key."""
    state = Reply.__getstate__
    key = base64.b64encode(KEY[:16])
    monkeypatch.setattr(Reply, "__getstate__", lambda reply: {**state(reply), "tape": key})


LEAKED_SALTS = {
    "head": (tell_with_head, "holdout"),
    "line": (tell_in_line, "secret"),
    "pickle": (tell_in_pickle, "noise key"),
}


@pytest.mark.parametrize("name", LEAKED_SALTS)
def test_leaked_salts_are_detected(run_worlds, monkeypatch, name):
    leak, domain = LEAKED_SALTS[name]
    leak(monkeypatch)
    first, _ = run_worlds(CASES["zero_one"])
    assert {*find_leaked_secrets(run_worlds.secrets, first)} == {domain}


MECHANISMS = {
    "shaky": lb.ShakyLadder(step=0.01, compare_noise=0.05, release_noise=0.05, grid=0.05),
    "growing": lb.GrowingLadder(step=0.2),
    "growing model": lb.GrowingLadder(step=0.2, scale="model"),
    "ladder": lb.Ladder(step=0.05),
    "parameter-free": lb.ParameterFreeLadder(),
    "exact": lb.Exact(),
    "noisy": lb.Noisy(sd=0.01),
    "thresholdout": lb.Thresholdout(threshold=0.04, noise=0.01, budget=50),
    "bootstrap": lb.BootstrapLadder(),
    "one bit": lb.OneBit(step=0.05),
}


@pytest.mark.parametrize("name", MECHANISMS)
def test_every_question_runs_the_same_statements_and_writes_the_same_amount(capfd, tmp_path, name):
    """Improved or not, questions look the same on the disk.

    The first one after opening a file also reads what later ones remember.
    """
    mechanism = MECHANISMS[name]
    labels = np.array(BITS[0])
    recorder = SessionRecorder(tmp_path, capfd)
    with recorder.recording():
        guard = lb.Holdout.create(
            recorder.path, labels=labels, questions=99, mechanism=mechanism, key=KEY
        )
        statements, improved = set(), set()
        sizes = {("state", row[3]) for row in recorder.tables()["ladder"]}
        options = {"training": 0.1} if mechanism.needs_training else {}
        guard.ask(labels ^ 1, **options)
        for number in range(30):
            right = np.random.default_rng(number).random(N) < 0.2 + number / 60
            predictions = np.where(right, labels, 1 - labels)
            recorder.statements.clear()
            improved.add(guard.ask(predictions, **options).improved)
            statements.add(tuple(skeleton(statement) for statement in recorder.statements))
            tables = recorder.tables()
            sizes |= {("secret", row[-1]) for row in tables["secret"]}
            sizes |= {("state", row[3]) for row in tables["ladder"]}
    assert improved == {True, False}
    assert len(statements) == 1
    assert len(sizes) == 2


def skeleton(statement):
    """A statement without its values."""
    return re.sub(r"[xX]?'[^']*'|\b\d+\b|\bNULL\b", "?", statement)
