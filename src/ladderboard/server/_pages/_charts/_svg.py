"""SVG elements, the width of text, and figures in two sizes."""

import re
from collections.abc import Callable, Iterable
from functools import cache
from typing import NamedTuple
from unicodedata import east_asian_width

from markupsafe import Markup, escape

FONT = 13.0  # in units of the view box; the same as in style.css
_CHARACTER_WIDTH, _BOLD_WIDTH = 0.64, 0.7  # of a digit in a wide font, relative to the font size
_INVALID_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class ViewBox(NamedTuple):
    """The size of a drawing. Text scales with it, so narrow screens get a drawing of their own."""

    name: str
    width: float
    height: float


_WIDE = ViewBox("wide", 720, 300)
_NARROW = ViewBox("narrow", 340, 260)


def coord(value: float) -> str:
    """Return a coordinate as text, with at most one decimal.

    >>> coord(12.0), coord(1 / 3), coord(-0.01)
    ('12', '0.3', '0')
    """
    text = f"{value:.1f}"
    return "0" if text == "-0.0" else text.removesuffix(".0")


def tag(name: str, *children: str, **attributes: str | float) -> Markup:
    """Return an element, escaped. In attribute names ``class_`` is class and ``_`` is ``-``.

    >>> tag("text", "a < b", x=1, class_="axis")
    Markup('<text x="1" class="axis">a &lt; b</text>')
    """
    attribute_texts = [
        f' {_attribute_name(key)}="{_escape(value)}"' for key, value in attributes.items()
    ]
    content = "".join([child if type(child) is Markup else _escape(child) for child in children])
    end = f">{content}</{name}>" if content else "/>"
    return Markup(f"<{name}{''.join(attribute_texts)}{end}")  # noqa: S704 - escaped above


@cache
def _attribute_name(key: str) -> str:
    return key.rstrip("_").replace("_", "-")


def _escape(value: str | float) -> str:
    """Return a value as escaped text; characters that XML forbids are replaced."""
    if not isinstance(value, str):
        return coord(value)
    return str(escape(_INVALID_XML.sub("\ufffd", str(value))))


def draw_text(
    content: str, x: float, y: float, *, anchor: str = "start", class_: str = "axis"
) -> Markup:
    """Return a text element."""
    return tag("text", content, x=x, y=y, text_anchor=anchor, class_=f"chart-{class_}")


def tooltip(note: str) -> Markup:
    """Return a title element, which browsers show as a tooltip."""
    return tag("title", note) if note else Markup("")


def dots_path(positions: Iterable[tuple[float, float]]) -> str:
    """Return the path of dots: lines of length 0, drawn with round caps."""
    points = dict.fromkeys((coord(x), coord(y)) for x, y in positions)
    return "".join(f"M{x} {y}H{x}" for x, y in points)


def text_width(content: str, *, bold: bool = False) -> float:
    """Return the approximate width of a text."""
    return sum(map(_character_width, content)) * FONT * (_BOLD_WIDTH if bold else _CHARACTER_WIDTH)


def _character_width(character: str) -> float:
    """Return the relative width of a character: East Asian ones and emoji are wider."""
    return 1.6 if east_asian_width(character) in "WF" else 1.0


def truncate_to_width(content: str, width: float) -> str:
    """Return a text cut to a width, with an ellipsis if it is cut.

    >>> truncate_to_width("a long name", 50)
    'a lon…'
    """
    if text_width(content) <= width:
        return content
    while content and text_width(f"{content}…") > width:
        content = content[:-1]
    return f"{content.rstrip()}…"


def draw_figure(
    draw: Callable[[ViewBox], tuple[float, Markup]],
    *,
    key: str,
    title: str,
    summary: str,
    caption: str = "",
) -> Markup:
    """Return a figure with a wide and a narrow drawing; style.css shows the one that fits.

    ``draw`` returns the height and the content of a drawing.
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
    height, content = draw(size)
    return tag(
        "svg",
        tag("title", title, id=f"{key}-title"),
        tag("desc", summary, id=f"{key}-desc"),
        content,
        class_=f"chart-{size.name}",
        viewBox=f"0 0 {coord(size.width)} {coord(height)}",
        role="img",
        aria_labelledby=f"{key}-title",
        aria_describedby=f"{key}-desc",
    )
