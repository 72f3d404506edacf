"""A recorded question gets its reply, even if the certificate fails."""

import numpy as np
import pytest

import ladderboard as lb
from ladderboard.bounds._certificate import NO_THEOREM
from ladderboard.errors import InvalidSetting

LABELS = np.arange(100) % 2


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"beta": 1e-101}, "beta must be"),
        ({"beta": 5e-324}, "beta must be"),
        ({"beta": 0}, "beta must be"),
        ({"beta": 1}, "beta must be"),
        ({"questions": 10**16}, "questions must be"),
    ],
)
def test_settings_without_a_certificate_are_refused_at_creation(tmp_path, settings, words):
    path = tmp_path / "g.db"
    with pytest.raises(InvalidSetting, match=words):
        lb.Holdout.create(path, LABELS, **{"questions": 10, **settings})
    assert list(tmp_path.iterdir()) == []


def test_the_smallest_beta_and_the_largest_budget_have_certificates(tmp_path):
    guard = lb.Holdout.create(tmp_path / "g.db", LABELS, questions=10**15, beta=1e-100)
    bound = guard.ask(LABELS).bound
    assert (bound.theorem != NO_THEOREM, bound.beta) == (True, 1e-100)


def test_an_old_guard_without_certificate_still_replies(tmp_path, monkeypatch):
    monkeypatch.setattr("ladderboard.bounds.read_beta", float)  # as guards were made before
    guard = lb.Holdout.create(tmp_path / "g.db", LABELS, questions=10, beta=1e-200)
    reply = guard.ask(LABELS)
    assert (reply.question, reply.remaining) == (1, 9)
    described = reply.describe()
    assert described["bound"]["beta"] == guard.status().describe()["bound"]["beta"] == 1e-200
    assert described["bound"]["high"] > 0.9 or described["bound"]["vacuous"]
    assert guard.ask(LABELS).describe()["again"]


@pytest.mark.parametrize(
    "error", [InvalidSetting("no"), ZeroDivisionError("no"), MemoryError("no")]
)
def test_a_failing_certificate_does_not_lose_the_reply(tmp_path, monkeypatch, error):
    guard = lb.Holdout.create(tmp_path / "g.db", LABELS, questions=10)

    def fail(*_, **__):
        raise error

    monkeypatch.setattr("ladderboard.bounds.certificate_of_record", fail)
    reply = guard.ask(LABELS)
    assert reply.bound.assumptions == ("No certificate could be computed: no",)
    assert "question" in str(reply)
    assert reply._repr_html_()
