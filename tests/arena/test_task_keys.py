"""Seeds and keys of tasks: other work, settings or code give other ones."""

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

PACKAGE = Path(lb.__file__).parent
MATCH = Match(
    ("ladder", "majority"), lb.Ladder(step=0.1), MajorityAttack(), n=20, k=5, repetition=0, seed=1
)


def test_every_repetition_has_its_own_seed():
    sizes = itertools.product((0, 1, 2), ("a", "b"), (1, 2, 11), (1, 2, 11), (0, 1, 2))
    seeds = [repetition_seed(*size) for size in sizes]
    assert len(set(seeds)) == len(seeds) == 162


def test_every_size_of_the_papers_figures_has_its_own_seed():
    seeds = [cell_seed(*cell) for cell in itertools.product((0, 1, 2), (1, 2, 11), (1, 2, 11))]
    assert len(set(seeds)) == len(seeds) == 27


@pytest.mark.parametrize(
    "changes",
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
def test_another_game_has_another_key(changes):
    assert result_key(replace(MATCH, **changes)) != result_key(MATCH)


def test_the_same_game_has_the_same_key():
    equal_match = replace(MATCH, mechanism=lb.Ladder(step=0.1), analyst=MajorityAttack())
    assert result_key(equal_match) == result_key(MATCH)


def test_a_worker_with_another_code_version_refuses_to_run():
    (pickled,) = pickle_tasks([MATCH], with_code=False)
    row, expected = unpickle_and_run(pickled, code_version()), MATCH.run(threads=1)
    assert {**row, "seconds": 0} == {**expected, "seconds": 0}
    with pytest.raises(WorkerError, match="restart workers after a change"):
        unpickle_and_run(pickled, "another build")
    with pytest.raises(WorkerError):  # before anything is unpickled
        unpickle_and_run(b"not a pickle", "another build")


@dataclass(frozen=True)
class Threads:
    def run(self, threads):
        return {"threads": threads}


def test_a_worker_has_one_thread():
    (pickled,) = pickle_tasks([Threads()], with_code=False)
    assert unpickle_and_run(pickled, code_version()) == {"threads": 1}


@pytest.fixture
def copied(tmp_path, monkeypatch):
    """A copy of the package, and a function that returns its code version."""
    copy = tmp_path / "copy"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(_task, "_PACKAGE", copy)
    return copy, code_version.__wrapped__


def test_a_change_in_a_package_behind_results_changes_the_code_version(copied):
    copy, copied_version = copied
    assert copied_version() == code_version()
    for package in ("analysts", "arena", "bounds", "losses", "mechanisms", "reduction", "tape"):
        deepest = max((copy / package).rglob("*.py"), key=lambda path: (len(path.parts), path))
        for path in (copy / package / "__init__.py", deepest, copy / package / "_added.py"):
            source = path.read_bytes() if path.exists() else None
            path.write_bytes((source or b"") + b"# changed\n")
            assert copied_version() != code_version(), path
            path.unlink() if source is None else path.write_bytes(source)


def test_the_code_version_ignores_line_ends_and_the_command_line(copied):
    copy, copied_version = copied
    for path in copy.glob("[lmt]*/**/*.py"):
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    (copy / "cli/_app.py").write_text("changed\n")
    assert copied_version() == code_version()
