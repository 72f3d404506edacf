"""SVG: elements, text that fits, and figures in two sizes."""

import re
from collections.abc import Callable, Iterable
from functools import cache
from typing import NamedTuple
from unicodedata import east_asian_width

from markupsafe import Markup, escape

FONT = 13.0  # as in style.css; of a view box that is shown about as wide as it says
_CHARACTER_WIDTH, _BOLD_WIDTH = 0.64, 0.7  # of the font's size: what a digit takes in a wide font
_INVALID_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class ViewBox(NamedTuple):
    """A view box. Text shrinks with its picture, so a phone gets a picture of its own."""

    name: str
    width: float
    height: float


_WIDE = ViewBox("wide", 720, 300)
_NARROW = ViewBox("narrow", 340, 260)


def coord(value: float) -> str:
    """Return a coordinate.

    >>> coord(12.0), coord(1 / 3), coord(-0.01)
    ('12', '0.3', '0')
    """
    said = f"{value:.1f}"
    return "0" if said == "-0.0" else said.removesuffix(".0")


def tag(name: str, *inside: str, **attributes: str | float) -> Markup:
    """Return an element with everything escaped; ``class_`` is class, and ``_`` is ``-``.

    >>> tag("text", "a < b", x=1, class_="axis")
    Markup('<text x="1" class="axis">a &lt; b</text>')
    """
    said = [f' {_attribute_name(key)}="{_escape(value)}"' for key, value in attributes.items()]
    within = "".join([each if type(each) is Markup else _escape(each) for each in inside])
    end = f">{within}</{name}>" if within else "/>"
    return Markup(f"<{name}{''.join(said)}{end}")  # noqa: S704 - escaped above


@cache
def _attribute_name(key: str) -> str:
    return key.rstrip("_").replace("_", "-")


def _escape(value: str | float) -> str:
    """Return what XML may hold, escaped."""
    if not isinstance(value, str):
        return coord(value)
    return str(escape(_INVALID_XML.sub("\ufffd", str(value))))


def draw_text(
    said: str, x: float, y: float, *, anchor: str = "start", class_: str = "axis"
) -> Markup:
    """Return a line of text."""
    return tag("text", said, x=x, y=y, text_anchor=anchor, class_=f"chart-{class_}")


def tooltip(said: str) -> Markup:
    """Return what is told about a mark when it is pointed at."""
    return tag("title", said) if said else Markup("")


def dots_path(places: Iterable[tuple[float, float]]) -> str:
    """Return a path of points: a line without length has a round cap."""
    found = dict.fromkeys((coord(x), coord(y)) for x, y in places)
    return "".join(f"M{x} {y}H{x}" for x, y in found)


def text_width(said: str, *, bold: bool = False) -> float:
    """Return about how much room text takes."""
    return sum(map(_character_width, said)) * FONT * (_BOLD_WIDTH if bold else _CHARACTER_WIDTH)


def _character_width(character: str) -> float:
    """Return how wide a character is: those of East Asia and little pictures are wider."""
    return 1.6 if east_asian_width(character) in "WF" else 1.0


def truncate_to_width(said: str, width: float) -> str:
    """Return text that is cut off where there is no more room.

    >>> truncate_to_width("a long name", 50)
    'a lon…'
    """
    if text_width(said) <= width:
        return said
    while said and text_width(f"{said}…") > width:
        said = said[:-1]
    return f"{said.rstrip()}…"


def draw_figure(
    draw: Callable[[ViewBox], tuple[float, Markup]],
    *,
    key: str,
    title: str,
    summary: str,
    caption: str = "",
) -> Markup:
    """Return a figure: drawn twice, of which style.css shows the one for the room there is.

    ``draw`` returns the height it took, and what it drew.
    """
    pictures = [_draw_svg(draw, size, f"{key}-{size.name}", title, summary)
                for size in (_WIDE, _NARROW)]  # fmt: skip
    below = [tag("figcaption", caption)] if caption else []
    return tag("figure", *pictures, *below, class_="chart")


def _draw_svg(
    draw: Callable[[ViewBox], tuple[float, Markup]],
    size: ViewBox,
    key: str,
    title: str,
    summary: str,
) -> Markup:
    height, drawn = draw(size)
    return tag(
        "svg",
        tag("title", title, id=f"{key}-title"),
        tag("desc", summary, id=f"{key}-desc"),
        drawn,
        class_=f"chart-{size.name}",
        viewBox=f"0 0 {coord(size.width)} {coord(height)}",
        role="img",
        aria_labelledby=f"{key}-title",
        aria_describedby=f"{key}-desc",
    )
