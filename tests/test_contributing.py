"""The code in CONTRIBUTING works, and passes the tests shown beside it."""

import os
import re
import shutil
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
TITLES = ["How to add a mechanism", "How to add a loss", "How to add an attack"]
_RUN = """
import runpy, sys
(test,) = [value for name, value in runpy.run_path(sys.argv[1]).items() if name.startswith("test_")]
test()
"""


def code_under(title):
    """Return the path, the source and the test shown under a heading."""
    part = PAGE.partition(f"## {title}\n")[2].partition("\n## ")[0]
    (path, source), (_, test) = _BLOCK.findall(part)
    return Path(path), textwrap.dedent(source), textwrap.dedent(test)


@pytest.mark.parametrize("title", TITLES)
def test_one_file_one_entry_and_one_test_are_enough(title, tmp_path):
    path, source, test = code_under(title)
    copy = tmp_path / "ladderboard"
    copy.mkdir()
    for entry in (ROOT / "src" / "ladderboard").iterdir():
        if entry.name != path.parent.name:
            (copy / entry.name).symlink_to(entry)
    package = copy / path.parent.name
    shutil.copytree(ROOT / path.parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    (package / path.name).write_text(source)
    register(
        package, path.stem, re.search(r"^class (\w+)\((?!NamedTuple)", source, re.MULTILINE)[1]
    )
    (tmp_path / "a_test.py").write_text(test)
    result = subprocess.run(
        [sys.executable, "-c", _RUN, str(tmp_path / "a_test.py")],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
    )
    assert result.returncode == 0, result.stderr


def register(package, module, kind):
    """Add a class to the registry of its package: an entry, or an import and an entry."""
    registry = package / "_registry.py"
    text = registry.read_text()
    entry = f'    "{module}": {{"{module[1:]}": "{kind}"}},\n'
    text, count = re.subn(r"(?m)^_CLASSES = \{\n", rf"\g<0>{entry}", text, count=1)
    if not count:
        package_import = f"from ladderboard.{package.name}."
        text = text.replace(
            package_import, f"{package_import}{module} import {kind}\n{package_import}", 1
        )
        text, count = re.subn(r"( for \w+ in \()", rf"\1{kind}, ", text, count=1)
    assert count == 1
    registry.write_text(text)


@pytest.mark.parametrize("title", TITLES)
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
    new = {str(code_under(title)[0]) for title in TITLES}
    mentioned = set(re.findall(r"`((?:src|tests|docs|requirements)/[\w/.-]+\.\w+)`", part)) - new
    assert len(mentioned) > 10
    for path in mentioned:
        assert "NAME" in path or (ROOT / path).exists(), path
