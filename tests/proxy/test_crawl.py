"""Every link and file on every page is below the prefix and answers, for every role."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urldefrag, urljoin, urlsplit

import pytest

from ladderboard.server import _pages

_LEADS = {"href", "src", "action", "formaction", "poster", "srcset"}
_WITHOUT = "proxy_pass http://127.0.0.1:8000;"
STRIPPED = {_WITHOUT: "proxy_pass http://127.0.0.1:8000/;"}


class Links(HTMLParser):
    """Collects what a page leads to."""

    def __init__(self, text):
        super().__init__()
        self.links = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.links += [
            ("form" if name == "formaction" else tag, value)
            for name, value in attributes
            if name in _LEADS
        ]


def crawl(browser):
    """Go everywhere from the first page on; return all places, the pages, and the forms' places."""
    home = str(browser.base_url)
    urls, pages, forms = {home}, {}, set()
    waiting = [home]
    while waiting:
        url = waiting.pop()
        response = browser.get(url)
        if response.status_code == 401 and re.search("/api/v1/boards/(?!first)", url):
            continue  # a session of one board is none of another's
        assert response.status_code == 200, (url, response.status_code)
        if not response.headers["content-type"].startswith("text/html"):
            continue
        pages[url] = response.text
        for tag, value in Links(response.text).links:
            target = urldefrag(urljoin(url, value))[0]
            assert target.startswith(home), f"{url} leads out of {home}: {tag} {value}"
            if tag == "form":
                forms.add(target)
            elif target not in urls:
                urls.add(target)
                waiting.append(target)
    return urls, pages, forms


def test_links_of_public_team_and_organiser_pages_stay_below_the_prefix(site):
    token = site.team("Crawler")
    counts = []
    for credential in (None, token, site.organiser):
        with site.browser() as browser:
            if credential is not None:
                assert site.sign_in(browser, credential).status_code == 303
            urls, pages, forms = crawl(browser)
            for url in forms:
                # There is something, though it wants to be sent to.
                assert browser.get(url).status_code in {200, 405}, url
            counts.append((len(urls), len(pages), len(forms)))
            # Only organisers are shown pages to organise with.
            organises = any(url.endswith("/organise") for url in pages)
            assert organises is (credential == site.organiser)
            for url, text in pages.items():
                shown_urls = set(re.findall(r"https?://localhost[^\s&<\"]*", text))
                assert all(
                    shown_url.startswith(f"{site.url}/") or shown_url == site.url
                    for shown_url in shown_urls
                ), (
                    url,
                    shown_urls,
                )
                if re.search("^[^?]*/boards/[a-z]+/submit$", url):
                    assert f"ladderboard submit {site.url}/boards/" in text
                    assert f'Client("{site.url}")' in text
    # Else nothing was looked at.
    assert counts[0][1] >= 10
    assert min(counts[1][2], counts[2][2]) > counts[0][2]


def test_a_proxy_that_strips_the_prefix(site, another_proxy):
    other = another_proxy(STRIPPED)
    with other.browser() as browser:
        urls, pages, _ = crawl(browser)
        assert len(pages) >= 10
        assert any("/static/" in url for url in urls)
        response = site.sign_in(browser, site.team("Stripped"), next="/boards/first/submit")
        assert response.headers["location"] == "/ladder/boards/first/submit"
        assert browser.get("/boards/first/submit").status_code == 200


def test_no_template_or_script_has_an_absolute_path():
    folder = Path(_pages.__file__).parent
    for path in folder.glob("templates/*.html"):
        assert not re.findall(r"""(?:href|src|action)=["']/""", path.read_text()), path
    for path in folder.glob("static/*.js"):
        assert not re.findall(r"""(?:fetch|open|replace)\([^)]*["'`]/""", path.read_text()), path


def test_addresses_for_programs_have_the_prefix(site):
    with site.browser() as browser:
        document = browser.get("/openapi.json").json()
        assert document["servers"] == [{"url": site.url}]
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
        response = browser.get(f"{site.origin}{path}")
        assert response.status_code == 200
        assert str(response.url) == f"{site.url}/"
        assert "<h1>Boards</h1>" in response.text
