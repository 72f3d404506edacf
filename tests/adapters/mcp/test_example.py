"""The example and the configurations of the docs, run as people run them."""

import json
import re
import subprocess
import sys
from pathlib import Path

import ladderboard as lb

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples/mcp_agent.py"


def test_the_example_ends_with_its_table():
    done = subprocess.run(
        [sys.executable, EXAMPLE],
        cwd=Path(lb.__file__).parents[1],  # so that the programs it starts are these, too
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    head, *rows = done.stdout.partition("model own_score")[2].splitlines()
    assert head.split() == ["question", "improved", "best"]
    assert len(rows) == 5  # records of the agent's own score; the seed is its own
    last = [row.split() for row in rows if "True" in row][-1]
    sentence = f"The model to report is that of question {last[2]}, '#{last[0]}'."
    assert sentence in done.stdout


def test_a_configuration_that_people_paste_starts(tmp_path, monkeypatch):
    page = (ROOT / "docs/how-to/guard-an-agent.md").read_text()
    blocks = [json.loads(match_) for match_ in re.findall("```json\n(.*?)```", page, re.DOTALL)]
    assert len(blocks) == 2
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    for block in blocks:
        (server,) = block["mcpServers"].values()
        assert server["command"].endswith("/ladderboard")
        for name, value in server.get("env", {}).items():
            monkeypatch.setenv(name, value)
        *args, folder = server["args"]
        assert folder == "/path/to/predictions"
        done = subprocess.run(
            [sys.executable, "-m", "ladderboard", *args, str(tmp_path)],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
