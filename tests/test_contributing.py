"""The code in CONTRIBUTING works, and passes the tests shown beside it."""

import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "CONTRIBUTING.md").read_text()
_BLOCK = re.compile(
    r"`((?:src|tests)/[\w/]+\.py)`:\n\n   ```python\n(.*?)^   ```$", re.DOTALL | re.MULTILINE
)
_RUN = """
import importlib, runpy, sys
folder, package, test = sys.argv[1:]
importlib.import_module(f"ladderboard.{package}").__path__.append(folder)
(test,) = [value for name, value in runpy.run_path(test).items() if name.startswith("test_")]
test()
"""


def code_under(title):
    """Return the path, the source and the test shown under a heading."""
    part = PAGE.partition(f"## {title}\n")[2].partition("\n## ")[0]
    (path, source), (_, test) = _BLOCK.findall(part)
    return Path(path), textwrap.dedent(source), textwrap.dedent(test)


@pytest.mark.parametrize("title", ["How to add a loss", "How to add an attack"])
def test_the_code_passes_its_test(title, tmp_path):
    path, source, test = code_under(title)
    (tmp_path / path.name).write_text(source)
    (tmp_path / "a_test.py").write_text(test)
    arguments = [tmp_path, path.parent.name, tmp_path / "a_test.py"]
    result = subprocess.run(
        [sys.executable, "-c", _RUN, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("title", ["How to add a loss", "How to add an attack"])
def test_the_code_passes_ruff(title, tmp_path):
    path, source, _ = code_under(title)
    (tmp_path / path.name).write_text(source)
    for arguments in (["check", "--ignore", "INP001"], ["format", "--check"]):
        command = [sys.executable, "-m", "ruff", *arguments, "--config", ROOT / "pyproject.toml"]
        result = subprocess.run(
            [*map(str, command), str(tmp_path / path.name)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert result.returncode == 0, result.stdout


def test_the_files_that_are_mentioned_exist():
    part = PAGE.partition("## How to add a mechanism\n")[2].partition("## Rules")[0]
    new = {str(code_under(title)[0]) for title in ("How to add a loss", "How to add an attack")}
    mentioned = set(re.findall(r"`((?:src|tests|docs|requirements)/[\w/.-]+\.\w+)`", part)) - new
    assert len(mentioned) > 10
    for path in mentioned:
        assert "NAME" in path or (ROOT / path).exists(), path
