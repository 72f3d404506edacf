"""Parses a page of the documentation site: links, loaded files, anchors and element counts."""

from __future__ import annotations

from collections import Counter
from html.parser import HTMLParser

_SOURCE_ATTRIBUTE = dict.fromkeys(("iframe", "img", "script", "source"), "src") | {"link": "href"}
_NOT_LOADED = {"prev", "next", "canonical"}
_COUNTED_TAGS = {
    *("h1", "h2", "h3", "h4", "ul", "ol", "li", "pre", "table", "tr", "th", "td"),
    *("em", "strong", "a", "code", "img", "sub", "sup", "blockquote"),
}


class HtmlPage(HTMLParser):
    """Parses HTML.

    ``links`` are the targets of links, ``loaded`` the URLs of scripts, images and stylesheets,
    ``anchors`` the valid fragments, ``counts`` how often each tag occurs in the written content.
    """

    def __init__(self, html):
        super().__init__()
        self.links, self.loaded, self.anchors, self.counts = [], [], set(), Counter()
        self._code = 0
        self._whole = "<article" not in html  # made by a Markdown library, without a theme
        self._inside = self._whole
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.anchors |= {attributes[name] for name in ("id", "name") if attributes.get(name)}
        if tag == "a" and attributes.get("href"):
            self.links.append(attributes["href"])
        source = _SOURCE_ATTRIBUTE.get(tag)
        if source in attributes and attributes.get("rel") not in _NOT_LOADED:
            self.loaded.append(attributes[source])
        if tag == "article":
            self._inside = True
        if tag == "pre":
            self._code += 1
        is_generated = "headerlink" in attributes.get("class", "") or (
            tag == "a" and "href" not in attributes
        )
        in_code = self._code and tag != "pre"
        if self._inside and not is_generated and not in_code and tag in _COUNTED_TAGS:
            self.counts[tag] += 1

    def handle_endtag(self, tag):
        if tag == "article":
            self._inside = self._whole
        if tag == "pre":
            self._code -= 1
