"""Hostile paths, host names and forms cannot leave or enter the prefix."""

from __future__ import annotations

import re

import httpx
import pytest

PATHS = [
    "/ladder//evil.example/", "/ladder///evil.example", "//evil.example/ladder/",
    "/ladder/..//evil.example", "/ladder/%2f%2fevil.example", "/ladder/%5cevil.example",
    "/ladder/boards/../../../etc/passwd", "/ladder/static/../../../etc/passwd",
    "/ladder/static/%2e%2e/%2e%2e/etc/passwd", "/ladder/static/..%2f..%2fetc%2fpasswd",
    "/ladder/static/....//style.css", "/ladder/ladder/", "/ladder/ladder/boards/first",
    "/ladderboards/first", "/LADDER/boards/first", "/ladder;/boards/first", "/ladder/%00",
    "/ladder/boards/first%0d%0aSet-Cookie:%20a=b", "/ladder/boards/first/%0d%0aLocation:%20//evil",
    "/boards/first", "/api/v1/boards", "/../ladder/metrics", "/%6cadder/metrics",
]  # fmt: skip


@pytest.mark.parametrize("path", PATHS)
def test_an_unknown_path_has_no_foreign_links(site, path):
    """The answer is an error page without redirects or links to other places."""
    response = site.raw(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    head = response.partition("\r\n\r\n")[0]
    assert re.match(r"HTTP/1.1 (301|400|401|404|422) ", head), head
    assert "root:" not in response
    assert "\r\nset-cookie: a=b" not in head.lower()
    for url in re.findall(r"(?im)^location: *(\S+)", head):
        assert url.startswith((f"{site.url}/", "https://localhost/ladder/"))
    for url in re.findall(r'(?:href|src|action)="([^"]*)"', response):
        assert url.startswith(("/ladder/", "#", "?")), url


NEXT = [
    "//evil.example", "https://evil.example", "/\\evil.example", "/boards//evil.example",
    "/ladder//evil.example", "/boards/../../evil", "\t//evil.example", "javascript:alert(1)",
    "/boards/first\r\nSet-Cookie: a=b", "/ladder/boards/first", "/boards/\\evil.example",
    "@evil.example", ".evil.example", "/boards/%0d%0aLocation:%20//evil.example",
]  # fmt: skip


def test_signing_in_redirects_below_the_prefix(site):
    token = site.team("Goes on")
    for target in NEXT:
        with site.browser() as browser:
            shown = browser.get("/login", params={"next": target})
            for url in re.findall(r'(?:href|src|action)="([^"]*)"', shown.text):
                assert url.startswith(("/ladder/", "#"))
            response = site.sign_in(browser, token, next=target)
            assert response.status_code == 303
            assert re.fullmatch(r"/ladder/boards/[\w/%:.-]*", response.headers["location"])
            assert "//" not in response.headers["location"].replace("%20//", "")
            assert "a=b" not in str(response.headers)


def test_a_proxy_that_drops_the_port_of_its_host(site, another_proxy):
    """Many a configuration has $host: what people type is known from --url."""
    other = another_proxy({"Host $http_host;": "Host $host;"})
    with other.browser() as browser:
        word = re.search(r'name="csrf" value="([^"]+)"', browser.get("/login").text)[1]
        form = {"token": site.organiser, "csrf": word}
        foreign = browser.post("/session", data=form, headers={"Origin": "https://localhost:1"})
        assert foreign.status_code == 403
        response = browser.post("/session", data=form, headers={"Origin": site.origin})
        assert response.status_code == 303


def test_a_session_cookie_of_another_server_is_ignored(site):
    token = site.team("Has two")
    with site.browser() as browser:
        mine = site.sign_in(browser, token).cookies["ladderboard_session"]
    with site.browser() as browser:
        both = f"ladderboard_session={mine}; ladderboard_session=bm90IG91cnM.c2lnbmVk"
        response = browser.get("/boards/first/submit", headers={"Cookie": both})
        assert "Has two" in response.text


def test_forwarded_headers_of_direct_clients_are_ignored(site):
    """Who reaches the server itself comes from no address of --proxy, and claims in vain."""
    wrong = {"Authorization": "Bearer lb_team_wrong"}
    transport = httpx.HTTPTransport(local_address="127.0.0.4")
    with httpx.Client(base_url=site.listening, transport=transport) as cheat:
        for index in range(40):
            claims = {"X-Forwarded-For": f"192.0.2.{index}", "X-Forwarded-Proto": "https"}
            response = cheat.get("/api/v1/boards/first/team", headers={**wrong, **claims})
        assert response.status_code == 429
        # The prefix may be there or not: links have it in either case.
        for path in ("/boards/first", "/ladder/boards/first"):
            assert 'href="/ladder/boards/first/submit"' in cheat.get(path).text
