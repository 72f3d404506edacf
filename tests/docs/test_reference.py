"""What is generated of the reference is what stands in docs/, and it is whole."""

import importlib
import re
from functools import cache
from pathlib import Path

import _reference
import pytest
from _source import Module

import ladderboard as lb

DOCS = Path(__file__).parents[2] / "docs"


@cache
def pages():
    return {**_reference.api(), "reference/help.md": _reference.helps()}


def test_the_pages_are_what_the_source_says():
    for place, text in pages().items():
        assert (DOCS / place).read_text() == text, f"{place} is old; run script/reference"


def test_there_is_no_other_page():
    there = {f"reference/api/{each.name}" for each in (DOCS / "reference/api").iterdir()}
    assert there <= set(pages())


def test_every_room_has_a_page():
    rooms = {path.parent.name for path in Path(lb.__file__).parent.glob("*/__init__.py")}
    assert {*rooms - {"cli"}, "errors"} == set(_reference.ROOMS)


@pytest.mark.parametrize("room", _reference.ROOMS)
def test_every_public_name_is_on_its_page(room):
    """As the interpreter has it, which need not be how the source was read."""
    page = pages()[f"reference/api/{room}.md"]
    public = importlib.import_module(f"ladderboard.{room}").__all__
    headings = re.findall(r"^## (?:The function )?(\w+)$", page, re.MULTILINE)
    assert headings == list(public)


def test_every_adapter_is_on_the_page():
    page = pages()["reference/api/adapters.md"]
    for module in _reference.rooms()["adapters"][1:]:
        section = page.partition(f"## {module.name}\n")[2].partition("\n## ")[0]
        assert module.public
        assert re.findall(r"^### (\w+)$", section, re.MULTILINE) == module.public


def test_every_name_of_the_front_is_listed():
    named = set(re.findall(r"`lb\.(\w+)`\]", pages()["reference/api.md"]))
    rooms = set(re.findall(r"`ladderboard\.(\w+)`\]", pages()["reference/api.md"]))
    assert named == set(lb.__all__) - rooms - {"__version__"}


def test_parameters_are_those_that_can_be_given():
    """Every parameter that a docstring describes is one, and stands in the signature."""
    for place, page in pages().items():
        for name, how, said in re.findall(
            r"^#+ (.+)\n\n```python\n([^`]*?)\n```\n(.*?)(?=^#|\Z)", page, re.MULTILINE | re.DOTALL
        ):
            listed = said.partition("**Parameters**\n\n")[2].partition("\n\n")[0]
            for line in re.findall(r"^- (`.*?`)(?=:|$)", listed, re.MULTILINE):
                for each in re.findall(r"`\**(\w+)`", line):
                    assert re.search(rf"\b{each}\b", how), (place, name, each)


def test_a_name_that_is_not_found_is_an_error(monkeypatch):
    monkeypatch.setattr(Module, "find", lambda self, name: None)
    with pytest.raises(SystemExit, match="is in __all__, and is not found"):
        _reference.thing_page(Module("ladderboard.losses"), "loss", set(), "##", "")
