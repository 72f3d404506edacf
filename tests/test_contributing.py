"""The files that CONTRIBUTING has one write work, and pass the tests that it has one write."""

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
folder, room, test = sys.argv[1:]
importlib.import_module(f"ladderboard.{room}").__path__.append(folder)
(test,) = [each for name, each in runpy.run_path(test).items() if name.startswith("test_")]
test()
"""


def written(title):
    """Return the file of the house, and its test, under a heading."""
    part = PAGE.partition(f"## {title}\n")[2].partition("\n## ")[0]
    (place, source), (_, test) = _BLOCK.findall(part)
    return Path(place), textwrap.dedent(source), textwrap.dedent(test)


@pytest.mark.parametrize("title", ["How to add a loss", "How to add an attack"])
def test_what_is_written_works(title, tmp_path):
    place, source, test = written(title)
    (tmp_path / place.name).write_text(source)
    (tmp_path / "a_test.py").write_text(test)
    words = [tmp_path, place.parent.name, tmp_path / "a_test.py"]
    done = subprocess.run(
        [sys.executable, "-c", _RUN, *map(str, words)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("title", ["How to add a loss", "How to add an attack"])
def test_what_is_written_is_as_the_house_wants_it(title, tmp_path):
    place, source, _ = written(title)
    (tmp_path / place.name).write_text(source)
    for words in (["check", "--ignore", "INP001"], ["format", "--check"]):
        command = [sys.executable, "-m", "ruff", *words, "--config", ROOT / "pyproject.toml"]
        done = subprocess.run(
            [*map(str, command), str(tmp_path / place.name)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout


def test_the_files_that_are_spoken_of_are_there():
    part = PAGE.partition("## How to add a mechanism\n")[2].partition("## What we hold to")[0]
    made = {str(written(each)[0]) for each in ("How to add a loss", "How to add an attack")}
    found = set(re.findall(r"`((?:src|tests|docs|requirements)/[\w/.-]+\.\w+)`", part)) - made
    assert len(found) > 10
    for each in found:
        assert "NAME" in each or (ROOT / each).exists(), each
