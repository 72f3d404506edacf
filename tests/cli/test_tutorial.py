"""The tutorials that are typed into a shell do what they say, line by line."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("name", "either"), [("first-board", ()), ("first-guard", ("second.csv",))]
)
def test_a_tutorial(name, either, helper, tmp_path):
    typed = helper("_typed")
    program = tmp_path / "bin/ladderboard"
    program.parent.mkdir()
    program.write_text(f"#!{sys.executable}\nfrom ladderboard.cli import main\n\nmain()\n")
    program.chmod(0o755)
    path = f"{program.parent}:{Path(sys.executable).parent}:/usr/bin:/bin"
    home = typed.clean(path, tmp_path / "home", PYTHONPATH=str(ROOT / "src"))
    typed.type_out(name, tmp_path / "empty", home, either=either)
