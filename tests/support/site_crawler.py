"""Follows every link of a static site and checks it."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit

_LINK_ATTRIBUTES = {"href", "src", "action", "srcset", "poster", "data", "xlink:href"}
_FORBIDDEN_TAGS = {
    "script",
    "form",
    "iframe",
    "object",
    "embed",
    "base",
    "button",
    "input",
    "style",
}


class _Page(HTMLParser):
    """The ids, the internal links and the external links of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids, self.links, self.external = [], [], set()
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        assert tag not in _FORBIDDEN_TAGS, tag
        for name, value in attrs:
            assert not name.startswith("on"), (tag, name)
            assert name != "style", (tag, value)  # forbidden by the content security policy
            if name == "id":
                self.ids.append(value)
            elif name in _LINK_ATTRIBUTES:
                is_external = tag == "a" and urlsplit(value).scheme in {"http", "https", "mailto"}
                self.external.add(value) if is_external else self.links.append(value)


def crawl_site(folder: Path) -> tuple[set[str], set[str]]:
    """Return all files that links lead to, and all external links."""
    pages: dict[str, _Page] = {}
    reached, external, waiting = {"index.html"}, set(), ["index.html"]
    targets = []
    while waiting:
        name = waiting.pop()
        page = pages[name] = _Page((folder / name).read_text(encoding="utf-8"))
        assert len(set(page.ids)) == len(page.ids), name
        external |= page.external
        for link in page.links:
            path, fragment = urldefrag(link)
            parts = urlsplit(path)
            assert parts[:2] == ("", ""), link
            assert not parts.query, link
            assert not path.startswith("/"), link
            target = (Path(name).parent / unquote(path)).as_posix() if path else name
            assert ".." not in Path(target).parts, link
            assert (folder / target).is_file(), f"{name}: {link} leads nowhere"
            targets.append((target, fragment))
            if target not in reached and target.endswith(".html"):
                waiting.append(target)
            reached.add(target)
    for target, fragment in targets:
        assert not fragment or fragment in pages[target].ids, f"{target}#{fragment}"
    return reached, external
