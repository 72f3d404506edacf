"""The page about the architecture names what is there."""

import re
import tomllib
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).parents[1]
HOUSE = ROOT / "src/ladderboard"
PAGE = (ROOT / "docs/explanation/architecture.md").read_text()
_PLACE = re.compile(r"(?<![\w/.])((?:\w+/)+(?:\w+\.\w+)?|_\w+\.py|\w+\.py)(?![\w/])")


def test_every_file_and_room_on_the_page_is_there():
    found = set(_PLACE.findall(PAGE))
    assert len(found) > 60
    inside = HOUSE / "server/_pages"  # templates/ is spoken of as its own
    for place in found:
        assert any((base / place).exists() for base in (ROOT, HOUSE, inside)), place


def test_every_room_is_on_the_page():
    rooms = {path.parent.name for path in HOUSE.glob("*/__init__.py")}
    drawn = PAGE.partition("```text\n")[2].partition("```")[0]
    for room in rooms:
        assert f" {room}/ " in drawn, room
    for file in HOUSE.glob("*.py"):
        assert file.name in drawn or file.name in {"__init__.py", "__main__.py"}


def test_the_rooms_are_drawn_in_the_order_in_which_they_import():

    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    (layers,) = (each["layers"] for each in contracts["contracts"] if each["type"] == "layers")
    drawn = PAGE.partition("```text\n")[2].partition("```")[0]
    places = [
        [drawn.index(f" {room}/ ") for room in layer.split(" | ")]
        for layer in layers
        if (HOUSE / layer.split(" | ")[0]).is_dir()
    ]
    for upper, lower in pairwise(places):
        assert max(upper) < min(lower)
