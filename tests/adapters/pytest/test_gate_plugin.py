"""The pytest plugin, in a real test suite in a process of its own."""

import json
import subprocess
import sys

import pytest

import ladderboard as lb

TESTS = 40
# Plugins that are installed here take most of the time of a small suite.
UNUSED = ("-p", "no:schemathesis", "-p", "no:hypothesispytest", "-p", "no:anyio")
SUITE = """
import pytest

@pytest.mark.parametrize("number", range({count}))
def test_number(number):
    assert number >= {failing}

@pytest.fixture
def broken():
    raise RuntimeError("secret detail")

def test_error(broken):
    pass

@pytest.mark.skip
def test_skipped():
    pass
"""


@pytest.fixture
def run_suite(tmp_path):
    """Run a suite of which the first ``failing`` tests fail; return exit code and output."""

    def run(failing, *options):
        (tmp_path / "test_suite.py").write_text(SUITE.format(count=TESTS, failing=failing))
        command = [sys.executable, "-m", "pytest", "-p", "ladderboard.adapters.pytest", *UNUSED]
        done = subprocess.run(
            [*command, "-p", "no:cacheprovider", *map(str, options), "test_suite.py"],
            cwd=tmp_path, capture_output=True, text=True, check=False,
        )  # fmt: skip
        return done.returncode, done.stdout + done.stderr

    return run


@pytest.fixture
def gate_file(run_suite, tmp_path):
    """A gate made of the ids of the suite, whose incumbent fails 25 tests."""
    run_suite(0, "--ladderboard-results", "results.json")
    results = json.loads((tmp_path / "results.json").read_text())
    assert len(results) == TESTS + 2
    assert [name for name, passed in results.items() if not passed] == [
        "test_suite.py::test_error",
        "test_suite.py::test_skipped",
    ]
    path = tmp_path / "gate.db"
    lb.Gate.create(path, ids=list(results), looks=20, scores=True, margin=0.05)
    code, output = run_suite(25, "--ladderboard-gate", path, "--ladderboard-promote")
    assert code == 1  # tests failed, and nothing else was required
    assert "This run is now the incumbent, number 1." in output
    return path


def test_the_run_is_a_look(run_suite, gate_file):
    options = ("--ladderboard-gate", gate_file, "--ladderboard-require")
    code, output = run_suite(2, *options, "better")
    assert code == 0
    assert "Better than the incumbent. 19 looks left." in output
    assert "names of failed tests were shown" in output
    code, output = run_suite(24, *options, "not-worse")
    assert code == 1
    assert "Cannot tell. 18 looks left." in output
    code, output = run_suite(2, "--ladderboard-gate", gate_file)
    assert code == 1
    # Equal results are another look: that they are equal depends on the labels.
    assert "Better than the incumbent. 17 looks left." in output


def test_names_of_failures_can_be_hidden(run_suite, gate_file):
    options = ("--ladderboard-gate", gate_file, "--ladderboard-hide", "-v", "-rA")
    code, output = run_suite(5, *options)
    assert code == 0
    assert "Better than the incumbent" in output
    assert "were shown" not in output
    # The same line for every test, whatever its result.
    lines = [line.split()[1] for line in output.splitlines() if line.startswith("test_suite.py::")]
    assert set(lines) <= {"RUN", "["}
    assert not [
        word for word in ("FAILED", "failed", "passed", "secret", "assert") if word in output
    ]


def test_a_refusal_fails_the_run(run_suite, tmp_path):
    gate = lb.Gate.create(tmp_path / "other.db", ids=["a", "b"], looks=5, scores=True)
    gate.promote({"id": ["a", "b"], "score": [0.0, 1.0]})
    code, output = run_suite(0, "--ladderboard-gate", tmp_path / "other.db")
    assert code == 1
    assert "No verdict:" in output
    assert lb.Gate.open(tmp_path / "other.db").remaining == 5


@pytest.mark.parametrize(
    "option",
    ["--ladderboard-require=better", "--ladderboard-promote", "--ladderboard-margin=0"],
)
def test_options_of_a_gate_without_a_gate_are_refused(run_suite, option):
    code, output = run_suite(0, option)
    assert code == pytest.ExitCode.USAGE_ERROR
    assert f"{option.partition('=')[0]} needs --ladderboard-gate FILE." in output
    assert "passed" not in output
