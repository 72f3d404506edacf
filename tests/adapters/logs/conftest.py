"""Logs of real runs, and a reader of Inspect's logs for when Inspect is not installed."""

import json
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

DATA = Path(__file__).parents[1] / "data"


@pytest.fixture
def data():
    return DATA


def _sample(document):
    scores = {
        name: SimpleNamespace(**score) for name, score in (document.get("scores") or {}).items()
    }
    return SimpleNamespace(
        id=document["id"], epoch=document["epoch"], error=document.get("error"), scores=scores
    )


def _read_eval_log(path, header_only=False):
    document = json.loads(Path(path).read_text())
    spec = document["eval"]
    reductions = [
        SimpleNamespace(
            scorer=reduction["scorer"],
            reducer=reduction.get("reducer"),
            samples=[SimpleNamespace(**sample) for sample in reduction["samples"]],
        )
        for reduction in document.get("reductions") or ()
    ]
    return SimpleNamespace(
        status=document["status"],
        invalidated=document["invalidated"],
        eval=SimpleNamespace(
            task=spec["task"],
            model=spec["model"],
            dataset=SimpleNamespace(**spec["dataset"]),
            config=SimpleNamespace(epochs=spec["config"].get("epochs")),
        ),
        reductions=None if header_only and str(path).endswith(".json") else reductions,
        samples=None if header_only else [_sample(sample) for sample in document["samples"]],
    )


def _by_id(path, samples, exclude_fields):
    assert "messages" in exclude_fields
    samples_by_id = {
        (str(sample.id), sample.epoch): sample for sample in _read_eval_log(path).samples
    }
    try:
        return [samples_by_id[str(sample), epoch] for sample, epoch in samples]
    except KeyError:
        raise IndexError from None


@pytest.fixture
def inspect_ai(monkeypatch):
    """Replace the functions of ``inspect_ai.log`` that we use, for its JSON format.

    The library itself reads the same logs in tests/adapters/inspect. A file named ``.eval`` is read
    as those are, sample by sample, though what is in it is JSON.
    """
    log = ModuleType("inspect_ai.log")
    log.read_eval_log = _read_eval_log
    log.read_eval_log_samples_by_id = _by_id
    log.read_eval_log_sample_summaries = lambda path: _read_eval_log(path).samples
    monkeypatch.setitem(sys.modules, "inspect_ai", ModuleType("inspect_ai"))
    monkeypatch.setitem(sys.modules, "inspect_ai.log", log)
    return log
