"""What a page of the site holds: where it leads, what it loads, how it is built."""

from __future__ import annotations

from collections import Counter
from html.parser import HTMLParser

__all__ = ["Page"]

LOADED = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src"}
COUNTED = {
    *("h1", "h2", "h3", "h4", "ul", "ol", "li", "pre", "table", "tr", "th", "td"),
    *("em", "strong", "a", "code", "img", "sub", "sup", "blockquote"),
}


class Page(HTMLParser):
    """Reads a page's HTML.

    ``links`` are the targets of its links, ``loaded`` those of what comes with it, ``anchors`` what
    a fragment may name, ``counts`` how often every element is in what was written for it.
    """

    def __init__(self, html):
        super().__init__()
        self.links, self.loaded, self.anchors, self.counts = [], [], set(), Counter()
        self._code = 0
        self._whole = "<article" not in html  # what a Markdown library made, without a theme
        self._inside = self._whole
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        said = dict(attrs)
        self.anchors |= {said[name] for name in ("id", "name") if said.get(name)}
        if tag == "a" and said.get("href"):
            self.links.append(said["href"])
        if LOADED.get(tag) in said and said.get("rel") not in {"prev", "next", "canonical"}:
            self.loaded.append(said[LOADED[tag]])
        if tag == "article":
            self._inside = True
        if tag == "pre":
            self._code += 1
        ours = not (self._code and tag != "pre") and "headerlink" not in said.get("class", "")
        ours = ours and (tag != "a" or "href" in said)
        if self._inside and ours and tag in COUNTED:
            self.counts[tag] += 1

    def handle_endtag(self, tag):
        if tag == "article":
            self._inside = self._whole
        if tag == "pre":
            self._code -= 1
