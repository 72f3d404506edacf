"""docs/explanation/architecture.md names every package, and files that exist."""

import re
import tomllib
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src/ladderboard"
PAGE = (ROOT / "docs/explanation/architecture.md").read_text()
_PATH = re.compile(r"(?<![\w/.])((?:\w+/)+(?:\w+\.\w+)?|_\w+\.py|\w+\.py)(?![\w/])")


def test_every_file_and_package_on_the_page_exists():
    paths = set(_PATH.findall(PAGE))
    assert len(paths) > 60
    pages = PACKAGE / "server/_pages"  # the page names templates/ without its folder
    for path in paths:
        assert any((base / path).exists() for base in (ROOT, PACKAGE, pages)), path


def test_every_package_is_on_the_page():
    packages = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    drawn = PAGE.partition("```text\n")[2].partition("```")[0]
    for package in packages:
        assert f" {package}/ " in drawn, package
    for file in PACKAGE.glob("*.py"):
        assert file.name in drawn or file.name in {"__init__.py", "__main__.py"}


def test_the_layers_are_drawn_in_the_order_of_the_import_contract():
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    (layers,) = (
        contract["layers"] for contract in contracts["contracts"] if contract["type"] == "layers"
    )
    drawn = PAGE.partition("```text\n")[2].partition("```")[0]
    positions = [
        [drawn.index(f" {package}/ ") for package in layer.split(" | ")]
        for layer in layers
        if (PACKAGE / layer.split(" | ")[0]).is_dir()
    ]
    for upper, lower in pairwise(positions):
        assert max(upper) < min(lower)
