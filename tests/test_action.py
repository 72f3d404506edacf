"""The GitHub Action: its steps, followed in a clean folder."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import ladderboard as lb

ACTION = yaml.safe_load((Path(__file__).parents[1] / "action.yml").read_text())
CASES = [f"case{number}" for number in range(60)]


def fill(text, inputs):
    """Return a text with the inputs of the action in place of their expressions."""
    return re.sub(r"\$\{\{ inputs\.([\w-]+) \}\}", lambda match: inputs[match[1]], str(text))


@pytest.fixture
def run_action(tmp_path):
    """Follow the steps of the action; return the exit code, the outputs and the summary."""

    def run(**given):
        inputs = {name: str(spec.get("default", "")) for name, spec in ACTION["inputs"].items()}
        inputs |= {name.replace("_", "-"): value for name, value in given.items()}
        files = {name: tmp_path / name for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
        for path in files.values():
            path.write_text("")
        bin_folder = str(Path(sys.executable).parent)
        for step in ACTION["runs"]["steps"]:
            assert step["shell"] == "bash"
            if step.get("if") == "inputs.install != ''" and not inputs["install"]:
                continue
            done = subprocess.run(
                ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
                cwd=tmp_path, capture_output=True, text=True, check=False,
                env={
                    "PATH": f"{bin_folder}{os.pathsep}{os.environ['PATH']}",
                    "HOME": str(tmp_path),
                    **{name: str(path) for name, path in files.items()},
                    **{name: fill(value, inputs) for name, value in step["env"].items()},
                },
            )  # fmt: skip
        outputs = dict(
            line.split("=", 1) for line in files["GITHUB_OUTPUT"].read_text().splitlines()
        )
        assert done.stderr == "" or done.returncode == 70, done.stderr
        return done.returncode, outputs, files["GITHUB_STEP_SUMMARY"].read_text()

    return run


@pytest.fixture
def gate(tmp_path):
    gate = lb.Gate.create(tmp_path / "gate.db", ids=CASES, looks=3, scores=True)
    gate.promote({"id": CASES, "score": [0.0] * 30 + [1.0] * 30})
    for name, failed in (("good", 0), ("same", 30)):
        results = {case: number >= failed for number, case in enumerate(CASES)}
        if name == "same":  # other cases than the incumbent's
            results = {case: number < failed for number, case in enumerate(CASES)}
        (tmp_path / f"{name}.json").write_text(json.dumps(results))
    return gate


def test_the_action_passes_and_fails_as_required(run_action, gate):
    code, outputs, summary = run_action(
        gate="gate.db", results="good.json", require="better", install=""
    )
    assert (code, outputs) == (0, {"outcome": "better", "look": "1", "remaining": "2"})
    assert summary.startswith("### Gate\n\nBetter than the incumbent.")
    code, outputs, _ = run_action(gate="gate.db", results="same.json", install="")
    assert (code, outputs["outcome"]) == (5, "cannot_tell")
    code, outputs, _ = run_action(gate="gate.db", results="same.json", require="", install="")
    assert (code, outputs["outcome"], outputs["look"]) == (0, "cannot_tell", "3")


def test_a_refusal_fails_the_action(run_action, gate):
    code, outputs, summary = run_action(gate="gate.db", results="none.json", install="")
    assert (code, outputs["outcome"]) == (2, "refused")
    assert "**Not answered.**" in summary
    assert gate.remaining == 3


def test_inputs_are_never_part_of_a_script():
    """A branch name or a file name must not become a command."""
    for step in ACTION["runs"]["steps"]:
        assert "${{" not in step["run"]
