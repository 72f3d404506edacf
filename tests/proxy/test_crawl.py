"""Every link and file on every page is below the prefix and answers, whoever looks."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urldefrag, urljoin, urlsplit

import pytest

from ladderboard.server import _pages

_LEADS = {"href", "src", "action", "data-poll", "formaction", "poster", "srcset"}
_WITHOUT = "proxy_pass http://127.0.0.1:8000;"
STRIPPED = {_WITHOUT: "proxy_pass http://127.0.0.1:8000/;"}


class Links(HTMLParser):
    """Collects what a page leads to."""

    def __init__(self, text):
        super().__init__()
        self.found = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.found += [(tag, value) for name, value in attributes if name in _LEADS]


def crawl(browser):
    """Go everywhere from the first page on; return all places, the pages, and the forms' places."""
    home = str(browser.base_url)
    seen, pages, forms = {home}, {}, set()
    left = [home]
    while left:
        place = left.pop()
        said = browser.get(place)
        if said.status_code == 401 and re.search("/api/v1/boards/(?!first)", place):
            continue  # a session of one board is none of another's
        assert said.status_code == 200, (place, said.status_code)
        if not said.headers["content-type"].startswith("text/html"):
            continue
        pages[place] = said.text
        for tag, value in Links(said.text).found:
            whole = urldefrag(urljoin(place, value))[0]
            assert whole.startswith(home), f"{place} leads out of {home}: {tag} {value}"
            if tag == "form":
                forms.add(whole)
            elif whole not in seen:
                seen.add(whole)
                left.append(whole)
    return seen, pages, forms


def test_pages_of_everybody_a_team_and_the_organiser(site):
    token = site.team("Crawler")
    counts = []
    for who in (None, token, site.organiser):
        with site.browser() as browser:
            if who is not None:
                assert site.sign_in(browser, who).status_code == 303
            seen, pages, forms = crawl(browser)
            for place in forms:
                # There is something, though it wants to be sent to.
                assert browser.get(place).status_code in {200, 405}, place
            counts.append((len(seen), len(pages), len(forms)))
            for place, text in pages.items():
                told = set(re.findall(r"https?://localhost[^\s&<\"]*", text))
                assert all(each.startswith(f"{site.url}/") or each == site.url for each in told), (
                    place,
                    told,
                )
                if re.search("/boards/[a-z]+$", place):
                    assert f"ladderboard submit {site.url}/boards/" in text
                    assert f'Client("{site.url}")' in text
    # Else nothing was looked at.
    assert counts[0][1] >= 10
    assert counts[2][1] > counts[0][1]
    assert counts[2][2] > counts[1][2] > counts[0][2]


def test_a_proxy_that_takes_the_prefix_off(site, another_proxy):
    other = another_proxy(STRIPPED)
    with other.browser() as browser:
        seen, pages, _ = crawl(browser)
        assert len(pages) >= 10
        assert any("/static/" in each for each in seen)
        said = site.sign_in(browser, site.team("Stripped"), next="/boards/first/submit")
        assert said.headers["location"] == "/ladder/boards/first/submit"
        assert browser.get("/boards/first/submit").status_code == 200


@pytest.mark.slow
def test_the_whole_name(make_site):
    """The same configuration with location / and no path in --url."""
    whole = {"location /ladder/ {": "location / {"}
    with (
        make_site([("first", 400)], prefix="", changes=whole) as site,
        site.browser() as browser,
    ):
        _, pages, _ = crawl(browser)
        assert f"{site.url}/boards/first" in pages
        said = site.sign_in(browser, site.organiser)
        assert said.headers["location"] == "/"
        assert "Path=/;" in said.headers["set-cookie"]
        assert "Secure" in said.headers["set-cookie"]


def test_no_place_is_written_without_the_prefix():
    folder = Path(_pages.__file__).parent
    for path in folder.glob("templates/*.html"):
        assert not re.findall(r"""(?:href|src|action|data-poll)=["']/""", path.read_text()), path
    for path in folder.glob("static/*.js"):
        assert not re.findall(r"""(?:fetch|open|replace)\([^)]*["'`]/""", path.read_text()), path


def test_what_leads_on_for_programs(site):
    with site.browser() as browser:
        said = browser.get("/openapi.json").json()
        assert said["servers"] == [{"url": site.url}]
        for name in ("One", "Two"):
            site.team(name)
        page = browser.get("/api/v1/boards/first/leaderboard?limit=1")
        link = re.fullmatch('<(.*)>; rel="next"', page.headers["link"])[1]
        assert link.startswith("/ladder/api/v1/boards/first/leaderboard?limit=1&cursor=")
        assert browser.get(urljoin(site.url, link)).status_code == 200
        assert urlsplit(str(page.url)).path == "/ladder/api/v1/boards/first/leaderboard"


@pytest.mark.parametrize("path", ["/ladder", "/ladder/"])
def test_with_and_without_a_slash_at_the_end(site, path):
    with site.browser(follow_redirects=True) as browser:
        said = browser.get(f"{site.origin}{path}")
        assert said.status_code == 200
        assert str(said.url) == f"{site.url}/"
        assert "<h1>Boards</h1>" in said.text
