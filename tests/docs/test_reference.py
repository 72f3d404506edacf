"""The generated pages of the reference are complete."""

import importlib
import re
from functools import cache
from pathlib import Path

import _reference
import pytest
from _source import Module

import ladderboard as lb
from ladderboard.board import open_boards
from ladderboard.server import ParserPool, Settings, make_app
from ladderboard.server._problems import PROBLEMS

pages = cache(_reference.reference_pages)


def test_the_repository_holds_no_generated_page():
    root = Path(__file__).parents[2]
    assert [path for path in pages() if (root / path).exists()] == []


def test_every_package_has_a_page():
    packages = {path.parent.name for path in Path(lb.__file__).parent.glob("*/__init__.py")}
    assert {*packages - {"cli"}, "errors"} == set(_reference.PACKAGES)


@pytest.mark.parametrize("package", _reference.PACKAGES)
def test_every_public_name_is_on_its_page(package):
    """Compare with the imported module, which the script does not import."""
    page = pages()[f"docs/reference/api/{package}.md"]
    public = importlib.import_module(f"ladderboard.{package}").__all__
    headings = re.findall(r"^## (?:The function )?(\w+)$", page, re.MULTILINE)
    assert headings == list(public)


def test_every_adapter_is_on_the_page():
    page = pages()["docs/reference/api/adapters.md"]
    for module in _reference.public_modules()["adapters"][1:]:
        section = page.partition(f"## {module.name}\n")[2].partition("\n## ")[0]
        assert module.public
        assert re.findall(r"^### (\w+)$", section, re.MULTILINE) == module.public


def test_every_name_of_the_top_package_is_listed():
    named = set(re.findall(r"`lb\.(\w+)`\]", pages()["docs/reference/api.md"]))
    packages = set(re.findall(r"`ladderboard\.(\w+)`\]", pages()["docs/reference/api.md"]))
    assert named == set(lb.__all__) - packages - {"__version__"}


def test_every_route_of_a_server_is_on_the_page(tmp_path):
    boards = open_boards(tmp_path / "boards.db", create=True)
    app = make_app(boards, ParserPool(), settings=Settings(hosts=frozenset()))
    boards.close()
    routes = {(method, route.path) for route in app.routes for method in route.methods - {"HEAD"}}
    page = pages()["docs/reference/endpoints.md"]
    assert set(re.findall(r"^\| `([A-Z]+) (/[^`?]*)", page, re.MULTILINE)) == routes
    assert '`POST /api/v1/boards/{board}/teams` `{"name", "invitation"?}`' in page
    rows = dict(re.findall(r"^\| `(\w+)` \| (\d+) \|", page, re.MULTILINE))
    assert rows == {code: text.partition(":")[0] for code, text in PROBLEMS.items()}


def test_the_help_of_every_command_is_on_its_page():
    page = pages()["docs/reference/help.md"]
    headings = re.findall(r"^## ladderboard (.+)$", page, re.MULTILINE)
    assert re.findall(r"^\| \[`(.+?)`\]\(#ladderboard-", page, re.MULTILINE) == headings
    sections = {heading: page.partition(f"## ladderboard {heading}\n")[2] for heading in headings}
    for group in ("guard", "board", "team", "backup", "experiment"):
        listed = sections[group].partition("\nCommands:\n")[2].partition("```")[0]
        names = re.findall(r"^  ([\w-]+)", listed, re.MULTILINE)
        assert names
        assert {f"{group} {name}" for name in names} <= set(headings)
    assert {"submit", "verify", "plan", "doctor"} <= set(headings)


def test_parameters_are_those_that_can_be_given():
    """Every parameter that a docstring describes is one, and stands in the signature."""
    for path, page in pages().items():
        for name, signature, text in re.findall(
            r"^#+ (.+)\n\n```python\n([^`]*?)\n```\n(.*?)(?=^#|\Z)", page, re.MULTILINE | re.DOTALL
        ):
            listed = text.partition("**Parameters**\n\n")[2].partition("\n\n")[0]
            for line in re.findall(r"^- (`.*?`)(?=:|$)", listed, re.MULTILINE):
                for parameter in re.findall(r"`\**(\w+)`", line):
                    assert re.search(rf"\b{parameter}\b", signature), (path, name, parameter)


def test_a_name_that_is_not_found_is_an_error(monkeypatch):
    monkeypatch.setattr(Module, "find", lambda self, name: None)
    with pytest.raises(SystemExit, match="is in __all__, but is not defined"):
        _reference.format_definition(Module("ladderboard.losses"), "loss", set(), "##", "")
