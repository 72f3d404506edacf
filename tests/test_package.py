"""The package as a whole: docstrings and ``__all__``, light imports, docs without dead links."""

import importlib
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from pkgutil import iter_modules

import pytest

import ladderboard as lb
from ladderboard import adapters, errors
from ladderboard.analysts import ANALYSTS
from ladderboard.losses import LOSSES, METRICS
from ladderboard.mechanisms import MECHANISMS

ROOT = Path(__file__).parents[1]
PACKAGES = sorted(path.parent.name for path in (ROOT / "src/ladderboard").glob("*/__init__.py"))
PAGES = sorted(ROOT.glob("*.md"))  # tests/docs checks those of the site


@pytest.mark.parametrize("package", PACKAGES)
def test_every_package_has_a_docstring_and_exports_its_names(package):
    module = importlib.import_module(f"ladderboard.{package}")
    assert len(module.__doc__.strip()) > 10
    assert all(hasattr(module, name) for name in module.__all__)


def test_the_contract_of_independent_adapters_lists_every_adapter():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    (contract,) = (row for row in settings["contracts"] if row["type"] == "independence")
    names = [info.name for info in iter_modules(adapters.__path__) if info.name[0] != "_"]
    assert contract["modules"] == [f"ladderboard.adapters.{name}" for name in names]


def test_public_names_can_be_imported_and_others_cannot():
    assert all(getattr(lb, name) is not None for name in lb.__all__)
    assert set(dir(lb)) == set(lb.__all__)
    with pytest.raises(AttributeError, match="no attribute 'Laddder'"):
        _ = lb.Laddder


@pytest.mark.parametrize("name", ["adapters", "board", "bounds", "holdout", "ledger", "server"])
def test_packages_list_their_names_and_import_each_once(name):
    package = importlib.import_module(f"ladderboard.{name}")
    assert set(dir(package)) == set(package.__all__)
    for exported in package.__all__:
        assert getattr(package, exported) is vars(package)[exported]
    with pytest.raises(AttributeError, match=rf"'ladderboard\.{name}' has no attribute 'missing'"):
        _ = package.missing


def test_the_tree_of_errors_shows_every_error():
    tree = errors.__doc__
    for name in errors.__all__:
        assert name in tree
        assert issubclass(getattr(errors, name), lb.LadderboardError)


def test_importing_loads_nothing_and_the_core_needs_numpy_only():
    code = """
import sys
before = set(sys.modules)
import ladderboard as lb
assert "numpy" not in sys.modules
[getattr(lb, name) for name in lb.__all__]
roots = {name.split(".")[0] for name in set(sys.modules) - before}
print(sorted(roots - set(sys.stdlib_module_names)))
"""
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert set(eval(result.stdout)) <= {"ladderboard", "numpy"}  # noqa: S307


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_between_pages_have_targets(page):
    text = page.read_text()
    for target in re.findall(r"\]\(([^)]+)\)", text):
        if target.startswith("http"):
            continue
        path, _, anchor = target.partition("#")
        linked = (page.parent / path).resolve() if path else page
        assert linked.exists(), target
        if anchor:
            headings = re.findall(r"^#+ (.+)$", linked.read_text(), flags=re.MULTILINE)
            anchors = (re.sub(r"[^\w\- ]", "", heading) for heading in headings)
            assert anchor in {heading.lower().replace(" ", "-") for heading in anchors}, target


def test_the_reference_names_everything():
    mechanisms = (ROOT / "docs/reference/mechanisms.md").read_text()
    losses = (ROOT / "docs/reference/losses.md").read_text()
    analysts = (ROOT / "docs/reference/arena.md").read_text()
    assert all(mechanism.__name__ in mechanisms for mechanism in MECHANISMS.values())
    assert all(analyst.__name__ in analysts for analyst in ANALYSTS.values())
    assert all(f"`{name}`" in analysts for name in ANALYSTS)
    assert all(f"`{name}`" in losses for name in (*LOSSES, *METRICS))
