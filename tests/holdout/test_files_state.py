"""Refusals and their file: what is refused, for whatever reason, changes nothing."""

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
    made = make_guard(n=N)
    guard = made.open()
    guard.ask(model(0))
    before = dump(made.path)
    for _ in range(2):
        with pytest.raises((LadderboardError, OSError)):
            REFUSED[name](guard, made.path)
    assert dump(made.path) == before
    assert guard.ask(model(0)).again
    assert dump(made.path) == before
    assert guard.ask(model(1)).question == 2
    assert dump(made.path) != before


def test_past_the_budget_and_after_the_close_nothing_changes(make_guard):
    made = make_guard(n=N, questions=2)
    guard = made.open()
    replies = [guard.ask(model(at)) for at in range(2)]
    before = dump(made.path)
    with pytest.raises(lb.errors.BudgetSpent):
        guard.ask(model(2))
    with pytest.raises(lb.errors.BudgetSpent):
        guard.ask(model(2))
    assert dump(made.path) == before
    guard.close_for_good()
    before = dump(made.path)
    for refused in (lambda: guard.ask(model(2)), guard.close_for_good):
        with pytest.raises(lb.errors.SessionClosed):
            refused()
    assert dump(made.path) == before
    assert guard.ask(model(1)).released == replies[1].released


def test_a_sealed_guard_is_not_charged_without_its_key(make_guard):
    made = make_guard(n=N, sealed=True)
    made.open().ask(model(0))
    before = dump(made.path)
    for how in ({}, {"key_file": damaged_key(made.path)}):
        with pytest.raises(LadderboardError):
            lb.Holdout.restore(made.path, 3, **how)
    assert dump(made.path) == before


def run(*what):
    done = run_module("support.fuzz.guard_fuzz", *what)
    assert done.stderr == ""
    assert done.returncode == 0
    return json.loads(done.stdout)


def test_three_hundred_damaged_files(tmp_path):
    found = run(tmp_path, 0, 300)
    assert sum(found.values()) == 300
    assert found["answered"] > 5
    assert len(found) > 10


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20_000, 30_000, 1000))
def test_ten_thousand_damaged_files(tmp_path, seed):
    assert sum(run(tmp_path, seed, 1000).values()) == 1000


def test_hostile_files(tmp_path):
    paths = []
    for at, (name, (make, _)) in enumerate(HOSTILE_FILES.items()):
        paths.append(tmp_path / f"{at}.{'jsonl' if 'JSON' in name else 'csv'}")
        paths[-1].write_bytes(make())
    found = run(tmp_path, *paths)
    assert sum(found.values()) == len(paths)
    assert "answered" not in found


def endless(path, start, megabytes, opened=open):
    """One line that does not end for so long."""
    with opened(path, "wb") as file:
        file.write(start)
        for _ in range(megabytes):
            file.write(b"1" * 2**20)


@pytest.mark.slow
def test_a_gigabyte_in_a_line_or_behind_a_bomb(tmp_path):
    paths = [tmp_path / name for name in ("line.csv", "second.csv", "bomb.csv")]
    endless(paths[0], b"", 1025)
    endless(paths[1], b"id,prediction\n1,", 1025)
    endless(paths[2], b"id,prediction\n", 1025, gzip.open)
    found = run(tmp_path, *paths)
    assert sum(found.values()) == 3
    assert set(found) <= {"too_many_bytes", "line_too_long"}


@pytest.mark.slow
def test_a_line_of_a_gigabyte_within_the_limit(tmp_path):
    path = tmp_path / "long.csv"
    endless(path, b"id,prediction\n1,", 1023)
    assert run(tmp_path, path) == {"line_too_long": 1}
