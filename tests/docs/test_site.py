"""The documentation as a site: built strictly, complete, and without foreign resources."""

from __future__ import annotations

import os
import re
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

import _site as builder
import pytest
from markdown_it import MarkdownIt

from support.html_page import HtmlPage

ROOT = Path(__file__).parents[2]


@cache
def pages(site):
    """Read every page that was built, by its place."""
    return {
        str(path.relative_to(site)): HtmlPage(path.read_text())
        for path in sorted(site.rglob("*.html"))
        if path.name != "404.html"
    }


def follow(page_path, link):
    """Say where a link of a page leads on the site, and to which fragment; None for elsewhere."""
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return None
    path = (
        os.path.normpath(Path(page_path).parent / unquote(parts.path)) if parts.path else page_path
    )
    return ("index.html" if path == "." else path), unquote(parts.fragment)


def test_every_link_has_a_target(site):
    broken = []
    for page_path, page in pages(site).items():
        for link in [*page.links, *page.loaded]:
            target = follow(page_path, link)
            if target is None:
                continue
            path, fragment = target
            if not (site / path).is_file():
                broken.append(f"{page_path}: {link}")
            elif fragment and path in pages(site) and fragment not in pages(site)[path].anchors:
                broken.append(f"{page_path}: {link} (no such fragment)")
    assert broken == []


def test_pages_load_nothing_from_other_hosts(site):
    for page_path, page in pages(site).items():
        assert [link for link in page.loaded if follow(page_path, link) is None] == [], page_path
    for style in site.rglob("*.css"):
        assert not re.search(r"(@import|url\()\s*[\"']?(https?:)?//", style.read_text()), style


def test_every_page_is_reached_from_the_front_page(site):
    reached, waiting = {"index.html"}, ["index.html"]
    while waiting:
        page_path = waiting.pop()
        targets = {
            target[0]
            for link in pages(site)[page_path].links
            if (target := follow(page_path, link))
        }
        new = {target for target in targets if target in pages(site)} - reached
        reached |= new
        waiting += new
    assert reached == set(pages(site))
    sources = {path.relative_to(ROOT) for path in (ROOT / "docs").rglob("*.md")}
    paths = {str(path) for path in sources} | set(builder.reference_pages())
    assert {path.removeprefix("docs/").replace(".md", ".html") for path in paths} <= reached


def test_the_navigation_is_what_the_index_lists(site):
    _, *shelves = re.split(r"^## (.+)$", (ROOT / "docs/index.md").read_text(), flags=re.MULTILINE)
    readers = ["Participants", "Organisers", "Engineers", "Operators", "Researchers"]
    assert shelves[::2] == [*readers, "Reference", "Background", "The project"]
    listed = re.findall(r"\]\((\S+)\.md\)", "".join(shelves[1::2]))
    built = {path.removesuffix(".html") for path in pages(site) if not path.startswith("project/")}
    assert built <= {"index", *listed}
    text = (site / "index.html").read_text()
    beside = re.findall(r'<a href="([^"#]*)\.html" class="md-nav__link"', text)
    places = [path.replace("../", "project/") for path in listed]
    assert [os.path.normpath(path) for path in beside] == places


def test_the_docs_stay_short():
    """Everything that people write; the reference and the tables of figures are generated."""
    pages = [path for path in (ROOT / "docs").rglob("*.md") if "figures" not in path.parts]
    words = {path: len(path.read_text().split()) for path in pages}
    assert sum(words.values()) <= 55_000, sorted(words.items(), key=lambda item: -item[1])[:20]


def test_lists_and_prompts_are_rendered(site, tmp_path):
    """Lists, tables and code are what they are wherever else the same file is read."""
    builder.copy_pages(tmp_path, builder.reference_pages())
    common = MarkdownIt("commonmark").enable("table")
    sources = sorted(tmp_path.rglob("*.md"))
    assert len(sources) > 80
    for source in sources:
        page_path = source.relative_to(tmp_path).with_suffix(".html")
        text = re.sub(r"\A---\n.*?\n---\n", "", source.read_text(), flags=re.DOTALL)
        assert pages(site)[str(page_path)].counts == HtmlPage(common.render(text)).counts, page_path


def test_every_page_has_its_own_title(site):
    titles = [
        re.search(r"<title>(.*?)</title>", (site / page).read_text())[1] for page in pages(site)
    ]
    assert len(set(titles)) == len(titles)
    assert all(title.endswith(" - Ladderboard") for title in titles)


def test_a_broken_link_is_refused(tmp_path, monkeypatch):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/index.md").write_text("# Home\n\n[There](nowhere.md)\n")
    monkeypatch.setattr(builder, "ROOT", tmp_path)
    with pytest.raises(SystemExit, match=r"docs/index\.md: the link nowhere\.md does not exist"):
        builder.build(tmp_path / "site", {})
    assert not (tmp_path / "site").exists()


def test_a_link_to_a_missing_heading_is_refused(tmp_path, monkeypatch):
    (tmp_path / "docs").mkdir()
    (tmp_path / "script").mkdir()
    for file in ("zensical.toml", "script/site.css"):
        (tmp_path / file).write_text((ROOT / file).read_text())
    (tmp_path / "docs/index.md").write_text("# Home\n\n[Here](#nothing-here)\n")
    monkeypatch.setattr(builder, "ROOT", tmp_path)
    with pytest.raises(SystemExit, match="nothing-here"):
        builder.build(tmp_path / "site", {})
    assert not (tmp_path / "site").exists()


@pytest.mark.parametrize(
    ("markdown", "set_as"),
    [
        ("R_D(f_{t,v})", "R<sub>D</sub>(f<sub>t,v</sub>)"),
        ("e^{-x} and n^2", "e<sup>-x</sup> and n<sup>2</sup>"),
        ("`R_D` stays", "`R_D` stays"),
        ("zero_one stays", "zero_one stays"),
        ("[a](b_c.md) stays", "[a](b_c.md) stays"),
    ],
)
def test_subscripts_and_superscripts_are_formatted(markdown, set_as):
    assert builder.map_prose(builder.CODE, markdown, builder.format_indices) == set_as
