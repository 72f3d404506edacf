"""Sweeps: results are stored as they arrive, and only missing ones are computed."""

import json
import math
from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest

import ladderboard as lb
from ladderboard.analysts import Plateau
from ladderboard.arena._runner import _task
from ladderboard.arena._runner._participants import resolve_analysts, resolve_mechanisms
from ladderboard.arena._runner._sweep import ResultsFile, make_matches, run_serially, run_tasks
from ladderboard.arena._runner._task import Match, result_key
from ladderboard.errors import InvalidSetting

done = []


@dataclass(frozen=True)
class Third:
    """A task whose result is not a round number."""

    at: int
    weight = 1.0

    def describe(self):
        return {"kind": "third", "at": self.at}

    def accepts(self, result):
        return isinstance(result, dict) and isinstance(result.get("value"), float)

    def run(self, threads):
        done.append(self.at)
        if self.at < 0:
            raise KeyboardInterrupt
        return {"value": math.nextafter(self.at / 3, 1)}


@pytest.fixture(autouse=True)
def _nothing_done():
    done.clear()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "out" / "results.jsonl"


def test_results_are_kept_and_not_computed_again(path):
    first = run_tasks([Third(1), Third(2)], run_serially, results_path=path)
    second = run_tasks([Third(2), Third(3), Third(1)], run_serially, results_path=path)
    assert done == [1, 2, 3]
    assert second == [first[1], {"value": 1.0}, first[0]]
    assert second[2]["value"] == math.nextafter(1 / 3, 1)
    entry = json.loads(path.read_text().splitlines()[0])
    assert entry["task"] == {"kind": "third", "at": 1}


@pytest.mark.parametrize("cut", [1, 5, 60])
def test_a_truncated_last_line_is_computed_again(path, cut):
    run_tasks([Third(1), Third(2)], run_serially, results_path=path)
    intact = path.read_bytes()
    path.write_bytes(intact[:-cut])
    run_tasks([Third(1), Third(2)], run_serially, results_path=path)
    assert done == [1, 2, 2]
    assert path.read_bytes() == intact


def test_a_damaged_line_is_computed_again(path):
    run_tasks([Third(1), Third(2)], run_serially, results_path=path)
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("no json\n[1]\n" + lines[1])
    run_tasks([Third(1), Third(2)], run_serially, results_path=path)
    assert done == [1, 2, 1]


def test_an_interrupt_keeps_finished_results(path):
    with pytest.raises(KeyboardInterrupt):
        run_tasks([Third(1), Third(-1), Third(2)], run_serially, results_path=path)
    run_tasks([Third(1), Third(2)], run_serially, results_path=path)
    assert done == [1, -1, 2]


def test_other_code_is_another_key(path, monkeypatch):
    run_tasks([Third(1)], run_serially, results_path=path)
    monkeypatch.setattr(_task, "code_version", lambda: "99")
    run_tasks([Third(1)], run_serially, results_path=path)
    assert done == [1, 1]


def _key(analyst):
    makers, players = resolve_mechanisms({"m": lb.Exact()}), resolve_analysts({"a": analyst})
    (match,) = make_matches(makers, players, [(100, 10)], lambda *_: 1, 0)
    return result_key(match)


def test_code_of_custom_participants_is_part_of_the_key(tmp_path, monkeypatch):
    import importlib
    import linecache
    import sys

    monkeypatch.syspath_prepend(tmp_path)
    keys = []
    for body in ("pass", "game.ask(0)", "pass"):
        (tmp_path / "own_player.py").write_text(f"def play(game):\n    {body}\n")
        importlib.invalidate_caches()
        sys.modules.pop("own_player", None)
        _task._source_hash.cache_clear()
        linecache.clearcache()
        keys.append(_key("own_player:play"))
    sys.modules.pop("own_player", None)
    assert keys[0] == keys[2] != keys[1]


def test_a_results_file_has_one_writer_at_a_time(path):
    with ResultsFile(path), pytest.raises(InvalidSetting, match="Another run is writing"):
        ResultsFile(path)


def test_an_unwritable_results_path_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidSetting, match="cannot be written"):
        ResultsFile(tmp_path / "file" / "results.jsonl")


def test_a_stored_result_of_another_task_is_computed_again(path):
    tasks = [Third(1), Third(2)]
    first = run_tasks(tasks, run_serially, results_path=path)
    entries = [json.loads(line) for line in path.read_text().splitlines()]
    for damage in ([], "text", {}, {"value": "abc"}, None):
        entries[0]["result"] = damage
        path.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
        assert run_tasks(tasks, run_serially, results_path=path) == first


def test_a_match_takes_only_its_own_rows():
    match = Match(("exact", "plateau"), lb.Exact(), Plateau(), 50, 5, 0, 7)
    row = match.run(None)
    assert match.accepts(row)
    for change in (
        {"n": 51},
        {"repetition": 1},
        {"bias": "abc"},
        {"bias": math.inf},
        {"asked": True},
    ):
        assert not match.accepts({**row, **change})
    assert not match.accepts({})
    assert not match.accepts("row")


def test_files_of_other_programs_are_not_truncated(path):
    path.parent.mkdir()
    path.write_text("my precious notes")
    with pytest.raises(InvalidSetting, match="choose another directory"):
        run_tasks([Third(1)], run_serially, results_path=path)
    assert path.read_text() == "my precious notes"


def closing_over(value):
    return lambda game: game.ask(np.full(game.n, value))


class Bound:
    def __init__(self, value):
        self.value = value

    def play(self, game):
        game.ask(np.full(game.n, self.value))


def test_functions_with_different_closures_have_different_keys():
    def key(play):
        analyst = resolve_analysts({"a": play})["a"]
        return result_key(Match(("exact", "a"), lb.Exact(), analyst, 50, 5, 0, 7))

    assert key(closing_over(0)) == key(closing_over(0))
    assert key(closing_over(0)) != key(closing_over(1))
    assert key(Bound(0).play) == key(Bound(0).play)
    assert key(Bound(0).play) != key(Bound(1).play)
    assert key(partial(print, 1)) != key(partial(print, 2))
    long = np.zeros(5_000)
    copied = long.copy()
    copied[2_500] = 1
    assert key(closing_over(long)) == key(closing_over(long.copy()))
    assert key(closing_over(long)) != key(closing_over(copied))
    # Functions that cannot be compared get different keys.
    assert key(closing_over(object())) != key(closing_over(object()))
