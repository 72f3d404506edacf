"""Run commands in the test process, in the same way as the program runs them."""

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


class CliResult(NamedTuple):
    """The exit code of a command and what it printed."""

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
def run_cli(monkeypatch, capsys, tmp_path):
    """Run ``ladderboard`` in an empty working directory."""
    monkeypatch.chdir(tmp_path)
    # The program tunes the collector of its own process; the test process stays as it is.
    monkeypatch.setattr(gc, "freeze", lambda: None)
    monkeypatch.setattr(gc, "set_threshold", lambda *_: None)

    def run_program(*arguments, piped=None):
        monkeypatch.setattr(sys, "argv", ["ladderboard", *map(str, arguments)])
        if piped is not None:
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(piped)))
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        captured = capsys.readouterr()
        return CliResult(ended.value.code or 0, captured.out, captured.err)

    return run_program


@pytest.fixture
def run_guard(run_cli):
    """Run ``ladderboard guard``."""

    def run(*arguments, piped=None):
        return run_cli("guard", *arguments, piped=piped)

    return run


@pytest.fixture
def labels():
    return np.random.default_rng(0).integers(0, 2, N)


@pytest.fixture
def guard_folder(run_guard, labels, tmp_path):
    """Create a guard with 5 questions and a Ladder of step 0.1, and return its folder of files.

    ``labels.csv``, ``half.csv`` (risk 1/2), ``good.csv`` (1/4), ``near.csv`` (1/4 less a little)
    and ``bad.csv``, which lacks two ids and has a value that is not a number.
    """
    ids = [f"row {index}" for index in range(N)]
    _write(tmp_path / "labels.csv", "label", ids, labels)
    row = np.arange(N)
    for name, errors in (
        ("half", row % 2 == 0),
        ("good", row % 4 == 0),
        ("near", row % 4 + row < 1),
    ):
        _write(tmp_path / f"{name}.csv", "prediction", ids, labels ^ errors)
    _write(tmp_path / "near.csv", "prediction", ids, labels ^ ((row % 4 == 0) & (row > 0)))
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
def guard_contents(guard_folder):
    """Return a function that reads the guard's ledger and its high-water mark."""

    def read():
        guard = lb.Holdout.open("guard.db")
        entries = [form for form, _ in guard._book.entries()]
        chain_state = guard._book.chain_state()
        guard.close()
        return entries, chain_state, (guard_folder / "guard.db.mark").read_bytes()

    return read


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
    """Create a board folder: 300 public rows, 100 private rows, a Ladder and two baselines."""
    path = tmp_path / "folder"
    path.mkdir()
    (path / "board.yaml").write_text(BOARD)
    rows = "".join(
        f"{index},{index % 2},{'public' if index < 300 else 'private'}\n" for index in range(400)
    )
    (path / "holdout.csv").write_text(f"id,label,split\n{rows}")
    zeros = "".join(f"{index},0\n" for index in range(400))
    (path / "half.csv").write_text(f"id,prediction\n{zeros}")
    (path / "sample_submission.csv").write_text(f"id,prediction\n{zeros}")
    return path


@pytest.fixture
def predictions(tmp_path):
    """Write a file of predictions for that board with a given number of errors on each split."""

    def write(public, private=0):
        wrong = {*range(public), *range(300, 300 + private)}
        rows = "".join(f"{index},{index % 2 ^ (index in wrong)}\n" for index in range(400))
        path = tmp_path / f"{public}-{private}.csv"
        path.write_text(f"id,prediction\n{rows}")
        return path

    return write


@pytest.fixture
def live_server(live_server, isolated_home):
    """A server with one board; settings and receipts stay in a temporary home."""
    return live_server


@pytest.fixture
def page(live_server):
    """The address of the board's page."""
    return f"{live_server.url}/boards/{live_server.slug}"
