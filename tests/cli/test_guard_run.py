"""Guard commands as processes: exit codes, pipes, and the fast parser."""

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
from ladderboard.cli._guard import _IMPORT_PATHS, _ask, find_simple_command
from ladderboard.cli._run import _SIMPLE_COMMANDS, parse_simple_arguments


def run_process(*arguments, **options):
    command = [sys.executable, "-m", "ladderboard", "guard", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, check=False, timeout=120, **options)


def test_the_life_of_a_guard_in_separate_processes(guard_folder):
    ladder = '{"mechanism": "ladder", "step": 0.1}'
    arguments = ("create", "new.db", "--labels", "labels.csv", "--questions", 2, "--json")
    arguments += ("--mechanism", ladder)
    assert json.loads(run_process(*arguments, cwd=guard_folder).stdout)["questions"] == 2
    gate = ("ask", "new.db", "--fail-unless-improved")
    good_csv = (guard_folder / "good.csv").read_bytes()
    assert run_process(*gate, "-", cwd=guard_folder, input=good_csv).returncode == 0
    assert run_process(*gate, "near.csv", cwd=guard_folder).returncode == 1
    result = run_process(*gate, "half.csv", cwd=guard_folder)
    assert (result.returncode, result.stdout) == (3, b"")
    assert result.stderr.count(b"\n") == 1
    assert run_process(*gate, "bad.csv", "--json", cwd=guard_folder).returncode == 2
    # Nothing is left open: all of it is in the file.
    assert sorted(path.name for path in guard_folder.glob("new.db*")) == ["new.db", "new.db.mark"]
    assert run_process("status", "new.db", "--check", cwd=guard_folder).returncode == 0
    (guard_folder / "new.db.mark").unlink()
    assert run_process("status", "new.db", cwd=guard_folder).returncode == 4


def test_a_served_guard_is_asked_like_a_file(guard_folder, tmp_path_factory):
    socket = tmp_path_factory.mktemp("s") / "s"  # a short path: sockets have no other
    command = [sys.executable, "-m", "ladderboard", "guard", "serve", "guard.db"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([*command, "--socket", socket], cwd=guard_folder, **pipes) as server:
        try:
            assert server.stdout.readline().startswith(b"Guarding guard.db: 5 of 5")
            while b"Ctrl-C stops" not in server.stdout.readline():
                pass
            url = f"unix:{socket}"
            gate = ("ask", url, "--fail-unless-improved", "--ladder", "x")
            assert run_process(*gate, "good.csv", cwd=guard_folder).returncode == 0
            near = (guard_folder / "near.csv").read_bytes()
            assert run_process(*gate, "-", cwd=guard_folder, input=near).returncode == 1
            result = run_process(*gate, "bad.csv", "--json", cwd=guard_folder)
            assert result.returncode == 2
            assert len(json.loads(result.stdout)["error"]["problems"]) == 2
            data = json.loads(run_process("status", url, "--json", cwd=guard_folder).stdout)
            assert (
                "2 of 5 questions used"
                in run_process("status", url, cwd=guard_folder).stdout.decode()
            )
        finally:
            server.send_signal(signal.SIGINT)
            server.communicate(timeout=30)
    local_status = json.loads(run_process("status", "guard.db", "--json", cwd=guard_folder).stdout)
    assert local_status["head"] == data["head"]
    assert local_status["history"] == data["history"]


def test_ask_imports_only_what_it_needs(guard_folder):
    command = [sys.executable, "-X", "importtime", "-m", "ladderboard"]
    arguments = ["guard", "ask", "guard.db", "half.csv", "--fail-unless-improved"]
    result = subprocess.run(
        [*command, *arguments], capture_output=True, text=True, check=True, cwd=guard_folder
    )
    loaded = {line.rpartition("|")[2].strip() for line in result.stderr.splitlines()}
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
def test_every_exit_code(run_guard, guard_folder, monkeypatch, error, code, read):
    def fails(*_):
        raise error

    monkeypatch.setattr(_ask, "open_guard", fails)
    if read == "by typer":
        monkeypatch.setattr("ladderboard.cli._run.parse_simple_arguments", lambda *_: None)
    assert run_guard("ask", "guard.db", "half.csv").code == code
    assert run_guard("ask", "guard.db", "half.csv", "--json").code == code


def test_an_internal_error_does_not_exit_like_no_improvement(run_guard, guard_folder, monkeypatch):
    def fails(*_):
        raise ZeroDivisionError("\x1b[2J")

    monkeypatch.setattr(_ask, "open_guard", fails)
    result = run_guard("ask", "guard.db", "half.csv", "--fail-unless-improved")
    assert result.code == 70
    assert "ZeroDivisionError: \\x1b[2J" in result.err
    result = run_guard("ask", "guard.db", "half.csv", "--json")
    assert json.loads(result.out)["error"]["code"] == "fault"


def test_ctrl_c_exits_with_130(guard_folder):
    """While the command waits for more input."""
    command = [sys.executable, "-m", "ladderboard", "guard", "ask", "guard.db", "-"]
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen(command, cwd=guard_folder, **pipes) as process:
        for _ in range(600):
            if (guard_folder / "guard.db-wal").exists():  # the guard is open
                break
            time.sleep(0.05)
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        output = process.communicate(timeout=30)
    assert process.returncode == 130
    assert b"Traceback" not in output[1]


def test_an_answer_to_a_closed_pipe_still_counts(guard_folder):
    """The exit code is that of the answer, not of the closed pipe."""
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "ladderboard", "guard", "ask", "guard.db", "half.csv"]
    result = subprocess.run(
        command, cwd=guard_folder, stdout=writer, stderr=subprocess.PIPE, check=False
    )
    os.close(writer)
    assert (result.returncode, result.stderr) == (0, b"")
    assert (
        b"4 questions left" in run_process("ask", "guard.db", "half.csv", cwd=guard_folder).stdout
    )


def test_file_names_need_not_be_valid_unicode(guard_folder):
    for name in (b"\xff\xfe.csv", "größe\x1b[2J.csv".encode()):
        result = run_process("ask", "guard.db", os.fsdecode(name), cwd=guard_folder)
        assert result.returncode == 2
        assert b"There is no file" in result.stderr
        assert b"\x1b" not in result.stderr


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
    ("gate check", ["a.db", "b.csv", "--margin", "0.01", "--require", "not-worse", "--json"]),
    ("gate promote", ["a.db", "--results", "b.json", "--key-file=k"]),
    ("submit", ["digits", "-f", "b.csv", "-m", "a note", "-q", "--url", "http://127.0.0.1:1"]),
    ("submit", ["digits", "b.csv", "--key", "once", "--json"]),
    ("plan", ["--n", "1e4", "--questions", "1,000", "--teams=3", "--protection", "strict"]),
    ("plan", ["--gate", "--n", "300", "--looks", "50", "--differ", "0.2", "--json"]),
]


@pytest.mark.parametrize(("verb", "arguments"), LINES, ids=str)
def test_the_fast_parser_agrees_with_typer(verb, arguments):
    words = tuple(verb.split())
    function = load_command(_SIMPLE_COMMANDS.get(words) or _IMPORT_PATHS[verb])
    quick = parse_simple_arguments(function, arguments)
    assert quick is not None
    received = {}

    def spy(**options):
        received.update(options)

    spy.__signature__ = inspect.signature(function)
    spy.__annotations__ = function.__annotations__
    app = typer.Typer(add_completion=False)
    app.command()(spy)
    app(arguments, standalone_mode=False)
    defaults = {name: value.default for name, value in spy.__signature__.parameters.items()}
    expected = {**defaults, **quick}
    assert expected == received
    assert {name: type(value) for name, value in expected.items()} == {
        name: type(value) for name, value in received.items()
    }


@pytest.mark.parametrize(
    "arguments",
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
def test_unusual_arguments_are_left_to_typer(arguments):
    assert parse_simple_arguments(_ask.ask, arguments) is None


def test_an_unknown_choice_is_left_to_typer():
    line = ["a.db", "b.csv", "--require", "worse"]
    assert parse_simple_arguments(load_command(_SIMPLE_COMMANDS["gate", "check"]), line) is None


def test_unknown_commands_are_left_to_typer(run_guard, tmp_path):
    assert find_simple_command([]) is None
    assert find_simple_command(["aks"]) is None
    result = run_guard("aks", "guard.db")
    assert result.code == 2
    assert "Did you mean 'ask'" in result.err
    result = run_guard("aks", "guard.db", "--json")
    assert (result.code, result.json["error"]["code"]) == (2, "usage")
    assert "ask" in result.json["error"]["message"]


def test_a_guard_reopens_its_file_after_a_close(guard_folder, monkeypatch):
    monkeypatch.chdir(guard_folder)
    guard = lb.Holdout.open("guard.db")
    guard.ask(guard_folder / "half.csv")
    assert (guard_folder / "guard.db-wal").exists()
    guard.close()
    assert not (guard_folder / "guard.db-wal").exists()
    assert guard.ask(guard_folder / "good.csv").remaining == 3
    guard.close()
