"""Paths, names and forms of somebody who wants out of the prefix, or in from outside."""

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
def test_a_path_that_leads_nowhere(site, path):
    """Nothing is shown, nobody is sent elsewhere, and nothing is broken."""
    said = site.raw(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    head = said.partition("\r\n\r\n")[0]
    assert re.match(r"HTTP/1.1 (301|400|401|404|422) ", head), head
    assert "root:" not in said
    assert "\r\nset-cookie: a=b" not in head.lower()
    for place in re.findall(r"(?im)^location: *(\S+)", head):
        assert place.startswith((f"{site.url}/", "https://localhost/ladder/"))
    for place in re.findall(r'(?:href|src|action)="([^"]*)"', said):
        assert place.startswith(("/ladder/", "#", "?")), place


NEXT = [
    "//evil.example", "https://evil.example", "/\\evil.example", "/boards//evil.example",
    "/ladder//evil.example", "/boards/../../evil", "\t//evil.example", "javascript:alert(1)",
    "/boards/first\r\nSet-Cookie: a=b", "/ladder/boards/first", "/boards/\\evil.example",
    "@evil.example", ".evil.example", "/boards/%0d%0aLocation:%20//evil.example",
]  # fmt: skip


def test_after_signing_in_one_stays_below_the_prefix(site):
    token = site.team("Goes on")
    for wanted in NEXT:
        with site.browser() as browser:
            shown = browser.get("/login", params={"next": wanted})
            for place in re.findall(r'(?:href|src|action)="([^"]*)"', shown.text):
                assert place.startswith(("/ladder/", "#"))
            said = site.sign_in(browser, token, next=wanted)
            assert said.status_code == 303
            assert re.fullmatch(r"/ladder/boards/[\w/%:.-]*", said.headers["location"])
            assert "//" not in said.headers["location"].replace("%20//", "")
            assert "a=b" not in str(said.headers)


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "https://localhost.evil.example"},
        {"Origin": "https://localhost:1"},
        {"Origin": "file://"},
        {"Origin": "https://evil.example", "X-Forwarded-Host": "evil.example"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
    ids=str,
)
def test_a_form_of_another_site_is_refused(site, headers):
    with site.browser() as browser:
        word = re.search(r'name="csrf" value="([^"]+)"', browser.get("/login").text)[1]
        form = {"token": site.organiser, "csrf": word}
        said = browser.post("/session", data=form, headers=headers)
        assert said.status_code == 403
        assert "set-cookie" not in said.headers
        own = {"Origin": site.origin, "Sec-Fetch-Site": "same-origin"}
        assert browser.post("/session", data=form, headers=own).status_code == 303


def test_a_proxy_that_forgets_the_port_of_its_name(site, another_proxy):
    """Many a configuration has $host: what people type is known from --url."""
    other = another_proxy({"Host $http_host;": "Host $host;"})
    with other.browser() as browser:
        word = re.search(r'name="csrf" value="([^"]+)"', browser.get("/login").text)[1]
        form = {"token": site.organiser, "csrf": word}
        foreign = browser.post("/session", data=form, headers={"Origin": "https://localhost:1"})
        assert foreign.status_code == 403
        own = browser.post("/session", data=form, headers={"Origin": site.origin})
        assert own.status_code == 303


def test_a_session_of_another_server_above_the_prefix_is_not_taken_for_ours(site):
    token = site.team("Has two")
    with site.browser() as browser:
        mine = site.sign_in(browser, token).cookies["ladderboard_session"]
    with site.browser() as browser:
        both = f"ladderboard_session={mine}; ladderboard_session=bm90IG91cnM.c2lnbmVk"
        said = browser.get("/boards/first/submit", headers={"Cookie": both})
        assert "Has two" in said.text


def test_directly_nobody_is_believed_but_the_proxy(site):
    """Who reaches the server itself comes from no address of --proxy, and claims in vain."""
    wrong = {"Authorization": "Bearer lb_team_wrong"}
    transport = httpx.HTTPTransport(local_address="127.0.0.4")
    with httpx.Client(base_url=site.listening, transport=transport) as cheat:
        for at in range(40):
            claims = {"X-Forwarded-For": f"192.0.2.{at}", "X-Forwarded-Proto": "https"}
            said = cheat.get("/api/v1/boards/first/team", headers={**wrong, **claims})
        assert said.status_code == 429
        # The prefix may be there or not: links have it in either case.
        for path in ("/boards/first", "/ladder/boards/first"):
            assert 'href="/ladder/boards/first/submit"' in cheat.get(path).text
