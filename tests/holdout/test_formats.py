"""Files of every released format open with the same contents, and continue to answer."""

import json
import shutil
from contextlib import closing
from pathlib import Path

import pytest

import ladderboard as lb
from ladderboard.errors import InvalidSetting, InvalidState
from ladderboard.ledger._storage import _schema

FORMATS = Path(__file__).parent / "formats"
LABELS = ["cat", "dog", "cat", "bird", "dog", "cat"] * 5
IDS = [f"img_{number}" for number in range(30)]


def model(wrong):
    words = ["cow" if number < wrong else label for number, label in enumerate(LABELS)]
    return {"id": IDS, "prediction": words}


@pytest.fixture(params=sorted(path.stem for path in FORMATS.glob("*.db")))
def guard(request, tmp_path):
    for suffix in (".db", ".db.mark"):
        shutil.copy(FORMATS / f"{request.param}{suffix}", tmp_path / f"guard{suffix}")
    opened = lb.Holdout.open(
        tmp_path / "guard.db", labels=LABELS, ids=IDS, group=[number // 2 for number in range(30)]
    )
    yield request.param, opened
    opened.close()


def test_an_old_file_has_its_recorded_contents(guard):
    name, opened = guard
    contents = opened.status().describe()
    del contents["bound"]  # it is computed, and may get tighter
    assert contents == json.loads((FORMATS / f"{name}.json").read_text())
    assert opened.check() == 4


def test_an_old_file_answers_further_questions(guard):
    _, opened = guard
    assert [opened.ask(model(wrong)).again for wrong in (20, 19, 10)] == [True] * 3
    assert opened.remaining == 14
    assert opened.ask(model(0)).question == 4
    assert opened.ladder("second").ask(model(0)).question == 2
    assert opened.check() == 6


def test_a_copy_from_before_a_newer_format_can_be_restored(tmp_path, monkeypatch):
    for suffix in (".db", ".db.mark"):
        shutil.copy(FORMATS / f"1{suffix}", tmp_path / f"guard{suffix}")
    file = tmp_path / "guard.db"
    latest = _schema.latest_format()
    step = _schema.Migration(latest, ("ALTER TABLE main.book ADD COLUMN colour TEXT",))
    with monkeypatch.context() as newer:
        newer.setattr(_schema, "MIGRATIONS", (*_schema.MIGRATIONS, step))
        with closing(lb.Holdout.open(file)) as opened:
            opened.ask(model(1))  # this answer is lost
    with pytest.raises(InvalidState, match=r"Or put guard\.db\.before-1 back"):
        lb.Holdout.open(file)
    with pytest.raises(InvalidSetting, match="at least 1"):
        lb.Holdout.restore(file, 0, copy=tmp_path / "guard.db.before-1")
    with closing(lb.Holdout.restore(file, 1, copy=tmp_path / "guard.db.before-1")) as opened:
        assert opened.remaining == 13
        assert not opened.ask(model(2)).again


def test_every_released_format_has_a_fixture():
    assert sorted(path.stem for path in FORMATS.glob("*.db")) == ["1", "2"]
