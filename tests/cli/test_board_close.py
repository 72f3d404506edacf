"""``board close`` writes a bundle, and writes it again."""

import os
import resource
import subprocess
import sys
from math import ceil, floor
from pathlib import Path

import pytest

from support.verify.board_history import read_bundle

OPENED = "the noise key, every risk and every draw"


@pytest.fixture
def board(program, folder):
    """Give a function that tells the status of a board that is made."""
    program("board", "create", folder)

    def status():
        return program("board", "list", "--json").json["boards"][0]["status"]

    return status


def kinds(records):
    return [kind for kind, _ in records if kind not in {"entry", "end"}]


def test_the_bundle_is_written_where_one_stands(program, board, tmp_path):
    said = program("board", "close", "first", "--yes").out
    head = program("board", "show", "first", "--json").json["board"]["head"]
    assert " ".join(said.split()).endswith(
        f"first.bundle holds {head['entries']} entries, {OPENED}; no labels and no submissions. "
        "Everyone who has it can verify every release: "
        f"ladderboard verify first.bundle --head {head['hash']}"
    )
    found = read_bundle(tmp_path / "first.bundle")
    assert kinds(found) == ["bundle", "key", "standings", "finals"]
    assert found[0][1]["head"].hex() == head["hash"]


def test_what_is_in_it_is_the_organisers_word(program, board):
    words = ["--labels", "--submissions", "--out", "all.bundle", "--yes"]
    said = program("board", "close", "first", *words, "--json").json
    assert (said["status"], said["before"]) == ("closed", False)
    assert said["finals"]["rows"][0]["team"]["name"] == "Half"
    records = read_bundle(Path("all.bundle"))
    assert kinds(records) == ["bundle", "key", "holdout", "file", "part", "standings", "finals"]
    assert said["bundle"] == {
        "file": "all.bundle",
        "entries": records[0][1]["entries"],
        "head": records[0][1]["head"].hex(),
        "labels": True,
        "submissions": True,
    }
    assert not Path("first.bundle").exists()


def test_a_closed_board_is_opened_again(program, board):
    first = program("board", "close", "first", "--yes", "--no-bundle", "--json").json
    assert (first["bundle"], Path("first.bundle").exists()) == (None, False)
    later = program("board", "close", "first", "--json").json
    assert (later["before"], later["finals"]) == (True, first["finals"])
    assert Path("first.bundle").exists()
    done = program("board", "close", "first", "--labels", "--out", "labels.bundle", "--yes")
    assert "first was closed before.\nFinal ranking" in done.out
    assert "every draw, the labels; no submissions." in " ".join(done.out.split())
    assert kinds(read_bundle(Path("labels.bundle")))[2] == "holdout"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--out", "taken"], "taken exists already"),
        (["--out", "nowhere/bundle"], "There is no directory nowhere"),
        (["--out", "bundle", "--no-bundle"], "Leave out --no-bundle"),
        (["--labels", "--no-bundle"], "Leave out --no-bundle"),
    ],
)
def test_what_is_refused_closes_nothing(program, board, words, sentence):
    Path("taken").write_text("mine")
    done = program("board", "close", "first", *words, "--yes")
    assert (done.code, board()) == (2, "open")
    assert sentence in done.err
    assert Path("taken").read_text() == "mine"


def test_a_bundle_that_is_there_stays(program, board):
    Path("first.bundle").write_text("mine")
    assert program("board", "close", "first", "--yes").code == 2
    assert (Path("first.bundle").read_text(), board()) == ("mine", "open")


@pytest.mark.parametrize("words", [[], ["--labels", "--submissions"], ["--no-bundle"]])
def test_who_is_asked_is_told_what_is_opened(program, board, monkeypatch, words):
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("builtins.input", lambda: "first")
    asked = " ".join(program("board", "close", "first", *words).err.split())
    assert ("the holdout cannot be used again" in asked) == (words != ["--no-bundle"])
    assert (f"first.bundle will hold {OPENED}" in asked) == (words != ["--no-bundle"])
    assert ("The labels stay hidden" in asked) == (words == [])
    assert ("The labels will be in it" in asked) == (len(words) > 1)
    assert board() == "closed"


def test_labels_are_not_opened_later_without_a_word(program, board, monkeypatch):
    program("board", "close", "first", "--yes", "--no-bundle")
    words = ["board", "close", "first", "--labels", "--submissions"]
    done = program(*words)
    assert (done.code, Path("first.bundle").exists()) == (2, False)
    assert "Opening the labels and the submissions of first cannot be undone" in done.err
    assert program(*words, "--site", "site").code == 2
    assert not Path("site").exists()
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("builtins.input", lambda: "second")
    assert "That is another name; nothing was changed." in program(*words).err
    assert not Path("first.bundle").exists()
    monkeypatch.setattr("builtins.input", lambda: "first")
    done = program(*words)
    assert (done.code, Path("first.bundle").exists()) == (0, True)
    assert "Type first to open it: " in done.err


def test_an_interval_is_rounded_outwards(program, board):
    final = program("board", "close", "first", "--yes", "--no-bundle", "--json").json["finals"]
    said = program("board", "close", "first").out
    for each in final["rows"]:
        low, high = floor(1e4 * (1 - each["high"])), ceil(1e4 * (1 - each["low"]))
        assert f"[{low / 1e4:.4f}, {high / 1e4:.4f}]" in said


def test_a_full_disk_leaves_a_closed_board_and_a_way(program, board, tmp_path):
    """The limit on the size of files stands for a disk that is full."""
    script = (
        "import resource, signal, sys\n"
        "import ladderboard.board as bundle\n"
        "from ladderboard.cli import main\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "whole = bundle.write_board_bundle\n"
        "def full(*given, **more):\n"
        f"    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, {resource.RLIM_INFINITY}))\n"
        "    return whole(*given, **more)\n"
        "bundle.write_board_bundle = full\n"
        "sys.argv = ['ladderboard', *sys.argv[1:]]\n"
        "main()\n"
    )
    words = ["board", "close", "first", "--labels", "--yes"]
    done = subprocess.run(
        [sys.executable, "-c", script, *words],
        capture_output=True, text=True, check=False, env=os.environ,
    )  # fmt: skip
    assert done.returncode == 4
    assert "first is closed for good." in done.stdout
    again = "ladderboard board close first --out first.bundle --labels"
    assert done.stderr.rstrip().endswith(f"write it with: {again}")
    assert "File too large" in done.stderr
    assert [path.name for path in tmp_path.glob("*bundle*")] == []
    assert board() == "closed"
    assert program(*again.split()[1:], "--yes").code == 0
    assert Path("first.bundle").exists()
