"""Running the verbs: processes of their own, exit codes, pipes, and the quick way in."""

import inspect
import json
import os
import signal
import subprocess
import sys
import time

import pytest
import typer

import ladderboard as lb
from ladderboard import errors
from ladderboard.cli._app import load_command
from ladderboard.cli._guard import _ask, _GuardGroup, find_simple_command
from ladderboard.cli._run import parse_simple_arguments


def program(*words, **options):
    command = [sys.executable, "-m", "ladderboard", "guard", *map(str, words)]
    return subprocess.run(command, capture_output=True, check=False, timeout=120, **options)


def test_a_whole_life_in_processes_of_its_own(made):
    ladder = '{"mechanism": "ladder", "step": 0.1}'
    words = ("create", "new.db", "--labels", "labels.csv", "--questions", 2, "--json")
    words += ("--mechanism", ladder)
    assert json.loads(program(*words, cwd=made).stdout)["questions"] == 2
    gate = ("ask", "new.db", "--fail-unless-improved")
    good = (made / "good.csv").read_bytes()
    assert program(*gate, "-", cwd=made, input=good).returncode == 0
    assert program(*gate, "near.csv", cwd=made).returncode == 1
    done = program(*gate, "half.csv", cwd=made)
    assert (done.returncode, done.stdout) == (3, b"")
    assert done.stderr.count(b"\n") == 1
    assert program(*gate, "bad.csv", "--json", cwd=made).returncode == 2
    # Nothing is left open: all of it is in the file.
    assert sorted(path.name for path in made.glob("new.db*")) == ["new.db", "new.db.mark"]
    assert program("status", "new.db", "--check", cwd=made).returncode == 0
    (made / "new.db.mark").unlink()
    assert program("status", "new.db", cwd=made).returncode == 4


def test_a_guard_that_is_served_is_asked_like_a_file(made, tmp_path_factory):
    socket = tmp_path_factory.mktemp("s") / "s"  # a short path: sockets have no other
    command = [sys.executable, "-m", "ladderboard", "guard", "serve", "guard.db"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([*command, "--socket", socket], cwd=made, **pipes) as server:
        try:
            assert server.stdout.readline().startswith(b"Guarding guard.db: 5 of 5")
            while b"Ctrl-C stops" not in server.stdout.readline():
                pass
            url = f"unix:{socket}"
            gate = ("ask", url, "--fail-unless-improved", "--ladder", "x")
            assert program(*gate, "good.csv", cwd=made).returncode == 0
            near = (made / "near.csv").read_bytes()
            assert program(*gate, "-", cwd=made, input=near).returncode == 1
            done = program(*gate, "bad.csv", "--json", cwd=made)
            assert done.returncode == 2
            assert len(json.loads(done.stdout)["error"]["problems"]) == 2
            there = json.loads(program("status", url, "--json", cwd=made).stdout)
            assert "2 of 5 questions used" in program("status", url, cwd=made).stdout.decode()
        finally:
            server.send_signal(signal.SIGINT)
            server.communicate(timeout=30)
    here = json.loads(program("status", "guard.db", "--json", cwd=made).stdout)
    assert here["head"] == there["head"]
    assert here["history"] == there["history"]


def test_a_question_does_not_wait_for_what_it_does_not_need(made):
    command = [sys.executable, "-X", "importtime", "-m", "ladderboard"]
    words = ["guard", "ask", "guard.db", "half.csv", "--fail-unless-improved"]
    done = subprocess.run([*command, *words], capture_output=True, text=True, check=True, cwd=made)
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert {"polars", "sqlite3", "typer"} <= loaded
    heavy = {"pydantic", "rich", "scipy", "numba", "cryptography", "http.client"}
    assert not heavy & loaded
    assert not {"ladderboard.bounds", "ladderboard.arena", "ladderboard.analysts"} & loaded


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.InvalidPredictions("x"), 2),
        (errors.WrongKey("x"), 2),
        (errors.InvalidState("x"), 4),
        (errors.MissingDependency("x"), 2),
        (errors.BudgetSpent("x"), 3),
        (errors.SessionClosed("x"), 3),
        (errors.BrokenLedger("x"), 4),
        (errors.StorageFailed("x", uncertain=True), 4),
        (errors.StaleCopy("x"), 4),
        (errors.GuardUnreachable("x"), 4),
        (errors.NotAllowed("x"), 2),
        (typer.Exit(1), 1),
        (KeyboardInterrupt(), 130),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else "",
)
@pytest.mark.parametrize("read", ["quickly", "by typer"])
def test_every_exit_code(run, made, monkeypatch, error, code, read):
    def fails(*_):
        raise error

    monkeypatch.setattr(_ask, "open_guard", fails)
    if read == "by typer":
        monkeypatch.setattr("ladderboard.cli._run.parse_simple_arguments", lambda *_: None)
    assert run("ask", "guard.db", "half.csv").code == code
    assert run("ask", "guard.db", "half.csv", "--json").code == code


def test_a_fault_of_ours_is_not_taken_for_a_model_that_is_no_better(run, made, monkeypatch):
    def fails(*_):
        raise ZeroDivisionError("\x1b[2J")

    monkeypatch.setattr(_ask, "open_guard", fails)
    done = run("ask", "guard.db", "half.csv", "--fail-unless-improved")
    assert done.code == 70
    assert "ZeroDivisionError: \\x1b[2J" in done.err
    done = run("ask", "guard.db", "half.csv", "--json")
    assert json.loads(done.out)["error"]["code"] == "fault"


def test_ctrl_c_ends_with_130(made):
    """While a question waits for the pipe to say more."""
    command = [sys.executable, "-m", "ladderboard", "guard", "ask", "guard.db", "-"]
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen(command, cwd=made, **pipes) as process:
        for _ in range(600):
            if (made / "guard.db-wal").exists():  # the guard is open
                break
            time.sleep(0.05)
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=30)
    assert process.returncode == 130
    assert b"Traceback" not in said[1]


def test_an_answer_nobody_reads_still_counts(made):
    """The exit code tells the answer, not that the reader has gone."""
    reader, writer = os.pipe()
    os.close(reader)
    words = [sys.executable, "-m", "ladderboard", "guard", "ask", "guard.db", "half.csv"]
    done = subprocess.run(words, cwd=made, stdout=writer, stderr=subprocess.PIPE, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"4 questions left" in program("ask", "guard.db", "half.csv", cwd=made).stdout


def test_names_of_files_need_not_be_text(made):
    for name in (b"\xff\xfe.csv", "größe\x1b[2J.csv".encode()):
        done = program("ask", "guard.db", os.fsdecode(name), cwd=made)
        assert done.returncode == 2
        assert b"could not be opened" in done.stderr
        assert b"\x1b" not in done.stderr


LINES = [
    ("ask", ["a.db", "b.csv"]),
    ("ask", ["a.db", "-"]),
    ("ask", ["--json", "a.db", "--training", "0.5", "b.csv", "--ladder", "x y"]),
    ("ask", ["a.db", "b.csv", "--training=1e-3", "--format=tsv", "--key-file", "k"]),
    ("ask", ["a.db", "b.csv", "--fail-unless-improved", "--summary", "s.md"]),
    ("create", ["a.db", "--labels", "b.csv", "--questions", "1e3", "--range", "-1,1"]),
    ("create", ["a.db", "--labels", "b.csv", "--questions", "10,000", "--k", "3", "--beta", "0.1"]),
    ("status", ["a.db", "--check", "--json"]),
    ("export", ["a.db", "--out", "b"]),
    ("restore", ["a.db", "--charge", "-3"]),
    ("backup", ["a.db", "b.db"]),
]


@pytest.mark.parametrize(("verb", "words"), LINES, ids=" ".join)
def test_the_quick_way_in_reads_what_typer_reads(verb, words):
    function = load_command(_GuardGroup.import_paths[verb])
    quick = parse_simple_arguments(function, words)
    assert quick is not None
    seen = {}

    def spy(**given):
        seen.update(given)

    spy.__signature__ = inspect.signature(function)
    spy.__annotations__ = function.__annotations__
    app = typer.Typer(add_completion=False)
    app.command()(spy)
    app(words, standalone_mode=False)
    defaults = {name: each.default for name, each in spy.__signature__.parameters.items()}
    whole = {**defaults, **quick}
    assert whole == seen
    assert {name: type(each) for name, each in whole.items()} == {
        name: type(each) for name, each in seen.items()
    }


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["a.db", "b.csv", "c.csv"],
        ["a.db", "b.csv", "--help"],
        ["a.db", "b.csv", "--jsn"],
        ["a.db", "b.csv", "--json=yes"],
        ["a.db", "b.csv", "--json", "--json"],
        ["a.db", "b.csv", "--training", "much"],
        ["a.db", "b.csv", "--ladder"],
        ["--", "a.db", "b.csv"],
    ],
    ids=" ".join,
)
def test_anything_unusual_is_left_to_typer(words):
    assert parse_simple_arguments(_ask.ask, words) is None


def test_verbs_that_are_not_there_are_left_to_typer(run, tmp_path):
    assert find_simple_command([]) is None
    assert find_simple_command(["aks"]) is None
    done = run("aks", "guard.db")
    assert done.code == 2
    assert "Did you mean 'ask'" in done.err
    done = run("aks", "guard.db", "--json")
    assert (done.code, done.json["error"]["code"]) == (2, "usage")
    assert "ask" in done.json["error"]["message"]


@pytest.mark.parametrize("verb", ["create", "ask", "status", "export", "restore", "backup"])
def test_help_is_help(run, tmp_path, verb):
    done = run(verb, "--help")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith(f"Usage: ladderboard guard {verb} ")
    assert "--json" in done.out


def test_a_guard_that_let_go_of_its_file_takes_it_up_again(made, monkeypatch):
    monkeypatch.chdir(made)
    guard = lb.Holdout.open("guard.db")
    guard.ask(made / "half.csv")
    assert (made / "guard.db-wal").exists()
    guard.close()
    assert not (made / "guard.db-wal").exists()
    assert guard.ask(made / "good.csv").remaining == 3
    guard.close()
