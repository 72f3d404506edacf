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
def board(run_cli, folder):
    """Create a board; return a function that returns its status."""
    run_cli("board", "create", folder)

    def status():
        return run_cli("board", "list", "--json").json["boards"][0]["status"]

    return status


def kinds(records):
    return [kind for kind, _ in records if kind not in {"entry", "end"}]


def test_the_bundle_is_written_to_the_working_directory(run_cli, board, tmp_path):
    output = run_cli("board", "close", "first", "--yes").out
    head = run_cli("board", "show", "first", "--json").json["board"]["head"]
    assert " ".join(output.split()).endswith(
        f"first.bundle holds {head['entries']} entries, {OPENED}; no labels and no submissions. "
        "Everyone who has it can verify every release: "
        f"ladderboard verify first.bundle --head {head['hash']}"
    )
    bundle = read_bundle(tmp_path / "first.bundle")
    assert kinds(bundle) == ["bundle", "key", "standings", "finals"]
    assert bundle[0][1]["head"].hex() == head["hash"]


def test_options_decide_what_the_bundle_contains(run_cli, board):
    arguments = ["--labels", "--submissions", "--out", "all.bundle", "--yes"]
    report = run_cli("board", "close", "first", *arguments, "--json").json
    assert (report["status"], report["before"]) == ("closed", False)
    assert report["finals"]["rows"][0]["team"]["name"] == "Half"
    records = read_bundle(Path("all.bundle"))
    assert kinds(records) == ["bundle", "key", "holdout", "file", "part", "standings", "finals"]
    assert report["bundle"] == {
        "file": "all.bundle",
        "entries": records[0][1]["entries"],
        "head": records[0][1]["head"].hex(),
        "labels": True,
        "submissions": True,
    }
    assert not Path("first.bundle").exists()


def test_the_bundle_of_a_closed_board_is_written_again(run_cli, board):
    first = run_cli("board", "close", "first", "--yes", "--no-bundle", "--json").json
    assert (first["bundle"], Path("first.bundle").exists()) == (None, False)
    later = run_cli("board", "close", "first", "--json").json
    assert (later["before"], later["finals"]) == (True, first["finals"])
    assert Path("first.bundle").exists()
    result = run_cli("board", "close", "first", "--labels", "--out", "labels.bundle", "--yes")
    assert "first was closed before.\nFinal ranking" in result.out
    assert "every draw, the labels; no submissions." in " ".join(result.out.split())
    assert kinds(read_bundle(Path("labels.bundle")))[2] == "holdout"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--out", "taken"], "taken exists already"),
        (["--out", "nowhere/bundle"], "There is no directory nowhere"),
        (["--out", "bundle", "--no-bundle"], "Leave out --no-bundle"),
        (["--labels", "--no-bundle"], "Leave out --no-bundle"),
    ],
)
def test_a_refused_command_does_not_close_the_board(run_cli, board, arguments, sentence):
    Path("taken").write_text("mine")
    result = run_cli("board", "close", "first", *arguments, "--yes")
    assert (result.code, board()) == (2, "open")
    assert sentence in result.err
    assert Path("taken").read_text() == "mine"


def test_an_existing_bundle_is_not_overwritten(run_cli, board):
    Path("first.bundle").write_text("mine")
    assert run_cli("board", "close", "first", "--yes").code == 2
    assert (Path("first.bundle").read_text(), board()) == ("mine", "open")


@pytest.mark.parametrize("arguments", [[], ["--labels", "--submissions"], ["--no-bundle"]])
def test_the_confirmation_says_what_becomes_public(run_cli, board, monkeypatch, arguments):
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("builtins.input", lambda: "first")
    prompt = " ".join(run_cli("board", "close", "first", *arguments).err.split())
    assert ("the holdout cannot be used again" in prompt) == (arguments != ["--no-bundle"])
    assert (f"first.bundle will hold {OPENED}" in prompt) == (arguments != ["--no-bundle"])
    assert ("The labels stay hidden" in prompt) == (arguments == [])
    assert ("The labels will be in it" in prompt) == (len(arguments) > 1)
    assert board() == "closed"


def test_publishing_labels_later_needs_confirmation(run_cli, board, monkeypatch):
    run_cli("board", "close", "first", "--yes", "--no-bundle")
    arguments = ["board", "close", "first", "--labels", "--submissions"]
    result = run_cli(*arguments)
    assert (result.code, Path("first.bundle").exists()) == (2, False)
    assert "Opening the labels and the submissions of first cannot be undone" in result.err
    assert run_cli(*arguments, "--site", "site").code == 2
    assert not Path("site").exists()
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("builtins.input", lambda: "second")
    assert "That is another name; nothing was changed." in run_cli(*arguments).err
    assert not Path("first.bundle").exists()
    monkeypatch.setattr("builtins.input", lambda: "first")
    result = run_cli(*arguments)
    assert (result.code, Path("first.bundle").exists()) == (0, True)
    assert "Type first to open it: " in result.err


def test_an_interval_is_rounded_outwards(run_cli, board):
    final = run_cli("board", "close", "first", "--yes", "--no-bundle", "--json").json["finals"]
    output = run_cli("board", "close", "first").out
    for row in final["rows"]:
        low, high = floor(1e4 * (1 - row["high"])), ceil(1e4 * (1 - row["low"]))
        assert f"[{low / 1e4:.4f}, {high / 1e4:.4f}]" in output


def test_after_a_full_disk_the_board_is_closed_and_the_command_to_retry_is_printed(
    run_cli, board, tmp_path
):
    """The limit on the size of files stands in for a full disk."""
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
    arguments = ["board", "close", "first", "--labels", "--yes"]
    result = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        capture_output=True, text=True, check=False, env=os.environ,
    )  # fmt: skip
    assert result.returncode == 4
    assert "first is closed for good." in result.stdout
    retry_command = "ladderboard board close first --out first.bundle --labels"
    assert result.stderr.rstrip().endswith(f"write it with: {retry_command}")
    assert "File too large" in result.stderr
    assert [path.name for path in tmp_path.glob("*bundle*")] == []
    assert board() == "closed"
    assert run_cli(*retry_command.split()[1:], "--yes").code == 0
    assert Path("first.bundle").exists()
