"""Walks through a folder of pages as a browser would, and minds every link."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit

__all__ = ["crawl"]

_LINKS = {"href", "src", "action", "srcset", "poster", "data", "xlink:href"}
_NEVER = {"script", "form", "iframe", "object", "embed", "base", "button", "input", "style"}


class _Page(HTMLParser):
    """The ids and links of a page; those that lead to elsewhere apart."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids, self.links, self.outward = [], [], set()
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        assert tag not in _NEVER, tag
        for name, value in attrs:
            assert not name.startswith("on"), (tag, name)
            assert name != "style", (tag, value)  # which the policy forbids
            if name == "id":
                self.ids.append(value)
            elif name in _LINKS:
                outward = tag == "a" and urlsplit(value).scheme in {"http", "https", "mailto"}
                self.outward.add(value) if outward else self.links.append(value)


def crawl(folder: Path, start: str = "index.html") -> tuple[set[str], set[str]]:
    """Return every file that is reached, and every link that leads to elsewhere."""
    pages: dict[str, _Page] = {}
    reached, outward, waiting = {start}, set(), [start]
    wanted = []
    while waiting:
        name = waiting.pop()
        page = pages[name] = _Page((folder / name).read_text(encoding="utf-8"))
        assert len(set(page.ids)) == len(page.ids), name
        outward |= page.outward
        for link in page.links:
            place, fragment = urldefrag(link)
            parts = urlsplit(place)
            assert parts[:2] == ("", ""), link
            assert not parts.query, link
            assert not place.startswith("/"), link
            target = (Path(name).parent / unquote(place)).as_posix() if place else name
            assert ".." not in Path(target).parts, link
            assert (folder / target).is_file(), f"{name}: {link} leads nowhere"
            wanted.append((target, fragment))
            if target not in reached and target.endswith(".html"):
                waiting.append(target)
            reached.add(target)
    for target, fragment in wanted:
        assert not fragment or fragment in pages[target].ids, f"{target}#{fragment}"
    return reached, outward
