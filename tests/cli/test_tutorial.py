"""Tutorials for the shell: every command prints what the page shows."""

import sys
from pathlib import Path

import pytest

from support.tutorials import clean_environment, run_tutorial

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("name", "unchecked"), [("first-board", ()), ("first-guard", ("second.csv",))]
)
def test_a_tutorial(name, unchecked, tmp_path):
    program = tmp_path / "bin/ladderboard"
    program.parent.mkdir()
    program.write_text(f"#!{sys.executable}\nfrom ladderboard.cli import main\n\nmain()\n")
    program.chmod(0o755)
    path = f"{program.parent}:{Path(sys.executable).parent}:/usr/bin:/bin"
    environment = clean_environment(path, tmp_path / "home", PYTHONPATH=str(ROOT / "src"))
    run_tutorial(name, tmp_path / "empty", environment, unchecked=unchecked)
