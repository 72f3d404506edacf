"""Identity: other work has another seed and another key, and other code is another build."""

import itertools
import shutil
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

import ladderboard as lb
from ladderboard.analysts import MajorityAttack
from ladderboard.arena._experiments._paper import cell_seed
from ladderboard.arena._runner import _task
from ladderboard.arena._runner._executors import pickle_tasks, unpickle_and_run
from ladderboard.arena._runner._task import Match, code_version, repetition_seed, result_key
from ladderboard.errors import WorkerError

HOUSE = Path(lb.__file__).parent
MATCH = Match(
    ("ladder", "majority"), lb.Ladder(step=0.1), MajorityAttack(), n=20, k=5, repetition=0, seed=1
)


def test_every_repetition_has_a_seed_of_its_own():
    sizes = itertools.product((0, 1, 2), ("a", "b"), (1, 2, 11), (1, 2, 11), (0, 1, 2))
    seeds = [repetition_seed(*each) for each in sizes]
    assert len(set(seeds)) == len(seeds) == 162


def test_every_size_of_the_papers_figures_has_a_seed_of_its_own():
    seeds = [cell_seed(*each) for each in itertools.product((0, 1, 2), (1, 2, 11), (1, 2, 11))]
    assert len(set(seeds)) == len(seeds) == 27


@pytest.mark.parametrize(
    "other",
    [
        {"names": ("other", "majority")},
        {"names": ("ladder", "other")},
        {"mechanism": lb.Ladder(step=0.2)},
        {"mechanism": lb.OneBit(step=0.1)},
        {"analyst": MajorityAttack(keep="better")},
        {"analyst": MajorityAttack(easy=0.5)},
        {"n": 21},
        {"k": 6},
        {"repetition": 1},
        {"seed": 2},
    ],
    ids=str,
)
def test_another_game_is_kept_under_another_key(other):
    assert result_key(replace(MATCH, **other)) != result_key(MATCH)


def test_the_same_game_is_kept_under_the_same_key():
    again = replace(MATCH, mechanism=lb.Ladder(step=0.1), analyst=MajorityAttack())
    assert result_key(again) == result_key(MATCH)


def test_another_build_keeps_games_under_other_keys(monkeypatch):
    before = result_key(MATCH)
    monkeypatch.setattr(_task, "code_version", lambda: "another build")
    assert result_key(MATCH) != before


def test_a_worker_with_another_build_runs_nothing():
    (parcel,) = pickle_tasks([MATCH], with_code=False)
    row, expected = unpickle_and_run(parcel, code_version()), MATCH.run(threads=1)
    assert {**row, "seconds": 0} == {**expected, "seconds": 0}
    with pytest.raises(WorkerError, match="restart workers after a change"):
        unpickle_and_run(parcel, "another build")
    with pytest.raises(WorkerError):  # the parcel is not even opened
        unpickle_and_run(b"no parcel", "another build")


@dataclass(frozen=True)
class Threads:
    def run(self, threads):
        return {"threads": threads}


def test_a_worker_has_one_thread():
    (parcel,) = pickle_tasks([Threads()], with_code=False)
    assert unpickle_and_run(parcel, code_version()) == {"threads": 1}


@pytest.fixture
def copied(tmp_path, monkeypatch):
    """A copy of the house, whose builds can be told."""
    house = tmp_path / "house"
    shutil.copytree(HOUSE, house, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(_task, "_PACKAGE", house)
    return house, code_version.__wrapped__


@pytest.mark.parametrize(
    "room", ["analysts", "arena", "bounds", "losses", "mechanisms", "reduction", "tape"]
)
def test_a_change_in_a_room_that_decides_results_is_another_build(copied, room):
    house, build_of = copied
    assert build_of() == code_version()
    for path in (house / room).rglob("*.py"):
        source = path.read_bytes()
        path.write_bytes(source + b"# changed\n")
        assert build_of() != code_version(), path.name
        path.write_bytes(source)
    (house / room / "_added.py").touch()
    assert build_of() != code_version()


def test_a_build_does_not_depend_on_line_ends_or_on_the_way_results_are_asked_for(copied):
    house, build_of = copied
    for path in house.glob("[lmt]*/**/*.py"):
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    (house / "cli/_app.py").write_text("changed\n")
    assert build_of() == code_version()
