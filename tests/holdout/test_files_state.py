"""A refusal, for any reason, does not change the file."""

import contextlib
import gzip
import json
import sqlite3
from pathlib import Path

import numpy as np
import pytest

import ladderboard as lb
from ladderboard.errors import LadderboardError
from support.fuzz.hostile_files import HOSTILE_FILES
from support.processes import run_module

HERE = Path(__file__).parent
N = 50


def dump(path):
    """Everything in a guard's file and its mark."""
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as link:
        tables = link.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        rows = {table: link.execute(f"SELECT * FROM {table}").fetchall() for (table,) in tables}
    assert len(rows["entry"]) > 2
    return rows, Path(f"{path}.mark").read_bytes()


def model(*seed):
    return np.random.default_rng(seed).integers(2, size=N)


def damaged_key(path):
    (path.parent / "wrong.key").write_text("00" * 32)
    return path.parent / "wrong.key"


REFUSED = {
    "too few": lambda guard, _: guard.ask([0, 1]),
    "nothing": lambda guard, _: guard.ask(None),
    "an empty file": lambda guard, _: guard.ask(b""),
    "a missing file": lambda guard, _: guard.ask("none.csv"),
    "damaged": lambda guard, _: guard.ask(b"PAR1" + bytes(99)),
    "text": lambda guard, _: guard.ask(["?"] * N),
    "NaN": lambda guard, _: guard.ask(np.full(N, np.nan)),
    "training that is not looked at": lambda guard, _: guard.ask(model(1), training=0.5),
    "training out of range": lambda guard, _: guard.ask(model(1), training=2),
    "no such format": lambda guard, _: guard.ask(b"", format="?"),
    "no ladder's name": lambda guard, _: guard.ladder(""),
    "a charge that is no number": lambda _, path: lb.Holdout.restore(path, "x"),
    "a charge below nothing": lambda _, path: lb.Holdout.restore(path, -1),
    "a charge past the budget": lambda _, path: lb.Holdout.restore(path, 10**6),
    "a charge without the right loss": lambda _, path: lb.Holdout.restore(path, 1, loss="brier"),
    "a charge without the right mechanism": lambda _, path: lb.Holdout.restore(
        path, 1, mechanism=lb.Exact()
    ),
    "a charge with a key that is not needed": lambda _, path: lb.Holdout.restore(
        path, 1, key_file=damaged_key(path)
    ),
    "another guard in its place": lambda _, path: lb.Holdout.create(
        path, labels=[0, 1], questions=9
    ),
    "other labels": lambda _, path: lb.Holdout.open(path, labels=[2] * N),
    "another mechanism": lambda _, path: lb.Holdout.open(path, mechanism=lb.Exact()),
    "a backup onto itself": lambda guard, path: guard.backup(path),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_refusal_changes_nothing(make_guard, name):
    known_guard = make_guard(n=N)
    guard = known_guard.open()
    guard.ask(model(0))
    before = dump(known_guard.path)
    for _ in range(2):
        with pytest.raises((LadderboardError, OSError)):
            REFUSED[name](guard, known_guard.path)
    assert dump(known_guard.path) == before
    assert guard.ask(model(0)).again
    assert dump(known_guard.path) == before
    assert guard.ask(model(1)).question == 2
    assert dump(known_guard.path) != before


def test_questions_after_the_budget_or_the_close_change_nothing(make_guard):
    known_guard = make_guard(n=N, questions=2)
    guard = known_guard.open()
    replies = [guard.ask(model(number)) for number in range(2)]
    before = dump(known_guard.path)
    for _ in range(2):
        with pytest.raises(lb.errors.BudgetSpent, match="All 2 questions were asked"):
            guard.ask(model(2))
    assert guard.ask(model(0)).again
    assert dump(known_guard.path) == before
    guard.close_for_good()
    before = dump(known_guard.path)
    for refused in (lambda: guard.ask(model(2)), guard.close_for_good):
        with pytest.raises(lb.errors.SessionClosed):
            refused()
    assert dump(known_guard.path) == before
    assert guard.ask(model(1)).released == replies[1].released


def test_an_encrypted_guard_is_not_charged_without_its_key(make_guard):
    known_guard = make_guard(n=N, sealed=True)
    known_guard.open().ask(model(0))
    before = dump(known_guard.path)
    for settings in ({}, {"key_file": damaged_key(known_guard.path)}):
        with pytest.raises(LadderboardError):
            lb.Holdout.restore(known_guard.path, 3, **settings)
    assert dump(known_guard.path) == before


def run(*arguments):
    done = run_module("support.fuzz.guard_fuzz", *arguments)
    assert done.stderr == ""
    assert done.returncode == 0
    return json.loads(done.stdout)


def test_three_hundred_damaged_files(tmp_path):
    outcome = run(tmp_path, 0, 300)
    assert sum(outcome.values()) == 300
    assert outcome["answered"] > 5
    assert len(outcome) > 10


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20_000, 30_000, 1000))
def test_ten_thousand_damaged_files(tmp_path, seed):
    assert sum(run(tmp_path, seed, 1000).values()) == 1000


def test_hostile_files(tmp_path):
    paths = []
    for number, (name, (make, _)) in enumerate(HOSTILE_FILES.items()):
        paths.append(tmp_path / f"{number}.{'jsonl' if 'JSON' in name else 'csv'}")
        paths[-1].write_bytes(make())
    outcome = run(tmp_path, *paths)
    assert sum(outcome.values()) == len(paths)
    assert "answered" not in outcome


def endless(path, start, megabytes, opened=open):
    """A line of this many megabytes."""
    with opened(path, "wb") as file:
        file.write(start)
        for _ in range(megabytes):
            file.write(b"1" * 2**20)


@pytest.mark.slow
def test_a_line_of_a_gigabyte_and_a_bomb_are_refused(tmp_path):
    paths = [tmp_path / name for name in ("line.csv", "second.csv", "bomb.csv")]
    endless(paths[0], b"", 1025)
    endless(paths[1], b"id,prediction\n1,", 1025)
    endless(paths[2], b"id,prediction\n", 1025, gzip.open)
    outcome = run(tmp_path, *paths)
    assert sum(outcome.values()) == 3
    assert set(outcome) <= {"too_many_bytes", "line_too_long"}


@pytest.mark.slow
def test_a_line_of_a_gigabyte_within_the_limit(tmp_path):
    path = tmp_path / "long.csv"
    endless(path, b"id,prediction\n1,", 1023)
    assert run(tmp_path, path) == {"line_too_long": 1}
