"""Verbs, run in this process as the program runs them."""

import gc
import io
import json
import sys
from typing import NamedTuple

import numpy as np
import pytest

import ladderboard as lb
from ladderboard.cli import main

N = 400


class Done(NamedTuple):
    """How a verb ended: its exit code and what it said."""

    code: int
    out: str
    err: str

    @property
    def json(self):
        """The one JSON object on stdout."""
        (line,) = self.out.splitlines()
        assert not self.err
        return json.loads(line)


@pytest.fixture
def program(monkeypatch, capsys, tmp_path):
    """Run ``ladderboard``, in a directory of its own."""
    monkeypatch.chdir(tmp_path)
    # Of the process that is tested, not of the one that tests.
    monkeypatch.setattr(gc, "freeze", lambda: None)
    monkeypatch.setattr(gc, "set_threshold", lambda *_: None)

    def run_program(*words, piped=None):
        monkeypatch.setattr(sys, "argv", ["ladderboard", *map(str, words)])
        if piped is not None:
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(piped)))
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        return Done(ended.value.code or 0, said.out, said.err)

    return run_program


@pytest.fixture
def run(program):
    """Run ``ladderboard guard``."""

    def run_guard(*words, piped=None):
        return program("guard", *words, piped=piped)

    return run_guard


@pytest.fixture
def labels():
    return np.random.default_rng(0).integers(0, 2, N)


@pytest.fixture
def made(run, labels, tmp_path):
    """Make a guard of 5 questions that says what a Ladder of step 0.1 says, and its files.

    ``labels.csv``, ``half.csv`` (risk 1/2), ``good.csv`` (1/4), ``near.csv`` (1/4 less a little)
    and ``bad.csv``, in which two ids are missing and a value is no number.
    """
    ids = [f"row {at}" for at in range(N)]
    _write(tmp_path / "labels.csv", "label", ids, labels)
    at = np.arange(N)
    for name, wrong in (("half", at % 2 == 0), ("good", at % 4 == 0), ("near", at % 4 + at < 1)):
        _write(tmp_path / f"{name}.csv", "prediction", ids, labels ^ wrong)
    _write(tmp_path / "near.csv", "prediction", ids, labels ^ ((at % 4 == 0) & (at > 0)))
    _write(tmp_path / "bad.csv", "prediction", ids[2:], ["x", *labels[3:]])
    lb.Holdout.create(
        "guard.db",
        tmp_path / "labels.csv",
        questions=5,
        ladders=5,
        mechanism=lb.Ladder(step=0.1, grid=0.05),
    ).close()
    return tmp_path


def _write(path, name, ids, values):
    rows = "".join(f"{key},{value}\n" for key, value in zip(ids, values, strict=True))
    path.write_text(f"id,{name}\n{rows}")


@pytest.fixture
def everything(made):
    """Return what the guard's file says, all of it, and its mark."""

    def look():
        guard = lb.Holdout.open("guard.db")
        told = [form for form, _ in guard._book.entries()]
        at = guard._book.chain_state()
        guard.close()
        return told, at, (made / "guard.db.mark").read_bytes()

    return look


BOARD = """slug: first
title: First
loss: zero_one
mechanism: {name: ladder, step: 0.01}
questions: 40
teams: 4
baselines:
- {name: Half, file: half.csv}
- {name: Guessing, value: 0.5, source: a coin}
finals: {selections: 1}
"""


@pytest.fixture
def folder(tmp_path):
    """Make a board's folder: 300 public rows, 100 private ones, a Ladder and two baselines."""
    path = tmp_path / "folder"
    path.mkdir()
    (path / "board.yaml").write_text(BOARD)
    rows = "".join(f"{at},{at % 2},{'public' if at < 300 else 'private'}\n" for at in range(400))
    (path / "holdout.csv").write_text(f"id,label,split\n{rows}")
    zeros = "".join(f"{at},0\n" for at in range(400))
    (path / "half.csv").write_text(f"id,prediction\n{zeros}")
    (path / "sample_submission.csv").write_text(f"id,prediction\n{zeros}")
    return path


@pytest.fixture
def predictions(tmp_path):
    """Make a file of predictions for that board, with so many wrong on each split."""

    def write(public, private=0):
        wrong = {*range(public), *range(300, 300 + private)}
        rows = "".join(f"{at},{at % 2 ^ (at in wrong)}\n" for at in range(400))
        path = tmp_path / f"{public}-{private}.csv"
        path.write_text(f"id,prediction\n{rows}")
        return path

    return write


@pytest.fixture
def live_server(live_server, isolated_home):
    """A server with one board, and a home of one's own to keep things in."""
    return live_server


@pytest.fixture
def page(live_server):
    """The address of the board's page."""
    return f"{live_server.url}/boards/{live_server.slug}"
