"""Logs that real runs wrote, and something that reads Inspect's where Inspect is not installed."""

import json
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

DATA = Path(__file__).parents[1] / "data"


@pytest.fixture
def data():
    return DATA


def _sample(told):
    scores = {name: SimpleNamespace(**each) for name, each in (told.get("scores") or {}).items()}
    return SimpleNamespace(
        id=told["id"], epoch=told["epoch"], error=told.get("error"), scores=scores
    )


def _read_eval_log(path, header_only=False):
    told = json.loads(Path(path).read_text())
    spec = told["eval"]
    reductions = [
        SimpleNamespace(
            scorer=each["scorer"],
            reducer=each.get("reducer"),
            samples=[SimpleNamespace(**one) for one in each["samples"]],
        )
        for each in told.get("reductions") or ()
    ]
    return SimpleNamespace(
        status=told["status"],
        invalidated=told["invalidated"],
        eval=SimpleNamespace(
            task=spec["task"],
            model=spec["model"],
            dataset=SimpleNamespace(**spec["dataset"]),
            config=SimpleNamespace(epochs=spec["config"].get("epochs")),
        ),
        reductions=None if header_only and str(path).endswith(".json") else reductions,
        samples=None if header_only else [_sample(each) for each in told["samples"]],
    )


def _by_id(path, samples, exclude_fields):
    assert "messages" in exclude_fields
    there = {(str(each.id), each.epoch): each for each in _read_eval_log(path).samples}
    try:
        return [there[str(sample), epoch] for sample, epoch in samples]
    except KeyError:
        raise IndexError from None


@pytest.fixture
def inspect_ai(monkeypatch):
    """Stand in for what of ``inspect_ai.log`` we use, for files of its JSON format.

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
